//! Rows to be made, changed or deleted.

use std::sync::Arc;

use super::Predicate;
use crate::catalog::Entity;
use crate::text::Bind;

/// Rows to be made in one statement.
#[derive(Debug, Clone)]
pub struct Insert {
    pub entity: Arc<Entity>,
    /// The fields that any row names, in declared order. Never empty where there are several rows.
    pub fields: Vec<usize>,
    /// Never empty; each as long as `fields`, `None` where the row does not name the field.
    pub rows: Vec<Vec<Option<Bind>>>,
    /// The fields of the answer; empty: nothing is read back.
    pub returning: Vec<usize>,
    /// Fields to be known beside the answer: see [`Upsert::marks`].
    pub marks: Vec<usize>,
}

/// One row to be changed, or made where there is none.
#[derive(Debug, Clone)]
pub struct Upsert {
    pub entity: Arc<Entity>,
    pub key: Predicate,
    /// What fields of a row that is there become, `None` being their default; empty: none is changed.
    pub set: Vec<(usize, Option<Bind>)>,
    /// The fields of a row that is not there, key included; `None`: none is made.
    pub insert: Option<Vec<(usize, Bind)>>,
    /// A row that is there already is an error, and not passed over.
    pub is_plain: bool,
    /// The row is looked for by itself: an update that gives no row back does not say that there is none.
    pub looks: bool,
    /// And held meanwhile, as the update would: no other session changes or removes it between.
    pub holds: bool,
    pub guard: Guard,
    /// The fields of the answer; empty: nothing is read back.
    pub returning: Vec<usize>,
    /// The fields that a new row would need besides: demanded only where the row is not there.
    pub missing: Vec<String>,
    /// The versions, an array, one of which the row must have; `None`: the caller named none.
    pub expected: Option<Bind>,
    /// The field that holds the version, and the one that hides the row from reads, to be known beside the answer.
    /// Empty: the answer is not what a read of the row would give, or that cannot be known.
    pub marks: Vec<usize>,
    pub no_row: NoRowReason,
    /// Where one is not true nothing is written.
    pub checks: Vec<Check>,
}

/// Whether policies may keep a caller from a row that it reads: PostgreSQL then does nothing, as if there were no row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Guard {
    /// Not that anybody could tell.
    #[default]
    None,
    /// Perhaps. Where nothing was done the statement may be asked once more, to tell: see [`Upsert::told_apart`].
    Unseen,
    /// The statement tells such a row from one that is not there.
    Seen,
}

impl Upsert {
    /// The same write, which also tells a row that is read and kept from it by policies, where that can be.
    #[must_use]
    pub fn told_apart(self) -> Upsert {
        match self.guard {
            Guard::None => self,
            Guard::Unseen | Guard::Seen => Upsert { looks: true, holds: false, guard: Guard::Seen, ..self },
        }
    }
}

impl Delete {
    /// See [`Upsert::told_apart`].
    #[must_use]
    pub fn told_apart(self) -> Delete {
        match self.guard {
            Guard::None => self,
            Guard::Unseen | Guard::Seen => Delete { looks: true, guard: Guard::Seen, ..self },
        }
    }
}

/// What PostgreSQL judges of a key field's values alone.
#[derive(Debug, Clone)]
pub enum Check {
    /// The column would hold the value that the row is named by as it is.
    Kept { field: usize, path: Bind },
    /// The body has the value that the row is named by, however it is written.
    Same { field: usize, path: Bind, body: Bind },
}

/// What it means when a statement ran and did nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoRowReason {
    /// There is no such row that the caller could reach.
    NotFound,
    /// Another session makes or removes the row at this moment, or it is hidden: it is looked for again.
    Again,
    /// The row is there, and only a new one was asked for.
    Taken,
    /// A trigger has passed it over, and may have done something else instead, so that nothing is tried again.
    PassedOver,
    /// The row has another version than the body says, or is not there.
    Stale,
    /// The row has none of the versions that the request names beside the body, or is not there.
    Unmatched,
}

/// One row to be deleted.
#[derive(Debug, Clone)]
pub struct Delete {
    pub entity: Arc<Entity>,
    pub key: Predicate,
    /// See [`Upsert::looks`].
    pub looks: bool,
    pub guard: Guard,
}
