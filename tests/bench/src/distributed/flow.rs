//! How a topic's committed data goes on while workers come and go: a thread that asks for the last stable offsets, the same for both sides.
//!
//! A pause is what a reader of committed data sees: between two moments at which a partition's last stable offset moved. Source of why it stands
//! still: a transaction that nobody ends (KIP-98), so a killed task's counts too.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use oncewire_client::admin::{Admin, OffsetSpec};
use oncewire_client::reader::Isolation;

use crate::client::Client;

/// How often it asks.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// When a partition's committed data grew, in order.
type Moves = BTreeMap<i32, Vec<Instant>>;

/// A pause of one partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pause {
    /// The last move before it.
    pub began: Instant,
    /// The first move after it.
    pub ended: Instant,
}

impl Pause {
    /// How long it was.
    #[must_use]
    pub fn length(&self) -> Duration {
        self.ended - self.began
    }
}

/// A thread that watches. Dropping it ends it.
#[derive(Debug)]
pub struct Flow {
    topic: String,
    moves: Arc<Mutex<Moves>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<()>>>,
}

impl Flow {
    /// Watches all partitions of a topic.
    ///
    /// # Errors
    /// The thread can't be started.
    pub fn watch(bootstrap: &str, topic: &str) -> Result<Self> {
        let (moves, stop) = (Arc::new(Mutex::new(Moves::new())), Arc::new(AtomicBool::new(false)));
        let (their_moves, their_stop) = (moves.clone(), stop.clone());
        let (bootstrap, name) = (bootstrap.to_owned(), topic.to_owned());
        let thread = std::thread::Builder::new().name("flow".to_owned()).spawn(move || {
            let client = Client::connect(&bootstrap)?;
            look(&client, &name, &their_moves, &their_stop)
        })?;
        Ok(Self { topic: topic.to_owned(), moves, stop, thread: Some(thread) })
    }

    fn moves(&self) -> Moves {
        self.moves.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until each of these partitions has moved so often since then.
    ///
    /// # Errors
    /// One doesn't in time, or the watching failed.
    pub fn wait_for(&mut self, partitions: &[i32], since: Instant, moves: usize, patience: Duration) -> Result<()> {
        let deadline = Instant::now() + patience;
        loop {
            let seen = self.moves();
            let missing: Vec<i32> =
                partitions.iter().copied().filter(|partition| moved(&seen, *partition, since) < moves).collect();
            if missing.is_empty() {
                return Ok(());
            }
            if self.thread.as_ref().is_some_and(JoinHandle::is_finished) {
                let ended = self.thread.take().map(JoinHandle::join);
                let ended = ended.unwrap_or(Ok(Ok(()))).map_err(|_| anyhow!("it panicked"))?;
                ended.with_context(|| format!("watching topic {}", self.topic))?;
            }
            ensure!(
                Instant::now() < deadline,
                "partitions {missing:?} of {} do not go on within {patience:?}",
                self.topic
            );
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// The longest pause of a partition that ended since then; `None` if it did not move.
    #[must_use]
    pub fn longest_pause(&self, partition: i32, since: Instant) -> Option<Pause> {
        longest_pause(self.moves().get(&partition)?, since)
    }
}

impl Drop for Flow {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // What it could not see was told by `wait_for`.
            let _ = thread.join();
        }
    }
}

fn look(client: &Client, topic: &str, moves: &Mutex<Moves>, stop: &AtomicBool) -> Result<()> {
    let admin = Admin::new(client.cluster().clone());
    let mut ends: BTreeMap<i32, i64> = BTreeMap::new();
    while !stop.load(Ordering::Relaxed) {
        let listed = client.block_on(admin.list_offsets(topic, None, OffsetSpec::Latest, Isolation::Committed))?;
        let now = Instant::now();
        let mut moves = moves.lock().unwrap_or_else(PoisonError::into_inner);
        for (partition, listed) in listed {
            let before = ends.insert(partition, listed.offset);
            if before.is_some_and(|before| before != listed.offset) {
                moves.entry(partition).or_default().push(now);
            }
        }
        drop(moves);
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

fn moved(moves: &Moves, partition: i32, since: Instant) -> usize {
    moves.get(&partition).map_or(0, |moves| moves.iter().filter(|at| **at > since).count())
}

fn longest_pause(moves: &[Instant], since: Instant) -> Option<Pause> {
    let pauses = moves.windows(2).map(|pair| Pause { began: pair[0], ended: pair[1] });
    pauses.filter(|pause| pause.ended > since).max_by_key(Pause::length)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_counts_from_the_last_move_before_it() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let moves = [0, 500, 510, 520, 900, 910].map(at);
        let pause = longest_pause(&moves, at(505)).unwrap();
        assert_eq!((pause.began, pause.ended), (at(520), at(900)));
        let pause = longest_pause(&moves, at(0)).unwrap();
        assert_eq!(pause.length(), Duration::from_millis(500));
        assert_eq!(longest_pause(&moves, at(910)), None);
    }
}
