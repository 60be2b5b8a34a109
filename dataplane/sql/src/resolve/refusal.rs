//! Why a request is refused: which name, option, right or value was wrong, as a value. A surface words it; nothing here knows
//! how a request is written.

use rowgate_core::name::EntityName;

use super::filter::FilterRefusal;
use super::path::PathRefusal;
use super::value::ValueRefusal;
use crate::catalog::EntityKind;
use crate::request::AggregateFunction;

#[derive(Debug, Clone, PartialEq)]
pub enum Refusal {
    /// There is no such entity, or the scope may not use it: the two are never told apart.
    NoEntity,
    /// It is not as it has to be in the database now, and opens again by itself.
    Closed(Closure),
    /// It is a routine, which has no rows.
    OnlyCalled,
    /// A read names a field that the scope may not read.
    NoField(Unknown),
    /// More rows than a page has, or none; `max` of them at most.
    PageSize {
        max: u32,
    },
    /// The cursor belongs to another question.
    Cursor,
    /// A read of one row has an option that only reads of several take.
    OptionOfRow,
    /// Not the fields of the key, each once.
    KeyNames,
    Key(Valued),
    Order(OrderRefusal),
    Filter(FilterRefusal),
    Expand(ExpandRefusal),
    Group(GroupRefusal),
    Call(CallRefusal),
    Write(WriteRefusal),
    /// Of the row at this index of a list.
    InRow(u16, Box<WriteRefusal>),
}

/// Why an entity is closed that the scope has a right on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Closure {
    /// Row-level security of a table does not filter what it shows, or its routine is not the one that was accepted.
    Unguarded(EntityKind),
    /// What it stands for does not exist now, or is so new that nothing is granted on it yet.
    Absent,
}

/// A name that nothing has which the scope may use, and the nearest one that something has.
#[derive(Debug, Clone, PartialEq)]
pub struct Unknown {
    pub name: String,
    pub nearest: Option<String>,
}

/// A field, or a parameter, and why its value does not fit.
#[derive(Debug, Clone, PartialEq)]
pub struct Valued {
    pub name: String,
    /// As PostgreSQL calls it.
    pub ty: String,
    pub refusal: ValueRefusal,
}

#[derive(Debug, Clone, PartialEq)]
pub enum OrderRefusal {
    TooMany {
        max: usize,
    },
    NoField(Unknown),
    Path(PathRefusal),
    Twice(String),
    NoOrder {
        name: String,
        ty: String,
    },
    /// A field of the key, by which every order ends.
    KeyWithoutOrder {
        name: String,
        ty: String,
    },
}

#[derive(Debug, Clone, PartialEq)]
pub enum ExpandRefusal {
    /// The scope may follow no such relationship. `is_field`: it may read a field of this name.
    Unknown { name: Unknown, is_field: bool },
    /// The relationship leads to one row, which has no filter, order or number.
    OneRow,
    /// Of what is asked of the rows of `entity`, where the relationship `name` leads.
    Within { name: String, entity: EntityName, refusal: Box<Refusal> },
}

/// Of groups of rows. A field that is none, of a key or an aggregation, is [`Refusal::NoField`].
#[derive(Debug, Clone, PartialEq)]
pub enum GroupRefusal {
    /// Neither a key nor an aggregation.
    Nothing,
    TooManyKeys {
        max: usize,
    },
    TooManyAggregations {
        max: usize,
    },
    KeyTwice(String),
    /// Rows cannot be grouped by the type.
    NoKey {
        name: String,
        ty: String,
    },
    /// What an aggregation is called, that is no name; `max`: of its bytes.
    NoName {
        name: String,
        max: usize,
    },
    /// An aggregation before it has the name; `is_key`: a key has it.
    NameTaken {
        name: String,
        is_key: bool,
    },
    /// The function is one of values, and no field is named.
    NeedsField {
        name: String,
        function: AggregateFunction,
    },
    /// The type has no such function.
    NoAggregate {
        field: String,
        ty: String,
        function: AggregateFunction,
        is_distinct: bool,
    },
    /// Its names are keys and aggregations.
    Having(FilterRefusal),
    /// Likewise.
    Order(OrderRefusal),
}

#[derive(Debug, Clone, PartialEq)]
pub enum CallRefusal {
    /// Not one object with the parameters.
    NoObject,
    NoParameter(Unknown),
    Value(Valued),
    /// Parameters without a value and without a default.
    Missing(Vec<String>),
}

#[derive(Debug, Clone, PartialEq)]
pub enum WriteRefusal {
    /// A right that the scope does not have.
    MayNot(Right),
    /// PostgreSQL cannot do this to any row of the view.
    Unwritable(RowWrite),
    /// Rows of the table are never deleted. The field that flags one as deleted, where the scope knows it.
    Kept {
        flag: Option<String>,
    },
    /// Rows of the table below the view are never deleted.
    KeptBelow,
    NoField(Unknown),
    /// The database fills the field in.
    FilledIn(String),
    /// The view computes the field, and passes it on with no such write.
    WorkedOut(String, RowWrite),
    Value(Valued),
    /// The body has another value of a key field than the one that names the row.
    AnotherKey(String),
    /// Fields that need a value that is not null.
    Needed(Vec<String>),
    /// No row at all.
    NoRows,
    /// Several rows, none with a value.
    NoValues,
    TooManyValues,
    /// A list, or several rows, where one row is written.
    NoObject,
    /// Nothing to change. `has_key`: there is nothing but the key.
    NothingToSet {
        has_key: bool,
    },
    /// The database gives a new row its key.
    KeyIsGenerated,
    /// The write is to change a row only, or to make one only, and PostgreSQL can do just the other of both.
    Precondition(RowWrite),
    Version(VersionRefusal),
}

/// What is done to a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowWrite {
    Make,
    Change,
    Delete,
}

/// What a key would need the right for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Right {
    Delete,
    Create,
    Update,
    CreateOrUpdate,
    /// This field of a new row.
    Set(String),
    /// This field of a row.
    Change(String),
    /// A field that the scope does not know, of a write that sets every field.
    SetAll,
}

#[derive(Debug, Clone, PartialEq)]
pub enum VersionRefusal {
    /// The table keeps no version of its rows.
    None,
    /// Of a row that is to be new.
    OfNewRow,
    /// Two places name different ones.
    Different,
    /// What the body holds is no version.
    Unreadable,
}

impl From<WriteRefusal> for Refusal {
    fn from(refusal: WriteRefusal) -> Refusal {
        Refusal::Write(refusal)
    }
}

impl From<FilterRefusal> for Refusal {
    fn from(refusal: FilterRefusal) -> Refusal {
        Refusal::Filter(refusal)
    }
}

impl From<ExpandRefusal> for Refusal {
    fn from(refusal: ExpandRefusal) -> Refusal {
        Refusal::Expand(refusal)
    }
}

impl From<GroupRefusal> for Refusal {
    fn from(refusal: GroupRefusal) -> Refusal {
        Refusal::Group(refusal)
    }
}

impl From<OrderRefusal> for Refusal {
    fn from(refusal: OrderRefusal) -> Refusal {
        Refusal::Order(refusal)
    }
}

impl From<CallRefusal> for Refusal {
    fn from(refusal: CallRefusal) -> Refusal {
        Refusal::Call(refusal)
    }
}

impl From<VersionRefusal> for WriteRefusal {
    fn from(refusal: VersionRefusal) -> WriteRefusal {
        WriteRefusal::Version(refusal)
    }
}
