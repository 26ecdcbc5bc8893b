//! The `oncewire` command line.

fn main() {}
