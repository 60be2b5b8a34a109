//! What Linux says of this process. Elsewhere nothing is told.

use std::fs;

use nix::unistd::{SysconfVar, sysconf};

use super::{Kind, Text};

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

/// Under the names that Prometheus' own clients give them.
pub fn tell(text: &mut Text) {
    let Some(process) = Process::now() else { return };
    let help = "CPU time of the process, user and system.";
    text.family("process_cpu_seconds_total", Kind::Counter, help).sample(&[], process.cpu_seconds);
    let help = "When the process started, in seconds since 1970.";
    text.family("process_start_time_seconds", Kind::Gauge, help).sample(&[], process.start_seconds);
    let help = "Memory of the process that is in RAM.";
    text.family("process_resident_memory_bytes", Kind::Gauge, help).sample(&[], process.resident_bytes);
    let help = "Address space of the process.";
    text.family("process_virtual_memory_bytes", Kind::Gauge, help).sample(&[], process.virtual_bytes);
    text.family("process_open_fds", Kind::Gauge, "Open file descriptors.").sample(&[], process.open_fds);
    if let Some(max) = process.max_fds {
        text.family("process_max_fds", Kind::Gauge, "File descriptors that may be open.").sample(&[], max);
    }
}

fn positive(value: nix::Result<Option<i64>>) -> Option<u64> {
    u64::try_from(value.ok()??).ok().filter(|value| *value > 0)
}
