//! What processes cost, as Linux accounts it in `/proc`: CPU time, and memory that is theirs.

use std::fs;

/// Clock ticks per second of `/proc/<pid>/stat`, which Linux fixes at 100 for every program.
const TICKS: f64 = 100.0;

/// CPU seconds of these processes so far, with those of children that have ended.
pub(crate) fn cpu(pids: &[u32]) -> f64 {
    pids.iter().filter_map(|pid| stat(*pid)).map(|stat| stat.ticks as f64 / TICKS).sum()
}

/// CPU seconds of the whole machine so far, idle time left out.
pub(crate) fn machine() -> f64 {
    let text = fs::read_to_string("/proc/stat").unwrap_or_default();
    let fields = text.lines().next().unwrap_or_default().split_whitespace().skip(1);
    let ticks: Vec<u64> = fields.filter_map(|it| it.parse().ok()).collect();
    // user nice system idle iowait irq softirq steal; what guests used stands in user already
    [0, 1, 2, 5, 6, 7].iter().filter_map(|i| ticks.get(*i)).sum::<u64>() as f64 / TICKS
}

/// A process and all below it.
pub(crate) fn tree(root: u32) -> Vec<u32> {
    let mut all = vec![root];
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parents: Vec<(u32, u32)> = pids.filter_map(|pid| Some((pid, stat(pid)?.parent))).collect();
    let mut at = 0;
    while let Some(&parent) = all.get(at) {
        all.extend(parents.iter().filter(|(_, it)| *it == parent).map(|(pid, _)| *pid));
        at += 1;
    }
    all
}

/// Megabytes of these processes: proportional set size, in which shared pages count once.
pub(crate) fn megabytes(pids: &[u32]) -> f64 {
    let pss = |pid: &u32| {
        let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
        let line = text.lines().find(|line| line.starts_with("Pss:"))?;
        line.split_whitespace().nth(1)?.parse::<f64>().ok()
    };
    pids.iter().filter_map(pss).sum::<f64>() / 1024.0
}

/// The most memory that a process held at once since [`forget_most`], in megabytes.
pub(crate) fn most_megabytes(pid: u32) -> f64 {
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|it| it.split_whitespace().next()?.parse::<f64>().ok()).unwrap_or(f64::NAN) / 1024.0
}

/// From here on the most memory is counted anew.
pub(crate) fn forget_most(pid: u32) {
    fs::write(format!("/proc/{pid}/clear_refs"), "5").expect("the process is ours");
}

/// How many of these processes run, or wait for a core.
pub(crate) fn runnable(pids: &[u32]) -> usize {
    pids.iter().filter_map(|pid| stat(*pid)).filter(|stat| stat.is_runnable).count()
}

struct Stat {
    is_runnable: bool,
    parent: u32,
    ticks: u64,
}

fn stat(pid: u32) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name stands in parentheses and may hold anything.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let number = |i: usize| fields.get(i).and_then(|it| it.parse::<u64>().ok());
    let ticks = number(11)? + number(12)? + number(13)? + number(14)?;
    let is_runnable = fields.first() == Some(&"R");
    Some(Stat { is_runnable, parent: fields.get(1)?.parse().ok()?, ticks })
}
