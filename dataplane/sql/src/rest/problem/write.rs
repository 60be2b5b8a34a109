//! A write that is refused, in the words of its methods and headers. No field is named that the key does not know.

use rowgate_core::problem::{Code, Problem};

use super::super::address::allow;
use super::value::wanted;
use super::{quoted, unknown};
use crate::catalog::Entity;
use crate::request::MAX_VALUES;
use crate::resolve::{Right, RowWrite, VersionRefusal, WriteRefusal};

pub(super) fn of(entity: &Entity, refusal: WriteRefusal) -> Problem {
    let name = &entity.name;
    let bad = |what: &str| Problem::new(Code::BadRequest, what);
    match refusal {
        WriteRefusal::MayNot(right) => Problem::new(Code::Forbidden, may_not(entity, &right)),
        WriteRefusal::Unwritable(write) => unwritable(entity, write),
        WriteRefusal::Kept { flag } => {
            let set =
                flag.map_or_else(|| "their deletion flag".to_owned(), |flag| format!("{flag:?} to true"));
            Problem::delete_blocked(format!("rows of {name} cannot be deleted; set {set} with PATCH instead"))
        }
        WriteRefusal::KeptBelow => Problem::delete_blocked(
            "rows of the table under this view cannot be deleted; set their deletion flag with PATCH instead",
        ),
        WriteRefusal::NoField(field) => unknown(name, &field),
        WriteRefusal::FilledIn(field) => {
            let what = format!("the field {field:?} is set by the database; leave it out");
            Problem::new(Code::ReadOnlyColumn, what)
        }
        WriteRefusal::WorkedOut(field, write) => {
            let verb = if write == RowWrite::Make { "set in a new row" } else { "changed" };
            let what = format!(
                "the field {field:?} is computed by the view {name} and cannot be {verb}; leave it out"
            );
            Problem::new(Code::ReadOnlyColumn, what)
        }
        WriteRefusal::Value(value) => {
            let what = format!("the field {:?} is {}: {}", value.name, value.ty, wanted(value.refusal));
            Problem::new(Code::InvalidValue, what)
        }
        WriteRefusal::AnotherKey(field) => another_key(&field),
        WriteRefusal::Needed(fields) => {
            let what = format!("a row of {name} needs a non-null value for {}", quoted(&fields));
            Problem::new(Code::InvalidValue, what)
        }
        WriteRefusal::NoRows => bad("the array is empty; send at least one row"),
        WriteRefusal::NoValues => bad("the rows have no values; send them one by one"),
        WriteRefusal::TooManyValues => too_many_values(),
        WriteRefusal::NoObject => bad("a row's URL takes one object with its fields, not an array"),
        WriteRefusal::NothingToSet { has_key: false } => {
            bad("the body has no field to change; send at least one")
        }
        WriteRefusal::NothingToSet { has_key: true } => bad(
            "the body contains only the key, which the URL already names; send at least one field to change",
        ),
        WriteRefusal::KeyIsGenerated => {
            bad(&format!("the database generates the keys of {name}; create a row with POST"))
        }
        WriteRefusal::Precondition(RowWrite::Make) => {
            bad(&format!("rows of {name} can be changed but not created; omit If-None-Match"))
        }
        WriteRefusal::Precondition(RowWrite::Change | RowWrite::Delete) => {
            bad(&format!("rows of {name} can be created but not changed; omit If-Match"))
        }
        WriteRefusal::Version(refusal) => version(entity, &refusal),
    }
}

pub(super) fn another_key(field: &str) -> Problem {
    let what = format!("the key field {field:?} differs from the URL; leave it out");
    Problem::new(Code::BadRequest, what)
}

/// More values than one statement takes.
pub(crate) fn too_many_values() -> Problem {
    let what = format!("the rows have more than {MAX_VALUES} values; send fewer rows at once");
    Problem::new(Code::TooLarge, what)
}

fn may_not(entity: &Entity, right: &Right) -> String {
    let name = &entity.name;
    match right {
        Right::Delete => format!("this key may not delete rows of {name}"),
        Right::Create => format!("this key may not create rows of {name}"),
        Right::Update => format!("this key may not change rows of {name}"),
        Right::CreateOrUpdate => format!("this key may neither change nor create rows of {name}"),
        Right::Set(field) => format!("this key may not set the field {field:?} of a new row"),
        Right::Change(field) => format!("this key may not change the field {field:?}"),
        Right::SetAll => {
            format!("this key may not set every field of {name}; change those that it may set with PATCH")
        }
    }
}

/// What PostgreSQL cannot do to a row of a view, whoever asks.
fn unwritable(entity: &Entity, write: RowWrite) -> Problem {
    let (what, event, methods) = match write {
        RowWrite::Make => ("no row can be created in", "INSERT", None),
        RowWrite::Change => ("no row can be changed in", "UPDATE", allow(entity)),
        RowWrite::Delete => ("no row can be deleted from", "DELETE", allow(entity)),
    };
    let what = format!(
        "{what} the view {}: PostgreSQL cannot update this view automatically; give the view an INSTEAD OF {event} trigger, or write to a table under it",
        entity.name
    );
    let methods = methods.unwrap_or(Problem::ONLY_READ);
    Problem { allow: Some(methods), ..Problem::new(Code::MethodNotAllowed, what) }
}

fn version(entity: &Entity, refusal: &VersionRefusal) -> Problem {
    let name = entity.version_name();
    match refusal {
        VersionRefusal::None => Problem::new(
            Code::BadRequest,
            "this table keeps no versions of its rows; send If-Match: * to change only an existing row, or If-None-Match: * to create only a new one",
        ),
        VersionRefusal::OfNewRow => Problem::new(
            Code::BadRequest,
            format!(
                "{name} names an existing row, and If-None-Match: * requires a new one; send one of them"
            ),
        ),
        VersionRefusal::Different => Problem::new(
            Code::BadRequest,
            format!("If-Match and {name} name different versions of the row; send one of them"),
        ),
        VersionRefusal::Unreadable => Problem::new(
            Code::InvalidValue,
            format!(
                "{name} is the text that a read of the row returns; send it as it was read, or leave it out to create a row"
            ),
        ),
    }
}
