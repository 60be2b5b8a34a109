//! Groups of rows, and what they come to.

use std::sync::Arc;

use super::Predicate;
use crate::catalog::{
    Entity, EntityKind, Field, FieldType, Filling, GraphQlNames, Operators, TypeKind, WriteSupport,
};
use crate::request::AggregateFunction;
use crate::shape::Encoding;
use crate::text::Ident;

/// Rows with equal keys become one. Only the keys are selected as fields.
#[derive(Debug, Clone)]
pub struct Group {
    /// Positions in the fields of the entity whose rows are grouped; empty: all rows are one group.
    pub(crate) keys: Vec<usize>,
    pub(crate) aggregates: Vec<Aggregate>,
    /// What a group is, as an entity without a table: its fields are the keys, then the aggregates, and its key is the keys. The order
    /// of the query, the position of its page and `having` are about these fields.
    pub(crate) entity: Arc<Entity>,
    /// A condition on groups.
    pub(crate) having: Option<Predicate>,
}

impl Group {
    /// Groups of rows of `entity`.
    #[must_use]
    pub fn new(entity: &Entity, keys: Vec<usize>, aggregates: Vec<Aggregate>) -> Group {
        let numbered = |letter: char, n: usize| Ident::new(format!("{letter}{n}")).expect("a short name");
        let of_key = |(n, key): (usize, &usize)| {
            let field = entity.fields[*key].clone();
            Field { column: numbered('k', n), made_of: Vec::new(), ..field }
        };
        let of_aggregate = |(n, it): (usize, &Aggregate)| Field {
            name: it.name.clone(),
            column: numbered('a', n),
            ty: it.ty.clone(),
            nullable: it.function != AggregateFunction::Count,
            takes_null: true,
            granted: true,
            filling: Filling::Caller,
            rounds_to: None,
            labels: Vec::new(),
            made_of: Vec::new(),
            is_worked_out: false,
            insertable: false,
            updatable: false,
        };
        let fields = keys.iter().enumerate().map(of_key);
        let group = Entity {
            name: entity.name.clone(),
            kind: EntityKind::Table,
            schema: entity.schema.clone(),
            object: entity.object.clone(),
            fields: fields.chain(aggregates.iter().enumerate().map(of_aggregate)).collect(),
            key: (0..keys.len()).collect(),
            key_is_unique: true,
            rest: true,
            graphql: GraphQlNames::default(),
            protection: None,
            hide_soft_deleted: None,
            routine: None,
            constraints: Vec::new(),
            write_support: WriteSupport::default(),
            under: Vec::new(),
            relations: Vec::new(),
            hides: false,
            shows_version: false,
            events: false,
            flags: Vec::new(),
            keeps_rows: false,
        };
        Group { keys, aggregates, entity: Arc::new(group), having: None }
    }

    /// What the groups come to, in the order in which a selection numbers them.
    #[must_use]
    pub fn aggregates(&self) -> &[Aggregate] {
        &self.aggregates
    }

    /// Where a field that is a key stands in a group.
    pub(crate) fn key(&self, field: usize) -> Option<usize> {
        self.keys.iter().position(|key| *key == field)
    }

    /// Where an aggregate stands in a group.
    pub(crate) fn aggregate(&self, number: usize) -> usize {
        self.keys.len() + number
    }

    /// Calls `each` with every field of the rows that the groups are made of.
    pub(super) fn read_fields(&self, each: &mut impl FnMut(usize)) {
        self.keys.iter().copied().for_each(&mut *each);
        self.aggregates.iter().filter_map(|it| it.field).for_each(each);
    }
}

/// What a group of rows comes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Aggregate {
    /// How `having` and the order call it.
    pub name: String,
    pub(crate) function: AggregateFunction,
    /// `None`: rows are counted.
    pub(crate) field: Option<usize>,
    pub(crate) is_distinct: bool,
    ty: FieldType,
}

const BIGINT: u32 = 20;
const TEXT: u32 = 25;
const DOUBLE: u32 = 701;
const MONEY: u32 = 790;
const INET: u32 = 869;
const TIME: u32 = 1083;
const INTERVAL: u32 = 1186;
const NUMERIC: u32 = 1700;

impl Aggregate {
    /// The number of rows.
    #[must_use]
    pub fn count(name: impl Into<String>) -> Aggregate {
        Aggregate {
            name: name.into(),
            function: AggregateFunction::Count,
            field: None,
            is_distinct: false,
            ty: base(BIGINT),
        }
    }

    /// `function` of a field of `entity`; `is_distinct`: equal values count once. `None`: the type has no such function, or no
    /// operators where values are compared.
    #[must_use]
    pub fn of(
        name: impl Into<String>,
        function: AggregateFunction,
        entity: &Entity,
        field: usize,
        is_distinct: bool,
    ) -> Option<Aggregate> {
        let of = &entity.fields.get(field)?.ty;
        let ty = gives(function, of).filter(|_| !is_distinct || of.operators != Operators::Nowhere)?;
        Some(Aggregate { name: name.into(), function, field: Some(field), is_distinct, ty })
    }

    /// How its value is read.
    #[must_use]
    pub fn encoding(&self) -> Encoding {
        match &self.ty.nested {
            Some(nested) => Encoding::Nested(Arc::clone(nested)),
            None => Encoding::scalar(self.ty.kind, self.ty.base_oid),
        }
    }

    /// The type of its value.
    #[must_use]
    pub fn ty(&self) -> &FieldType {
        &self.ty
    }
}

/// The type that a function gives, as PostgreSQL 16 declares it in `pg_catalog`.
fn gives(function: AggregateFunction, of: &FieldType) -> Option<FieldType> {
    // the function sees what stands below a domain
    let own = || Some(FieldType { oid: of.base_oid, ..of.clone() });
    let is_limit = matches!(function, AggregateFunction::Min | AggregateFunction::Max);
    match (function, of.kind, of.base_oid) {
        (AggregateFunction::Count, ..) => Some(base(BIGINT)),
        (_, TypeKind::Enum, _) if is_limit => own(),
        (_, TypeKind::Array, _) if is_limit && of.operators != Operators::Nowhere => own(),
        (_, kind, _) if kind != TypeKind::Base => None,
        (AggregateFunction::Sum, _, 21 | 23) => Some(base(BIGINT)),
        (AggregateFunction::Sum, _, BIGINT | NUMERIC) => Some(base(NUMERIC)),
        (AggregateFunction::Sum, _, 700 | DOUBLE | INTERVAL | MONEY) => own(),
        (AggregateFunction::Avg, _, 21 | 23 | BIGINT | NUMERIC) => Some(base(NUMERIC)),
        (AggregateFunction::Avg, _, 700 | DOUBLE) => Some(base(DOUBLE)),
        (AggregateFunction::Avg, _, INTERVAL) => Some(base(INTERVAL)),
        // a time of day becomes an interval
        (AggregateFunction::Sum | AggregateFunction::Avg, _, TIME) => Some(base(INTERVAL)),
        (AggregateFunction::Sum | AggregateFunction::Avg, ..) => None,
        // those of name and varchar are text's, those of cidr are inet's
        (_, _, 19 | TEXT | 1043) => Some(base(TEXT)),
        (_, _, 650 | INET) => Some(base(INET)),
        // bigint, smallint, integer, oid, real, char(n), dates and times, pg_lsn, xid8
        (_, _, BIGINT | 21 | 23 | 26 | 700 | DOUBLE | MONEY | NUMERIC | 1042 | 1082 | TIME) => own(),
        (_, _, 1114 | 1184 | INTERVAL | 1266 | 3220 | 5069) => own(),
        (AggregateFunction::Min | AggregateFunction::Max, ..) => None,
    }
}

/// A type that a function gives whatever the modifier of its argument.
fn base(oid: u32) -> FieldType {
    let name = match oid {
        BIGINT => "bigint",
        DOUBLE => "double precision",
        INET => "inet",
        INTERVAL => "interval",
        NUMERIC => "numeric",
        _ => "text",
    };
    FieldType {
        oid,
        name: name.to_owned(),
        kind: TypeKind::Base,
        base_oid: oid,
        operators: Operators::BuiltIn,
        nested: None,
    }
}
