//! The resources as values: the Tenant, a key that reads, and the Relationships of the foreign keys.

use rowgate_core::role::TenantLogin;
use rowgate_crds::{API_VERSION, Kind, Tenant, admit};
use rowgate_pg::introspect::Application;
use serde_json::{Value, json};

use super::secret_columns::secrets;
use super::tables::{Chosen, Table};
use super::{AdoptError, AdoptFlags, entity_names};
use crate::relationships::of_foreign_keys;

/// What the Tenant is called, and which database it adopts.
#[derive(Debug)]
pub(super) struct Basics {
    name: String,
    namespace: Option<String>,
    database: String,
}

impl Basics {
    /// Judges the database as the reconciler would, before any table.
    pub(super) fn new(application: &Application, flags: &AdoptFlags) -> Result<Basics, AdoptError> {
        let Application { database, owner, .. } = application;
        let mistake = |message: String| Err(AdoptError::Mistakes(message));
        if TenantLogin::of_role(owner).is_some() || *owner == flags.operator {
            return mistake(format!(
                "database {database} belongs to {owner}, which is Rowgate's; name another one in --database-url"
            ));
        }
        if application.owner_is_superuser {
            return mistake(format!(
                "database {database} belongs to {owner}, a superuser, as whom Rowgate runs no statement; a DBA can run: alter database {} owner to the role that owns the application's tables;",
                quoted(database)
            ));
        }
        if application.has_records {
            return mistake(format!(
                "database {database} has a schema dl, where Rowgate keeps its records, so that a Tenant adopts it already; edit the manifest of that Tenant"
            ));
        }
        let Some(name) = flags.name.clone().or_else(|| entity_names::tenant(database)) else {
            return mistake(format!(
                "the name of database {database} cannot be that of a Tenant; choose one with --name"
            ));
        };
        let namespace = flags.namespace.clone().filter(|namespace| namespace != "default");
        let basics = Basics { name: name.to_string(), namespace, database: database.clone() };
        let bare = basics.resource(Kind::Tenant, &basics.name, json!({"database": basics.database()}));
        let errors = admit(Kind::Tenant, bare, None).err().unwrap_or_default();
        let errors = errors.into_iter().map(|error| match error.path.as_str() {
            "metadata.namespace" => format!("--namespace: {}", error.message),
            _ => format!(
                "database {database} cannot be adopted: {}; rename it, or name another one in --database-url",
                error.message
            ),
        });
        let errors: Vec<String> = errors.collect();
        if errors.is_empty() { Ok(basics) } else { mistake(errors.join("\n")) }
    }

    pub(super) fn database(&self) -> Value {
        json!({"name": self.database, "create": false})
    }

    fn resource(&self, kind: Kind, name: &str, spec: Value) -> Value {
        let mut metadata = json!({"name": name});
        if let Some(namespace) = &self.namespace {
            metadata["namespace"] = json!(namespace);
        }
        json!({"apiVersion": API_VERSION, "kind": kind.as_str(), "metadata": metadata, "spec": spec})
    }
}

/// Everything that is to be written.
#[derive(Debug)]
pub(super) struct Manifest<'a> {
    pub(super) application: &'a Application,
    pub(super) tables: Vec<Table<'a>>,
    pub(super) tenant: Value,
    /// The key, then the Relationships.
    pub(super) others: Vec<Value>,
    /// A sentence for each table and foreign key that is not in it.
    pub(super) left_out: Vec<String>,
}

impl<'a> Manifest<'a> {
    pub(super) fn new(
        basics: &Basics,
        application: &'a Application,
        Chosen { tables, mut left_out }: Chosen<'a>,
    ) -> Result<Manifest<'a>, AdoptError> {
        let spec = json!({
            "database": basics.database(),
            "entities": tables.iter().map(entity).collect::<Vec<_>>(),
            "shared": {"permissions": tables.iter().map(permission).collect::<Vec<_>>()},
        });
        let tenant = basics.resource(Kind::Tenant, &basics.name, spec);
        let typed = admit(Kind::Tenant, tenant.clone(), None).map_err(|errors| {
            let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
            AdoptError::Mistakes(errors.join("\n"))
        })?;
        let typed: Tenant = serde_json::from_value(typed).expect("what was admitted fits the type");
        let spec = json!({"tenantRef": {"name": basics.name}});
        let mut others = vec![basics.resource(Kind::ApiKey, &format!("{}-reader", basics.name), spec)];
        for relationship in of_foreign_keys(&application.relations, &typed) {
            match relationship {
                Ok(relationship) => others.push(relationship),
                Err(sentence) => left_out.push(sentence.replace('\n', "; ")),
            }
        }
        Ok(Manifest { application, tables, tenant, others, left_out })
    }
}

fn entity(table: &Table<'_>) -> Value {
    let mut entity = json!({"name": table.entity, "source": {"schema": table.schema, "object": table.name}});
    if table.is_filtered {
        entity["rowLevelSecurity"] = json!({"existing": true});
    }
    entity
}

fn permission(table: &Table<'_>) -> Value {
    let mut permission = json!({"entity": table.entity, "actions": ["read"]});
    let [exclude, _] = secrets(table.relation);
    if !exclude.is_empty() {
        permission["fields"] = json!({"exclude": exclude});
    }
    permission
}

/// The name as SQL spells it.
pub(super) fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
