//! What the operator counts, and its page of metrics.

use std::sync::Arc;

use kube::runtime::watcher::Event;
use rowgate_program::metrics::{Count, Histogram, Kind, Text, process};

use crate::api::Progress;
use crate::source::KubeSource;

/// The kinds that are watched, as their plurals; of Secrets the metadata only.
const WATCHES: [&str; 5] = ["tenants", "apikeys", "relationships", "webhooksubscriptions", "secrets"];

/// Everything that is counted.
#[derive(Default)]
pub struct Meter {
    watches: [Arc<WatchMeter>; WATCHES.len()],
    pub(crate) statuses: Count,
    pub(crate) status_failures: Count,
    pub(crate) events: Count,
    pub(crate) event_failures: Count,
    pub(crate) looks: Histogram,
    pub(crate) passes: Histogram,
    pub(crate) left_out: Count,
}

/// What came from the watches of one kind.
#[derive(Default)]
pub(crate) struct WatchMeter {
    applied: Count,
    deleted: Count,
    listed: Count,
    lists: Count,
    pub(crate) errors: Count,
}

impl WatchMeter {
    pub(crate) fn count<T>(&self, event: &Event<T>) {
        match event {
            Event::Apply(_) => self.applied.add_one(),
            Event::Delete(_) => self.deleted.add_one(),
            Event::InitApply(_) => self.listed.add_one(),
            Event::InitDone => self.lists.add_one(),
            Event::Init => {}
        }
    }
}

impl Meter {
    pub(crate) fn watch(&self, name: &str) -> Arc<WatchMeter> {
        let at = WATCHES.iter().position(|known| *known == name).expect("a name of the list");
        self.watches[at].clone()
    }

    /// The page. `leads`: this operator holds the Lease.
    #[must_use]
    pub fn page(&self, source: &KubeSource, progress: &Progress, leads: bool) -> String {
        let mut text = Text::default();
        self.watches(&mut text);
        let help = "Seconds since a watch last heard from the API server; an idle watch is renewed every --watch-seconds.";
        text.family("rowgate_operator_watch_silence_seconds", Kind::Gauge, help);
        for (path, silence) in progress.each() {
            text.sample(&[("path", &path)], silence.as_secs_f64());
        }
        let help = "Known objects, by kind.";
        text.family("rowgate_operator_objects", Kind::Gauge, help);
        for (kind, n) in source.n_objects() {
            text.sample(&[("kind", kind.as_str())], n);
        }
        let help = "Objects that this version cannot read; the last readable version stays in force.";
        text.family("rowgate_operator_unreadable_objects", Kind::Gauge, help);
        for (kind, n) in source.n_problems() {
            text.sample(&[("kind", kind.as_str())], n);
        }
        for (name, help, times) in [
            (
                "rowgate_operator_look_duration_seconds",
                "Duration of reading all declared objects, including finalizers and scripts.",
                &self.looks,
            ),
            (
                "rowgate_operator_pass_duration_seconds",
                "Duration of passes, each over one Tenant with its keys.",
                &self.passes,
            ),
        ] {
            text.family(name, Kind::Histogram, help).histogram(&[], times);
        }
        for (name, help, done, failed) in [
            (
                "rowgate_operator_status_writes_total",
                "Status writes, by result.",
                &self.statuses,
                &self.status_failures,
            ),
            ("rowgate_operator_events_total", "Event writes, by result.", &self.events, &self.event_failures),
        ] {
            text.family(name, Kind::Counter, help);
            for (result, count) in [("written", done), ("failed", failed)] {
                text.sample(&[("result", result)], count.get());
            }
        }
        let help = "Passes left out because PostgreSQL had counted no write since the one before.";
        text.family("rowgate_operator_passes_left_out_total", Kind::Counter, help)
            .sample(&[], self.left_out.get());
        let help = "1 while this operator holds the Lease and works, else 0.";
        text.family("rowgate_operator_leader", Kind::Gauge, help).sample(&[], u64::from(leads));
        let version = [("version", env!("CARGO_PKG_VERSION"))];
        text.family("rowgate_build_info", Kind::Gauge, "The version that runs.").sample(&version, 1);
        process::tell(&mut text);
        text.finish()
    }

    fn watches(&self, text: &mut Text) {
        let help = "Watch events: single changes, and objects in lists.";
        text.family("rowgate_operator_watch_events_total", Kind::Counter, help);
        for (name, meter) in WATCHES.iter().zip(&self.watches) {
            for (event, count) in
                [("applied", &meter.applied), ("deleted", &meter.deleted), ("listed", &meter.listed)]
            {
                text.sample(&[("kind", name), ("event", event)], count.get());
            }
        }
        for (metric, help, count) in [
            (
                "rowgate_operator_lists_total",
                "Completed lists.",
                (|meter| &meter.lists) as fn(&WatchMeter) -> &Count,
            ),
            ("rowgate_operator_watch_errors_total", "Failed lists and watches.", |meter| &meter.errors),
        ] {
            text.family(metric, Kind::Counter, help);
            for (name, meter) in WATCHES.iter().zip(&self.watches) {
                text.sample(&[("kind", name)], count(meter).get());
            }
        }
    }
}
