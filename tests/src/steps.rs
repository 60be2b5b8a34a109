//! What a process does, step by step: each statement that PostgreSQL has run for it, and each request that the API server
//! has answered it. At a chosen one the process is killed before it hears of it.

mod sql;

use std::sync::Arc;

use nix::sys::signal::Signal;
use parking_lot::Mutex;

use crate::servers::cluster::{Cluster, Gate};
use crate::servers::data_plane::send;
use crate::servers::postgres::Server;

/// Shared with what stands between the process and its servers.
#[derive(Debug, Clone, Default)]
pub struct Steps(Arc<Mutex<Counting>>);

#[derive(Debug, Default)]
struct Counting {
    pid: Option<u32>,
    /// In the order in which they were done.
    done: Vec<String>,
    /// Which one is the last, and whether it was.
    last: Option<Last>,
    killed: bool,
}

#[derive(Debug)]
enum Last {
    Step(Step),
    /// The first that is called something that holds this.
    Holding(String),
}

/// Which step: of those that are called so, the first (0), the second (1) and so on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub called: String,
    pub nth: usize,
}

impl Step {
    /// Whether anything is another thing afterwards, at once or with the end of a transaction.
    #[must_use]
    pub fn changes(&self) -> bool {
        let reads = [
            "SQL select",
            "SQL with",
            "SQL begin",
            "SQL rollback",
            "SQL set local",
            "SQL close all",
            "API GET",
        ];
        let called = self.called.to_lowercase();
        !reads.iter().any(|start| called.starts_with(&start.to_lowercase()))
    }
}

impl Steps {
    fn with<T>(&self, work: impl FnOnce(&mut Counting) -> T) -> T {
        work(&mut self.0.lock())
    }

    /// Stands before a PostgreSQL from now on, and gives the address there.
    pub(crate) fn before(&self, server: &Server) -> String {
        let folder = sql::stand(self.clone(), server);
        server.url_in(&folder)
    }

    /// Stands before the API server from now on.
    pub(crate) async fn before_cluster(&self, cluster: &Cluster) -> Gate {
        let steps = self.clone();
        Gate::telling(cluster, move |line| {
            request_called(line).is_none_or(|called| steps.done(format!("API {called}")))
        })
        .await
    }

    /// Who is killed.
    pub(crate) fn meant_for(&self, pid: u32) {
        self.with(|it| (it.pid, it.killed) = (Some(pid), false));
    }

    /// Counts from here on, and kills the process when it has done this step; `None`: never.
    pub fn begin(&self, last: Option<Step>) {
        self.count(last.map(Last::Step));
    }

    /// Kills the process when it has done a step that is called something that holds `part`.
    pub fn begin_until(&self, part: &str) {
        self.count(Some(Last::Holding(part.to_owned())));
    }

    fn count(&self, last: Option<Last>) {
        self.with(|it| {
            it.done.clear();
            it.last = last;
        });
    }

    /// Whether the process was killed.
    #[must_use]
    pub fn killed(&self) -> bool {
        self.with(|it| it.killed)
    }

    /// Ends the counting, and gives what was done.
    pub fn end(&self) -> Vec<Step> {
        let done = self.with(|it| {
            it.last = None;
            std::mem::take(&mut it.done)
        });
        let nth = |i: usize| done[..i].iter().filter(|other| **other == done[i]).count();
        done.iter().enumerate().map(|(i, called)| Step { called: called.clone(), nth: nth(i) }).collect()
    }

    /// A step was done. False: the process must not hear of it.
    fn done(&self, called: String) -> bool {
        self.with(|it| {
            if it.killed {
                return false;
            }
            let nth = it.done.iter().filter(|other| **other == called).count();
            let is_last = match &it.last {
                Some(Last::Step(step)) => (&step.called, step.nth) == (&called, nth),
                Some(Last::Holding(part)) => called.contains(part),
                None => false,
            };
            it.done.push(called);
            if is_last {
                send(it.pid.expect("a process asks"), Signal::SIGKILL);
                it.killed = true;
            }
            !is_last
        })
    }
}

/// What a request is called, by its first line. Watches and what keeps the Lease go on beside the work.
fn request_called(line: &str) -> Option<String> {
    let (method, address) = line.strip_suffix(" HTTP/1.1")?.split_once(' ')?;
    let (path, query) = address.split_once('?').unwrap_or((address, ""));
    // the group, the version, the namespace, then the resource, a name, and a part of the object
    let mut rest = path.split("/namespaces/").nth(1)?.split('/').skip(1);
    let resource = rest.next()?;
    let part = rest.nth(1).map(|part| format!("/{part}")).unwrap_or_default();
    let beside = query.contains("watch=true") || resource == "leases";
    // of something that was told before, more is told in the same Event
    let method = if resource == "events" { "TELL" } else { method };
    (!beside).then(|| format!("{method} {resource}{part}"))
}
