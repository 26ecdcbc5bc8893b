//! One list of REST requests, sent to a Java worker and to ours, and the comparison of what they answer.
//!
//! The list is data (`requests.jsonl`), and so are the differences that are meant (`intended-differences.md`, each with its reason). Java's answers
//! are kept in `tests/golden/rest`, so that the REST crate's own tests need no Java. The run against both workers is `rest_differential` in
//! `tests/system`.
//!
//! A line of the list: `id`, `method`, `path` (sent as it is, `${dir}` replaced by a folder with an `input.txt`), `headers`, `json` or `body`, and
//! `until`: conditions to be met before the request is sent.

pub mod answer;
pub mod compare;
pub mod http;
pub mod list;
pub mod run;
