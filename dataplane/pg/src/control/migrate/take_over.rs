//! Schema `dl` becomes that of `t<id>_dl`. Whoever owned it before may have left anything there that would run code of the tenant's as that login, so
//! what stands there is compared with a schema that the migrations make beside it; what is more or other is named.

use std::collections::BTreeSet;

use sqlx::PgConnection;

use super::make::{REVOKE_FROM_PUBLIC, begin_lent};
use super::{LAST_OF_OWNER, Migration, TENANT, TENANT_RECORD, run};
use crate::connect::session;
use crate::failure::PgError;

/// What the migrations make for the comparison.
const REFERENCE: &str = "dl_reference";
/// How many differences are named.
const NAMED: usize = 3;

/// Why schema `dl` stays with its owner.
#[derive(Debug, thiserror::Error)]
pub enum TakeOverError {
    #[error("schema dl holds what is none of Rowgate's: {0}")]
    Foreign(String),
    #[error(transparent)]
    Pg(#[from] PgError),
}

impl From<sqlx::Error> for TakeOverError {
    fn from(error: sqlx::Error) -> TakeOverError {
        TakeOverError::Pg(error.into())
    }
}

/// Makes schema `dl` that of `t<id>_dl`, as that login, which has been lent the rights of the owner of the tables, and brings it up to date.
/// All or nothing: requests wait meanwhile, for a tenth of a second.
///
/// # Errors
/// What stands in the way; 55P03 where somebody holds a table of it.
pub async fn take_over(conn: &mut PgConnection) -> Result<(), TakeOverError> {
    let mut open = begin_lent(conn).await?;
    session::script(&mut open, "drop schema if exists dl_reference cascade").await?;
    let (of_owner, later) =
        TENANT.split_at(TENANT.partition_point(|migration| migration.number <= LAST_OF_OWNER));
    make_beside(&mut open, of_owner).await?;
    // what a later migration drops may still be there
    let mut expected = described(&mut open, REFERENCE).await?;
    make_beside(&mut open, later).await?;
    session::script(&mut open, OWN).await?;
    expected.extend(described(&mut open, REFERENCE).await?);
    let found = described(&mut open, "dl").await?;
    let foreign: Vec<&str> = found.difference(&expected).map(String::as_str).collect();
    if !foreign.is_empty() {
        let mut named = foreign.iter().take(NAMED).copied().collect::<Vec<_>>().join("; ");
        if NAMED < foreign.len() {
            named += &format!("; and {} more", foreign.len() - NAMED);
        }
        return Err(TakeOverError::Foreign(named));
    }
    session::script(&mut open, "drop schema dl_reference cascade").await?;
    // the plan gives what data planes need, and until then they have it as they had
    session::script(&mut open, REVOKE_FROM_PUBLIC).await?;
    // a restored dump may say that they have run, as another owner
    let forget = sqlx::query("delete from dl.migrations where $1 < number");
    forget.bind(LAST_OF_OWNER).execute(&mut *open).await?;
    run(&mut open, TENANT, LAST_OF_OWNER, TENANT_RECORD).await?;
    Ok(open.commit().await?)
}

/// What stands in schema `dl` and belongs to the owner of the tables, but for what captures rows: a transaction that was open while the schema was
/// taken over may have left it. At most three.
pub async fn strangers(conn: &mut PgConnection) -> Result<Vec<String>, PgError> {
    let strangers = sqlx::query_scalar(
        "with owner as (select datdba from pg_database where datname = current_database()) \
         select 'relation ' || oid::regclass from pg_class \
         where relnamespace = 'dl'::regnamespace and relowner = (select datdba from owner) \
         union all \
         select 'routine ' || oid::regprocedure from pg_proc \
         where pronamespace = 'dl'::regnamespace and proowner = (select datdba from owner) \
           and not (proname in ('capture', 'capture_row') and pronargs = 0) \
         order by 1 limit 3",
    );
    Ok(strangers.fetch_all(conn).await?)
}

async fn make_beside(conn: &mut PgConnection, migrations: &[Migration]) -> Result<(), PgError> {
    for migration in migrations {
        session::script(conn, &beside(migration.text)).await?;
    }
    Ok(())
}

/// The text of a migration for the schema that is compared with.
fn beside(text: &str) -> String {
    let mut made = String::with_capacity(text.len() + 1000);
    let mut rest = text;
    while let Some(at) = rest.find("dl") {
        let (before, name) = rest.split_at(at);
        let is_word = !before.ends_with(|c: char| c.is_alphanumeric() || c == '_');
        let is_schema = name.starts_with("dl.") || before.ends_with("schema ");
        let is_name =
            is_word && is_schema && !name[2..].starts_with(|c: char| c.is_alphanumeric() || c == '_');
        made.push_str(before);
        made.push_str(if is_name { REFERENCE } else { "dl" });
        rest = &name[2..];
    }
    made.push_str(rest);
    made
}

/// What holds for requests that were staged is gone with their transaction. The most used tables are asked for first, so that they are waited for
/// before others wait for us.
const OWN: &str = "
do $$
declare
    one record;
begin
    alter schema dl owner to current_user;
    for one in
        select c.oid::regclass as name, c.relkind from pg_class c
        where c.relnamespace = 'dl'::regnamespace and c.relkind in ('r', 'p', 'v', 'm', 'f', 'S')
            -- a sequence of a column goes with its table
            and c.relowner = (select datdba from pg_database where datname = current_database())
            and not exists (select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid
                and c.relkind = 'S' and d.refclassid = 'pg_class'::regclass and d.deptype in ('a', 'i'))
        order by c.relkind <> 'p', c.relname !~ '^outbox', c.relname
    loop
        execute format('alter %s %s owner to current_user', case one.relkind when 'v' then 'view' when 'm' then 'materialized view'
            when 'f' then 'foreign table' when 'S' then 'sequence' else 'table' end, one.name);
    end loop;
    for one in
        select p.oid::regprocedure as name from pg_proc p
        where p.pronamespace = 'dl'::regnamespace and p.proname not in ('capture', 'capture_row')
            and p.proowner = (select datdba from pg_database where datname = current_database())
    loop
        execute format('alter routine %s owner to current_user', one.name);
    end loop;
    drop table if exists dl.staged;
    drop function if exists dl.publish(bytea);
end
$$";

/// All that could run code, or change what a statement of ours does, in the schema of this name: a line each. PostgreSQL prints what is not its own with
/// a schema, so that equal lines mean the same. Views and functions are named only: those that are known are made once more.
async fn described(conn: &mut PgConnection, schema: &str) -> Result<BTreeSet<String>, PgError> {
    let lines: Vec<String> = sqlx::query_scalar(DESCRIBED).bind(schema).fetch_all(conn).await?;
    let prefix = format!("{schema}.");
    Ok(lines.into_iter().map(|line| line.replace(&prefix, "dl.")).collect())
}

const DESCRIBED: &str = "
with s as (select oid from pg_namespace where nspname = $1),
rel as (select c.* from pg_class c join s on c.relnamespace = s.oid where c.relkind <> 'c')
select concat_ws(' ', 'relation', relname, relkind, relpersistence, relrowsecurity, relforcerowsecurity, relispartition, relhasrules,
    relreplident, reloptions, reltablespace, reloftype, (select amname from pg_am where pg_am.oid = relam), pg_get_partkeydef(oid),
    pg_get_expr(relpartbound, oid)) from rel where relkind not in ('i', 'I')
union all
select concat_ws(' ', 'index', pg_get_indexdef(indexrelid), indisvalid, indisreplident, indisclustered) from pg_index i join rel on rel.oid = i.indrelid
union all
select concat_ws(' ', 'column', attname, 'of', relname, format_type(atttypid, atttypmod), atttypid, attnotnull, attidentity, attgenerated,
    attcollation, attoptions, pg_get_expr(adbin, attrelid))
from pg_attribute a join rel on rel.oid = a.attrelid and relkind in ('r', 'p', 'm', 'f')
left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
where attnum > 0 and not attisdropped
union all
select concat_ws(' ', 'constraint of', relname, contype, convalidated, pg_get_constraintdef(k.oid)) from pg_constraint k
join rel on rel.oid = k.conrelid where contype <> 'n'
union all
select concat_ws(' ', 'constraint', conname, 'of', conrelid::regclass, 'on', relname) from pg_constraint k join rel on rel.oid = k.confrelid
where not exists (select from rel of where of.oid = k.conrelid)
union all
select concat_ws(' ', 'trigger', tgname, 'on', relname) from pg_trigger t join rel on rel.oid = t.tgrelid where not tgisinternal
union all
select concat_ws(' ', 'rule', rulename, 'on', relname) from pg_rewrite r join rel on rel.oid = r.ev_class
union all
select concat_ws(' ', 'policy', polname, 'on', relname) from pg_policy p join rel on rel.oid = p.polrelid
union all
select concat_ws(' ', 'statistics', stxname, 'of', relname) from pg_statistic_ext x join rel on rel.oid = x.stxrelid
union all
select concat_ws(' ', 'child', inhrelid::regclass, 'of', relname) from pg_inherits i join rel on rel.oid = i.inhparent
union all
select concat_ws(' ', 'parent', inhparent::regclass, 'of', relname) from pg_inherits i join rel on rel.oid = i.inhrelid
union all
select concat_ws(' ', 'publication of', relname) from pg_publication_rel p join rel on rel.oid = p.prrelid
union all
select 'publication of the schema' from pg_publication_namespace p join s on s.oid = p.pnnspid
union all
-- triggers that the plan makes once more where they differ run as whoever writes, if they are as they should be
select concat_ws(' ', 'routine', proname || '(' || pg_get_function_identity_arguments(p.oid) || ')', prokind) from pg_proc p
join s on s.oid = p.pronamespace
where not (p.proname in ('protect_echo', 'protect_stamp', 'protect_keep') and p.pronargs = 0 and not p.prosecdef)
union all
select concat_ws(' ', 'type', typname, typtype) from pg_type t join s on s.oid = t.typnamespace where typrelid = 0 and typelem = 0
union all
select pg_describe_object(d.classid, d.objid, 0) from pg_depend d join s on d.refclassid = 'pg_namespace'::regclass and d.refobjid = s.oid
where d.classid not in ('pg_class'::regclass, 'pg_proc'::regclass, 'pg_type'::regclass, 'pg_publication_namespace'::regclass)
    and d.deptype = 'n'
union all
-- what goes with an extension, or is one's
select 'extension: ' || pg_describe_object(d.classid, d.objid, 0) from pg_depend d
where d.refclassid = 'pg_extension'::regclass and d.deptype in ('e', 'x') and (
    d.classid = 'pg_class'::regclass and d.objid in (select oid from rel)
    or d.classid = 'pg_proc'::regclass and d.objid in (select p.oid from pg_proc p join s on s.oid = p.pronamespace)
    or d.classid = 'pg_type'::regclass and d.objid in (select t.oid from pg_type t join s on s.oid = t.typnamespace)
    or d.classid = 'pg_namespace'::regclass and d.objid in (select oid from s))";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_migration_is_made_beside() {
        let text = "create schema dl;\nselect dl.f('dl.g', 'x_dl'), medl.x from t<id>_dl where 'dl' = 1; -- schema dlx, ~dl_capture";
        let made = "create schema dl_reference;\nselect dl_reference.f('dl_reference.g', 'x_dl'), medl.x from t<id>_dl where 'dl' = 1; -- schema dlx, ~dl_capture";
        assert_eq!(beside(text), made);
    }
}
