//! Sends the whole list to one worker, in order, waiting where a line says so.

use std::time::{Duration, Instant};

use crate::answer::{Answer, Place};
use crate::http::{self, Response};
use crate::list::{Request, Until};

/// How often a condition is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A restart shows in the states a moment after its answer; until then they are those from before it.
const RESTART_SHOWS_AFTER: Duration = Duration::from_millis(500);

/// Sends every request; `patience` is for each condition. A condition that is not met in time makes an answer with code 0 that says so.
pub fn run(requests: &[Request], place: &Place<'_>, patience: Duration) -> Vec<Answer> {
    let mut restarted = false;
    let answers = requests.iter().map(|request| {
        if std::mem::replace(&mut restarted, request.path.contains("/restart")) {
            std::thread::sleep(RESTART_SHOWS_AFTER);
        }
        answer(request, place, patience)
    });
    answers.collect()
}

fn answer(request: &Request, place: &Place<'_>, patience: Duration) -> Answer {
    for until in &request.until {
        if let Err(last) = wait(until, place, patience) {
            return failure(&request.id, format!("{until:?} did not come true within {patience:?}; last: {last}"));
        }
    }
    match exchange(request, place) {
        Ok(response) => Answer::normal(&request.id, &response, place),
        Err(error) => failure(&request.id, error.to_string()),
    }
}

fn failure(id: &str, text: String) -> Answer {
    Answer { id: id.to_owned(), code: 0, content_type: None, allow: None, location: None, body: text.into() }
}

fn exchange(request: &Request, place: &Place<'_>) -> std::io::Result<Response> {
    let mut headers: Vec<(String, String)> = request
        .headers
        .iter()
        .map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned()))
        .collect();
    let body = match (&request.json, &request.body) {
        (Some(json), _) => {
            if !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
                headers.push(("Content-Type".to_owned(), "application/json".to_owned()));
            }
            Some(json.to_string().replace("${dir}", place.dir))
        }
        (None, body) => body.as_ref().map(|body| body.replace("${dir}", place.dir)),
    };
    let path = request.path.replace("${dir}", place.dir);
    http::send(place.address, &request.method, &path, &headers, body.as_deref().map(str::as_bytes))
}

fn wait(until: &Until, place: &Place<'_>, patience: Duration) -> Result<(), String> {
    let deadline = Instant::now() + patience;
    loop {
        let last = match http::send(place.address, "GET", &until.path, &[], None) {
            Ok(response) if until.is_met(response.code, &response.body) => return Ok(()),
            Ok(response) => format!("{} {}", response.code, String::from_utf8_lossy(&response.body)),
            Err(error) => error.to_string(),
        };
        if Instant::now() > deadline {
            return Err(last);
        }
        std::thread::sleep(LOOK_EVERY);
    }
}
