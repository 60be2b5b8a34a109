//! What the tenant's own logins may do in its database: in schema `dl`, each its own work and nothing else.

use rowgate_core::role::TenantLogin;
use rowgate_sql::ddl::grants::Target;

use super::acl::{Subjects, ident};

/// One privilege on one object, and who is to have it.
pub(in crate::plan) type Right = (Target, String, &'static str);

/// What the owner of the tables calls in schema `dl`, as `0014_records` gives it; and what it has in triggers.
const OF_OWNER: [&str; 10] = [
    "dl.fence(bigint)",
    "dl.publish(bytea)",
    "dl.stand(jsonb)",
    "dl.stand_routines(jsonb)",
    "dl.undecidable()",
    "dl.key_of(json,text[])",
    "dl.claim(text)",
    "dl.protect_echo()",
    "dl.protect_stamp()",
    "dl.protect_keep()",
];

/// The functions of row-change events that the data plane calls.
const OF_EVENTS: [&str; 7] = [
    "dl.tick()",
    "dl.holds(integer,bigint,bigint)",
    "dl.generation_of(bigint)",
    "dl.log_size()",
    "dl.events(bigint,bigint,oid[],text[],integer)",
    "dl.pending(text,bigint,bigint,oid[],text[],integer)",
    "dl.changed(bigint,bigint)",
];

/// All of them. The keys login has no business here: what the owner makes in this database must never run as a role that creates roles.
pub(super) fn rights(subjects: &Subjects<'_>) -> Vec<Right> {
    let [_, _, auth, sql, records, lookups, _, migrations] =
        TenantLogin::ALL.map(|login| login.role(&subjects.desired.tenant));
    let database = Target::Database(subjects.desired.database.clone());
    let logins = [&auth, &sql, &records, &lookups];
    let mut rights: Vec<Right> =
        logins.into_iter().map(|login| (database.clone(), login.clone(), "CONNECT")).collect();
    let has_migrations = subjects.desired.migrations.is_some();
    rights.extend(has_migrations.then_some((database, migrations, "CONNECT")));
    of_owner(&subjects.desired.owner, &mut rights);
    // of entities that are away, too: what was captured of them is delivered later
    let has_events = subjects.desired.entities.iter().any(|entity| entity.events);
    of_lookups(&lookups, has_events, &mut rights);
    match subjects.cluster.has_older_replicas {
        true => of_lookups(&auth, has_events, &mut rights),
        false => of_requests(&auth, &mut rights),
    }
    rights
}

/// As `0014_records` gives them.
fn of_owner(owner: &str, rights: &mut Vec<Right>) {
    let mut want = |target: Target, privilege| rights.push((target, owner.to_owned(), privilege));
    want(Target::Schema(ident("dl")), "USAGE");
    want(dl("own_claims"), "SELECT");
    want(Target::Sequence(ident("dl"), ident("outbox_seq")), "USAGE");
    for column in ["slot", "rel", "op", "cause", "image"] {
        want(column_of("outbox", column), "INSERT");
    }
    for column in ["seq", "xid", "rel", "op"] {
        want(column_of("outbox", column), "SELECT");
    }
    for signature in OF_OWNER {
        want(Target::Routine(signature.to_owned()), "EXECUTE");
    }
}

/// Of the login whose sessions run requests, and so whatever a trigger or a function of the tenant's makes of them: what the key statement
/// reads.
fn of_requests(auth: &str, rights: &mut Vec<Right>) {
    let mut want = |target: Target, privilege| rights.push((target, auth.to_owned(), privilege));
    want(Target::Schema(ident("dl")), "USAGE");
    want(column_of("state", "generation"), "SELECT");
    for column in ["id", "secret", "role", "set_role"] {
        want(column_of("live", column), "SELECT");
    }
}

/// Of the login as which no request runs. In a data plane of version 0.2 that is the login of requests.
fn of_lookups(lookups: &str, has_events: bool, rights: &mut Vec<Right>) {
    let mut want = |target: Target, privilege| rights.push((target, lookups.to_owned(), privilege));
    want(Target::Schema(ident("dl")), "USAGE");
    for table in ["state", "live", "entities", "relationships", "permission_sets"] {
        want(dl(table), "SELECT");
    }
    want(Target::Routine("dl.revoke(text)".to_owned()), "EXECUTE");
    for privilege in ["SELECT", "INSERT", "DELETE"] {
        want(dl("backends"), privilege);
    }
    if !has_events {
        return;
    }
    for signature in OF_EVENTS {
        want(Target::Routine(signature.to_owned()), "EXECUTE");
    }
    for table in ["subscriptions", "subscription_secrets", "dead_letters", "deliveries", "backlog"] {
        for privilege in ["SELECT", "INSERT", "UPDATE", "DELETE"] {
            want(dl(table), privilege);
        }
    }
    for (table, privilege) in [
        ("delivery", "SELECT"),
        ("delivery", "UPDATE"),
        ("audit", "SELECT"),
        ("audit", "INSERT"),
        ("ticks", "SELECT"),
        ("event_log", "SELECT"),
    ] {
        want(dl(table), privilege);
    }
}

fn dl(table: &str) -> Target {
    Target::Relation(ident("dl"), ident(table))
}

fn column_of(table: &str, column: &str) -> Target {
    Target::Columns(ident("dl"), ident(table), vec![ident(column)])
}
