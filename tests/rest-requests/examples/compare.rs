//! Compares answers of two workers, each as `answers` prints them: `compare JAVA OURS`.

use std::path::Path;

use oncewire_rest_requests::answer::Answer;
use oncewire_rest_requests::compare::{compare, intended};
use oncewire_rest_requests::list::read_lines;

fn main() {
    let files: Vec<String> = std::env::args().skip(1).collect();
    let [java, ours] = &files[..] else { panic!("two files are needed") };
    let read = |path: &String| read_lines::<Answer>(Path::new(path));
    let outcome = compare(&read(java), &read(ours), &intended());
    for difference in &outcome.differences {
        println!("{difference}");
    }
    for entry in &outcome.unused {
        println!("needed by no difference: {entry:?}");
    }
    println!("{} differences", outcome.differences.len());
}
