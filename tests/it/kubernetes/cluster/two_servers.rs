//! PostgreSQL 16 and 18 under one operator and two data planes: one is killed, and the other is given another certificate, another
//! authority and another password, while requests come by both data planes.

use rowgate_tests::asked::Asked;
use rowgate_tests::servers::cluster::{Cluster, Namespace};
use rowgate_tests::servers::data_plane::DataPlane;
use rowgate_tests::servers::operator::{ACCOUNT, Operator, rights};
use rowgate_tests::servers::postgres::{Server, execute, pinned, rows};
use rowgate_tests::servers::tls::{Authority, Validity};
use rowgate_tests::wait::{until, until_ok};
use rowgate_tests::world::get;
use rowgate_tests::world::status::ready;
use serde_json::json;

use super::shop::key;
use crate::servers::fixture::{DBA, connects_anew, secret, tenant};

/// Requests for the notes of a Tenant, by each data plane.
async fn asked(namespace: &Namespace<'_>, data_planes: &[DataPlane], tenant: &str) -> Vec<Asked> {
    let key = key(namespace, &format!("{tenant}-key")).await;
    let asked = |it: &DataPlane| {
        Asked::begin(format!("{}/auth/{tenant}/api/notes", it.url()), key.clone(), &[it.pid()])
    };
    data_planes.iter().map(asked).collect()
}

async fn always_answered(asked: Vec<Asked>) {
    for it in asked {
        it.always_answered().await;
    }
}

/// Returns when each data plane gives the rows of a Tenant.
async fn is_served(namespace: &Namespace<'_>, data_planes: &[DataPlane], tenant: &str) {
    namespace.told("tenants", tenant, 1, "Served").await;
    namespace.told("apikeys", &format!("{tenant}-key"), 1, "Served").await;
    let key = key(namespace, &format!("{tenant}-key")).await;
    for data_plane in data_planes {
        let url = format!("{}/auth/{tenant}/api/notes", data_plane.url());
        until_ok(&url, async || {
            let answer = get(&url, &key).await;
            let first = &answer.body["value"][0]["body"];
            if *first == format!("{tenant} 1") { Ok(()) } else { Err(answer.body) }
        })
        .await;
    }
}

/// The major version of a server.
async fn major(server: &Server) -> u32 {
    let of = "select current_setting('server_version_num')::int / 10000 as n";
    let n = rows(&mut server.connect("postgres").await, of).await[0]["n"].as_u64();
    n.and_then(|n| u32::try_from(n).ok()).expect("a number")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_of_two_servers_is_killed_and_one_changes_and_no_request_of_the_other_fails() {
    let namespace = Cluster::shared().await.namespace().await;
    let (first, second) = (Authority::new(), Authority::new());
    let pem = |authority: &Authority| std::fs::read_to_string(authority.file()).expect("it was written");
    let home = Server::own().await;
    let server = async |version: u32| {
        let certificate = first.issue("localhost", Validity::Now);
        let server = Server::of_its_own_cluster_with_tls(Some(pinned(version)), &first, &certificate).await;
        assert_eq!(major(&server).await, version);
        execute(&mut server.connect("postgres").await, DBA).await;
        server
    };
    let (old, mut new) = (server(16).await, server(18).await);
    let url = |server: &Server, password: &str| {
        format!("postgresql://dba:{password}@localhost:{}/postgres", server.port())
    };
    let name = async |server: &Server, named: &str, password: &str, authorities: &str| {
        let entries = [("url", &*url(server, password)), ("ca.crt", authorities)];
        namespace.apply(&secret(named, &entries)).await.ok();
    };

    namespace.apply(&rights(namespace.name())).await.ok();
    name(&old, "old", "dba", &pem(&first)).await;
    name(&new, "new", "dba", &pem(&first)).await;
    let flags = [&*format!("--server-namespaces={}", namespace.name())];
    let kubeconfig = namespace.kubeconfig_for(ACCOUNT).await;
    let operator = Operator::start_with(&kubeconfig, namespace.name(), &home.url(), "a", &flags);
    operator.leads().await;
    for name in ["old", "new"] {
        namespace.apply(&tenant(name, &format!("serverSecretRef: {{name: {name}}},"))).await.ok();
    }
    let data_planes =
        [operator.data_plane(&namespace, &home).await, operator.data_plane(&namespace, &home).await];
    is_served(&namespace, &data_planes, "old").await;
    is_served(&namespace, &data_planes, "new").await;

    // killed
    let asks = asked(&namespace, &data_planes, "old").await;
    new.kill().await;
    let status = namespace.told("tenants", "new", 1, "DatabaseUnavailable").await;
    assert!(ready(&status).1.starts_with("PostgreSQL does not answer"), "{status}");
    let new_key = key(&namespace, "new-key").await;
    for data_plane in &data_planes {
        let answer = get(&format!("{}/auth/new/api/notes", data_plane.url()), &new_key).await;
        assert_eq!(answer.status, 503, "{}", answer.body);
    }
    namespace.told("tenants", "old", 1, "Served").await;
    new.start_again().await;
    is_served(&namespace, &data_planes, "new").await;
    always_answered(asks).await;

    // changed
    let mut control = home.connect("rowgate").await;
    let mut written_down = async |authorities: &str| {
        let there = format!("select 1 from control.servers where authorities = '{authorities}'");
        until("the authorities", async || (!rows(&mut control, &there).await.is_empty()).then_some(())).await;
    };
    let asks = asked(&namespace, &data_planes, "old").await;
    let others = asked(&namespace, &data_planes, "new").await;
    let both = pem(&first) + &pem(&second);
    name(&old, "old", "dba", &both).await;
    written_down(&both).await;
    connects_anew(&old).await;
    old.show(&second.issue("localhost", Validity::Now)).await;
    connects_anew(&old).await;
    execute(&mut old.connect("postgres").await, "alter role dba password 'another'").await;
    name(&old, "old", "another", &pem(&second)).await;
    written_down(&pem(&second)).await;
    connects_anew(&old).await;
    execute(
        &mut old.connect("postgres").await,
        "select pg_terminate_backend(pid) from pg_stat_activity where usename = 'dba'",
    )
    .await;
    // what the operator does there it does with the other password
    let more = json!({ "spec": { "limits": { "maxPageSize": 7 } } }).to_string();
    namespace.kubectl(&["patch", "tenant", "old", "--type=merge", "--patch", &more]).await.ok();
    namespace.told("tenants", "old", 2, "Served").await;
    // but for those in flight when their sessions are ended
    for it in asks {
        it.answered_but_for(3).await;
    }
    always_answered(others).await;
}
