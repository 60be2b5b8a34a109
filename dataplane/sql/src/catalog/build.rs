//! Records and what the database says of its columns become a [`Catalog`]. Whatever does not fit together stays closed.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use rowgate_core::name::EntityName;

use super::{
    Action, Catalog, ClosedEntity, Constraint, EXPECTED_TS, Entity, EntityKind, EntityRecord, Field,
    FieldType, Filling, Limits, PermissionRecord, RelationshipRecord, Rights, RoutineInfo, Scope,
    WriteMethod, WriteSupport, relationship,
};
use crate::text::{BuiltIn, Ident};

#[cfg(test)]
mod tests;

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
    /// Of a table, so never [`WriteMethod::Unsupported`].
    pub write_support: WriteSupport,
    /// False: its policies show every row to everybody, to be read and to be changed.
    pub hides: bool,
    /// `None` for a table.
    pub view: Option<ViewInfo>,
    /// The oids of the relation, first, and of all that is read with it: what it shows, and what policies look at.
    pub relations: Vec<u32>,
}

/// Types without `=`: json, xml, point, lseg, path, box, polygon, line, circle (those compare areas or lengths), aclitem, jsonpath,
/// refcursor, snapshots, pg_node_tree, and arrays of each; tsvector and tsquery, whose readers call a wrong text a syntax
/// error, as if it were ours.
pub const WITHOUT_EQUALITY: [u32; 33] = [
    114, 199, 142, 143, 600, 1017, 601, 1018, 602, 1019, 603, 1020, 604, 1027, 628, 629, 718, 719, 1033,
    1034, 4072, 4073, 1790, 2201, 5038, 5039, 2970, 2949, 194, 3614, 3643, 3615, 3645,
];
/// What can be written to a view.
#[derive(Debug, Clone, Default)]
pub struct ViewInfo {
    pub write_support: WriteSupport,
    /// The tables below it.
    pub under: Vec<(Ident, Ident)>,
    /// The columns that no new row is given.
    pub not_inserted: Vec<Ident>,
    /// Those that no row can have changed.
    pub not_updated: Vec<Ident>,
    /// Those that are columns of a table.
    pub of_tables: Vec<Ident>,
}

#[derive(Debug, Clone)]
pub struct ColumnInfo {
    pub name: Ident,
    pub ty: FieldType,
    /// `not pg_attribute.attnotnull`. Ignored for views, where PostgreSQL promises nothing.
    pub nullable: bool,
    /// No domain that it is of is NOT NULL.
    pub takes_null: bool,
    /// Somebody holds a right on it. One that was made anew under an old name has none, whatever the records say.
    pub granted: bool,
    pub filling: Filling,
    /// See [`Field`].
    pub rounds_to: Option<BuiltIn>,
    /// See [`Field`].
    pub labels: Vec<String>,
    /// See [`Field`].
    pub made_of: Vec<Ident>,
}

/// The catalog of one generation. `sets` are permission records by the role that holds the grants.
///
/// An entity whose relation, routine or key column is missing, or two of whose columns have one exposed name, is left out
/// and named in [`Catalog::missing`]; so is one that is to be protected, or to hide rows, without the column for it. One
/// whose routine is SECURITY DEFINER without leave, or not the only one of its name, is in [`Catalog::unguarded`]. A
/// permission on a column that is not there gives nothing, and none on one that nobody
/// holds a right on; an entity of which nothing is left by that, or that is missing, is in [`Scope::closed`].
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
    let mut missing: HashMap<EntityName, ClosedEntity> = HashMap::new();
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
            None => {
                catalog.missing.push(record.name.as_str().to_owned());
                let closed = ClosedEntity::from(&record);
                missing.insert(record.name, closed);
            }
        }
    }
    look_below(&mut catalog);
    for (role, permissions) in sets {
        catalog.scopes.insert(role, Arc::new(scope(&catalog.entities, &missing, &permissions)));
    }
    catalog
}

impl Catalog {
    /// Notes how rows of its entities lead to each other; beside each record the oids of the table between, first, and of all
    /// that is read for it; none where there is no such table. To be called once all that is unguarded is known.
    pub fn relate(&mut self, records: Vec<(RelationshipRecord, Vec<u32>)>) {
        (self.relationships, self.away) = relationship::build(&self.entities, &self.unguarded, records);
    }
}

/// What views are like because of the tables below them. A flag is known by its name; a view that gives it another keeps
/// no row from coming back.
fn look_below(catalog: &mut Catalog) {
    let tables: HashMap<_, _> = catalog
        .entities
        .values()
        .filter(|it| it.protection.is_some() || it.hide_soft_deleted.is_some())
        .map(|it| ((it.schema.clone(), it.object.clone()), Arc::clone(it)))
        .collect();
    for view in catalog.entities.values_mut().filter(|it| it.kind == EntityKind::View) {
        let below: Vec<_> = view.under.iter().filter_map(|table| tables.get(table)).collect();
        let named = below.iter().flat_map(|table| table.flags.iter().map(|at| &table.fields[*at].column));
        let flags: HashSet<usize> = named.filter_map(|column| view.position(column.as_str())).collect();
        let keeps_rows = view.write_support.delete == WriteMethod::Direct
            && matches!((&below[..], &view.under[..]), ([table], [_]) if table.protection.is_some());
        if keeps_rows || !flags.is_empty() {
            let view = Arc::make_mut(view);
            view.flags = flags.into_iter().chain(view.flags.drain(..)).collect();
            view.keeps_rows = keeps_rows;
        }
    }
}

fn entity(record: &EntityRecord, table: &TableColumns) -> Option<Entity> {
    let view = table.view.clone().unwrap_or_default();
    let fields: Vec<Field> = table.columns.iter().map(|column| field(record, column, &view)).collect();
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
    // A trigger of the view's own may do with it what it likes.
    let passes_on = |field: &Field| field.column.as_str() == EXPECTED_TS && field.updatable;
    let shows_version = record.shows_version
        && view.write_support.update == WriteMethod::Direct
        && has(EXPECTED_TS, TIMESTAMPTZ)
        && fields.iter().any(passes_on);
    let flag = |column: &str| fields.iter().position(|field| field.column.as_str() == column);
    let named = [record.protection.as_ref().map(|it| &it.soft_delete), record.hide_soft_deleted.as_ref()];
    let flags: HashSet<usize> = named.into_iter().flatten().filter_map(|column| flag(column)).collect();
    Some(Entity {
        flags: flags.into_iter().collect(),
        keeps_rows: false,
        constraints: constraints.collect(),
        write_support: table.view.as_ref().map_or(table.write_support, |view| view.write_support),
        under: view.under,
        relations: table.relations.clone(),
        hides: table.hides || table.view.is_some(),
        shows_version,
        events: record.events,
        key_is_unique: table.unique.iter().any(is_key),
        name: record.name.clone(),
        kind: record.kind,
        schema: record.schema.clone(),
        object: record.object.clone(),
        key,
        rest: record.rest,
        graphql: record.graphql.clone(),
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
        graphql: record.graphql.clone(),
        protection: None,
        hide_soft_deleted: None,
        constraints: Vec::new(),
        write_support: WriteSupport::default(),
        under: Vec::new(),
        relations: Vec::new(),
        hides: true,
        shows_version: false,
        events: false,
        flags: Vec::new(),
        keeps_rows: false,
        routine: Some(info.routine.clone()?.exposed(&record.mappings)?),
    })
}

fn field(record: &EntityRecord, column: &ColumnInfo, view: &ViewInfo) -> Field {
    let insertable = !view.not_inserted.contains(&column.name);
    let updatable = !view.not_updated.contains(&column.name);
    let is_view = record.kind == EntityKind::View;
    let filling = match column.filling {
        _ if !insertable && !updatable => Filling::Database,
        Filling::Caller if is_view && !column.takes_null => Filling::Below,
        filling => filling,
    };
    let exposed = record.mappings.get(column.name.as_str()).map_or(column.name.as_str(), String::as_str);
    Field {
        name: exposed.to_owned(),
        column: column.name.clone(),
        ty: column.ty.clone(),
        nullable: column.nullable || is_view,
        takes_null: column.takes_null && (column.nullable || is_view),
        granted: column.granted,
        filling,
        rounds_to: column.rounds_to.clone(),
        labels: column.labels.clone(),
        made_of: column.made_of.clone(),
        is_worked_out: is_view && !view.of_tables.contains(&column.name),
        insertable,
        updatable,
    }
}

fn scope(
    entities: &BTreeMap<EntityName, Arc<Entity>>,
    missing: &HashMap<EntityName, ClosedEntity>,
    permissions: &[PermissionRecord],
) -> Scope {
    let mut all: HashMap<EntityName, Rights> = HashMap::new();
    let mut closed: HashMap<EntityName, ClosedEntity> = HashMap::new();
    for permission in permissions {
        let Some(entity) = entities.get(&permission.entity) else {
            if let Some(missing) = missing.get(&permission.entity) {
                closed.entry(permission.entity.clone()).or_insert_with(|| missing.clone()).grant(permission);
            }
            continue;
        };
        let rights = all.entry(permission.entity.clone()).or_insert_with(|| nothing(entity));
        grant(rights, entity, permission);
    }
    for (name, rights) in &all {
        let entity = &entities[name];
        if !entity.fields.is_empty() && !rights.is_of_any_field() {
            let mut fresh = ClosedEntity::from(&**entity);
            permissions.iter().filter(|it| it.entity == *name).for_each(|it| fresh.grant(it));
            closed.insert(name.clone(), fresh);
        }
    }
    Scope { entities: Arc::new(all), closed: Arc::new(closed), ..Scope::default() }
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
