//! The launcher of our own PostgreSQL: what it starts, finds running, and refuses.

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rowgate_standalone::postgres::{Postgres, PostgresConfig, SESSION_MEMORY};
use rowgate_tests::scratch::Scratch;
use rowgate_tests::servers::postgres::{QUICK, Server, bin, connect, rows, seed, shared};
use sqlx::Row as _;

async fn show(connection: &mut sqlx::PgConnection, setting: &str) -> String {
    let row = sqlx::query("select current_setting($1)").bind(setting).fetch_one(connection).await;
    row.expect("the setting exists").get(0)
}

#[tokio::test]
async fn the_server_has_no_tcp_and_keeps_values_out_of_its_log() {
    let mut connection = shared().await.connect("postgres").await;
    for (setting, value) in [
        ("listen_addresses", ""),
        ("log_parameter_max_length", "0"),
        ("password_encryption", "scram-sha-256"),
        ("max_connections", "200"),
    ] {
        assert_eq!(show(&mut connection, setting).await, value, "{setting}");
    }
    let version: i32 = show(&mut connection, "server_version_num").await.parse().unwrap();
    assert!(160_000 <= version);
}

#[tokio::test]
async fn texts_are_ordered_by_code_points_and_letters_beyond_ascii_have_cases() {
    let mut connection = shared().await.connect("postgres").await;
    for truth in ["lower('ZOË') = 'zoë'", "upper('é') = 'É'", "'B' < 'a'", "'z' < 'ä'"] {
        let found = rows(&mut connection, &format!("select {truth} as holds")).await;
        assert_eq!(found[0]["holds"], true, "{truth}");
    }
}

#[tokio::test]
async fn a_wrong_password_is_refused_on_the_socket_too() {
    let server = shared().await;
    let mut login = server.superuser("postgres");
    login.password = rowgate_core::derive::Root::new([1; 32]).password("bootstrap", "rowgate_superuser", 1);
    let refusal = connect(&login).await.unwrap_err().to_string();
    assert!(refusal.contains("password authentication failed"), "{refusal}");
}

#[tokio::test]
async fn a_server_that_still_runs_is_taken_over_and_a_stopped_one_keeps_its_data() {
    let scratch = Scratch::new();
    let state = scratch.path().join("state");
    seed(&state).await;
    let settings = QUICK.map(str::to_owned).to_vec();
    let wish = PostgresConfig { state, bin: bin(), settings, session_memory: SESSION_MEMORY };

    let first = Postgres::start(&wish, &|_| ()).await.unwrap();
    let mut connection = connect(first.superuser()).await.unwrap();
    sqlx::query("create table kept as select 42 as n").execute(&mut connection).await.unwrap();

    let second = Postgres::start(&wish, &|_| ()).await.unwrap();
    assert!(second.taken_over());
    assert_eq!(second.pid(), first.pid());
    drop(connection);
    first.stop().await.unwrap();

    let third = Postgres::start(&wish, &|_| ()).await.unwrap();
    assert!(!third.taken_over());
    let mut connection = connect(third.superuser()).await.unwrap();
    let n: i32 = sqlx::query("select n from kept").fetch_one(&mut connection).await.unwrap().get(0);
    assert_eq!(n, 42);
    third.stop().await.unwrap();
}

/// As one within a function of PostgreSQL that does not look whether it was ended, such as `translate` of a long text. Seen to fail where
/// only a fast shutdown is tried.
#[tokio::test]
async fn a_server_is_stopped_though_a_session_does_not_end() {
    let scratch = Scratch::new();
    let state = scratch.path().join("state");
    seed(&state).await;
    // what is committed is kept
    let settings = vec!["fsync=off".to_owned(), "shared_buffers=32MB".to_owned()];
    let wish = PostgresConfig { state, bin: bin(), settings, session_memory: SESSION_MEMORY };
    let server = Postgres::start(&wish, &|_| ()).await.unwrap();
    let mut connection = connect(server.superuser()).await.unwrap();
    sqlx::query("create table kept as select 42 as n").execute(&mut connection).await.unwrap();
    let pid: i32 = sqlx::query("select pg_backend_pid()").fetch_one(&mut connection).await.unwrap().get(0);
    kill(Pid::from_raw(pid), Signal::SIGSTOP).unwrap();
    server.stop().await.unwrap();

    let again = Postgres::start(&wish, &|_| ()).await.unwrap();
    let mut connection = connect(again.superuser()).await.unwrap();
    let n: i32 = sqlx::query("select n from kept").fetch_one(&mut connection).await.unwrap().get(0);
    assert_eq!(n, 42);
    again.stop().await.unwrap();
}

#[tokio::test]
async fn a_server_of_a_test_ends_with_it() {
    let server = Server::own().await;
    let login = server.superuser("postgres");
    drop(server);
    assert!(connect(&login).await.is_err());
}
