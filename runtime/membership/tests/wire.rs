//! The bytes, against vectors that Kafka Connect 4.3.1 wrote, and against bytes that nobody should have written.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;

use oncewire_membership::*;
use proptest::prelude::*;

const METADATA_V0: &str = "0000000f687474703a2f2f68313a383038332f0000000000000007";
const METADATA_V1: &str = "0001000f687474703a2f2f68313a383038332f0000000000000007ffffffff";
const METADATA_V2: &str = "0002000f687474703a2f2f68313a383038332f0000000000000007ffffffff";
const ASSIGNMENT_V0: &str = "0000000000036d2d31000f687474703a2f2f68313a383038332f00000000000000070000000200016300000002ffffffff000000000001640000000100000003";
const ASSIGNMENT_V2: &str = "0002000000036d2d31000f687474703a2f2f68313a383038332f00000000000000070000000200016300000002ffffffff0000000000016400000001000000030000000000000000";
const ASSIGNMENT_V1_REVOKED: &str = "0001000000036d2d31000f687474703a2f2f68313a383038332f0000000000000007000000000000000100016300000002ffffffff0000000100000028";

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Vec<u8> {
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).unwrap()).collect()
}

fn state(allocation: Option<Assignment>) -> MemberState {
    MemberState { url: "http://h1:8083/".to_owned(), offset: 7, allocation }
}

fn load(connectors: &[&str], tasks: &[(&str, i32)]) -> Load {
    Load {
        connectors: connectors.iter().map(|&connector| connector.to_owned()).collect(),
        tasks: tasks.iter().map(|&(connector, task)| TaskId::new(connector, task)).collect(),
    }
}

fn assignment(assigned: Load) -> Assignment {
    Assignment {
        leader: "m-1".to_owned(),
        leader_url: "http://h1:8083/".to_owned(),
        offset: 7,
        assigned,
        ..Assignment::default()
    }
}

/// Scenario A1.
#[test]
fn metadata_v0_roundtrip() {
    assert_eq!(hex(&encode_metadata(ConnectProtocol::Eager, &state(None))), METADATA_V0);
    let held = state(Some(assignment(load(&["c"], &[]))));
    assert_eq!(hex(&encode_metadata(ConnectProtocol::Eager, &held)), METADATA_V0, "eager members hold nothing");
    assert_eq!(decode_metadata(&unhex(METADATA_V0)), Ok(state(None)));
}

/// Scenario A2.
#[test]
fn metadata_v1_v2_only_version_differs() {
    assert_eq!(hex(&encode_metadata(ConnectProtocol::Compatible, &state(None))), METADATA_V1);
    assert_eq!(hex(&encode_metadata(ConnectProtocol::Sessioned, &state(None))), METADATA_V2);
    let held = state(Some(assignment(load(&["c"], &[("c", 0), ("d", 3)]))));
    let v2 = hex(&encode_metadata(ConnectProtocol::Sessioned, &held));
    assert_eq!(v2, METADATA_V2.replace("ffffffff", "00000048") + ASSIGNMENT_V2);
    let v1 = encode_metadata(ConnectProtocol::Compatible, &held);
    let differing: Vec<usize> = (0..v1.len()).filter(|&at| v1[at] != unhex(&v2)[at]).collect();
    assert_eq!(differing, [1, 32], "the low bytes of the outer and of the nested version");
    assert_eq!(decode_metadata(&v1), Ok(held.clone()));
    assert_eq!(decode_metadata(&unhex(&v2)), Ok(held));
}

#[test]
fn assignments_are_the_bytes_that_java_writes() {
    let both = assignment(load(&["c"], &[("c", 0), ("d", 3)]));
    assert_eq!(hex(&encode_assignment(ConnectProtocol::Eager, &both)), ASSIGNMENT_V0);
    assert_eq!(hex(&encode_assignment(ConnectProtocol::Sessioned, &both)), ASSIGNMENT_V2);
    assert_eq!(
        decode_assignment(&unhex(ASSIGNMENT_V0)),
        Ok(both.clone()),
        "the reader of later versions reads the eager one"
    );
    assert_eq!(decode_assignment(&unhex(ASSIGNMENT_V2)), Ok(both));
    let revoking = Assignment { revoked: load(&["c"], &[("c", 1)]), delay_ms: 40, ..assignment(Load::default()) };
    assert_eq!(hex(&encode_assignment(ConnectProtocol::Compatible, &revoking)), ASSIGNMENT_V1_REVOKED);
    assert_eq!(decode_assignment(&unhex(ASSIGNMENT_V1_REVOKED)), Ok(revoking));
}

/// Scenario A3.
#[test]
fn assignment_null_arrays() {
    let head = &ASSIGNMENT_V2[..2 * 34].replacen("0002", "0001", 1);
    let nulls = unhex(&format!("{head}ffffffffffffffff"));
    assert_eq!(decode_assignment(&nulls), Ok(assignment(Load::default())));
    assert_eq!(decode_assignment(&unhex(head)), Ok(assignment(Load::default())), "and with nothing at all");
}

#[test]
fn connectors_with_an_instance_come_first_as_in_java() {
    let bytes = encode_assignment(ConnectProtocol::Eager, &assignment(load(&["z"], &[("a", 0), ("z", 1)])));
    assert!(hex(&bytes).ends_with("0000000200017a00000002ffffffff000000010001610000000100000000"));
}

#[test]
fn a_later_version_is_read_and_a_negative_one_refused() {
    assert_eq!(decode_metadata(&unhex(&METADATA_V2.replacen("0002", "0009", 1))), Ok(state(None)));
    assert_eq!(decode_metadata(&unhex(&METADATA_V2.replacen("0002", "ffff", 1))), Err(ProtocolError::Version(-1)));
    assert_eq!(
        decode_assignment(&unhex(&ASSIGNMENT_V2.replacen("0002", "8000", 1))),
        Err(ProtocolError::Version(i16::MIN))
    );
}

#[test]
fn every_cut_is_an_error_or_an_absent_trailing_field() {
    let full = unhex(ASSIGNMENT_V1_REVOKED);
    for length in 0..full.len() {
        let cut = decode_assignment(&full[..length]);
        // After the head, after `assigned` and after `revoked` the rest may be absent.
        assert_eq!(cut.is_ok(), [34, 38, 57].contains(&length), "{length}: {cut:?}");
    }
}

#[test]
fn declared_counts_make_nothing_grow() {
    let head = &ASSIGNMENT_V2[..2 * 34];
    assert_eq!(
        decode_assignment(&unhex(&format!("{head}7fffffff"))),
        Err(ProtocolError::Truncated { field: "assignment" })
    );
    let many_tasks = unhex(&format!("{head}000000010001637fffffff"));
    assert_eq!(decode_assignment(&many_tasks), Err(ProtocolError::Truncated { field: "assignment" }));
    let negative = unhex(&format!("{head}0000000100016380000000"));
    assert_eq!(
        decode_assignment(&negative),
        Err(ProtocolError::NegativeLength { field: "assignment", length: i32::MIN })
    );
}

#[test]
fn one_long_name_before_many_tasks_meets_its_limit() {
    let mut bytes = unhex(&format!("{}00000001", &ASSIGNMENT_V2[..2 * 34]));
    bytes.extend(i16::MAX.to_be_bytes());
    bytes.extend(vec![b'n'; NAME_BYTES_MAX]);
    let tasks = ITEM_NAMES_BYTES_MAX / NAME_BYTES_MAX + 1;
    bytes.extend(i32::try_from(tasks).unwrap().to_be_bytes());
    (0..i32::try_from(tasks).unwrap()).for_each(|task| bytes.extend(task.to_be_bytes()));
    assert_eq!(decode_assignment(&bytes), Err(ProtocolError::TooMany { field: "assignment" }));
}

#[test]
fn a_name_that_does_not_fit_is_left_out_and_a_url_cut() {
    let long = "é".repeat(NAME_BYTES_MAX);
    let encoded = encode_assignment(ConnectProtocol::Sessioned, &assignment(load(&["c", &long], &[(&long, 0)])));
    assert_eq!(decode_assignment(&encoded).unwrap().assigned, load(&["c"], &[]));
    let encoded = encode_metadata(ConnectProtocol::Sessioned, &MemberState { url: long, offset: 0, allocation: None });
    assert_eq!(decode_metadata(&encoded).unwrap().url.len(), NAME_BYTES_MAX - 1, "not within a character");
}

fn any_load() -> impl Strategy<Value = Load> {
    let connectors = proptest::collection::btree_set("[a-zé \"/]{0,5}", 0..5);
    let tasks = proptest::collection::btree_set(("[a-c]{0,2}", 0..i32::MAX), 0..9);
    (connectors, tasks).prop_map(|(connectors, tasks)| Load {
        connectors,
        tasks: tasks.into_iter().map(|(connector, task)| TaskId::new(connector, task)).collect::<BTreeSet<_>>(),
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read(assigned in any_load(), revoked in any_load(), error in any::<i16>(), offset in any::<i64>(), delay_ms in any::<i32>()) {
        let written = Assignment { error, offset, assigned, revoked, delay_ms, leader: "l".to_owned(), leader_url: "http://ü".to_owned() };
        prop_assert_eq!(decode_assignment(&encode_assignment(ConnectProtocol::Sessioned, &written)), Ok(written.clone()));
        let state = MemberState { url: "u".to_owned(), offset, allocation: Some(written) };
        prop_assert_eq!(decode_metadata(&encode_metadata(ConnectProtocol::Compatible, &state)), Ok(state));
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200), at in 0_usize..60, byte in any::<u8>()) {
        // The result does not matter: nothing may panic.
        drop((decode_metadata(&bytes), decode_assignment(&bytes)));
        let mut bent = unhex(ASSIGNMENT_V1_REVOKED);
        bent[at % 61] = byte;
        drop(decode_assignment(&bent));
    }
}

#[test]
fn who_is_going_says_so_in_every_version_that_tells_what_runs() {
    let going = MemberState::going("http://m1:8083/".to_owned(), 7);
    for protocol in ConnectProtocol::Sessioned.offered().iter().filter(|protocol| !protocol.is_eager()) {
        let read = decode_metadata(&encode_metadata(*protocol, &going)).unwrap();
        assert!(read.is_going());
        assert_eq!(read, going);
    }
    let runs_nothing = MemberState { url: String::new(), offset: 0, allocation: Some(Assignment::default()) };
    assert!(!runs_nothing.is_going());
}
