//! The OpenAPI document is served, is well formed, and every method of it is known to the server, and the reverse.

mod memory;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use memory::MemoryHerder;
use oncewire_rest::{RestConfig, RestServer};
use oncewire_rest_requests::http;
use serde_json::Value;

fn document(address: &str) -> Value {
    let response = http::send(address, "GET", "/openapi.json", &[], None).expect("an answer");
    serde_json::from_slice(&response.body).expect("JSON")
}

/// What `Allow` says, without the methods that need no description.
fn allowed(address: &str, path: &str) -> BTreeSet<String> {
    let response = http::send(address, "OPTIONS", path, &[], None).expect("an answer");
    assert_eq!(response.code, 200, "{path}");
    let allow = response.header("allow").expect("Allow").to_owned();
    allow.split(", ").filter(|method| !matches!(*method, "HEAD" | "OPTIONS")).map(str::to_lowercase).collect()
}

/// Every `$ref` in it.
fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            if let Some(Value::String(reference)) = map.get("$ref") {
                found.insert(reference.clone());
            }
            map.values().for_each(|value| references(value, found));
        }
        Value::Array(list) => list.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_document_and_the_server_know_the_same_methods() {
    let properties: BTreeMap<String, String> = [("listeners".to_owned(), "http://127.0.0.1:0".to_owned())].into();
    let (config, _) = RestConfig::from_properties(&properties).expect("a configuration");
    let server = RestServer::bind(config).await.expect("a free port");
    let address = server.addresses()[0].to_string();
    server.serve(Arc::new(MemoryHerder::new(&address)));
    let check = tokio::task::spawn_blocking(move || {
        let document = document(&address);
        for (template, operations) in document["paths"].as_object().expect("paths") {
            let path = template.replace("{task}", "0").replace(['{', '}'], "");
            let described: BTreeSet<String> = operations.as_object().expect("operations").keys().cloned().collect();
            assert_eq!(described, allowed(&address, &path), "{template}");
        }
        let mut found = BTreeSet::new();
        references(&document, &mut found);
        for reference in found {
            assert!(document.pointer(&reference[1..]).is_some(), "{reference} leads nowhere");
        }
    });
    check.await.expect("the document fits");
    server.close(Duration::from_secs(5)).await;
}
