//! What a process has cost, from `/proc`: processor time and memory. Linux only.
//!
//! Source: proc_pid_stat(5) and proc_pid_status(5).

use std::fs;

use anyhow::{Context, Result};

/// Clock ticks per second of `/proc/PID/stat`: USER_HZ, which Linux has fixed at 100 for programs on every architecture we build for.
const TICKS_PER_SECOND: f64 = 100.0;

/// Which line of `/proc/PID/status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// The most that was resident since the process started.
    Peak,
    /// Resident now.
    Now,
}

impl Memory {
    fn key(self) -> &'static str {
        match self {
            Self::Peak => "VmHWM:",
            Self::Now => "VmRSS:",
        }
    }
}

/// User and system time in seconds of a process with all its threads and the children that it has waited for.
///
/// # Errors
/// There is no such process.
pub fn cpu_seconds(pid: u32) -> Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).with_context(|| format!("process {pid} is gone"))?;
    parse_stat(&stat).with_context(|| format!("/proc/{pid}/stat reads {stat:?}"))
}

/// Resident memory in MB of 10^6 bytes.
///
/// # Errors
/// There is no such process.
pub fn memory_mb(pid: u32, which: Memory) -> Result<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).with_context(|| format!("process {pid} is gone"))?;
    parse_status(&status, which).with_context(|| format!("/proc/{pid}/status has no {}", which.key()))
}

/// Sockets that a process holds open, listening ones too.
///
/// # Errors
/// There is no such process.
pub fn open_sockets(pid: u32) -> Result<u64> {
    let files = fs::read_dir(format!("/proc/{pid}/fd")).with_context(|| format!("process {pid} is gone"))?;
    let targets = files.filter_map(|file| fs::read_link(file.ok()?.path()).ok());
    let sockets = targets.filter(|target| target.to_string_lossy().starts_with("socket:")).count();
    Ok(u64::try_from(sockets).unwrap_or(u64::MAX))
}

fn parse_stat(stat: &str) -> Option<f64> {
    // The second field is the program's name in brackets and may hold blanks and brackets itself.
    let (_, rest) = stat.rsplit_once(')')?;
    // utime, stime, cutime and cstime are the fields 14 to 17; `rest` begins with the third.
    let mut ticks = 0.0;
    for field in rest.split_ascii_whitespace().skip(11).take(4) {
        ticks += field.parse::<f64>().ok()?;
    }
    Some(ticks / TICKS_PER_SECOND)
}

fn parse_status(status: &str, which: Memory) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix(which.key()))?;
    let kilobytes: f64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kilobytes * 1.024 / 1000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_time_is_found_behind_a_name_with_blanks_and_brackets() {
        let stat = "42 (a ) b) S 1 42 42 0 -1 4194560 100 0 0 0 150 25 20 5 20 0 3 0 1000 0 0";
        assert_eq!(parse_stat(stat), Some(2.0));
        assert_eq!(parse_stat("42 no name"), None);
    }

    #[test]
    fn memory_is_in_megabytes_of_ten_to_the_six() {
        let status = "Name:\tx\nVmHWM:\t   12500 kB\nVmRSS:\t    5000 kB\n";
        assert_eq!(parse_status(status, Memory::Peak), Some(12.8));
        assert_eq!(parse_status(status, Memory::Now), Some(5.12));
        assert_eq!(parse_status("Name:\tx\n", Memory::Now), None);
    }

    #[test]
    fn this_process_has_cost_something() {
        assert!(memory_mb(std::process::id(), Memory::Peak).unwrap() > 0.5);
        assert!(cpu_seconds(std::process::id()).is_ok());
        let _listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        assert!(open_sockets(std::process::id()).unwrap() >= 1);
    }
}
