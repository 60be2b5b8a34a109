//! A server that is down, another password, another certificate and another authority: told in the status of its Tenants, served again
//! without a restart, and no other Tenant notices.

use rowgate_tests::asked::Asked;
use rowgate_tests::servers::postgres::{Server, bin, execute};
use rowgate_tests::servers::tls::{Authority, Validity};
use rowgate_tests::world::World;

use super::fixture::{DBA, Servers, connects_anew, secret};

/// Requests for the notes of a Tenant.
fn asked(world: &World, name: &str) -> Asked {
    let key = world.secret(&format!("{name}-key")).expect("it is served");
    Asked::begin(format!("{}/auth/{name}/api/notes", world.url()), key, &[])
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_is_down_is_told_of_and_used_again_and_other_tenants_notice_nothing() {
    let mut servers = Servers::plain().await;
    let here = asked(&servers.world, "here");
    servers.other.kill().await;
    let message = servers.says("there", "DatabaseUnavailable").await;
    assert!(message.starts_with("PostgreSQL does not answer"), "{message}");
    let answer = servers.world.get(&servers.key("there"), "/auth/there/api/notes").await;
    assert_eq!(answer.status, 503, "{}", answer.body);

    servers.says("here", "Served").await;
    servers.other.start_again().await;
    servers.is_served("there").await;
    servers.says("there", "Served").await;
    assert!(20 < here.always_answered().await.n);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_password_certificate_and_authority_take_effect_without_a_failed_request() {
    let (first, second) = (Authority::new(), Authority::new());
    let pem = |authority: &Authority| std::fs::read_to_string(authority.file()).expect("it was written");
    let other =
        Server::of_its_own_cluster_with_tls(bin(), &first, &first.issue("localhost", Validity::Now)).await;
    let mut superuser = other.connect("postgres").await;
    execute(&mut superuser, DBA).await;
    let port = other.port();
    let url = |password: &str| format!("postgresql://dba:{password}@localhost:{port}/postgres");
    let (before, both) = (url("dba"), pem(&first) + &pem(&second));
    let entries = [("url", &*before), ("ca.crt", &*pem(&first))];
    let servers = Servers::new(Server::own().await, other, &entries).await;
    let there = asked(&servers.world, "there");

    servers.world.write("secret.yaml", &secret("other", &[("url", &before), ("ca.crt", &both)]));
    servers.is_written_down(&both).await;
    connects_anew(&servers.other).await;
    servers.other.show(&second.issue("localhost", Validity::Now)).await;
    connects_anew(&servers.other).await;

    execute(&mut superuser, "alter role dba password 'another'").await;
    servers
        .world
        .write("secret.yaml", &secret("other", &[("url", &url("another")), ("ca.crt", &pem(&second))]));
    servers.is_written_down(&pem(&second)).await;
    connects_anew(&servers.other).await;
    servers.says("there", "Served").await;
    assert!(20 < there.always_answered().await.n);
}
