//! Schemas and relations with everything that hangs on them, put together by oid.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use sqlx::PgConnection;
use sqlx::types::Json;

use super::{acl, columns, links, oid, triggers};
use crate::failure::PgError;
use crate::introspect::actual::{Acl, Policy, QName, Relation, RelationKind, Schema};
use crate::tenant::read_limits::of;

pub(super) async fn schemas(conn: &mut PgConnection) -> Result<BTreeMap<String, Schema>, PgError> {
    let rows: Vec<(String, String, Json<Acl>)> = sqlx::query_as(concat!(
        "select n.nspname::text, pg_get_userbyid(n.nspowner)::text, ",
        acl!("n.nspacl", "'n'", "n.nspowner"),
        " from pg_namespace n where n.nspname !~ '^pg_' and n.nspname <> 'information_schema'"
    ))
    .fetch_all(conn)
    .await?;
    Ok(rows.into_iter().map(|(name, owner, Json(acl))| (name, Schema { owner, acl })).collect())
}

#[derive(sqlx::FromRow)]
struct Row {
    oid: i64,
    schema: String,
    name: String,
    kind: String,
    owner: String,
    rls_enabled: bool,
    rls_forced: bool,
    rule: Option<i64>,
    is_partition: bool,
    is_replicated: bool,
    acl: Json<Acl>,
}

/// Policies by the oid of their relation, then by name.
pub(super) type Policies = HashMap<i64, BTreeMap<String, Policy>>;

pub(super) async fn relations(
    conn: &mut PgConnection,
    mut policies: Policies,
) -> Result<BTreeMap<QName, Relation>, PgError> {
    let rows: Vec<Row> = sqlx::query_as(concat!(
        "select c.oid::int8, n.nspname::text as schema, c.relname::text as name, c.relkind::text as kind, \
                pg_get_userbyid(c.relowner)::text as owner, c.relrowsecurity as rls_enabled, \
                c.relforcerowsecurity as rls_forced, c.relispartition as is_partition, \
                exists (select from pg_subscription_rel s where s.srrelid = c.oid) as is_replicated, \
                (select max(w.xmin::text::int8) from pg_rewrite w where w.ev_class = c.oid) as rule, ",
        acl!("c.relacl", "case c.relkind when 'S' then 's' else 'r' end::\"char\"", "c.relowner"),
        " as acl from pg_class c join pg_namespace n on n.oid = c.relnamespace \
          where c.oid >= 16384 and c.relkind in ('r', 'p', 'v', 'm', 'f', 'S') and n.nspname !~ '^pg_' \
            and n.nspname <> 'information_schema' \
            and not exists (select from pg_depend e where e.classid = 'pg_class'::regclass and e.objid = c.oid \
                            and e.objsubid = 0 and e.deptype = 'e')"
    ))
    .fetch_all(&mut *conn)
    .await
    .map_err(|error| of("pg_class")(error.into()))?;
    let mut columns = columns::columns(conn).await.map_err(of("pg_attribute"))?;
    let mut primary_keys = columns::primary_keys(conn).await.map_err(of("pg_index"))?;
    let mut indexes = links::indexes(conn).await.map_err(of("pg_index"))?;
    let mut foreign_keys = links::foreign_keys(conn).await.map_err(of("pg_constraint"))?;
    let mut leaky = columns::leaky(conn).await.map_err(of("pg_index"))?;
    let mut reads = reads(conn).await.map_err(of("pg_rewrite"))?;
    let mut routines = routines(conn).await.map_err(of("pg_depend"))?;
    let mut sequences = sequences(conn).await.map_err(of("pg_depend"))?;
    let mut parents = triggers::parents(conn).await.map_err(of("pg_inherits"))?;
    let mut definers = triggers::definers(conn).await.map_err(of("pg_trigger"))?;
    let mut triggers = triggers::triggers(conn).await.map_err(of("pg_trigger"))?;
    rows.into_iter()
        .map(|row| {
            let id = row.oid;
            let links::Indexes { unique, all } = indexes.remove(&id).unwrap_or_default();
            let relation = Relation {
                oid: oid(id)?,
                kind: kind(&row.kind)?,
                owner: row.owner,
                rls_enabled: row.rls_enabled,
                rls_forced: row.rls_forced,
                rule: row.rule,
                acl: row.acl.0,
                columns: columns.remove(&id).unwrap_or_default(),
                policies: policies.remove(&id).unwrap_or_default(),
                primary_key: primary_keys.remove(&id).unwrap_or_default(),
                unique,
                indexes: all,
                foreign_keys: foreign_keys.remove(&id).unwrap_or_default(),
                leaky: leaky.remove(&id).unwrap_or_default(),
                reads: reads.remove(&id).unwrap_or_default(),
                routines: routines.remove(&id).unwrap_or_default(),
                sequences: sequences.remove(&id).unwrap_or_default(),
                triggers: triggers.remove(&id).unwrap_or_default(),
                definers: definers.remove(&id).unwrap_or_default(),
                parents: parents.remove(&id).unwrap_or_default(),
                is_partition: row.is_partition,
                is_replicated: row.is_replicated,
            };
            Ok(((row.schema, row.name), relation))
        })
        .collect()
}

fn kind(letter: &str) -> Result<RelationKind, PgError> {
    Ok(match letter {
        "r" => RelationKind::Table,
        "p" => RelationKind::PartitionedTable,
        "v" => RelationKind::View,
        "m" => RelationKind::MaterializedView,
        "f" => RelationKind::ForeignTable,
        "S" => RelationKind::Sequence,
        _ => return Err(PgError::unexpected(format!("a relation of kind {letter}"))),
    })
}

#[derive(sqlx::FromRow)]
struct PolicyRow {
    oid: i64,
    relation: i64,
    name: String,
    permissive: bool,
    command: String,
    roles: Vec<String>,
    using: Option<String>,
    check: Option<String>,
}

pub(super) async fn policies(conn: &mut PgConnection) -> Result<Policies, PgError> {
    let rows: Vec<PolicyRow> = sqlx::query_as(
        "select p.oid::int8, p.polrelid::int8 as relation, p.polname::text as name, p.polpermissive as permissive, \
                p.polcmd::text as command, \
                array(select case when r = 0 then 'public' else pg_get_userbyid(r)::text end \
                      from unnest(p.polroles) r) as roles, \
                pg_get_expr(p.polqual, p.polrelid) as using, pg_get_expr(p.polwithcheck, p.polrelid) as check \
         from pg_policy p",
    )
    .fetch_all(&mut *conn)
    .await?;
    let mut reads = policy_reads(conn).await?;
    let mut by_relation = Policies::new();
    for row in rows {
        let command = match row.command.as_str() {
            "r" => "SELECT",
            "a" => "INSERT",
            "w" => "UPDATE",
            "d" => "DELETE",
            "*" => "ALL",
            other => return Err(PgError::unexpected(format!("a policy for {other}"))),
        };
        let policy = Policy {
            permissive: row.permissive,
            command,
            roles: row.roles.into_iter().collect(),
            using: row.using,
            check: row.check,
            reads: reads.remove(&row.oid).unwrap_or_default(),
        };
        by_relation.entry(row.relation).or_default().insert(row.name, policy);
    }
    Ok(by_relation)
}

/// By policy: what it reads besides its own table.
async fn policy_reads(
    conn: &mut PgConnection,
) -> Result<HashMap<i64, BTreeMap<QName, BTreeSet<String>>>, PgError> {
    let rows: Vec<(i64, String, String, Option<String>)> = sqlx::query_as(
        "select p.oid::int8, n.nspname::text, c.relname::text, a.attname::text from pg_policy p \
         join pg_depend d on d.classid = 'pg_policy'::regclass and d.objid = p.oid \
                         and d.refclassid = 'pg_class'::regclass and d.refobjid <> p.polrelid \
         join pg_class c on c.oid = d.refobjid join pg_namespace n on n.oid = c.relnamespace \
         left join pg_attribute a on a.attrelid = c.oid and a.attnum = d.refobjsubid and d.refobjsubid > 0 \
         where c.relkind <> 'S' and n.nspname <> 'information_schema'",
    )
    .fetch_all(conn)
    .await?;
    let mut by_policy: HashMap<i64, BTreeMap<QName, BTreeSet<String>>> = HashMap::new();
    for (policy, schema, name, column) in rows {
        by_policy.entry(policy).or_default().entry((schema, name)).or_default().extend(column);
    }
    Ok(by_policy)
}

/// What the rule of each view reads.
async fn reads(conn: &mut PgConnection) -> Result<HashMap<i64, BTreeSet<QName>>, PgError> {
    let rows: Vec<(i64, String, String)> = sqlx::query_as(
        "select distinct r.ev_class::int8, n.nspname::text, c.relname::text from pg_rewrite r \
         join pg_depend d on d.classid = 'pg_rewrite'::regclass and d.objid = r.oid \
                         and d.refclassid = 'pg_class'::regclass and d.refobjid <> r.ev_class \
         join pg_class c on c.oid = d.refobjid join pg_namespace n on n.oid = c.relnamespace \
         where r.ev_class >= 16384 and c.relkind <> 'S'",
    )
    .fetch_all(conn)
    .await?;
    Ok(by_relation(rows.into_iter().map(|(relation, schema, name)| (relation, (schema, name)))))
}

/// What expressions of each relation call: those of column defaults, generated columns, checks (of its columns'
/// domains too), indexes, partition keys, policies that hold for keys and rules, also by way of an operator.
async fn routines(conn: &mut PgConnection) -> Result<HashMap<i64, BTreeSet<String>>, PgError> {
    let rows: Vec<(i64, String)> = sqlx::query_as(
        "with part as ( \
             select adrelid as relation, 'pg_attrdef'::regclass::oid as classid, oid from pg_attrdef where adrelid >= 16384 \
             union all select conrelid, 'pg_constraint'::regclass, oid from pg_constraint where conrelid >= 16384 \
             union all select a.attrelid, 'pg_constraint'::regclass, c.oid from pg_attribute a \
                       join pg_constraint c on c.contypid = a.atttypid where a.attrelid >= 16384 and a.attnum > 0 and c.contypid <> 0 \
             union all select indrelid, 'pg_class'::regclass, indexrelid from pg_index where indrelid >= 16384 \
             union all select partrelid, 'pg_class'::regclass, partrelid from pg_partitioned_table \
             union all select polrelid, 'pg_policy'::regclass, oid from pg_policy \
                       where 0 = any (polroles) or exists (select from pg_roles r where r.oid = any (polroles) \
                                                                and r.rolname ~ '^(key|set)_|^datalake_user$') \
             union all select ev_class, 'pg_rewrite'::regclass, oid from pg_rewrite where ev_class >= 16384 \
         ), called as ( \
             select part.relation, d.refobjid as routine from part \
             join pg_depend d on d.classid = part.classid and d.objid = part.oid and d.refclassid = 'pg_proc'::regclass \
             union \
             select part.relation, o.oprcode::oid from part \
             join pg_depend d on d.classid = part.classid and d.objid = part.oid \
                             and d.refclassid = 'pg_operator'::regclass \
             join pg_operator o on o.oid = d.refobjid \
         ) \
         select c.relation::int8, p.oid::regprocedure::text from called c \
         join pg_proc p on p.oid = c.routine join pg_namespace n on n.oid = p.pronamespace \
         where n.nspname <> 'pg_catalog' \
           and not exists (select from pg_depend e where e.classid = 'pg_proc'::regclass and e.objid = p.oid \
                           and e.deptype = 'e')",
    )
    .fetch_all(conn)
    .await?;
    Ok(by_relation(rows))
}

/// Owned by a column (serial, identity), or named in a default.
async fn sequences(conn: &mut PgConnection) -> Result<HashMap<i64, BTreeSet<QName>>, PgError> {
    let rows: Vec<(i64, String, String)> = sqlx::query_as(
        "select t.relation::int8, n.nspname::text, s.relname::text from ( \
             select d.refobjid as relation, d.objid as sequence from pg_depend d \
             where d.classid = 'pg_class'::regclass and d.refclassid = 'pg_class'::regclass and d.refobjsubid > 0 \
               and d.deptype in ('a', 'i') \
             union \
             select a.adrelid, d.refobjid from pg_attrdef a \
             join pg_depend d on d.classid = 'pg_attrdef'::regclass and d.objid = a.oid \
                             and d.refclassid = 'pg_class'::regclass \
         ) t join pg_class s on s.oid = t.sequence and s.relkind = 'S' join pg_namespace n on n.oid = s.relnamespace",
    )
    .fetch_all(conn)
    .await?;
    Ok(by_relation(rows.into_iter().map(|(relation, schema, name)| (relation, (schema, name)))))
}

pub(super) fn by_relation<T: Ord>(rows: impl IntoIterator<Item = (i64, T)>) -> HashMap<i64, BTreeSet<T>> {
    let mut map: HashMap<i64, BTreeSet<T>> = HashMap::new();
    for (relation, value) in rows {
        map.entry(relation).or_default().insert(value);
    }
    map
}
