//! A neighbor's storm: requests of another tenant that wait for a lock while somebody else is measured.

use std::io;
use std::net::SocketAddr;

use rowgate_tests::servers::postgres::{Server, execute};
use rowgate_tests::wait::until;
use sqlx::{PgConnection, Row as _};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::stage::{CONNECTIONS, STORM, request};

/// Requests that wait: for the lock as many as there are connections, behind them the others.
const WAITING: usize = 200;

/// It ends with this value.
pub(crate) struct Storm {
    _lock: PgConnection,
    _clients: Vec<TcpStream>,
}

impl Storm {
    /// Returns when all that can wait for the lock do.
    pub(crate) async fn rise(server: &Server, address: SocketAddr, key: &str) -> io::Result<Storm> {
        let mut lock = server.connect(STORM).await;
        execute(&mut lock, "begin; lock table b.items").await;
        let mut clients = Vec::new();
        let request = request(&format!("/auth/{STORM}/api/items/id/1"), &format!("X-API-Key: {key}\r\n"));
        for _ in 0..WAITING {
            let mut stream = TcpStream::connect(address).await?;
            stream.write_all(&request).await?;
            clients.push(stream);
        }
        let mut superuser = server.connect(STORM).await;
        let sql = "select count(*) from pg_stat_activity where datname = current_database()
            and application_name = 'rowgate' and wait_event_type = 'Lock'";
        until("a storm", async || {
            let row = sqlx::query(sql).fetch_one(&mut superuser).await.expect("a row");
            (CONNECTIONS as i64 <= row.get::<i64, _>(0)).then_some(())
        })
        .await;
        Ok(Storm { _lock: lock, _clients: clients })
    }
}
