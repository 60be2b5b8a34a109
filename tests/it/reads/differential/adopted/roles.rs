//! What roles read of the application's tables in plain SQL, by the column `n`, which tells the rows of a table apart.

use sqlx::PgConnection;

use super::super::comparing::{Difference, Tenant, texts};
use super::super::model::Who;

/// Through no relation of the database a key's role reads a row of a table that the key may not see. A relation shows rows of the table that
/// has its name in schema `app`.
pub(super) async fn of_keys(tenant: &mut Tenant) -> Result<(), Difference> {
    let Tenant { drawn, secrets, roles, model, .. } = tenant;
    for (key, (_, role)) in drawn.keys.iter().zip(secrets.iter()) {
        for relation in texts(model, &readable(role)).await.expect("the superuser asks") {
            let (_, table) = relation.split_once('.').expect("schema and name");
            let Some(i) = drawn.relations.iter().position(|it| it.name == table) else { continue };
            let read = numbers(roles, role, &relation).await?;
            let visible = match drawn.reached(key, i).is_empty() {
                true => Vec::new(),
                false => {
                    let sql = format!("select r.n::text from {} r", drawn.visible(i, Who { key, role }));
                    texts(model, &sql).await.map_err(|error| format!("{error}: {sql}"))?
                }
            };
            if let Some(hidden) = read.iter().find(|n| !visible.contains(n)) {
                let name = &key.name;
                return Err(format!(
                    "{role} reads row {hidden} through {relation}, which key {name} may not see"
                ));
            }
        }
    }
    Ok(())
}

/// The application's roles read every row, as before: its owner and those that have grants, also through its views.
pub(super) async fn of_the_application(tenant: &mut Tenant) -> Result<(), Difference> {
    let Tenant { drawn, roles, model, .. } = tenant;
    let owner = &drawn.slug;
    let (writer, reader) = (format!("{owner}_writer"), format!("{owner}_reader"));
    for table in drawn.relations.iter().map(|relation| &relation.name) {
        let sql = format!("select r.n::text from app.{table} r order by r.n");
        let every = texts(model, &sql).await.map_err(|error| format!("{error}: {sql}"))?;
        for (role, schema) in [(owner, "app"), (&writer, "app"), (&reader, "app"), (&reader, "reports")] {
            let read = numbers(roles, role, &format!("{schema}.{table}")).await?;
            if read != every {
                return Err(format!("{role} reads {read:?} of {schema}.{table} and not {every:?}"));
            }
        }
    }
    Ok(())
}

/// The login that becomes the application's owner reads nothing as itself: it inherits nothing.
pub(super) async fn of_the_login(tenant: &mut Tenant, login: &str) -> Result<(), Difference> {
    let Tenant { drawn, roles, .. } = tenant;
    for table in drawn.relations.iter().map(|relation| &relation.name) {
        let read = numbers(roles, login, &format!("app.{table}")).await?;
        if !read.is_empty() {
            return Err(format!("{login} reads {read:?} of app.{table} without SET ROLE"));
        }
    }
    Ok(())
}

/// The relations with a column `n` on which a role may read it, `schema.name`.
fn readable(role: &str) -> String {
    format!(
        "select s.nspname || '.' || c.relname from pg_class c join pg_namespace s on s.oid = c.relnamespace \
         join pg_attribute a on a.attrelid = c.oid and a.attname = 'n' \
         where c.relkind in ('r', 'v') and s.nspname !~ '^pg_' and has_schema_privilege('{role}', s.oid, 'usage') \
         and has_column_privilege('{role}', c.oid, a.attnum, 'select')"
    )
}

/// The rows that a role reads; none where it has no right to read.
async fn numbers(roles: &mut PgConnection, role: &str, relation: &str) -> Result<Vec<String>, Difference> {
    let sql = format!("set local role \"{role}\"; select r.n::text from {relation} r order by r.n");
    match texts(roles, &sql).await {
        Err(error) if error.to_string().contains("permission denied") => Ok(Vec::new()),
        read => read.map_err(|error| format!("{role}: {error}: {sql}")),
    }
}
