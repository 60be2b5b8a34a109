//! What a DBA does for a Tenant that adopts a database.

use super::{Server, execute, rows};
use crate::wait::until;

impl Server {
    /// Runs `line`, which the status of a Tenant asks for, once the operator's login is there.
    pub async fn lend(&self, line: &str) {
        let mut conn = self.connect("postgres").await;
        let there = "select 1 from pg_roles where rolname = 'rowgate_operator'";
        until("the operator's login", async || (!rows(&mut conn, there).await.is_empty()).then_some(()))
            .await;
        execute(&mut conn, line).await;
    }
}
