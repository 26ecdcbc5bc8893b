//! What we write is byte for byte what a Java worker wrote (the order of a config's properties excepted, which is a hash map's in
//! Java). The records are those of tests/golden/connect-topics.

use crate::config::records;
use crate::json::{self, Read};
use crate::status;
use serde_json::{Map, Value};

const CONFIGS: &str = include_str!("../../../tests/golden/connect-topics/configs.tsv");
const STATUS: &str = include_str!("../../../tests/golden/connect-topics/status.tsv");

/// Key, value and its members.
fn dumped(dump: &'static str) -> impl Iterator<Item = (&'static str, &'static str, Map<String, Value>)> {
    dump.lines().filter_map(|line| {
        let mut parts = line.splitn(4, '\t').skip(2);
        let (key, value) = (parts.next()?, parts.next()?);
        match json::read(Some(value.as_bytes())) {
            Ok(Read::Object(members)) => Some((key, value, members)),
            _ => None,
        }
    })
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

#[test]
fn config_records_are_written_as_java_wrote_them() {
    let mut seen = 0;
    for (key, value, members) in dumped(CONFIGS) {
        let name = |prefix| key.strip_prefix(prefix);
        let written = if let Some(connector) = name(records::TARGET_STATE) {
            records::target_state(connector, records::read_target_state(&members).unwrap())
        } else if let Some(connector) = name(records::CONNECTOR) {
            records::connector(connector, &records::read_properties(&members).unwrap())
        } else if let Some(rest) = name(records::TASK) {
            let (connector, task) = crate::keys::task(rest).unwrap();
            records::task(connector, task, &records::read_properties(&members).unwrap())
        } else if let Some(connector) = name(records::COMMIT) {
            records::commit(connector, records::read_count(&members, "tasks").unwrap())
        } else if let Some(connector) = name(records::RESTART) {
            records::restart(&records::read_restart(connector, &members))
        } else if let Some(connector) = name(records::TASK_COUNT) {
            records::task_count(connector, records::read_count(&members, "task-count").unwrap())
        } else if key == records::SESSION_KEY {
            records::session_key(&records::read_session_key(&members).unwrap())
        } else {
            records::logger_level(name(records::LOGGER).unwrap(), &records::read_level(&members).unwrap())
        };
        let written = (written.0, text(written.1.unwrap()));
        if members.contains_key("properties") {
            let sorted: Value = serde_json::from_str(&written.1).unwrap();
            assert_eq!((written.0.as_str(), sorted), (key, Value::Object(members)));
            assert_eq!(written.1.len(), value.len());
        } else {
            assert_eq!(written, (key.to_owned(), value.to_owned()));
        }
        seen += 1;
    }
    assert_eq!(seen, 40);
}

#[test]
fn status_records_are_written_as_java_wrote_them() {
    let mut seen = 0;
    for (key, value, members) in dumped(STATUS) {
        let written = match status::records::subject(key).unwrap() {
            status::records::Subject::Topic { topic, connector } => {
                assert_eq!(status::records::topic_key(connector, topic), key);
                let (task, discovered_ms) = status::records::read_topic(&members).unwrap();
                status::records::topic(connector, task, topic, discovered_ms)
            }
            _ => status::records::status(&status::records::read_status(&members).unwrap()),
        };
        assert_eq!(text(written), value, "{key}");
        seen += 1;
    }
    assert!(seen > 40, "{seen}");
}
