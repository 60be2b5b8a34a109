//! Making an installation, finding it again, and refusing what does not fit.

use rowgate_core::role::TenantLogin;
use rowgate_pg::connect::session;
use rowgate_pg::control::installation::{InstallationError, Roots, open, open_existing};
use rowgate_pg::control::migrate;
use rowgate_tests::servers::postgres::{Server, attempt, execute};

use super::{id, installed, login, roots, tenant};

#[tokio::test]
async fn opening_again_changes_nothing_and_finds_the_same() {
    let server = Server::with(&["log_statement=mod"]).await;
    let (first, beside) = tokio::join!(installed(&server), installed(&server));
    assert_eq!((first.id.clone(), first.advice.clone()), (id(1), vec![]));
    assert_eq!(beside.id, first.id);
    let before = server.log();
    assert!(before.contains("create database rowgate"), "the log shows statements that write: {before}");

    let again = open(server.superuser("postgres"), &roots(1), id(2)).await.unwrap();
    assert_eq!((again.id, again.system_identifier), (first.id.clone(), first.system_identifier.clone()));
    let after = server.log();
    let written: Vec<_> = after[before.len()..].lines().collect();
    assert_eq!(written, [""; 0]);

    let mut operator = session::connect(&first.operator()).await.unwrap();
    assert_eq!(migrate::control(&mut operator).await.unwrap(), 0);
    let (dataplane, _conn) = open_existing(first.endpoint.clone(), &roots(1).dataplane).await.unwrap();
    assert_eq!((dataplane.id, &dataplane.home.system_identifier), (first.id, &first.system_identifier));
}

#[tokio::test]
async fn other_roots_are_refused_before_anything_is_written() {
    let server = Server::own().await;
    let refusal = open_existing(server.endpoint().clone(), &roots(1).dataplane).await.unwrap_err();
    assert!(matches!(refusal, InstallationError::NotInstalled), "{refusal}");

    let installation = installed(&server).await;
    let (right, other) = (roots(1), roots(2));
    let mixed = [
        (Roots { operator: other.operator, dataplane: right.dataplane.clone() }, "operator root"),
        (Roots { operator: right.operator, dataplane: other.dataplane.clone() }, "data plane root"),
    ];
    for (roots, named) in mixed {
        let refusal = open(server.superuser("postgres"), &roots, id(3)).await.unwrap_err().to_string();
        assert!(refusal.contains(named) && refusal.contains(installation.id.as_str()), "{refusal}");
    }
    assert!(open_existing(server.endpoint().clone(), &other.dataplane).await.is_err());
    session::connect(&installation.operator()).await.unwrap();
    session::connect(&installation.dataplane()).await.unwrap();
}

#[tokio::test]
async fn a_weak_login_gets_the_lines_for_the_dba_and_works_once_they_ran() {
    let server = Server::own().await;
    let mut admin = server.connect("postgres").await;
    execute(&mut admin, "create role \"we ak\" login password 'w'").await;
    let weak = login(&server, "we ak", "w");
    match open(weak.clone(), &roots(1), id(1)).await.unwrap_err() {
        InstallationError::LoginTooWeak { lines, .. } => {
            assert_eq!(lines, ["alter role \"we ak\" createdb createrole;"]);
            execute(&mut admin, &lines.join("\n")).await;
        }
        other => panic!("{other}"),
    }
    let installation = open(weak, &roots(1), id(1)).await.unwrap();
    assert_eq!(
        installation.advice,
        ["postgres", "template1"]
            .map(|name| format!("revoke connect, temporary on database \"{name}\" from public;"))
    );
    // A superuser would make another operator, who could not manage what this one made.
    let refusal = open(server.superuser("postgres"), &roots(1), id(1)).await.unwrap_err().to_string();
    assert!(refusal.contains("log in as \"we ak\""), "{refusal}");
}

#[tokio::test]
async fn what_was_changed_by_hand_is_put_right() {
    let server = Server::own().await;
    let installation = installed(&server).await;
    let mut admin = server.connect("postgres").await;
    execute(
        &mut admin,
        "alter role rowgate_operator nocreatedb superuser password 'x'; alter role rowgate_dataplane nologin; \
         grant connect on database rowgate to public; grant temporary on database postgres to public",
    )
    .await;
    installed(&server).await;
    session::connect(&installation.operator()).await.unwrap();
    session::connect(&installation.dataplane()).await.unwrap();
    execute(&mut admin, "create role stranger login password 's'").await;
    for database in ["rowgate", "postgres", "template1"] {
        let mut stranger = login(&server, "stranger", "s");
        stranger.database = database.to_owned();
        assert_eq!(session::connect(&stranger).await.unwrap_err().code(), Some("42501"), "{database}");
    }
}

#[tokio::test]
async fn the_operator_is_no_superuser_and_reaches_no_tenant() {
    let server = Server::own().await;
    let installation = installed(&server).await;
    let (mut owner, _) = tenant(&installation, &id(7), "shop").await;
    execute(&mut owner, "create table public.secret as select 1 as n").await;

    assert_eq!(session::connect(&installation.operator_on("shop")).await.unwrap_err().code(), Some("42501"));
    let mut operator = session::connect(&installation.operator()).await.unwrap();
    let row: (bool, bool) =
        sqlx::query_as("select rolsuper, rolbypassrls from pg_roles where rolname = current_user")
            .fetch_one(&mut operator)
            .await
            .unwrap();
    assert_eq!(row, (false, false));
    let optional = [TenantLogin::Views, TenantLogin::Migrations];
    for login in TenantLogin::ALL.into_iter().filter(|login| !optional.contains(login)) {
        let refusal = attempt(&mut operator, &format!("set role {}", login.role(&id(7)))).await;
        assert!(refusal.unwrap_err().to_string().contains("permission denied to set role"), "{login:?}");
    }

    let mut dataplane = session::connect(&installation.dataplane()).await.unwrap();
    for statement in [
        "insert into control.tenants (id, slug, uid, namespace, name, database) values ('a', 'a', 'a', 'a', 'a', 'a')",
        "update control.tenants set host = 'elsewhere'",
        "update control.installation set id = 'x'",
        "create table control.mine ()",
        "create role mine",
    ] {
        let refusal = attempt(&mut dataplane, statement).await.unwrap_err().to_string();
        assert!(refusal.contains("permission denied"), "{statement}: {refusal}");
    }
}
