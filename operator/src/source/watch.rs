//! One watch in one task, with a pause of its own after each failure.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use kube::Api;
use kube::runtime::watcher::{self, Event, watcher};

use super::listed::Listed;
use super::shelf::Shelf;
use super::{Declared, Shared, changes, lock};
use crate::meter::WatchMeter;

/// After a failure, and what it grows to while failures go on.
const FIRST: Duration = Duration::from_millis(200);
const LAST: Duration = Duration::from_secs(5);

/// What a watch keeps current.
pub(crate) struct Watch<T> {
    /// The plural of the kind.
    pub(crate) name: &'static str,
    pub(crate) shelf: Shelf<T>,
    pub(crate) shared: Arc<Shared>,
}

impl<T: Declared> Watch<T> {
    /// Watches for ever.
    pub(crate) async fn follow(self, api: Api<Listed<T>>, config: watcher::Config) {
        let path = api.resource_url().to_owned();
        self.shared.progress.expect(&path);
        let meter = self.shared.meter.watch(self.name);
        let mut events = std::pin::pin!(watcher(api, config));
        let mut pause = FIRST;
        let mut failing = false;
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => {
                    // a list that has only begun proves nothing
                    if !matches!(event, Event::Init | Event::InitApply(_)) {
                        pause = FIRST;
                        self.shared.progress.note(&path);
                        if std::mem::take(&mut failing) {
                            tracing::info!(watch = path, "the watch goes on");
                        }
                    }
                    self.take(&meter, event);
                }
                Err(error) => {
                    meter.errors.add_one();
                    if !std::mem::replace(&mut failing, true) {
                        tracing::warn!(watch = path, %error, "the watch failed; what is known stays, and it is tried again");
                    }
                    tokio::time::sleep(pause.mul_f64(0.75 + 0.5 * rand::random::<f64>())).await;
                    pause = LAST.min(pause * 2);
                }
            }
        }
    }

    fn take(&self, meter: &WatchMeter, event: Event<Listed<T>>) {
        meter.count(&event);
        let ended = matches!(event, Event::InitDone);
        if let Event::Apply(listed) | Event::InitApply(listed) = &event
            && let Err(problem) = &listed.object
        {
            let (namespace, name) = super::collection::name(&listed.meta);
            let object = format!("{} {namespace}/{name}", T::KIND.as_str());
            tracing::warn!(
                object,
                problem,
                "this version cannot read the object; what was in force stays so"
            );
        }
        let shown = match &event {
            Event::Apply(listed) => Some(listed.meta.clone()),
            _ => None,
        };
        let turned = lock(&self.shelf).take(event, changes::of_object);
        if let Some(meta) = shown {
            self.shared.statuses.seen(&meta);
        }
        if ended {
            self.shared.statuses.forget();
            self.shared.listed.send_replace(());
        }
        if turned {
            self.shared.wake.notify_one();
        }
    }
}
