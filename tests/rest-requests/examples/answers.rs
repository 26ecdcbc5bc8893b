//! Sends the list to a running worker and prints its answers, one JSON value per line: `answers HOST:PORT [ID-PREFIX]`.

use std::time::Duration;

use oncewire_rest_requests::answer::Place;
use oncewire_rest_requests::{list, run};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let address = arguments.next().expect("host:port of a worker");
    let prefix = arguments.next().unwrap_or_default();
    let dir = std::env::temp_dir().join(format!("oncewire-rest-requests-{}", std::process::id()));
    let requests = list::requests();
    let chosen: Vec<_> = requests.into_iter().filter(|request| request.id.starts_with(&prefix)).collect();
    let place = Place { address: &address, others: &[], dir: dir.to_str().expect("temporary folders have text names") };
    std::fs::create_dir_all(&dir).expect("a temporary folder can be made");
    std::fs::write(dir.join("input.txt"), "one\ntwo\n").expect("a file can be written");
    for answer in run::run(&chosen, &place, Duration::from_secs(30)) {
        println!("{}", serde_json::to_string(&answer).expect("an answer is JSON"));
    }
    std::fs::remove_dir_all(&dir).expect("the folder can be removed");
}
