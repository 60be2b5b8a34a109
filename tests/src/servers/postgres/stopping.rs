//! The end of a server that a test wants, and its start over the same data.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rowgate_standalone::postgres::Postgres;

use super::Server;
use crate::wait::until;

impl Server {
    /// SIGKILL for the server; what else of it runs ends by itself.
    pub async fn kill(&mut self) {
        self.end(Signal::SIGKILL).await;
    }

    /// Ends the server as `pg_ctl stop` does.
    pub async fn shut_down(&mut self) {
        self.end(Signal::SIGINT).await;
    }

    async fn end(&mut self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.postgres.pid()).expect("process ids are positive"));
        kill(pid, signal).expect("it runs");
        until("the end of PostgreSQL", async || self.postgres.has_ended().then_some(())).await;
    }

    /// Starts the server anew after [`Server::kill`] and returns when it is ready.
    pub async fn start_again(&mut self) {
        // As long as a session of before has not noticed, the new server refuses to start.
        let start = async || Postgres::start(&self.wish, &|_| ()).await.ok();
        self.postgres = until("another PostgreSQL over the same data", start).await;
    }
}
