//! One list of REST requests to a Java worker and to ours: the same codes, types, headers and bodies, apart from the differences that are meant.

use std::time::Duration;

use oncewire_rest_requests::answer::{Answer, Place};
use oncewire_rest_requests::compare::{compare, intended};
use oncewire_rest_requests::{list, run};
use oncewire_system_tests::connect_cluster::ConnectCluster;
use oncewire_system_tests::services::{KafkaOptions, RealKafka};
use oncewire_system_tests::worker::Kind;

/// For each condition of the list.
const PATIENCE: Duration = Duration::from_secs(60);

fn kafka() -> RealKafka {
    RealKafka::start(KafkaOptions { version: "4.3.1", transaction_version: None, properties: &[] })
}

/// Starts a worker with a group of its own and sends it the whole list.
fn answers(kind: Kind, kafka: &RealKafka) -> Vec<Answer> {
    let mut cluster = ConnectCluster::new(&format!("rest-{kind}"), kafka.bootstrap(), 1);
    cluster.start(0, kind);
    let dir = cluster.path("files");
    std::fs::create_dir_all(&dir).expect("a folder can be made");
    std::fs::write(dir.join("input.txt"), "one\ntwo\n").expect("a file can be written");
    let rest = cluster.rest(0);
    let place =
        Place { address: rest.worker_id(), others: &[], dir: dir.to_str().expect("temporary folders have text names") };
    let answers = run::run(&list::requests(), &place, PATIENCE);
    cluster.stop_all();
    answers
}

fn assert_alike(java: &[Answer], other: &[Answer], what: &str) {
    let outcome = compare(java, other, &intended());
    let (count, text) = (outcome.differences.len(), outcome.differences.join("\n"));
    assert!(outcome.differences.is_empty(), "{count} differences between Java's recorded answers and {what}:\n{text}");
}

#[test]
#[ignore = "needs Apache Kafka and Java Connect"]
fn java_answers_as_recorded() {
    let java = answers(Kind::Java, &kafka());
    if std::env::var_os("ONCEWIRE_RECORD").is_some() {
        let line = |answer| serde_json::to_string(answer).expect("an answer is JSON") + "\n";
        std::fs::write(list::golden(), java.iter().map(line).collect::<String>()).expect("the file can be written");
        return;
    }
    // Which loggers a JVM has depends on what it has run so far, and that on the moment.
    let chance = |answer: &Answer| ["loggers-get", "loggers-slash"].contains(&answer.id.as_str());
    let told = |answers: Vec<Answer>| answers.into_iter().filter(|answer| !chance(answer)).collect::<Vec<_>>();
    let outcome = compare(&told(list::read_lines(&list::golden())), &told(java), &[]);
    assert!(outcome.differences.is_empty(), "Java answers in another way:\n{}", outcome.differences.join("\n"));
}

#[test]
#[ignore = "needs Apache Kafka"]
fn our_worker_answers_as_java_did() {
    let ours = answers(Kind::Ours, &kafka());
    let java: Vec<Answer> = list::read_lines(&list::golden());
    assert_alike(&java, &ours, "ours");
    let unused = compare(&java, &ours, &intended()).unused;
    assert!(unused.is_empty(), "these differences are listed and are none any more: {unused:#?}");
}

#[test]
#[ignore = "needs Apache Kafka and Java Connect"]
fn a_java_worker_and_ours_answer_alike_on_one_broker() {
    let kafka = kafka();
    let java = answers(Kind::Java, &kafka);
    let ours = answers(Kind::Ours, &kafka);
    assert_alike(&java, &ours, "ours");
}
