//! The member's background task: carries out what the machine says, and hands it the answers and the time.
//!
//! It knows nothing of groups. The machine is shared with the member's handle under a lock that is never held over an
//! await; whoever gave it an input wakes the task, and the task wakes whoever waits for an event.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{Instant, sleep_until};

use super::GroupConfig;
use super::requests::ask;
use super::state::{Answer, Machine, Output, Request, Ticket};
use crate::cluster::{Cluster, Purpose, random};
use crate::error::Error;

/// What the task and the handle share.
#[derive(Debug)]
pub(super) struct Shared {
    machine: Mutex<Machine>,
    /// The machine was given an input.
    pub(super) input: Notify,
    /// There may be an event.
    pub(super) event: Notify,
    /// The task shall end.
    pub(super) closing: Notify,
}

impl Shared {
    pub(super) fn new(machine: Machine) -> Self {
        Self { machine: Mutex::new(machine), input: Notify::new(), event: Notify::new(), closing: Notify::new() }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Machine> {
        // The machine's moves are whole or not made at all.
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request under way.
struct UnderWay {
    ticket: Ticket,
    handle: AbortHandle,
    /// What it runs on, if its connection is the member's own.
    purpose: Option<Purpose>,
}

type Done = (Ticket, Result<Answer, Error>);

/// Runs until it is told to close. Requests under way are dropped then: the brokers may still act on them.
pub(super) async fn run(shared: Arc<Shared>, cluster: Cluster, config: GroupConfig, number: u32) {
    let mut requests: JoinSet<Done> = JoinSet::new();
    // One of each kind; one more where an old one was given up.
    let mut under_way: Vec<UnderWay> = Vec::new();
    loop {
        carry_out(&shared, &cluster, &config, number, &mut requests, &mut under_way);
        let deadline = shared.lock().deadline();
        let alarm = async {
            match deadline {
                Some(deadline) => sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = shared.closing.notified() => break,
            () = shared.input.notified() => {}
            () = alarm => {
                shared.lock().handle_timeout(Instant::now());
                shared.event.notify_one();
            }
            Some(done) = requests.join_next() => {
                // An error is a request that was given up.
                if let Ok((ticket, answer)) = done {
                    under_way.retain(|one| one.ticket != ticket);
                    note(&config, &answer);
                    shared.lock().handle_answer(Instant::now(), random(), ticket, answer);
                    shared.event.notify_one();
                }
            }
        }
    }
    requests.shutdown().await;
}

fn carry_out(
    shared: &Shared,
    cluster: &Cluster,
    config: &GroupConfig,
    number: u32,
    requests: &mut JoinSet<Done>,
    under_way: &mut Vec<UnderWay>,
) {
    loop {
        let Some(output) = shared.lock().poll_output() else { return };
        match output {
            Output::Send { ticket, request } => {
                let purpose = match request {
                    Request::FindCoordinator => None,
                    Request::Join { .. } | Request::Sync { .. } => Some(Purpose::Join(number)),
                    Request::Heartbeat { .. } | Request::Leave { .. } => Some(Purpose::Membership(number)),
                };
                let asking = ask(cluster.clone(), config.clone(), number, request);
                let handle = requests.spawn(async move { (ticket, asking.await) });
                under_way.push(UnderWay { ticket, handle, purpose });
            }
            Output::Abandon(ticket) => {
                let Some(at) = under_way.iter().position(|one| one.ticket == ticket) else { continue };
                let given_up = under_way.swap_remove(at);
                given_up.handle.abort();
                if let Some(purpose) = given_up.purpose {
                    cluster.release(purpose);
                }
            }
        }
    }
}

fn note(config: &GroupConfig, answer: &Result<Answer, Error>) {
    match answer {
        Ok(Answer::Joined(joined)) => tracing::info!(
            group_id = config.group_id,
            generation = joined.generation,
            member_id = joined.member_id,
            protocol = joined.protocol,
            leads = joined.leader_id == joined.member_id,
            "joined the group"
        ),
        Err(error) => tracing::debug!(group_id = config.group_id, %error, "a group request failed"),
        Ok(_) => {}
    }
}
