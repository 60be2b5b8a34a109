//! The key statement is the authority: a dead key raises, and nothing behind it runs.

use rowgate_pg::wire::{Ask, Failure};
use rowgate_sql::shape::Encoding::{Int4, Text};
use rowgate_tests::servers::postgres::{execute, shared};
use sqlx::Row as _;

use super::fixture::{Tenant, by, id, name, secret, utf8};

/// A lock of the session outlives an abort and is allowed in a read-only transaction: it shows that a call was made.
const TOUCH: &str = "create function app.touch() returns text language plpgsql volatile security definer
    as $$ begin perform pg_advisory_lock_shared(4711); return 'touched'; end $$;
    grant execute on function app.touch() to public;";

async fn n_touched(tenant: &mut Tenant) -> i64 {
    let sql = "select count(*) from pg_locks where locktype = 'advisory' and objid = 4711
        and database = (select oid from pg_database where datname = current_database())";
    sqlx::query(sql).fetch_one(&mut tenant.superuser).await.expect("a count").get(0)
}

#[tokio::test]
async fn a_dead_key_raises_and_nothing_behind_it_runs() {
    let mut tenant = Tenant::found(shared().await, "wire_dead").await;
    let mut script = TOUCH.to_owned();
    for (number, (text, death)) in [
        ("revoked key", "update dl.keys set revoked_at = now()"),
        ("expired key", "update dl.keys set expires_at = now() - interval '1 s'"),
        ("revoked secret", "update dl.key_secrets set revoked_at = now()"),
        ("expired secret", "update dl.key_secrets set expires_at = now() - interval '1 s'"),
    ]
    .into_iter()
    .enumerate()
    {
        let key = id(text);
        let role = tenant.role("a");
        let of = if death.contains("dl.keys") { "id" } else { "key_id" };
        script.push_str(&format!(
            "insert into dl.keys (id, uid, namespace, name, role) values ('{key}', 'd{number}', 'it', '{text}', '{role}');
             {} {death} where {of} = '{key}';",
            secret(text, text)
        ));
    }
    execute(&mut tenant.superuser, &script).await;

    let pool = tenant.pool();
    for _first_and_prepared in 0..2 {
        for dead in ["unknown", "revoked key", "expired key", "revoked secret", "expired secret"] {
            let ask = tenant.ask("a", "select app.touch()", &[Text]);
            let any = Ask { by_any_secret: true, ..by(&ask, dead, dead) };
            for ask in [by(&ask, dead, dead), by(&ask, "a", dead), any] {
                assert_eq!(name(&pool.read(ask, usize::MAX).await), "DeadKey", "{dead}");
                assert_eq!(n_touched(&mut tenant).await, 0, "{dead}");
            }
        }
    }
    // The same statement on the same connection does run for a live key, so the silence above means something.
    for (n_calls, by_any_secret) in [false, true].into_iter().enumerate() {
        let ask = Ask { by_any_secret, ..tenant.ask("a", "select app.touch()", &[Text]) };
        let page = pool.read(ask, usize::MAX).await.expect("a live key");
        assert_eq!(utf8(&page), r#"{"0":"touched"}"#);
        assert_eq!(n_touched(&mut tenant).await, 1, "one lock, taken {} times", n_calls + 1);
    }
}

#[tokio::test]
async fn revoking_is_seen_by_the_next_exchange_and_a_second_secret_lives_on_its_own() {
    let mut tenant = Tenant::found(shared().await, "wire_revoke").await;
    execute(&mut tenant.superuser, &secret("a", "second")).await;
    let pool = tenant.pool();
    let ask = tenant.ask("a", "select id from app.notes order by id limit 1", &[Int4]);
    let (second, of_nobody) = (by(&ask, "a", "second"), by(&ask, "b", "second"));
    assert_eq!(name(&pool.read(of_nobody, usize::MAX).await), "DeadKey", "the secret is another key's");
    let any = Ask { by_any_secret: true, ..ask.clone() };
    for live in [&ask, &second, &any] {
        assert_eq!(name(&pool.read(live.clone(), usize::MAX).await), "Page");
    }
    let first = id("a");
    execute(
        &mut tenant.superuser,
        &format!("update dl.key_secrets set revoked_at = now() where id = '{first}'"),
    )
    .await;
    for (ask, expected) in [(&ask, "DeadKey"), (&second, "Page"), (&any, "Page")] {
        assert_eq!(name(&pool.read(ask.clone(), usize::MAX).await), expected);
    }
    execute(&mut tenant.superuser, &format!("select dl.revoke('{first}')")).await;
    for ask in [second, any] {
        assert_eq!(name(&pool.read(ask, usize::MAX).await), "DeadKey");
    }
}

#[tokio::test]
async fn a_key_of_another_role_than_expected_gets_no_rows() {
    let tenant = Tenant::found(shared().await, "wire_role").await;
    let pool = tenant.pool();
    for text in ["select id from app.notes", "select id from app.nothing", "select 1 / 0"] {
        let mut ask = tenant.ask("a", text, &[Int4]);
        ask.role = tenant.role("b");
        match pool.read(ask, usize::MAX).await {
            Err(Failure::WrongRole(key)) => {
                assert_eq!((key.id, key.role), (id("a"), tenant.role("a")));
                assert_eq!((key.set_role, key.generation), (None, 7));
            }
            other => panic!("{other:?}"),
        }
    }
}

#[tokio::test]
async fn a_key_without_its_role_is_not_taken_for_a_dead_one_when_only_the_right_is_missing() {
    let mut tenant = Tenant::found(shared().await, "wire_membership").await;
    let (role, auth) = (tenant.role("a"), tenant.login.role.clone());
    execute(&mut tenant.superuser, &format!("revoke {role} from {auth}")).await;
    let ask = tenant.ask("a", "select id from app.notes", &[Int4]);
    assert_eq!(name(&tenant.pool().read(ask, usize::MAX).await), "Unavailable");
}
