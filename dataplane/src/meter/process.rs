//! What Linux says of this process. Elsewhere nothing is told.

use std::fs;

use nix::unistd::{SysconfVar, sysconf};

/// Times in seconds, memory in bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Process {
    pub cpu_seconds: f64,
    /// Since 1970.
    pub start_seconds: f64,
    pub resident_bytes: u64,
    pub virtual_bytes: u64,
    pub open_fds: usize,
    pub max_fds: Option<u64>,
}

impl Process {
    /// `None` where there is no `/proc`, or it looks otherwise than expected.
    #[must_use]
    pub fn now() -> Option<Process> {
        let stat = fs::read_to_string("/proc/self/stat").ok()?;
        let system = fs::read_to_string("/proc/stat").ok()?;
        let limits = fs::read_to_string("/proc/self/limits").ok()?;
        let per_second = positive(sysconf(SysconfVar::CLK_TCK))?;
        let page = positive(sysconf(SysconfVar::PAGE_SIZE))?;
        let open_fds = fs::read_dir("/proc/self/fd").ok()?.count();
        // The name in parentheses may hold spaces and parentheses; from the last one on there are numbers, the first of
        // which is the third field of proc(5).
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_ascii_whitespace().collect();
        let field = |nth: usize| fields.get(nth - 3)?.parse::<u64>().ok();
        let seconds = |ticks: u64| ticks as f64 / per_second as f64;
        let boot = system.lines().find_map(|line| line.strip_prefix("btime "))?.trim().parse::<u64>().ok()?;
        let max_fds = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
        Some(Process {
            cpu_seconds: seconds(field(14)? + field(15)?),
            start_seconds: boot as f64 + seconds(field(22)?),
            virtual_bytes: field(23)?,
            resident_bytes: field(24)? * page,
            open_fds,
            max_fds: max_fds.and_then(|line| line.split_ascii_whitespace().next()?.parse().ok()),
        })
    }
}

fn positive(value: nix::Result<Option<i64>>) -> Option<u64> {
    u64::try_from(value.ok()??).ok().filter(|value| *value > 0)
}
