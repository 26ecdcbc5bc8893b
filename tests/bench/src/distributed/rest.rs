//! What the bench asks a worker over REST, and what it takes for an answer.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use oncewire_rest_requests::http::{Response, send};
use serde_json::{Value, json};

/// How long a worker may answer 409 because its group is being rebalanced.
const REBALANCE_MAX: Duration = Duration::from_secs(120);

/// After a 409.
const AGAIN_AFTER: Duration = Duration::from_millis(20);

/// The state of something that works.
const RUNNING: &str = "RUNNING";

/// The REST interface of one worker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rest {
    /// `host:port`, which is also how statuses name the worker.
    pub worker_id: String,
}

/// Who runs something, and how it is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Such as RUNNING.
    pub state: String,
    /// `host:port` of its worker.
    pub worker: String,
}

/// Where a connector and its tasks run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The instance.
    pub connector: Place,
    /// The tasks in their order.
    pub tasks: Vec<Place>,
}

impl Rest {
    /// Whether a GET is answered with 200 now.
    #[must_use]
    pub fn answers(&self, path: &str) -> bool {
        self.ask("GET", path, None).is_ok_and(|response| response.code == 200)
    }

    /// The JSON that a GET brings; `None` unless it is answered with 200.
    #[must_use]
    pub fn get(&self, path: &str) -> Option<Value> {
        let response = self.ask("GET", path, None).ok().filter(|response| response.code == 200)?;
        serde_json::from_slice(&response.body).ok()
    }

    /// A POST that must be answered well; repeated while the group is being rebalanced.
    ///
    /// # Errors
    /// It is answered otherwise.
    pub fn post(&self, path: &str, body: &Value) -> Result<Value> {
        let deadline = Instant::now() + REBALANCE_MAX;
        let body = body.to_string();
        loop {
            let response = self.ask("POST", path, Some(body.as_bytes()));
            let response = response.with_context(|| format!("POST {path} to {}", self.worker_id))?;
            if response.code == 409 && Instant::now() < deadline {
                std::thread::sleep(AGAIN_AFTER);
                continue;
            }
            let text = String::from_utf8_lossy(&response.body);
            ensure!((200..300).contains(&response.code), "POST {path} to {}: {} {text}", self.worker_id, response.code);
            return Ok(serde_json::from_slice(&response.body).unwrap_or(Value::Null));
        }
    }

    /// Makes a connector.
    ///
    /// # Errors
    /// As [`Rest::post`].
    pub fn create(&self, name: &str, config: &Value) -> Result<()> {
        self.post("/connectors", &json!({ "name": name, "config": config })).map(drop)
    }

    /// A connector's states.
    #[must_use]
    pub fn status(&self, connector: &str) -> Option<Status> {
        Status::of(&self.get(&format!("/connectors/{connector}/status"))?)
    }

    /// The states of all connectors.
    #[must_use]
    pub fn statuses(&self) -> Option<BTreeMap<String, Status>> {
        let all = self.get("/connectors?expand=status")?;
        // One that was made a moment ago may have no status yet: it is there, but nowhere.
        let one = |(name, value): (&String, &Value)| (name.clone(), Status::of(&value["status"]).unwrap_or_default());
        Some(all.as_object()?.iter().map(one).collect())
    }

    fn ask(&self, method: &str, path: &str, body: Option<&[u8]>) -> std::io::Result<Response> {
        let headers = [("Content-Type".to_owned(), "application/json".to_owned())];
        send(&self.worker_id, method, path, if body.is_some() { &headers } else { &[] }, body)
    }
}

impl Default for Status {
    fn default() -> Self {
        Self { connector: Place { state: String::new(), worker: String::new() }, tasks: Vec::new() }
    }
}

impl Status {
    fn of(body: &Value) -> Option<Self> {
        let place = |value: &Value| {
            let text = |key: &str| Some(value[key].as_str()?.to_owned());
            Some(Place { state: text("state")?, worker: text("worker_id")? })
        };
        let tasks = body["tasks"].as_array()?.iter().map(place).collect::<Option<_>>()?;
        Some(Self { connector: place(&body["connector"])?, tasks })
    }

    /// Whether the instance and so many tasks run.
    #[must_use]
    pub fn runs(&self, tasks: usize) -> bool {
        let running = |place: &Place| place.state == RUNNING;
        running(&self.connector) && self.tasks.len() == tasks && self.tasks.iter().all(running)
    }

    /// How much of it that worker has.
    #[must_use]
    pub fn load_on(&self, worker_id: &str) -> usize {
        std::iter::once(&self.connector).chain(&self.tasks).filter(|place| place.worker == worker_id).count()
    }

    /// The numbers of the tasks that that worker has.
    #[must_use]
    pub fn tasks_on(&self, worker_id: &str) -> Vec<i32> {
        (0..).zip(&self.tasks).filter(|(_, place)| place.worker == worker_id).map(|(task, _)| task).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_says_who_has_what() {
        let place = |worker: &str, id| json!({"state": "RUNNING", "worker_id": worker, "id": id});
        let body = json!({"name": "c", "connector": place("a:1", 0), "tasks": [place("b:2", 0), place("a:1", 1)]});
        let status = Status::of(&body).unwrap();
        assert!(status.runs(2) && !status.runs(1) && !status.runs(3));
        assert_eq!((status.load_on("a:1"), status.load_on("b:2")), (2, 1));
        assert_eq!(status.tasks_on("a:1"), [1]);
    }

    #[test]
    fn a_connector_without_a_status_runs_nowhere() {
        assert_eq!(Status::of(&json!({"error_code": 404})), None);
        assert!(!Status::default().runs(0));
    }
}
