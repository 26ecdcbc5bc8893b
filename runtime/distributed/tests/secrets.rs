//! A connector that quotes its password in everything it says: a whole worker on the dev broker, and the password is in no answer over
//! REST, in no status record and in no line of the log at TRACE.
//!
//! A test binary of its own: the log is the process's.

#![allow(missing_docs, unreachable_pub, reason = "a test binary has no public API")]
#![allow(clippy::unwrap_used, reason = "a failed set-up fails the test")]

#[path = "scenarios/support/mod.rs"]
#[allow(dead_code, unused_imports, reason = "the scenarios use all of it")]
mod support;

use oncewire_client::reader::Isolation;
use oncewire_plugins::providers::Secrets;
use serde_json::{Value, json};
use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};
use support::{Group, Node, STATUSES, eventually};
use tracing_subscriber::Layer;
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

const SECRET: &str = "tiger\"22/ü";
/// A part that shows in whatever way the rest is written.
const PART: &str = "tiger";

/// What was written to a log.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Two logs of this process at TRACE: as the command line writes it, and without the mask.
fn logs(secrets: &Secrets) -> (Log, Log) {
    let (masked, plain) = (Log::default(), Log::default());
    let (secrets, to_masked, to_plain) = (secrets.clone(), masked.clone(), plain.clone());
    let layer = tracing_subscriber::fmt::layer().with_ansi(false);
    let masked_lines = layer.with_writer(move || secrets.masking(to_masked.clone())).with_filter(LevelFilter::TRACE);
    let layer = tracing_subscriber::fmt::layer().with_ansi(false);
    let plain_lines = layer.with_writer(move || to_plain.clone()).with_filter(LevelFilter::TRACE);
    tracing_subscriber::registry().with(masked_lines).with(plain_lines).init();
    (masked, plain)
}

/// A worker whose every answer is looked at.
struct Watched {
    node: Node,
    /// What was masked in answers so far, with the request.
    masked: Mutex<Vec<String>>,
}

impl Watched {
    async fn ask(&self, method: &str, path: &str, body: Option<&Value>) -> (u16, String) {
        let answer = self.node.rest.settled(method, path, body).await;
        let text = answer.body.to_string();
        assert!(!text.contains(PART), "{method} {path} is answered with {}: {text}", answer.status);
        if text.contains("[hidden]") {
            self.masked.lock().unwrap().push(format!("{method} {path}"));
        }
        (answer.status, text)
    }

    /// Puts the configuration, and waits until all of `parts` are in what the worker tells of the connector.
    async fn until(&self, config: &Value, path: &str, parts: &[&str]) {
        assert!(matches!(self.ask("PUT", "/connectors/c/config", Some(config)).await.0, 200 | 201), "{config}");
        eventually(&format!("{path} {parts:?}"), async || {
            let (_, text) = self.ask("GET", path, None).await;
            if parts.iter().all(|part| text.contains(part)) { Ok(()) } else { Err(text) }
        })
        .await;
    }

    async fn offsets(&self) -> (u16, String) {
        let offsets = json!({"offsets": [{"partition": {"task": "0"}, "offset": {"n": 1}}]});
        self.ask("PATCH", "/connectors/c/offsets", Some(&offsets)).await
    }
}

#[tokio::test]
async fn a_connector_that_quotes_its_secret_everywhere_gives_it_away_nowhere() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("key"), format!("{SECRET}\n")).unwrap();
    let group = Group::with(&[
        ("config.providers", "dir"),
        ("config.providers.dir.class", "org.apache.kafka.common.config.provider.DirectoryConfigProvider"),
    ])
    .await;
    let (masked_log, plain_log) = logs(&group.secrets);
    let worker = Watched { node: group.join().await, masked: Mutex::default() };
    let reference = format!("${{dir:{}:key}}", directory.path().display());
    let config = |more: &[(&str, &str)]| {
        let mut all = vec![("secret", reference.as_str()), ("records", "5")];
        all.extend(more);
        group.scripted(&all)
    };
    validate(&worker, &config).await;
    instance(&worker, &config).await;
    tasks(&worker, &config).await;
    offsets(&worker, &config).await;

    let statuses = group.read(STATUSES, Isolation::Uncommitted).await;
    let masked = worker.masked.into_inner().unwrap();
    group.close([worker.node]).await;
    // Whether anything else is told at this level is a matter of moments.
    tracing::trace!("a library logs in with {SECRET}");
    assert!(!format!("{statuses:?}").contains(PART), "{statuses:?}");
    let told = statuses.iter().filter(|(_, value)| value.as_ref().is_some_and(|value| value.contains("[hidden]")));
    assert!(told.count() >= 5, "the errors themselves are there: {statuses:?}");
    for path in ["validate", "/config", "/restart", "/status", "/tasks", "/offsets"] {
        assert!(masked.iter().any(|request| request.ends_with(path)), "{path} among {masked:?}");
    }
    let (masked_log, plain_log) = (masked_log.text(), plain_log.text());
    let lines = |log: &str, part: &str| log.lines().filter(|line| line.contains(part)).count();
    assert!(lines(&plain_log, PART) >= 8, "what is masked would have been there");
    let at_trace =
        |log: &str| log.lines().filter(|line| line.contains("TRACE") && line.contains("logs in with")).count();
    assert_eq!((at_trace(&plain_log), at_trace(&masked_log)), (1, 1), "all levels are looked through");
    assert_eq!(lines(&masked_log, PART), 0, "{masked_log}");
    assert!(lines(&masked_log, "[hidden]") >= 8);
}

async fn validate(worker: &Watched, config: &impl Fn(&[(&str, &str)]) -> Value) {
    for on_validate in ["fail", "panic"] {
        let config = config(&[("on.validate", on_validate), ("name", "c")]);
        let path = "/connector-plugins/ScriptedSourceConnector/config/validate";
        assert_eq!(worker.ask("PUT", path, Some(&config)).await.0, if on_validate == "fail" { 200 } else { 400 });
        assert_eq!(worker.ask("PUT", "/connectors/c/config", Some(&config)).await.0, 400);
    }
}

async fn instance(worker: &Watched, config: &impl Fn(&[(&str, &str)]) -> Value) {
    for (on_start, words) in [("fail", "the source says no"), ("panic", "the connector says no")] {
        worker.until(&config(&[("on.start", on_start)]), "/connectors/c/status", &["FAILED", words, "[hidden]"]).await;
        assert_eq!(worker.ask("POST", "/connectors/c/restart", None).await.0, 500);
        assert_eq!(worker.ask("POST", "/connectors/c/restart?includeTasks=true", None).await.0, 202);
        worker.ask("GET", "/connectors?expand=status&expand=info", None).await;
    }
    worker.until(&config(&[("on.configs", "fail")]), "/connectors/c/status", &["RUNNING"]).await;
    worker.until(&config(&[("on.configs", "tell")]), "/connectors/c/tasks", &["login as scott:[hidden]@host"]).await;
}

async fn tasks(worker: &Watched, config: &impl Fn(&[(&str, &str)]) -> Value) {
    worker.until(&config(&[("on.poll", "retry")]), "/connectors/c/status", &["\"tasks\":[{", "RUNNING"]).await;
    worker.until(&config(&[("on.commit", "fail")]), "/connectors/c/offsets", &["\"n\":5"]).await;
    for (key, value, words) in [
        ("on.task.start", "fail", "the task's source says no"),
        ("on.poll", "fail", "the source broke"),
        ("on.poll", "panic", "the task broke"),
    ] {
        let config = config(&[(key, value), ("records", "10")]);
        worker.until(&config, "/connectors/c/tasks/0/status", &["FAILED", words, "[hidden]"]).await;
        worker.ask("GET", "/connectors/c/status", None).await;
    }
}

async fn offsets(worker: &Watched, config: &impl Fn(&[(&str, &str)]) -> Value) {
    for (on_alter, code) in [("refuse", 500), ("panic", 500), ("yes", 200)] {
        worker.until(&config(&[("on.alter", on_alter)]), "/connectors/c/status", &["RUNNING"]).await;
        assert_eq!(worker.ask("PUT", "/connectors/c/stop", None).await.0, 204);
        eventually("no tasks", async || {
            let (_, text) = worker.ask("GET", "/connectors/c/tasks", None).await;
            if text == "[]" { Ok(()) } else { Err(text) }
        })
        .await;
        let (altered, text) = worker.offsets().await;
        assert_eq!(altered, code, "{on_alter}: {text}");
        assert_eq!(worker.ask("DELETE", "/connectors/c/offsets", None).await.0, code);
        assert_eq!(worker.ask("PUT", "/connectors/c/resume", None).await.0, 202);
    }
}
