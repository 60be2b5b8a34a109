//! Statements, transactions and scripts.

use rowgate_pg::connect::login::Endpoint;
use rowgate_pg::connect::session;
use rowgate_pg::failure::PgError;
use rowgate_sql::text::{Bind, Sql};
use rowgate_tests::servers::postgres::{execute, shared};

#[tokio::test]
async fn text_binds_arrive_as_their_types() {
    let mut conn = shared().await.database("binds").await;
    execute(
        &mut conn,
        "create table t (a bool, b int8, c int2, d int4, e text, f jsonb, g timestamptz, h name)",
    )
    .await;
    let mut sql = Sql::new();
    sql.lit("insert into t values (");
    let values: [(u32, &str); 8] = [
        (16, "true"),
        (20, "-9"),
        (21, "7"),
        (23, "8"),
        (25, "it's"),
        (3802, "{\"a\": 1}"),
        (1184, "2024-02-29T12:00:00.5Z"),
        (19, "n"),
    ];
    for (i, (oid, text)) in values.into_iter().enumerate() {
        sql.lit(if i == 0 { "" } else { ", " }).bind(Bind::text(oid, text));
    }
    sql.lit(")");
    assert_eq!(session::execute(&mut conn, &sql).await.unwrap(), 1);
    let row: String = sqlx::query_scalar("select t::text from t").fetch_one(&mut conn).await.unwrap();
    assert_eq!(row, r#"(t,-9,7,8,it's,"{""a"": 1}","2024-02-29 12:00:00.5+00",n)"#);

    let mut unknown = Sql::new();
    unknown.lit("select ").bind(Bind::text(1700, "1.5"));
    let refusal = session::execute(&mut conn, &unknown).await.unwrap_err().to_string();
    assert!(refusal.contains("type 1700"), "{refusal}");
}

#[tokio::test]
async fn a_transaction_names_the_statement_that_failed_and_leaves_nothing() {
    let mut conn = shared().await.database("transactions").await;
    let statement = |text: &'static str| {
        let mut sql = Sql::new();
        sql.lit(text);
        sql
    };
    let statements = [
        statement("create table t (a int primary key deferrable initially deferred)"),
        statement("insert into t values (1)"),
        statement("insert into t values (1 / 0)"),
    ];
    let failure = session::transaction(&mut conn, &statements).await.unwrap_err();
    assert_eq!((failure.index, failure.error.code()), (2, Some("22012")));
    let late = [statements[0].clone(), statements[1].clone(), statements[1].clone()];
    let failure = session::transaction(&mut conn, &late).await.unwrap_err();
    assert_eq!((failure.index, failure.error.code()), (3, Some("23505")), "the COMMIT");
    session::transaction(&mut conn, &statements[..2]).await.unwrap();

    let two = session::execute(&mut conn, &statement("select 1; drop table t")).await.unwrap_err();
    assert_eq!(two.code(), Some("42601"));
    let half = session::script(&mut conn, "drop table t; select 1 / 0").await.unwrap_err();
    assert_eq!(half.code(), Some("22012"));
    assert_eq!(session::execute(&mut conn, &statement("delete from t")).await.unwrap(), 1);
}

#[tokio::test]
async fn a_server_that_is_not_there_is_named_and_a_wrong_password_is_something_else() {
    let mut login = shared().await.superuser("no_such_database");
    assert_eq!(session::connect(&login).await.unwrap_err().code(), Some("3D000"));
    login.password = rowgate_core::derive::Password::given("wrong");
    assert_eq!(session::connect(&login).await.unwrap_err().code(), Some("28P01"));
    login.endpoint = Endpoint::Unix { directory: "/no/such/folder".into(), port: 5432 };
    let error = session::connect(&login).await.unwrap_err();
    assert!(matches!(error, PgError::Unavailable { .. }));
    assert!(error.to_string().contains("/no/such/folder:5432"), "{error}");
}

#[tokio::test]
async fn a_session_that_is_used_again_holds_nothing_of_what_was_done_in_it() {
    let server = shared().await;
    let mut conn = server.database("renewed").await;
    let look = async |conn: &mut sqlx::PgConnection| {
        let text = "select current_setting('statement_timeout'), to_regclass('pg_temp.t') is null, current_user::text, \
                    (select count(*) from pg_locks where locktype = 'advisory' and pid = pg_backend_pid())";
        let row: (String, bool, String, i64) = sqlx::query_as(text).fetch_one(conn).await.unwrap();
        row
    };
    let fresh = look(&mut conn).await;
    execute(
        &mut conn,
        "set statement_timeout = '7s'; create temp table t (); set role pg_monitor; select pg_advisory_lock(7); listen x",
    )
    .await;
    assert_ne!(look(&mut conn).await, fresh);
    session::renew(&mut conn).await.unwrap();
    // by a statement that was prepared before
    assert_eq!(look(&mut conn).await, fresh);

    let pid: i32 = sqlx::query_scalar("select pg_backend_pid()").fetch_one(&mut conn).await.unwrap();
    execute(&mut server.connect("postgres").await, &format!("select pg_terminate_backend({pid}, 60000)"))
        .await;
    session::renew(&mut conn).await.unwrap_err();
}
