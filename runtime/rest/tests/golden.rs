//! The whole list of requests, sent over a socket to this crate's server before a herder in memory, and compared with what Java 4.3.1 answered.

mod memory;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use memory::MemoryHerder;
use oncewire_rest::{RestConfig, RestServer};
use oncewire_rest_requests::answer::{Answer, Place};
use oncewire_rest_requests::compare::{compare, intended};
use oncewire_rest_requests::{list, run};

/// Answers that the herder makes: texts and definitions of its validation, its plug-ins, its loggers. The run against a real worker compares them.
const OF_THE_HERDER: [&str; 4] = ["validate-", "plugin", "loggers-", "create-"];

/// The code is the REST layer's business in any case, the rest of these is not.
fn without_herders_part(answers: Vec<Answer>) -> Vec<Answer> {
    let is_herders = |id: &str| OF_THE_HERDER.iter().any(|prefix| id.starts_with(prefix)) || id.contains("invalid");
    let blank = |answer: Answer| {
        let body =
            if is_herders(&answer.id) || answer.code == 400 || answer.code == 500 { None } else { Some(answer.body) };
        Answer { body: body.unwrap_or_default(), ..answer }
    };
    answers.into_iter().map(blank).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn java_and_this_server_answer_alike() {
    let properties: BTreeMap<String, String> = [("listeners".to_owned(), "http://127.0.0.1:0".to_owned())].into();
    let (config, _) = RestConfig::from_properties(&properties).expect("a configuration");
    let server = RestServer::bind(config).await.expect("a free port");
    let address = server.addresses()[0].to_string();
    server.serve(Arc::new(MemoryHerder::new(&address)));
    let ours = tokio::task::spawn_blocking(move || {
        let place = Place { address: &address, others: &[], dir: "/nowhere" };
        run::run(&list::requests(), &place, Duration::from_secs(5))
    });
    let ours = ours.await.expect("the run does not panic");
    server.close(Duration::from_secs(5)).await;
    let java: Vec<Answer> = list::read_lines(&list::golden());
    let outcome = compare(&without_herders_part(java), &without_herders_part(ours), &intended());
    assert!(
        outcome.differences.is_empty(),
        "{} differences:\n{}",
        outcome.differences.len(),
        outcome.differences.join("\n")
    );
}
