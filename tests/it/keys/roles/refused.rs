//! Each role of architecture section 3 tries what it must not do, while two tenants exist.

use rowgate_core::role::{CONTROL_DATABASE, DATAPLANE_ROLE, OPERATOR_ROLE, TenantLogin};
use rowgate_pg::connect::login::Login;
use rowgate_tests::servers::postgres::{attempt, connect, execute};
use rowgate_tests::servers::reconciler::{DONE, Reconciler};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{ConnectOptions as _, Connection as _};

use super::forbidden::{NO_CALLER, NO_DDL, NO_LOOKUP, NO_RECORDS, NO_REQUEST, NO_TABLES, NO_TENANT, NOBODY};
use crate::reconcile::acme::{SPEC, key, one, reader, tenant};

const DENIED: &str = "42501";
/// Nobody has such a row, or it is hidden: the statement did nothing.
const NO_ROW: &str = "no row";

struct World {
    reconciler: Reconciler,
    names: Vec<(String, String)>,
}

impl World {
    async fn new() -> World {
        let keys = [
            key("web", "acme", ""),
            key("north", "acme", &reader("north", "['*']")),
            key("south", "acme", &reader("south", "[id, body]")),
            key("beta-north", "beta", &reader("north", "['*']")),
        ];
        let files = [
            ("acme.yaml", tenant("acme", SPEC)),
            ("beta.yaml", tenant("beta", SPEC)),
            ("keys.yaml", keys.concat()),
        ];
        let reconciler = Reconciler::new(&files.each_ref().map(|(name, text)| (*name, text.as_str()))).await;
        let mut names = Vec::new();
        for (tenant, key) in [("acme", "north"), ("beta", "beta-north")] {
            reconciler.told("tenant", tenant, 1, DONE).await;
            reconciler.told("apikey", key, 1, DONE).await;
            let kinds = ["owner", "keys", "auth", "sql", "dl", "lookups"];
            for (login, name) in TenantLogin::ALL.into_iter().zip(kinds) {
                names.push((format!("{{{tenant}_{name}}}"), reconciler.login(tenant, login).role));
            }
            let mut conn = reconciler.server.connect(tenant).await;
            let set: String =
                one(&mut conn, "select set_role::text from dl.keys where set_role like 'set%' limit 1").await;
            names.push((format!("{{{tenant}_set}}"), set.clone()));
            names.push((format!("{{{tenant}_key}}"), reconciler.key(key, tenant).role));
            if tenant == "acme" {
                names.push(("{set}".to_owned(), set));
            }
        }
        World { reconciler, names }
    }

    fn spell(&self, text: &str) -> String {
        self.names.iter().fold(text.to_owned(), |text, (name, role)| text.replace(name, role))
    }

    /// Every role, on the database it works on, with the statements that it must not get through.
    fn roles(&self) -> Vec<(Login, &'static str, Vec<&'static str>)> {
        let of = |lists: &[&[&'static str]]| lists.concat();
        let but = |mut list: Vec<&'static str>, allowed: &[&str]| {
            allowed.iter().for_each(|allowed| {
                assert!(list.contains(allowed), "{allowed} is in no list");
                list.retain(|text| text != allowed);
            });
            list
        };
        let login = |login| self.reconciler.login("acme", login);
        let callers = of(&[NOBODY, NO_TENANT, NO_DDL, NO_CALLER]);
        let sql = but(callers.clone(), &["lock table app.notes in access exclusive mode"]);
        let control = ["create temp table t (i int)", "create schema s", "create table public.t (i int)"];
        let hidden = ["select * from control.tenants", "select * from control.installation"];
        // where nothing is the tenant's, so that no code of its owner can run as a role that creates roles
        let keys = Login { database: CONTROL_DATABASE.to_owned(), ..login(TenantLogin::Keys) };
        let plane = [
            "create table control.t (i int)",
            "update control.tenants set phase = 'live'",
            "insert into control.tenants (id, slug, uid, namespace, name, database) values ('', '', '', '', '', '')",
            "delete from control.tenants",
            "truncate control.replicas",
            "update control.installation set id = ''",
            "select * from control.migrations",
            "set role datalake_user",
            "set role {acme_auth}",
            "set role {acme_sql}",
            "set role {acme_key}",
        ];
        let caller =
            ["set role {acme_auth}", "set role {acme_sql}", "insert into app.notes (id) values (100)"];
        vec![
            (
                self.reconciler.installation.operator(),
                "",
                but(
                    of(&[
                        NOBODY,
                        &[
                            "drop database acme",
                            "alter database acme owner to rowgate_operator",
                            "grant connect on database acme to rowgate_operator",
                            "set role datalake_user",
                            "set role {acme_auth}",
                            "set role {acme_sql}",
                            "set role {acme_key}",
                            "grant {acme_key} to rowgate_operator",
                            "grant {set} to rowgate_operator",
                        ],
                    ]),
                    &["set role rowgate_operator"],
                ),
            ),
            (
                login(TenantLogin::Owner),
                "",
                but(
                    of(&[
                        NOBODY,
                        NO_TENANT,
                        NO_RECORDS,
                        &[
                            "set role datalake_user",
                            "set role {acme_auth}",
                            "set role {acme_sql}",
                            "set role {acme_key}",
                            "alter database acme owner to datalake_user",
                            "grant {acme_key} to {acme_owner}",
                            "create publication p for all tables",
                            "create subscription s connection '' publication p with (connect = false)",
                            "create event trigger t on ddl_command_start execute function app.all_words()",
                            "create function app.c() returns int language c as 'x'",
                        ],
                    ]),
                    &[
                        "set role {acme_owner}",
                        "select set_config('role', '{acme_owner}', false)",
                        "alter role {acme_owner} password 'x'",
                    ],
                ),
            ),
            (
                login(TenantLogin::Records),
                "",
                but(
                    of(&[NOBODY, NO_TENANT, NO_TABLES]),
                    &["set role {acme_dl}", "select set_config('role', '{acme_dl}', false)"],
                ),
            ),
            (
                keys,
                "",
                but(of(&[NOBODY, NO_TENANT, &control, &hidden]), &["create role r", "set role {acme_keys}"]),
            ),
            (
                login(TenantLogin::Auth),
                "",
                of(&[
                    NOBODY,
                    NO_TENANT,
                    NO_DDL,
                    NO_REQUEST,
                    &["select * from app.notes", "select * from app.loud", "grant {acme_key} to {acme_sql}"],
                ]),
            ),
            (
                login(TenantLogin::Lookups),
                "",
                but(
                    of(&[NOBODY, NO_TENANT, NO_DDL, NO_LOOKUP]),
                    &["set role {acme_lookups}", "select set_config('role', '{acme_lookups}', false)"],
                ),
            ),
            (
                login(TenantLogin::Sql),
                "",
                of(&[&sql, &["select * from app.notes", "select * from dl.claims", "set role {acme_key}"]]),
            ),
            (
                login(TenantLogin::Sql),
                "datalake_user",
                of(&[&sql, &["set role {acme_auth}", "set role {acme_key}"]]),
            ),
            (
                self.reconciler.key("north", "acme"),
                "",
                of(&[&callers, &caller, &["set role datalake_user", "delete from app.notes"]]),
            ),
            (
                self.reconciler.key("south", "acme"),
                "",
                of(&[&callers, &caller, &["select region from app.notes", "select * from app.notes"]]),
            ),
            (
                self.reconciler.installation.dataplane(),
                "",
                but(of(&[NOBODY, NO_TENANT, &control, &plane]), &["set role rowgate_dataplane"]),
            ),
        ]
    }
}

/// As `login`, with `role` as its startup option where one is given.
async fn enter(login: &Login, role: &str) -> Result<PgConnection, sqlx::Error> {
    if role.is_empty() {
        return connect(login).await;
    }
    let rowgate_pg::connect::login::Endpoint::Unix { directory, port } = &login.endpoint else {
        panic!("our own servers have sockets")
    };
    let options = PgConnectOptions::new_without_pgpass().socket(directory).port(*port).username(&login.role);
    let options = options.password(login.password.reveal()).database(&login.database);
    options.options([("role", role)]).connect().await
}

fn code(result: Result<(), sqlx::Error>) -> String {
    match result {
        Ok(()) => "done".to_owned(),
        Err(sqlx::Error::Database(error)) => error.code().unwrap_or_default().into_owned(),
        Err(error) => error.to_string(),
    }
}

#[tokio::test]
async fn every_role_is_refused_what_it_must_not_do() {
    let world = World::new().await;
    let owner = world.reconciler.login("acme", TenantLogin::Owner);
    let _to_be_terminated = connect(&owner).await.expect("the owner's login");
    let mut wrong = Vec::new();
    for (login, role, refused) in world.roles() {
        let who = if role.is_empty() { login.role.as_str() } else { role };
        let mut conn = enter(&login, role).await.expect("the role's own login");
        for text in refused {
            // undone even if it were let through, so that each statement is tried alone
            execute(&mut conn, "begin").await;
            let got = code(attempt(&mut conn, &world.spell(text)).await);
            execute(&mut conn, "rollback").await;
            let fit = got == DENIED || excused(text, &got, &login.role);
            if !fit {
                wrong.push(format!("{who}: {text}: {got}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Refused as well, by another rule that PostgreSQL looks at first.
fn excused(text: &str, code: &str, role: &str) -> bool {
    let transaction = ["alter system", "create database", "drop database", "create tablespace"];
    match code {
        // no such statement in a transaction
        "25001" => transaction.iter().any(|start| text.starts_with(start)),
        // an administrator of a role that the cluster still needs
        "2BP01" => role == OPERATOR_ROLE && text.starts_with("drop role"),
        // nothing was granted
        "22012" => text.starts_with("grant"),
        // an administrator of the keys logins is none of their roles
        "XX000" => role == OPERATOR_ROLE && text.starts_with("grant"),
        _ => false,
    }
}

#[tokio::test]
async fn nobody_gets_into_a_database_that_is_not_its_own() {
    let world = World::new().await;
    let mut wrong = Vec::new();
    for (login, role, _) in world.roles() {
        for database in ["acme", "beta", "rowgate", "postgres", "template1"] {
            let own = login.database == database;
            let result = enter(&Login { database: database.to_owned(), ..login.clone() }, role).await;
            let got = code(match result {
                Ok(conn) => conn.close().await,
                Err(error) => Err(error),
            });
            if got != if own { "done" } else { DENIED } {
                wrong.push(format!("{} on {database}: {got}", login.role));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(world.roles().iter().any(|(login, ..)| login.role == DATAPLANE_ROLE));
}

#[tokio::test]
async fn each_role_does_what_it_is_for() {
    let world = World::new().await;
    let reconciler = &world.reconciler;
    let login = |login| reconciler.login("acme", login);

    let mut north = connect(&reconciler.key("north", "acme")).await.expect("the key's role");
    assert_eq!(one::<i64>(&mut north, "select count(*) from app.notes").await, 10);
    assert_eq!(
        one::<String>(&mut north, "select string_agg(distinct region, ' ') from app.notes").await,
        "north"
    );
    assert_eq!(one::<i64>(&mut north, "select count(*) from dl.own_claims").await, 1);
    assert_eq!(
        one::<Option<String>>(&mut north, "select dl.claim('region')").await.as_deref(),
        Some("north")
    );
    let mut south = connect(&reconciler.key("south", "acme")).await.expect("the key's role");
    assert_eq!(one::<i64>(&mut south, "select count(body) from app.notes").await, 10);

    let mut shared = enter(&login(TenantLogin::Sql), "datalake_user").await.expect("t_sql as datalake_user");
    assert_eq!(one::<i64>(&mut shared, "select count(*) from app.notes").await, 20);
    execute(&mut shared, "reset role; reset session authorization").await;
    assert_eq!(one::<String>(&mut shared, "select current_user::text").await, "datalake_user");
    assert_eq!(one::<String>(&mut shared, "select value from dl.own_claims").await, "nowhere");

    // the login of requests becomes either for one transaction, and the owner sees every row
    let mut auth = connect(&login(TenantLogin::Auth)).await.expect("the login of requests");
    execute(&mut auth, &world.spell("begin; set local role {acme_key}; select * from app.notes; rollback"))
        .await;
    execute(&mut auth, "begin; set local role datalake_user; select * from app.notes; rollback").await;
    let of_request =
        "select l.id, l.secret, l.role, l.set_role, s.generation from dl.state s left join dl.live l on true";
    execute(&mut auth, of_request).await;
    let mut lookups = connect(&login(TenantLogin::Lookups)).await.expect("the login of look-ups");
    assert_eq!(one::<i64>(&mut lookups, "select count(distinct digest) from dl.live").await, 3);
    execute(&mut lookups, "begin; select dl.revoke(id) from dl.live; delete from dl.backends; rollback")
        .await;
    let mut owner = connect(&login(TenantLogin::Owner)).await.expect("the owner's login");
    assert_eq!(one::<i64>(&mut owner, "select count(*) from app.notes").await, 20);
    execute(&mut owner, "begin; create table app.later (i int); drop table app.later; rollback").await;

    // the keys login manages roles of its own making, and no others
    let keys = Login { database: CONTROL_DATABASE.to_owned(), ..login(TenantLogin::Keys) };
    let mut keys = connect(&keys).await.expect("the keys login");
    execute(
        &mut keys,
        &world.spell("begin; create role key_x login; grant {set} to key_x; drop role key_x; rollback"),
    )
    .await;

    // a sequence, an identity and a default serve a caller that may create
    execute(&mut shared, "begin; insert into app.notes (region, body) values ('east', 'new'); rollback")
        .await;
    let hidden = "delete from app.notes where region = 'nowhere' returning 'gone'";
    let gone: Option<String> = sqlx::query_scalar(hidden).fetch_optional(&mut shared).await.expect("allowed");
    assert_eq!(gone.unwrap_or_else(|| NO_ROW.to_owned()), NO_ROW);
}
