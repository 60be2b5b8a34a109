//! SCRAM or nothing; connections that are lost, late or all taken.

use std::fs;
use std::time::Duration;

use rowgate_pg::connect::login::{Endpoint, Login};
use rowgate_pg::connect::tls::Tls;
use rowgate_pg::wire::{Failure, Limits, RequestPool, Sessions};
use rowgate_sql::shape::Encoding::{Int4, Quoted};
use rowgate_tests::scratch::Scratch;
use rowgate_tests::servers::postgres::{Server, execute, shared};
use rowgate_tests::wait::{DEADLINE, until};
use sqlx::Row as _;
use tokio::net::{TcpListener, UnixStream};

use crate::postgres::wire::fixture::{Tenant, name, password};

async fn refusal(pool: &RequestPool, tenant: &Tenant) -> String {
    match pool.read(tenant.ask("a", "select 1", &[Int4]), usize::MAX).await {
        Err(Failure::NoConnection(text)) => text,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_server_that_asks_for_less_than_scram_is_refused() {
    let scratch = Scratch::new();
    let hba = scratch.path().join("hba.conf");
    let lines = "local all wire_hba_trust trust\nlocal all wire_hba_clear password\nlocal all all md5\n\
         host all wire_hba_trust all trust\nhost all wire_hba_clear all password\nhost all all all md5\n";
    fs::write(&hba, lines).expect("the folder is ours");
    let server = Server::with(&[&format!("hba_file={}", hba.display())]).await;
    let mut tenant = Tenant::found(&server, "wire_hba").await;
    execute(
        &mut tenant.superuser,
        "create role wire_hba_trust login; create role wire_hba_clear login password 'x'; \
         set password_encryption = 'md5'; create role wire_hba_md5 login password 'x'",
    )
    .await;
    for (role, expected) in [
        ("wire_hba_trust", "no password"),
        ("wire_hba_clear", "a password in clear text"),
        ("wire_hba_md5", "an MD5 password"),
    ] {
        let pool = tenant.pool_as(Login { role: role.to_owned(), ..tenant.login.clone() }, 1);
        let text = refusal(&pool, &tenant).await;
        assert!(text.starts_with(&format!("PostgreSQL asked for {expected}")), "{text}");
        assert!(text.contains("pg_hba.conf"), "{text}");
    }
    // a line that says md5 asks for SCRAM where the verifier is one
    assert_eq!(name(&tenant.pool().read(tenant.ask("a", "select 1", &[Int4]), usize::MAX).await), "Page");
}

#[tokio::test]
async fn a_wrong_password_database_or_address_is_unavailable_and_says_why() {
    let tenant = Tenant::found(shared().await, "wire_login").await;
    let mut login = tenant.login.clone();
    login.password = password("another");
    let text = refusal(&tenant.pool_as(login, 1), &tenant).await;
    // PgBouncer's code for all that it does not like.
    let (wrong, absent) = match tenant.sessions {
        Sessions::Own => ("28P01", "3D000"),
        Sessions::Pooled => ("08P01", "08P01"),
    };
    assert!(text.contains(wrong) && !text.contains(password("another").reveal()), "{text}");

    let login = Login { database: "wire_none".to_owned(), ..tenant.login.clone() };
    let text = refusal(&tenant.pool_as(login, 1), &tenant).await;
    assert!(text.contains(absent), "{text}");

    let endpoint = Endpoint::Tcp { host: "127.0.0.1".to_owned(), port: 1, tls: Tls::Disable };
    let login = Login { endpoint, ..tenant.login.clone() };
    assert!(refusal(&tenant.pool_as(login, 1), &tenant).await.starts_with("cannot reach PostgreSQL"));
}

#[tokio::test]
async fn a_connection_that_was_ended_while_idle_is_replaced_unseen() {
    let mut tenant = Tenant::found(shared().await, "wire_idle").await;
    let pool = tenant.pool();
    let pid = tenant.text(&pool, "a", "select pg_backend_pid()").await;
    execute(&mut tenant.superuser, &format!("select pg_terminate_backend({pid}, 10000)")).await;
    assert_ne!(tenant.text(&pool, "a", "select pg_backend_pid()").await, pid);
}

#[tokio::test]
async fn a_connection_that_is_ended_in_mid_statement_is_unavailable_and_not_asked_again() {
    let mut tenant = Tenant::found(shared().await, "wire_killed").await;
    let pool = tenant.pool();
    let slow = tenant.ask("a", "select pg_sleep(60)", &[Quoted]);
    let reading = tokio::spawn({
        let pool = pool.clone();
        async move { pool.read(slow, usize::MAX).await }
    });
    let sql = "select pg_terminate_backend(pid) from pg_stat_activity
        where datname = current_database() and query like '%pg_sleep(60)%' and pid <> pg_backend_pid()";
    until("the slow statement", async || {
        sqlx::query(sql)
            .fetch_optional(&mut tenant.superuser)
            .await
            .expect("rows")
            .map(|row| row.get::<bool, _>(0))
    })
    .await;
    assert_eq!(name(&reading.await.expect("no panic")), "Unavailable");
    assert_eq!(name(&pool.read(tenant.ask("a", "select 1", &[Int4]), usize::MAX).await), "Page");
}

#[tokio::test]
async fn waiting_for_a_connection_and_for_an_answer_ends() {
    let tenant = Tenant::found(shared().await, "wire_late").await;
    let pool = tenant.hasty_pool(Duration::from_millis(300));
    // The server's own timeout, then ours: a function that traps the cancellation outlives the first.
    let mut slow = tenant.ask("a", "select pg_sleep(60)", &[Quoted]);
    slow.statement_timeout_ms = 50;
    assert_eq!(name(&pool.read(slow.clone(), usize::MAX).await), "Timeout");
    assert_eq!(name(&pool.read(tenant.ask("a", "select 1", &[Int4]), usize::MAX).await), "Page");

    slow.statement_timeout_ms = 2_000;
    let (first, second) = tokio::join!(
        pool.read(slow, usize::MAX),
        pool.read(tenant.ask("a", "select 1", &[Int4]), usize::MAX)
    );
    assert_eq!(name(&first), "Timeout");
    assert_eq!(name(&second), "Busy");
}

#[tokio::test]
async fn a_statement_that_does_not_heed_its_timeout_loses_its_connection() {
    let mut tenant = Tenant::found(shared().await, "wire_deaf").await;
    execute(
        &mut tenant.superuser,
        "create function app.deaf() returns text language plpgsql as $$
         begin
            loop
                begin
                    perform pg_sleep(60);
                exception when query_canceled then
                    perform pg_sleep(5);
                    return pg_backend_pid();
                end;
            end loop;
         end $$;",
    )
    .await;
    let pool = tenant.hasty_pool(Duration::from_millis(300));
    assert_eq!(tenant.text(&pool, "a", "select 'warm'").await, "warm");
    let mut deaf = tenant.ask("a", "select app.deaf()", &[Quoted]);
    // long enough for a busy machine to come into the block that catches it
    deaf.statement_timeout_ms = 1_000;
    assert_eq!(name(&pool.read(deaf, usize::MAX).await), "Timeout");
    assert_eq!(tenant.text(&pool, "a", "select 'next'").await, "next");
    assert_eq!(pool.counters().n_connects(), (2, 0));
}

#[tokio::test]
async fn tcp_works_as_the_socket_does_and_a_silent_server_is_not_waited_for() {
    let tenant = Tenant::found(shared().await, "wire_tcp").await;
    let Endpoint::Unix { directory, port } = shared().await.endpoint() else {
        panic!("the tests' server has a socket")
    };
    let socket = directory.join(format!(".s.PGSQL.{port}"));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let pool = over(&tenant, &listener, DEADLINE);
    let relay = tokio::spawn(async move {
        let (mut client, _) = listener.accept().await.expect("the pool connects");
        let mut server = UnixStream::connect(socket).await.expect("the server is up");
        tokio::io::copy_bidirectional(&mut client, &mut server).await
    });
    assert_eq!(tenant.text(&pool, "a", "select current_user").await, tenant.role("a"));
    pool.close().await;
    relay.await.expect("no panic").expect("both ends were closed");

    // It accepts in the kernel and never answers.
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let text = refusal(&over(&tenant, &listener, Duration::from_millis(300)), &tenant).await;
    assert!(text.contains("in time"), "{text}");
}

fn over(tenant: &Tenant, listener: &TcpListener, connect: Duration) -> RequestPool {
    let port = listener.local_addr().expect("it is bound").port();
    let login = Login {
        endpoint: Endpoint::Tcp { host: "127.0.0.1".to_owned(), port, tls: Tls::Disable },
        ..tenant.login.clone()
    };
    RequestPool::with_limits(
        login,
        Limits { wait: DEADLINE, connect, grace: DEADLINE, ..Limits::new(1, 256) },
    )
}

#[tokio::test]
async fn an_idle_connection_is_trimmed_and_a_new_one_made_when_needed() {
    let tenant = Tenant::found(shared().await, "wire_trim").await;
    let pool = tenant.pool();
    let ask = tenant.ask("a", "select 1", &[Int4]);
    for (age, n_opened) in [(Duration::from_secs(3_600), 1), (Duration::ZERO, 2)] {
        assert_eq!(name(&pool.read(ask.clone(), usize::MAX).await), "Page");
        pool.trim(age);
        assert_eq!(name(&pool.read(ask.clone(), usize::MAX).await), "Page");
        assert_eq!(pool.counters().n_connects(), (n_opened, 0), "after {age:?}");
    }
}
