//! The processes that the bench has started itself: a bench that is ended by SIGTERM or SIGINT ends them first.
//!
//! Dropping a handle kills its process, but a signal drops nothing, and a Java worker that is left behind spoils the next run's figures. What the
//! scripts of `tests/services` start follows this process by `--owner`. Left out: SIGKILL, which nobody can answer, and programs that end by themselves
//! after a few seconds.
//!
//! Invariant: a listed process is not waited for yet, so that its id is nobody else's.

use std::collections::BTreeSet;
use std::io;
use std::process::{Child, Command, ExitStatus, exit};
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result};
use tokio::signal::unix::{SignalKind, signal};

static RUNNING: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

fn running() -> MutexGuard<'static, BTreeSet<u32>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// From now on SIGTERM and SIGINT end all that was started here, and then this process, with the shell's code for it.
///
/// # Errors
/// The system gives no thread, or no signals.
pub fn end_with_this_process() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let guard = runtime.enter();
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    drop(guard);
    let wait = move || {
        let code = runtime.block_on(async {
            tokio::select! {
                _ = terminate.recv() => 128 + 15,
                _ = interrupt.recv() => 128 + 2,
            }
        });
        // Held until the end: nothing more is started.
        let running = running();
        for id in running.iter() {
            eprintln!("  ending process {id}");
            // It may have ended by itself, which is no error.
            let _ = Command::new("sh").args(["-c", "kill -KILL \"$1\"", "sh", &id.to_string()]).status();
        }
        exit(code)
    };
    std::thread::Builder::new().name("signals".to_owned()).spawn(wait).context("no thread for signals")?;
    Ok(())
}

/// Starts a process that ends with this one.
///
/// # Errors
/// It can't be started.
pub fn start(command: &mut Command) -> io::Result<Child> {
    let mut running = running();
    let child = command.spawn()?;
    running.insert(child.id());
    Ok(child)
}

/// How it ended, if it did.
///
/// # Errors
/// The system refuses.
pub fn ended(child: &mut Child) -> io::Result<Option<ExitStatus>> {
    let mut running = running();
    let status = child.try_wait()?;
    if status.is_some() {
        running.remove(&child.id());
    }
    Ok(status)
}

/// SIGKILL, and waits for the end. One that has ended by itself is waited for all the same.
///
/// # Errors
/// The system refuses.
pub fn kill(child: &mut Child) -> io::Result<()> {
    let mut running = running();
    let killed = child.kill();
    child.wait()?;
    running.remove(&child.id());
    killed
}
