//! The rows of schema `dl`, which the data plane reads. Every value is bound as text and cast by PostgreSQL. Its owner writes them: see
//! [`Sql::is_of_records`].

use crate::text::{Bind, Sql};

const TEXT: u32 = 25;

/// How long a transaction behind a fence may be left alone. Whoever is stopped in one holds the fence, and nobody else could
/// take over: as long as the Lease of whoever reconciles.
const LEFT_ALONE: &str = "15s";
/// As [`LEFT_ALONE`], where something else is done meanwhile.
const HELD: &str = "60s";

/// `select dl.fence(epoch)`: first in every transaction that changes a tenant's database. Whoever waits half a second for a
/// lock after it gives up: all others would wait behind us for as long as somebody's transaction holds the table. A statement
/// that nobody waits for any more ends soon, and what it holds is free.
#[must_use]
pub fn fence(epoch: i64) -> Sql {
    fence_for(epoch, LEFT_ALONE)
}

/// As [`fence`], in a transaction that is only open while another login works.
#[must_use]
pub fn held_fence(epoch: i64) -> Sql {
    fence_for(epoch, HELD)
}

fn fence_for(epoch: i64, idle: &str) -> Sql {
    let text = "select dl.fence($1::bigint), pg_catalog.set_config('idle_in_transaction_session_timeout', $2, true), \
                pg_catalog.set_config('lock_timeout', '500ms', true), \
                pg_catalog.set_config('client_connection_check_interval', '2s', true)";
    with(text, &[Some(&epoch.to_string()), Some(idle)])
}

/// `select control.fence(epoch)`: first in every transaction of the operator's login.
#[must_use]
pub fn control_fence(epoch: i64) -> Sql {
    let text = "select control.fence($1::bigint), pg_catalog.set_config('idle_in_transaction_session_timeout', $2, true)";
    with(text, &[Some(&epoch.to_string()), Some(LEFT_ALONE)])
}

/// One transaction of the operator's login at a time writes what tenants share: PostgreSQL does not wait for a row of its
/// catalogs that another transaction has changed, such as the control database's with its grants, but fails (XX000). The
/// table is read all the same, and no other login may lock it.
#[must_use]
pub fn alone() -> Sql {
    with("lock table control.installation in share row exclusive mode", &[])
}

/// For the rest of a transaction, once it is [`alone`]. Every role may change its own password and settings, and a transaction of a
/// tenant's that did so and stays open would keep the passes of all tenants waiting behind this one.
#[must_use]
pub fn short_lock_waits() -> Sql {
    with("set local lock_timeout = '1s'", &[])
}

/// `select dl.stand(relations)`: last in the transaction that grants. `relations` is a JSON array.
#[must_use]
pub fn stand(relations: &str) -> Sql {
    with("select dl.stand($1::jsonb)", &[Some(relations)])
}

/// `select dl.stand_routines(routines)`: the same for what is called.
#[must_use]
pub fn stand_routines(routines: &str) -> Sql {
    with("select dl.stand_routines($1::jsonb)", &[Some(routines)])
}

/// A new generation: data planes reload.
#[must_use]
pub fn bump() -> Sql {
    record("update dl.state set generation = generation + 1", &[])
}

#[must_use]
pub fn set_limits(limits: &str) -> Sql {
    record("update dl.state set limits = $1::jsonb", &[Some(limits)])
}

#[must_use]
pub fn put_entity(name: &str, definition: &str) -> Sql {
    record(
        "insert into dl.entities (name, definition) values ($1, $2::jsonb) on conflict (name) do update set definition = excluded.definition",
        &[Some(name), Some(definition)],
    )
}

#[must_use]
pub fn drop_entity(name: &str) -> Sql {
    record("delete from dl.entities where name = $1", &[Some(name)])
}

#[must_use]
pub fn put_relationship(entity: &str, name: &str, definition: &str) -> Sql {
    record(
        "insert into dl.relationships (entity, name, definition) values ($1, $2, $3::jsonb) on conflict (entity, name) do update set definition = excluded.definition",
        &[Some(entity), Some(name), Some(definition)],
    )
}

#[must_use]
pub fn drop_relationship(entity: &str, name: &str) -> Sql {
    record("delete from dl.relationships where entity = $1 and name = $2", &[Some(entity), Some(name)])
}

#[must_use]
pub fn put_claim(role: &str, name: &str, value: &str) -> Sql {
    record(
        "insert into dl.claims (role, name, value) values ($1::name, $2, $3) on conflict (role, name) do update set value = excluded.value",
        &[Some(role), Some(name), Some(value)],
    )
}

#[must_use]
pub fn drop_claim(role: &str, name: &str) -> Sql {
    record("delete from dl.claims where role = $1::name and name = $2", &[Some(role), Some(name)])
}

#[must_use]
pub fn put_permission_set(role: &str, hash: &str, permissions: &str) -> Sql {
    record(
        "insert into dl.permission_sets (role, hash, permissions) values ($1::name, $2, $3::jsonb) on conflict (role) do update set hash = excluded.hash, permissions = excluded.permissions",
        &[Some(role), Some(hash), Some(permissions)],
    )
}

#[must_use]
pub fn drop_permission_set(role: &str) -> Sql {
    record("delete from dl.permission_sets where role = $1::name", &[Some(role)])
}

/// A key that nobody can use yet: it has no secret and no rights.
#[must_use]
pub fn insert_key(id: &str, uid: &str, namespace: &str, name: &str, role: &str) -> Sql {
    record(
        "insert into dl.keys (id, uid, namespace, name, role) values ($1, $2, $3, $4, $5::name) on conflict do nothing",
        &[Some(id), Some(uid), Some(namespace), Some(name), Some(role)],
    )
}

/// A key became scoped, or unscoped: its role is another one, and it holds nothing until it is assigned again.
#[must_use]
pub fn set_key_role(id: &str, role: &str) -> Sql {
    record("update dl.keys set role = $2::name, set_role = null where id = $1", &[Some(id), Some(role)])
}

#[must_use]
pub fn set_key_expiry(id: &str, expires_at: Option<&str>) -> Sql {
    record("update dl.keys set expires_at = $2::timestamptz where id = $1", &[Some(id), expires_at])
}

#[must_use]
pub fn set_key_resolved(id: &str, resolved: &str) -> Sql {
    record("update dl.keys set resolved = $2::jsonb where id = $1", &[Some(id), Some(resolved)])
}

/// Revokes for good; revoking twice changes nothing.
#[must_use]
pub fn revoke_key(id: &str) -> Sql {
    record("select dl.revoke($1)", &[Some(id)])
}

/// Says which permission set a key is in; the membership itself is the keys login's to grant.
#[must_use]
pub fn assign_key(id: &str, set_role: Option<&str>) -> Sql {
    record("update dl.keys set set_role = $2::name where id = $1", &[Some(id), set_role])
}

/// The secret's digest, in hexadecimal digits; `replaces`: the secret beside which it begins to work.
#[must_use]
pub fn insert_secret(id: &str, key: &str, finder: &str, digest_hex: &str, replaces: Option<&str>) -> Sql {
    record(
        "insert into dl.key_secrets (id, key_id, finder, digest, replaces) values ($1, $2, $3, decode($4, 'hex'), $5) on conflict (digest) do nothing",
        &[Some(id), Some(key), Some(finder), Some(digest_hex), replaces],
    )
}

/// Lets the secret `old` work for `overlap_ms` milliseconds from when `new` was made, and never longer than it was to.
#[must_use]
pub fn retire_secret(old: &str, new: &str, overlap_ms: u64) -> Sql {
    record(
        "update dl.key_secrets old set expires_at = least(old.expires_at, new.created_at + $3::bigint * interval '1 millisecond') from dl.key_secrets new where old.id = $1 and new.id = $2",
        &[Some(old), Some(new), Some(&overlap_ms.to_string())],
    )
}

/// Remembers for which annotation the key's last secret was made, so that each value makes one.
#[must_use]
pub fn set_key_rotated_for(id: &str, rotated_for: &str) -> Sql {
    record("update dl.keys set rotated_for = $2 where id = $1", &[Some(id), Some(rotated_for)])
}

#[must_use]
pub fn revoke_secret(id: &str) -> Sql {
    record("update dl.key_secrets set revoked_at = coalesce(revoked_at, now()) where id = $1", &[Some(id)])
}

#[must_use]
pub fn put_applied(kind: &str, name: &str, hash: &str, recorded: &str) -> Sql {
    record(
        "insert into dl.applied (kind, name, hash, recorded) values ($1, $2, $3, $4) on conflict (kind, name) do update set hash = excluded.hash, recorded = excluded.recorded",
        &[Some(kind), Some(name), Some(hash), Some(recorded)],
    )
}

#[must_use]
pub fn drop_applied(kind: &str, name: &str) -> Sql {
    record("delete from dl.applied where kind = $1 and name = $2", &[Some(kind), Some(name)])
}

/// Records what PostgreSQL made of the policy that was just created, in the form of [`recorded_policy`].
#[must_use]
pub fn record_policy(name: &str, hash: &str, schema: &str, table: &str, policy: &str) -> Sql {
    record(
        "insert into dl.applied (kind, name, hash, recorded) \
         select 'policy', $1, $2, concat_ws('|', p.permissive, p.cmd, array_to_string(p.roles, ','), coalesce(p.qual, ''), coalesce(p.with_check, '')) \
         from pg_catalog.pg_policies p where p.schemaname = $3::name and p.tablename = $4::name and p.policyname = $5::name \
         on conflict (kind, name) do update set hash = excluded.hash, recorded = excluded.recorded",
        &[Some(name), Some(hash), Some(schema), Some(table), Some(policy)],
    )
}

/// The text under which a policy's present state is compared with its recorded one.
#[must_use]
pub fn recorded_policy(
    permissive: bool,
    command: &str,
    roles: &[&str],
    using: Option<&str>,
    check: Option<&str>,
) -> String {
    let permissive = if permissive { "PERMISSIVE" } else { "RESTRICTIVE" };
    [permissive, command, &roles.join(","), using.unwrap_or(""), check.unwrap_or("")].join("|")
}

/// As its owner, who keeps nothing else in the database; what stands in it and belongs to another role goes, too.
#[must_use]
pub fn drop_schema() -> [Sql; 2] {
    ["drop schema dl cascade", "alter default privileges grant execute on routines to public"].map(|text| {
        let mut sql = Sql::new();
        sql.lit(text);
        sql
    })
}

/// `select dl.publish(token)`: runs what is staged under the token. `token`: hexadecimal digits.
#[must_use]
pub fn publish(token: &str) -> Sql {
    with("select dl.publish(pg_catalog.decode($1, 'hex'))", &[Some(token)])
}

/// Stages statements under the hash of a token; what a process that died has left there goes. `statements`: JSON, as `dl.staged` has it.
#[must_use]
pub fn stage(token: &str, statements: &str) -> Sql {
    record(
        "with gone as (delete from dl.staged where at < now() - interval '1 hour') \
         insert into dl.staged (token_hash, statements) values (sha256(decode($1, 'hex')), $2::jsonb)",
        &[Some(token), Some(statements)],
    )
}

/// That the only script, or the first, has run.
#[must_use]
pub fn bootstrapped() -> Sql {
    record("update dl.state set bootstrapped_at = pg_catalog.now()", &[])
}

/// That the script at this place of the list has run, from 1 on. `name` and `key` are of its ConfigMap; `sha256`: hexadecimal digits.
#[must_use]
pub fn script_ran(number: usize, name: &str, key: &str, sha256: &str) -> Sql {
    record(
        "insert into dl.scripts (number, name, key, sha256) values ($1::integer, $2, $3, $4)",
        &[Some(&number.to_string()), Some(name), Some(key), Some(sha256)],
    )
}

/// A statement of schema `dl`.
pub(super) fn record(text: &'static str, values: &[Option<&str>]) -> Sql {
    let mut sql = with(text, values);
    sql.of_records();
    sql
}

fn with(text: &'static str, values: &[Option<&str>]) -> Sql {
    let mut sql = Sql::new();
    sql.statement(
        text,
        values
            .iter()
            .map(|value| Bind { value: value.map(|v| v.as_bytes().to_vec()), ..Bind::text(TEXT, "") }),
    );
    sql
}
