//! A server that is down, another password, another certificate and another authority: told in the status of its Tenants, served again
//! without a restart, and no other Tenant notices.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rowgate_tests::servers::postgres::{Server, execute};
use rowgate_tests::servers::tls::{Authority, Validity};
use rowgate_tests::world::{World, get};
use tokio::task::JoinHandle;

use super::fixture::{DBA, Servers, secret};

/// Asks for the notes of a Tenant, one request after the other, until it is told to end; then gives each status other than 200.
struct Client {
    ended: Arc<AtomicBool>,
    task: JoinHandle<(u64, Vec<String>)>,
}

impl Client {
    fn of(world: &World, name: &str) -> Client {
        let key = world.secret(&format!("{name}-key")).expect("it is served");
        let (url, ended) =
            (format!("{}/auth/{name}/api/notes", world.url()), Arc::new(AtomicBool::new(false)));
        let stop = ended.clone();
        let task = tokio::spawn(async move {
            let (mut n, mut wrong) = (0, Vec::new());
            while !stop.load(Ordering::Relaxed) {
                let answer = get(&url, &key).await;
                n += 1;
                if answer.status != 200 {
                    wrong.push(format!("{} {}", answer.status, answer.body));
                }
            }
            (n, wrong)
        });
        Client { ended, task }
    }

    async fn end(self) -> (u64, Vec<String>) {
        self.ended.store(true, Ordering::Relaxed);
        self.task.await.expect("it does not panic")
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_down_is_told_of_and_used_again_and_other_tenants_notice_nothing() {
    let mut servers = Servers::plain().await;
    let here = Client::of(&servers.world, "here");
    servers.other.kill().await;
    let message = servers.says("there", "DatabaseUnavailable").await;
    assert!(message.starts_with("PostgreSQL does not answer"), "{message}");
    let answer = servers.world.get(&servers.key("there"), "/auth/there/api/notes").await;
    assert_eq!(answer.status, 503, "{}", answer.body);

    servers.says("here", "Served").await;
    servers.other.start_again().await;
    servers.is_served("there").await;
    servers.says("there", "Served").await;
    let (n, wrong) = here.end().await;
    assert!(20 < n && wrong.is_empty(), "{n}: {wrong:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_password_certificate_and_authority_take_effect_without_a_failed_request() {
    let (first, second) = (Authority::new(), Authority::new());
    let pem = |authority: &Authority| std::fs::read_to_string(authority.file()).expect("it was written");
    let other = Server::of_its_own_cluster_with_tls(&first, &first.issue("localhost", Validity::Now)).await;
    let mut superuser = other.connect("postgres").await;
    execute(&mut superuser, DBA).await;
    let port = other.port();
    let url = |password: &str| format!("postgresql://dba:{password}@localhost:{port}/postgres");
    let (before, both) = (url("dba"), pem(&first) + &pem(&second));
    let entries = [("url", &*before), ("ca.crt", &*pem(&first))];
    let servers = Servers::new(Server::own().await, other, &entries).await;
    let there = Client::of(&servers.world, "there");

    servers.world.write("secret.yaml", &secret("other", &[("url", &before), ("ca.crt", &both)]));
    servers.is_written_down(&both).await;
    servers.connects_anew().await;
    servers.other.show(&second.issue("localhost", Validity::Now)).await;
    servers.connects_anew().await;

    execute(&mut superuser, "alter role dba password 'another'").await;
    servers
        .world
        .write("secret.yaml", &secret("other", &[("url", &url("another")), ("ca.crt", &pem(&second))]));
    servers.is_written_down(&pem(&second)).await;
    servers.connects_anew().await;
    servers.says("there", "Served").await;
    let (n, wrong) = there.end().await;
    assert!(20 < n && wrong.is_empty(), "{n}: {wrong:?}");
}
