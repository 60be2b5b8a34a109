//! EXECUTE for those whose permissions say it, and for nobody else.

use rowgate_core::role::TenantLogin;
use rowgate_tests::servers::postgres::{attempt, connect, execute};
use sqlx::PgConnection;

use super::{acme, caller};
use crate::reconcile::acme::one;

/// A call of each, in plain SQL.
const CALLS: [&str; 9] = [
    "select app.shout(word => 'a')",
    "select * from app.notes_of(wanted => 'north')",
    "select * from app.split(whole => null, size => 'large')",
    "select * from app.listed()",
    "select from app.nothing()",
    "select * from app.both()",
    "select * from app.only()",
    "call app.keep(region => 'north', body => 'x', id => null)",
    "select app.attempt('select 1')",
];

async fn may(conn: &mut PgConnection) -> Vec<&'static str> {
    let mut allowed = Vec::new();
    for text in CALLS {
        match attempt(conn, text).await {
            Ok(()) => allowed.push(text),
            Err(error) => {
                let code = error.as_database_error().and_then(|error| error.code());
                assert_eq!(code.as_deref(), Some("42501"), "{text}: {error}");
            }
        }
    }
    allowed
}

#[tokio::test]
async fn who_may_not_execute_is_refused_by_the_database() {
    let reconciler = acme().await;
    assert_eq!(may(&mut caller(&reconciler, "web").await).await, CALLS);
    assert_eq!(may(&mut caller(&reconciler, "north").await).await, [CALLS[0], CALLS[8]]);
    assert_eq!(may(&mut caller(&reconciler, "south").await).await, [""; 0]);
    for login in [TenantLogin::Auth, TenantLogin::Sql, TenantLogin::Lookups] {
        let mut conn = connect(&reconciler.login("acme", login)).await.expect("the tenant's login");
        assert_eq!(may(&mut conn).await, [""; 0], "{login:?} itself");
    }
    // what is made later is nobody's either
    let mut owner = connect(&reconciler.login("acme", TenantLogin::Owner)).await.expect("the owner's login");
    execute(&mut owner, "create function app.later() returns integer language sql as 'select 1'").await;
    for key in ["web", "north", "south"] {
        let later = attempt(&mut caller(&reconciler, key).await, "select app.later()").await;
        assert!(later.is_err_and(|error| error.to_string().contains("permission denied")), "{key}");
    }
}

/// A routine does what its caller may do: policies count, and what the caller may not read is not read.
#[tokio::test]
async fn a_call_runs_with_the_rights_of_its_caller() {
    let reconciler = acme().await;
    let mut web = caller(&reconciler, "web").await;
    let regions = "select string_agg(distinct region, ' ') from app.notes_of('south')";
    assert_eq!(one::<String>(&mut web, regions).await, "south");
    let mut north = caller(&reconciler, "north").await;
    let hidden =
        "select app.attempt('select 1 from app.notes where region = ''south'' and 1 / (id - id) = 1')";
    assert_eq!(one::<String>(&mut north, hidden).await, "done", "no row of the south reached the division");
    let listed = "select app.attempt('select * from app.listed()')";
    assert_eq!(one::<String>(&mut north, listed).await, "42501", "what it calls needs EXECUTE too");
    assert_eq!(
        one::<String>(
            &mut north,
            "select app.attempt('insert into app.notes (region, body) values (''north'', ''x'')')"
        )
        .await,
        "42501"
    );
}
