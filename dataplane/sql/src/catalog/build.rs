//! Records and what the database says of its columns become a [`Catalog`]. Whatever does not fit together stays closed.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use rowgate_core::name::EntityName;

use super::{
    Action, Catalog, Constraint, EXPECTED_TS, Entity, EntityKind, EntityRecord, Field, FieldType, Filling,
    Limits, PermissionRecord, Rights, RoutineInfo, Scope,
};
use crate::text::Ident;

/// The columns of one table or view, in the order of `pg_attribute.attnum`.
#[derive(Debug, Clone)]
pub struct TableColumns {
    pub schema: Ident,
    pub object: Ident,
    pub columns: Vec<ColumnInfo>,
    /// The columns of each index that keeps all rows apart by them, in any order.
    pub unique: Vec<Vec<Ident>>,
    /// Name and columns of each constraint and unique index that is about columns alone.
    pub constraints: Vec<(String, Vec<Ident>)>,
}

#[derive(Debug, Clone)]
pub struct ColumnInfo {
    pub name: Ident,
    pub ty: FieldType,
    /// `not pg_attribute.attnotnull`. Ignored for views, where PostgreSQL promises nothing.
    pub nullable: bool,
    /// Somebody holds a right on it. One that was made anew under an old name has none, whatever the records say.
    pub granted: bool,
    pub filling: Filling,
}

/// The catalog of one generation. `sets` are permission records by the role that holds the grants.
///
/// An entity whose relation, routine or key column is missing, or two of whose columns have one exposed name, is left out
/// and named in [`Catalog::missing`]; so is one that is to be protected, or to hide rows, without the column for it. One
/// whose routine is SECURITY DEFINER without leave, or not the only one of its name, is in [`Catalog::unguarded`]. A
/// permission on a column that is not there gives nothing, and none on one that nobody
/// holds a right on.
#[must_use]
pub fn build(
    generation: i64,
    limits: Limits,
    entities: Vec<EntityRecord>,
    columns: &[TableColumns],
    routines: &[RoutineInfo],
    sets: Vec<(String, Vec<PermissionRecord>)>,
) -> Catalog {
    let tables: HashMap<_, _> = columns.iter().map(|t| ((&t.schema, &t.object), t)).collect();
    let mut catalog = Catalog { generation, limits, ..Catalog::default() };
    for record in entities {
        let found = match record.kind {
            EntityKind::Table | EntityKind::View => {
                let table = tables.get(&(&record.schema, &record.object));
                table.and_then(|table| entity(&record, table))
            }
            EntityKind::Procedure => {
                let named = |it: &&RoutineInfo| it.schema == record.schema && it.object == record.object;
                let named: Vec<&RoutineInfo> = routines.iter().filter(named).collect();
                if 1 < named.len() || named.iter().any(|it| it.definer && !record.allow_definer) {
                    catalog.unguarded.insert(record.name.clone());
                }
                named.iter().find_map(|info| callable(&record, info))
            }
        };
        match found {
            Some(entity) => {
                catalog.entities.insert(record.name, Arc::new(entity));
            }
            None => catalog.missing.push(record.name.as_str().to_owned()),
        }
    }
    for (role, permissions) in sets {
        catalog.scopes.insert(role, Arc::new(scope(&catalog.entities, &permissions)));
    }
    catalog
}

fn entity(record: &EntityRecord, table: &TableColumns) -> Option<Entity> {
    let fields: Vec<Field> = table.columns.iter().map(|column| field(record, column)).collect();
    let mut names = HashSet::new();
    if !fields.iter().all(|field| names.insert(field.name.as_str())) {
        return None;
    }
    let position = |column: &Ident| fields.iter().position(|field| field.column == *column);
    let key: Vec<usize> = record.key_columns.iter().map(position).collect::<Option<_>>()?;
    if key.is_empty() {
        return None;
    }
    let has = |column: &str, oid: u32| {
        fields.iter().any(|field| field.column.as_str() == column && field.ty.base_oid == oid)
    };
    let is_protected = record.protection.is_none() || has(EXPECTED_TS, TIMESTAMPTZ);
    if !is_protected || !record.hide_soft_deleted.as_ref().is_none_or(|column| has(column, BOOL)) {
        return None;
    }
    let is_key = |columns: &Vec<Ident>| {
        columns.len() == record.key_columns.len() && record.key_columns.iter().all(|it| columns.contains(it))
    };
    let constraints = table.constraints.iter().filter_map(|(name, columns)| {
        let fields: Vec<usize> = columns.iter().map(position).collect::<Option<_>>()?;
        (!fields.is_empty()).then(|| Constraint { name: name.clone(), fields })
    });
    Some(Entity {
        constraints: constraints.collect(),
        key_is_unique: table.unique.iter().any(is_key),
        name: record.name.clone(),
        kind: record.kind,
        schema: record.schema.clone(),
        object: record.object.clone(),
        key,
        rest: record.rest,
        protection: record.protection.clone(),
        hide_soft_deleted: record.hide_soft_deleted.clone(),
        routine: None,
        fields,
    })
}

const BOOL: u32 = 16;
const TIMESTAMPTZ: u32 = 1184;

fn callable(record: &EntityRecord, info: &RoutineInfo) -> Option<Entity> {
    Some(Entity {
        name: record.name.clone(),
        kind: record.kind,
        schema: record.schema.clone(),
        object: record.object.clone(),
        fields: Vec::new(),
        key: Vec::new(),
        key_is_unique: false,
        rest: record.rest,
        protection: None,
        hide_soft_deleted: None,
        constraints: Vec::new(),
        routine: Some(info.routine.clone()?.exposed(&record.mappings)?),
    })
}

fn field(record: &EntityRecord, column: &ColumnInfo) -> Field {
    let exposed = record.mappings.get(column.name.as_str()).map_or(column.name.as_str(), String::as_str);
    Field {
        name: exposed.to_owned(),
        column: column.name.clone(),
        ty: column.ty.clone(),
        nullable: column.nullable || record.kind == EntityKind::View,
        granted: column.granted,
        filling: column.filling,
    }
}

fn scope(entities: &BTreeMap<EntityName, Arc<Entity>>, permissions: &[PermissionRecord]) -> Scope {
    let mut scope = Scope::default();
    for permission in permissions {
        let Some(entity) = entities.get(&permission.entity) else { continue };
        let rights = scope.entities.entry(permission.entity.clone()).or_insert_with(|| nothing(entity));
        grant(rights, entity, permission);
    }
    scope
}

fn nothing(entity: &Entity) -> Rights {
    let none = vec![false; entity.fields.len()];
    Rights { read: none.clone(), create: none.clone(), update: none, delete: false, execute: false }
}

fn grant(rights: &mut Rights, entity: &Entity, permission: &PermissionRecord) {
    let list = match permission.action {
        Action::Read => Some(&mut rights.read),
        Action::Create => Some(&mut rights.create),
        Action::Update => Some(&mut rights.update),
        Action::Delete => {
            rights.delete = true;
            None
        }
        Action::Execute => {
            rights.execute = entity.routine.is_some();
            None
        }
    };
    if let Some(list) = list {
        let columns: HashSet<&str> = permission.columns.iter().map(String::as_str).collect();
        for (granted, field) in list.iter_mut().zip(&entity.fields) {
            *granted |= field.granted && columns.contains(field.column.as_str());
        }
    }
    // Reading the key goes with each of these three: a row that cannot be named cannot be updated or deleted.
    if permission.action != Action::Create {
        for &key in &entity.key {
            rights.read[key] = entity.fields[key].granted;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::{
        Mode, Operators, Output, Param, Protection, Returns, Routine, RoutineKind, TypeKind, Volatility,
    };

    fn name(text: &str) -> Ident {
        Ident::new(text).expect("a name")
    }

    fn entity_name(text: &str) -> EntityName {
        text.parse().expect("a name")
    }

    fn table(object: &str, columns: &[&str]) -> TableColumns {
        let column = |column: &&str| ColumnInfo {
            name: name(column),
            ty: FieldType {
                oid: 25,
                name: "text".into(),
                kind: TypeKind::Base,
                base_oid: 25,
                operators: Operators::BuiltIn,
                nested: None,
            },
            nullable: false,
            granted: !column.starts_with("new_"),
            filling: Filling::Caller,
        };
        TableColumns {
            schema: name("app"),
            object: name(object),
            columns: columns.iter().map(column).collect(),
            unique: Vec::new(),
            constraints: Vec::new(),
        }
    }

    fn record(entity: &str, object: &str, key: &str, mappings: &[(&str, &str)]) -> EntityRecord {
        EntityRecord {
            name: entity_name(entity),
            kind: EntityKind::Table,
            schema: name("app"),
            object: name(object),
            key_columns: vec![name(key)],
            mappings: mappings.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect(),
            rest: true,
            protection: None,
            hide_soft_deleted: None,
            allow_definer: false,
        }
    }

    fn permission(entity: &str, action: Action, columns: &[&str]) -> PermissionRecord {
        PermissionRecord {
            entity: entity_name(entity),
            action,
            columns: columns.iter().map(|c| (*c).to_owned()).collect(),
        }
    }

    #[test]
    fn what_does_not_fit_together_is_left_out_and_named() {
        let tables = [table("t", &["id", "a", "b"])];
        let records = vec![
            record("good", "t", "id", &[("a", "first")]),
            record("gone", "no_such", "id", &[]),
            record("no_key", "t", "no_such", &[]),
            record("ambiguous", "t", "id", &[("a", "b")]),
        ];
        let catalog = build(7, Limits::default(), records, &tables, &[], Vec::new());
        assert_eq!(catalog.missing, ["gone", "no_key", "ambiguous"]);
        assert_eq!(catalog.entities.len(), 1);
        let fields: Vec<_> =
            catalog.entities[&entity_name("good")].fields.iter().map(|f| f.name.as_str()).collect();
        assert_eq!(fields, ["id", "first", "b"]);
    }

    #[test]
    fn without_its_column_nothing_is_protected_or_hidden_so_it_is_left_out() {
        let protected = |entity, object| EntityRecord {
            protection: Some(Protection { soft_delete: "gone".to_owned() }),
            ..record(entity, object, "id", &[])
        };
        let hiding = |entity, column: &str| EntityRecord {
            hide_soft_deleted: Some(column.to_owned()),
            ..record(entity, "t", "id", &[])
        };
        let mut t = table("t", &["id", EXPECTED_TS, "flag"]);
        t.columns[1].ty.base_oid = TIMESTAMPTZ;
        t.columns[2].ty.base_oid = BOOL;
        let tables = [t, table("text", &["id", EXPECTED_TS]), table("without", &["id"])];
        let records = vec![
            protected("good", "t"),
            protected("text", "text"),
            protected("without", "without"),
            hiding("hides", "flag"),
            hiding("no_flag", "no_such"),
            hiding("no_bool", "id"),
        ];
        let catalog = build(7, Limits::default(), records, &tables, &[], Vec::new());
        assert_eq!(catalog.missing, ["text", "without", "no_flag", "no_bool"]);
        let old = r#"{"name": "a", "kind": "Table", "schema": "s", "object": "o", "keyColumns": ["id"], "rest": true}"#;
        let old: EntityRecord = serde_json::from_str(old).expect("a record of an earlier version");
        assert_eq!((&old.protection, &old.hide_soft_deleted), (&None, &None));
        assert!(!serde_json::to_string(&old).expect("plain values").contains("protection"));
    }

    fn routine(param: &str, gives: &str) -> Routine {
        let ty = table("t", &["x"]).columns[0].ty.clone();
        let named = |text: &str| Param {
            name: text.into(),
            argument: name(text),
            ty: ty.clone(),
            mode: Mode::In,
            has_default: false,
        };
        Routine {
            kind: RoutineKind::Function,
            params: vec![named(param), named("other")],
            returns: Returns::Row(vec![Output { name: gives.into(), column: name(gives), ty: ty.clone() }]),
            strict: false,
            volatility: Volatility::Stable,
        }
    }

    #[test]
    fn a_routine_is_called_only_as_what_it_was_accepted_for() {
        let info =
            |definer, routine| RoutineInfo { schema: name("app"), object: name("f"), routine, definer };
        let good = || Some(routine("a", "f"));
        let record = |mappings: &[(&str, &str)], allow_definer| EntityRecord {
            kind: EntityKind::Procedure,
            key_columns: Vec::new(),
            allow_definer,
            ..record("f", "f", "none", mappings)
        };
        let is = |record: EntityRecord, found: &[RoutineInfo]| {
            let permissions =
                vec![permission("f", Action::Execute, &[]), permission("f", Action::Read, &["a"])];
            let sets = vec![("set_x".to_owned(), permissions)];
            let catalog = build(1, Limits::default(), vec![record], &[], found, sets);
            let Some(entity) = catalog.entities.get(&entity_name("f")) else { return "missing" };
            let rights = &catalog.scopes["set_x"].entities[&entity.name];
            assert_eq!((rights.execute, rights.delete, rights.read.len()), (true, false, 0));
            if catalog.unguarded.contains(&entity.name) { "closed" } else { "open" }
        };
        assert_eq!(is(record(&[("a", "b")], false), &[info(false, good())]), "open");
        assert_eq!(is(record(&[], false), &[info(true, good())]), "closed");
        assert_eq!(is(record(&[], true), &[info(true, good())]), "open");
        assert_eq!(is(record(&[], true), &[info(false, good()), info(false, None)]), "closed");
        assert_eq!(is(record(&[], true), &[info(false, None), info(false, good())]), "closed");
        assert_eq!(is(record(&[], false), &[info(false, None)]), "missing");
        assert_eq!(is(record(&[], false), &[]), "missing");
        assert_eq!(
            is(record(&[("a", "other")], false), &[info(false, good())]),
            "missing",
            "two of one name"
        );
        assert_eq!(
            is(record(&[("f", "a")], false), &[info(false, good())]),
            "open",
            "one is taken, one given"
        );
    }

    #[test]
    fn rights_add_up_and_bring_the_key() {
        let tables = [table("t", &["id", "a", "b", "new_c"])];
        let records = vec![record("t", "t", "id", &[("a", "first")])];
        let read = |permissions: Vec<PermissionRecord>| {
            let sets = vec![("set_x".to_owned(), permissions)];
            let catalog = build(1, Limits::default(), records.clone(), &tables, &[], sets);
            catalog.scopes["set_x"].entities.get(&entity_name("t")).cloned()
        };
        let rights = |permissions| read(permissions).expect("rights").read;
        assert_eq!(rights(vec![permission("t", Action::Read, &["a"])]), [true, true, false, false]);
        assert_eq!(
            rights(vec![
                permission("t", Action::Read, &["a"]),
                permission("t", Action::Read, &["b", "later"]),
            ]),
            [true, true, true, false]
        );
        assert_eq!(rights(vec![permission("t", Action::Delete, &[])]), [true, false, false, false]);
        assert_eq!(rights(vec![permission("t", Action::Update, &["b"])]), [true, false, false, false]);
        assert_eq!(rights(vec![permission("t", Action::Create, &["b"])]), [false, false, false, false]);
        assert_eq!(rights(vec![permission("t", Action::Read, &["a", "new_c"])]), [true, true, false, false]);
        assert_eq!(read(vec![permission("absent", Action::Read, &["b"])]), None);
    }
}
