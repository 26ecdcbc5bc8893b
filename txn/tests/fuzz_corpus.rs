//! The corpus of the fuzz target `txn_operations`, run through the same body.

mod model;

use std::path::PathBuf;

#[test]
fn every_input_of_the_corpus_keeps_the_books_right() {
    let corpus = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus/txn_operations");
    let mut inputs = 0;
    for entry in std::fs::read_dir(&corpus).expect("the corpus stands in the repository") {
        let path = entry.expect("a readable directory").path();
        let data = std::fs::read(&path).expect("a readable input");
        let run = std::panic::catch_unwind(|| model::fuzz_operations(&data));
        assert!(run.is_ok(), "{} found something", path.display());
        inputs += 1;
    }
    assert!(inputs >= 8, "only {inputs} inputs in {}", corpus.display());
}

#[test]
fn any_bytes_are_operations() {
    let mut state: u64 = 1;
    for length in 0..400 {
        let bytes: Vec<u8> = (0..length)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                u8::try_from(state >> 56).expect("eight bits")
            })
            .collect();
        model::fuzz_operations(&bytes);
    }
}
