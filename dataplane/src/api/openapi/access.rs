//! What a key may do with an entity, as a document has to say it. Whether a request would be taken at all is the resolver's
//! word, so that no rule of writes stands here a second time; which fields a body may hold is told by rights and catalog.

use rowgate_core::derive::{CursorKey, Root};
use rowgate_core::percent;
use rowgate_sql::aggregates;
use rowgate_sql::catalog::{
    Catalog, Entity, Field, Filling, Mode, Relationship, Rights, Routine, Scope, WriteMethod,
};
use rowgate_sql::request::ReadRequest;
use rowgate_sql::resolve::{Cursors, Precondition, UpsertMode};
use rowgate_sql::rest::{self, body, query_string};
use serde_json::{Map, Value, json};

use crate::api::openapi::examples;

/// An entity that the key may use.
pub(crate) enum Access<'a> {
    Rows(Box<Rows<'a>>),
    Call(&'a Entity, &'a Routine),
}

/// What the key may do with rows.
pub(crate) struct Rows<'a> {
    pub(crate) entity: &'a Entity,
    rights: &'a Rights,
    /// Positions of the fields that it reads.
    pub(crate) readable: Vec<usize>,
    /// Those by which rows can be ordered.
    pub(crate) orderable: Vec<usize>,
    /// Relationships that it may follow, to entities that the document has.
    pub(crate) relationships: Vec<&'a Relationship>,
    /// Those by which rows can be grouped.
    pub(crate) groupable: Vec<usize>,
    /// Groups of rows can be read.
    pub(crate) aggregates: bool,
    /// `GET` of the collection, and of a row.
    pub(crate) lists: bool,
    pub(crate) reads: bool,
    pub(crate) creates: Option<Written>,
    /// `PATCH` and `PUT`.
    pub(crate) changes: Option<Written>,
    pub(crate) replaces: Option<Written>,
    pub(crate) deletes: bool,
    /// What PATCH and PUT may do: change a row that is there, make one that is not.
    pub(crate) updates: bool,
    pub(crate) makes: bool,
}

/// The fields of a body, by position.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Written {
    pub(crate) fields: Vec<usize>,
    pub(crate) required: Vec<usize>,
}

/// Puts requests to the resolver in the name of one scope; nothing is sent anywhere.
pub(crate) struct Resolver<'a> {
    catalog: &'a Catalog,
    scope: &'a Scope,
    /// No cursor is ever opened with it.
    cursor_key: CursorKey,
}

impl<'a> Resolver<'a> {
    pub(crate) fn new(catalog: &'a Catalog, scope: &'a Scope) -> Resolver<'a> {
        Resolver { catalog, scope, cursor_key: Root::new([0; 32]).cursor_key() }
    }

    /// `None`: the key may not use the entity, or not now; it is not told from one that does not exist.
    pub(crate) fn access(&self, entity: &'a Entity) -> Option<Access<'a>> {
        if let Some(routine) = &entity.routine {
            let may_call = rest::may_call(self.catalog, self.scope, &entity.name).is_ok();
            return may_call.then_some(Access::Call(entity, routine));
        }
        let rows = self.rows(entity, self.scope.entities.get(&entity.name)?);
        let any = rows.lists || rows.reads || rows.aggregates || rows.creates.is_some();
        let any = any || rows.changes.is_some() || rows.replaces.is_some() || rows.deletes;
        any.then_some(Access::Rows(Box::new(rows)))
    }

    fn rows(&self, entity: &'a Entity, rights: &'a Rights) -> Rows<'a> {
        let mut rows = Rows {
            entity,
            rights,
            readable: (0..entity.fields.len()).filter(|at| is_set(&rights.read, *at)).collect(),
            orderable: Vec::new(),
            relationships: self.relationships(entity),
            groupable: Vec::new(),
            aggregates: self.groups(entity, &json!({"aggregations": [{"function": "count", "as": "n"}]})),
            lists: self.lists(entity, ""),
            reads: false,
            creates: None,
            changes: None,
            replaces: None,
            deletes: false,
            updates: rights.update.contains(&true) && entity.write_support.update != WriteMethod::Unsupported,
            makes: false,
        };
        if rest::may_insert(self.catalog, self.scope, &entity.name).is_ok() {
            rows.creates = Some(rows.created());
        }
        if rows.lists {
            let orders = |at: &usize| self.lists(entity, &name_in_list(&entity.fields[*at].name));
            rows.orderable = rows.readable.iter().copied().filter(orders).collect();
        }
        if rows.aggregates {
            let groups = |at: &usize| self.groups(entity, &json!({"groupBy": [entity.fields[*at].name]}));
            rows.groupable = rows.readable.iter().copied().filter(groups).collect();
        }
        if !entity.key.iter().all(|at| rows.is_named(*at)) {
            return rows;
        }
        rows.makes = rows.makes_by_key();
        let key: Vec<_> = entity.key.iter().map(|at| rows.key_part(*at)).collect();
        let (catalog, scope, name) = (self.catalog, self.scope, &entity.name);
        rows.reads = rest::row(catalog, scope, name, &key, &ReadRequest::default()).is_ok();
        rows.deletes = rest::delete(catalog, scope, name, &key).is_ok();
        let takes = |mode: UpsertMode, written: &Written| {
            let text = rows.body(written).to_string();
            let request = (mode, &Precondition::Either, true);
            rest::upsert(catalog, scope, name, &key, body::parse(text.as_bytes()), request).is_ok()
        };
        let (changed, replaced) = (rows.changed(), rows.replaced());
        let changes = takes(UpsertMode::Merge, &changed).then_some(changed);
        let replaces = takes(UpsertMode::Replace, &replaced).then_some(replaced);
        Rows { changes, replaces, ..rows }
    }

    /// Whether following one is taken is the resolver's word, too.
    fn relationships(&self, entity: &Entity) -> Vec<&'a Relationship> {
        let all = self.catalog.relationships(self.scope, &entity.name);
        all.filter(|it| self.reads(entity, &format!("$expand={}", percent::encode(&it.name)))).collect()
    }

    /// Whether groups of rows can be read by this body.
    fn groups(&self, entity: &Entity, body: &Value) -> bool {
        let cursors = Cursors { key: &self.cursor_key, caller: "" };
        let body = body.to_string();
        aggregates::groups(self.catalog, self.scope, &entity.name, Ok(body.as_bytes()), cursors).is_ok()
    }

    /// Whether the collection can be read, ordered so unless that is empty.
    fn lists(&self, entity: &Entity, order: &str) -> bool {
        let option = match order {
            "" => String::new(),
            order => format!("$orderby={}", percent::encode(order)),
        };
        self.reads(entity, &option)
    }

    fn reads(&self, entity: &Entity, option: &str) -> bool {
        let cursors = Cursors { key: &self.cursor_key, caller: "" };
        let request = query_string::parse(option);
        request.is_ok_and(|request| {
            rest::collection(self.catalog, self.scope, &entity.name, &request, cursors).is_ok()
        })
    }
}

impl Rows<'_> {
    pub(crate) fn field(&self, at: usize) -> &Field {
        &self.entity.fields[at]
    }

    /// The labels of an enum, which are for those who read the field.
    pub(crate) fn labels(&self, at: usize) -> &[String] {
        if is_set(&self.rights.read, at) { &self.field(at).labels } else { &[] }
    }

    /// The field with the row's version, where the key may name it in a change.
    pub(crate) fn version(&self) -> Option<usize> {
        self.entity.version().filter(|at| self.updates && self.is_named(*at))
    }

    /// Whether a read of a row has an entity tag.
    pub(crate) fn is_tagged(&self) -> bool {
        self.entity.tag().is_some_and(|at| is_set(&self.rights.read, at))
    }

    /// An example of a body, as far as values are known: every field of it.
    pub(crate) fn example(&self, fields: &[usize]) -> Value {
        let value = |at: &usize| {
            let field = self.field(*at);
            Some((field.name.clone(), examples::value(&field.ty, self.labels(*at))?))
        };
        Value::Object(fields.iter().filter_map(value).collect::<Map<_, _>>())
    }

    fn body(&self, written: &Written) -> Value {
        let value = |at: &usize| {
            let field = self.field(*at);
            (field.name.clone(), examples::any_value(&field.ty, &field.labels))
        };
        Value::Object(written.fields.iter().map(value).collect::<Map<_, _>>())
    }

    fn key_part(&self, at: usize) -> (String, String) {
        let field = self.field(at);
        (field.name.clone(), examples::in_path(&field.ty, &field.labels))
    }

    /// Whether the key reads, makes or changes the field: no other is named.
    fn is_named(&self, at: usize) -> bool {
        let Rights { read, create, update, .. } = self.rights;
        [read, create, update].iter().any(|list| is_set(list, at))
    }

    fn created(&self) -> Written {
        let may = |at: &usize| {
            is_set(&self.rights.create, *at) && self.field(*at).insertable && !is_read_only(self.field(*at))
        };
        let fields: Vec<usize> = (0..self.entity.fields.len()).filter(may).collect();
        let is_required =
            |at: &usize| !self.field(*at).takes_null && self.field(*at).filling == Filling::Caller;
        let required = fields.iter().copied().filter(is_required).collect();
        Written { fields, required }
    }

    /// A PATCH changes what may be changed. Where nothing may be, it makes a row.
    fn changed(&self) -> Written {
        if !self.updates {
            let Written { fields, required } = self.created();
            let beside_key = |fields: Vec<usize>| fields.into_iter().filter(|at| !self.is_key(*at)).collect();
            return Written { fields: beside_key(fields), required: beside_key(required) };
        }
        let may = |at: &usize| is_set(&self.rights.update, *at) && self.is_replaceable(*at);
        Written { fields: (0..self.entity.fields.len()).filter(may).collect(), required: Vec::new() }
    }

    /// A PUT sets every field that can be changed; what it leaves out becomes its default, or NULL.
    fn replaced(&self) -> Written {
        let changed = self.changed();
        if !self.updates {
            return changed;
        }
        let is_required = |at: &usize| {
            let has_default = matches!(self.field(*at).filling, Filling::Default | Filling::Sequence);
            !self.field(*at).takes_null && !has_default && !self.entity.flags.contains(at)
        };
        let required = changed.fields.iter().copied().filter(is_required).collect();
        Written { required, ..changed }
    }

    fn is_replaceable(&self, at: usize) -> bool {
        self.field(at).updatable && !is_read_only(self.field(at)) && !self.is_key(at)
    }

    fn is_key(&self, at: usize) -> bool {
        self.entity.key.contains(&at)
    }

    /// Whether PATCH and PUT make the row of a key that none has.
    fn makes_by_key(&self) -> bool {
        let is_free = |at: &usize| {
            let field = self.field(*at);
            let is_generated = matches!(field.filling, Filling::Database | Filling::Sequence);
            is_set(&self.rights.create, *at) && field.insertable && !is_generated
        };
        self.entity.write_support.insert != WriteMethod::Unsupported && self.entity.key.iter().all(is_free)
    }
}

/// The parameters that a call names, and whether it must.
pub(crate) fn arguments(routine: &Routine) -> impl Iterator<Item = (&rowgate_sql::catalog::Param, bool)> {
    let named = routine.params.iter().filter(|param| param.mode != Mode::Out);
    named.map(|param| (param, !param.has_default))
}

/// A name as `$select` and `$orderby` take it.
pub(crate) fn name_in_list(name: &str) -> String {
    let is_bare = |c: char| c == '_' || c.is_ascii_alphanumeric();
    match name.chars().all(is_bare) && !name.is_empty() {
        true => name.to_owned(),
        false => format!("'{}'", name.replace('\'', "''")),
    }
}

fn is_set(list: &[bool], at: usize) -> bool {
    list.get(at) == Some(&true)
}

/// The database gives it its value, whoever writes the row.
fn is_read_only(field: &Field) -> bool {
    field.filling == Filling::Database || field.column.as_str().starts_with("dl_")
}
