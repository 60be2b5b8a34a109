//! The annotation `rowgate.dev/replay`, read.

use jiff::Timestamp;
use rowgate_pg::tenant::replay::From;

/// Where a replay begins: `fromRetentionStart`, `fromUtc=...` or `fromEventId=...`; what stands behind a semicolon only makes
/// the value another one.
///
/// # Errors
/// A sentence that says how it is written.
pub(super) fn from(value: &str) -> Result<From, String> {
    let what = value.split(';').next().unwrap_or_default().trim();
    let problem = || {
        format!(
            "the annotation rowgate.dev/replay is {value:?}; write fromRetentionStart, fromUtc=2030-01-31T12:00:00Z or \
             fromEventId=<id of an event>, and ;<anything> behind it to do the same again"
        )
    };
    if what == "fromRetentionStart" {
        return Ok(From::RetentionStart);
    }
    let (name, value) = what.split_once('=').ok_or_else(problem)?;
    match name.trim() {
        "fromUtc" => value.trim().parse::<Timestamp>().map(From::Utc).map_err(|_| problem()),
        "fromEventId" => event(value.trim()).ok_or_else(problem),
        _ => Err(problem()),
    }
}

/// `generation.tick.seq`.
fn event(id: &str) -> Option<From> {
    let mut parts = id.split('.');
    let (generation, tick, seq) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    let generation: i32 = generation.parse().ok()?;
    let (tick, seq): (i64, i64) = (tick.parse().ok()?, seq.parse().ok()?);
    (0 <= generation && 0 <= tick && 0 <= seq).then_some(From::EventId { generation, tick, seq })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replay_is_read_as_it_is_written_and_refused_with_how_to_write_it() {
        let utc = "2030-01-31T12:00:00Z".parse().expect("a time");
        for (value, expected) in [
            ("fromRetentionStart", From::RetentionStart),
            ("fromRetentionStart;2", From::RetentionStart),
            ("fromUtc=2030-01-31T12:00:00Z", From::Utc(utc)),
            ("fromEventId=1.20.3; again", From::EventId { generation: 1, tick: 20, seq: 3 }),
        ] {
            assert_eq!(from(value), Ok(expected), "{value}");
        }
        for bad in [
            "",
            "all",
            "fromUtc",
            "fromUtc=yesterday",
            "fromEventId=1.2",
            "fromEventId=1.2.3.4",
            "fromEventId=1.-2.3",
        ] {
            let problem = from(bad).expect_err(bad);
            assert!(problem.contains("write fromRetentionStart"), "{problem}");
        }
    }
}
