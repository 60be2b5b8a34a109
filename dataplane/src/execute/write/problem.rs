//! The problems of a write that was not done, or not as it was asked.

use rowgate_core::problem::{Code, Problem};
use rowgate_pg::wire::{Cause, Rule};
use rowgate_sql::catalog::{Constraint, EXPECTED_TS, Entity, EntityKind};
use rowgate_sql::compile::{CompiledWrite, Verb};
use rowgate_sql::query::NoRowReason;
use rowgate_sql::rest;

use crate::auth::key_context::KeyContext;
use crate::execute::wording::Wording;

/// What a view cannot do, or not with these fields.
pub(crate) fn unwritable(cause: &Cause) -> Problem {
    if cause.sqlstate.as_deref() == Some("428C9") {
        return Problem::new(
            Code::ReadOnlyColumn,
            "the database generates the value of a field that is sent, in a table under this view; leave it out",
        );
    }
    let what = "PostgreSQL cannot update this view automatically; write to a table under it, or give the view INSTEAD OF triggers";
    Problem { allow: Some(Problem::ONLY_READ), ..Problem::new(Code::MethodNotAllowed, what) }
}

/// The unique constraint, or index, of the entity's key.
pub(crate) fn is_key(cause: &Cause, entity: &Entity) -> bool {
    let rule = cause
        .rule
        .as_deref()
        .filter(|_| cause.sqlstate.as_deref() == Some("23505") && !is_elsewhere(cause, entity));
    let found = rule.and_then(|rule| entity.constraints.iter().find(|it| it.name == rule.constraint));
    found.is_some_and(|it| {
        it.fields.len() == entity.key.len() && it.fields.iter().all(|at| entity.key.contains(at))
    })
}

/// No try has found the row, and none could make it.
pub fn unreachable_row(entity: &Entity) -> Problem {
    if !entity.hides {
        let what = "this row is being created and deleted concurrently, and nothing was written; retry";
        return Problem::new(Code::SerializationFailure, what);
    }
    let what = "a row with this key exists but is not visible to this API key, or is being changed concurrently; use \
                another key, or retry";
    Problem::new(Code::Forbidden, what)
}

/// The key reads the row, and policies keep it from being changed, or deleted.
pub(crate) fn kept_by_policy(compiled: &CompiledWrite) -> Problem {
    let verb = if compiled.verb == Verb::Delete { "delete" } else { "change" };
    let what = match compiled.entity.kind {
        EntityKind::View => format!(
            "this API key can read the row, but a policy or a trigger of a table under the view does not let it {verb} the row"
        ),
        _ => format!(
            "this API key can read the row, but the policies of the table do not let it {verb} the row"
        ),
    };
    Problem::new(Code::Forbidden, what)
}

/// A row was there before, and a DELETE with triggers has not deleted it.
pub fn kept(entity: &Entity) -> Problem {
    if entity.kind == EntityKind::View {
        return passed_over();
    }
    let what = "the row existed and this request did not delete it: a trigger skipped it, and may have done something else \
                instead (let it return OLD), or a policy hides it from this key, or another request deleted it; check \
                before retrying";
    Problem::new(Code::ConstraintViolation, what)
}

/// No row has the key that the request names, or none that the caller sees.
pub fn row_not_found() -> Problem {
    Problem::new(Code::RowNotFound, "no row with this key is visible to this API key")
}

/// A trigger gave NULL back for the row.
pub fn passed_over() -> Problem {
    let what = "a trigger skipped the row and may have done something else instead; check before retrying, and let the \
                trigger return the row that it wrote (OLD where it deleted the row)";
    Problem::new(Code::ConstraintViolation, what)
}

/// The problem of a stale write; `nothing` says by what it named the row's version.
pub fn stale(no_row: NoRowReason, entity: &Entity, wording: &Wording) -> Problem {
    match no_row {
        NoRowReason::Unmatched => Problem::new(Code::PreconditionFailed, wording.unmatched),
        _ => Problem::new(
            Code::StaleRow,
            format!(
                "the row changed after {} was read, or is gone; read it again, and apply the change to what you find",
                entity.version_name()
            ),
        ),
    }
}

/// Adds which constraint it was and the fields that it is about, for a key that may read all of these.
pub(crate) fn about(problem: Problem, cause: &Cause, context: &KeyContext, entity: &Entity) -> Problem {
    let own = cause.rule.as_deref().filter(|_| !is_elsewhere(cause, entity));
    let known_as = |rule: &Rule| entity.constraints.iter().find(|it| it.name == rule.constraint);
    let Some(Constraint { name, fields }) = own.and_then(known_as) else { return problem };
    let scope = context.snapshot.scope(&context.key);
    let may_read = |at: &usize| {
        scope.entities.get(&entity.name).is_some_and(|rights| rights.read.get(*at) == Some(&true))
    };
    if !fields.iter().all(may_read) {
        return problem;
    }
    let named = problem.detail(format!("constraint {name:?}"));
    fields.iter().fold(named, |it, at| it.detail(format!("field {:?}", entity.fields[*at].name)))
}

/// Which rule it was, without a word of the database's own: that may hold values of rows that the key does not see.
pub(crate) fn violation(
    cause: &Cause,
    context: &KeyContext,
    compiled: &CompiledWrite,
    wording: &Wording,
) -> Problem {
    let is_table = compiled.entity.kind == EntityKind::Table;
    match cause.sqlstate.as_deref() {
        // No version that this request could name.
        Some("DL409" | "DL428") if is_table && is_elsewhere(cause, &compiled.entity) => Problem::new(
            Code::ForeignKeyViolation,
            "a foreign key or a trigger would change rows of another table, which requires their versions; change \
             those first",
        ),
        Some("DL409") => stale(compiled.no_row, &compiled.entity, wording),
        Some("DL428") if compiled.entity.kind == EntityKind::View && compiled.entity.version().is_none() => {
            Problem::new(
                Code::ExpectedTsRequired,
                format!(
                    "this table requires the row's version, and this view has no field for it: write to the table, or \
                     add its column {EXPECTED_TS} to the view, unchanged and under that name"
                ),
            )
        }
        Some("DL428") => {
            Problem::new(Code::ExpectedTsRequired, (wording.version_required)(compiled.entity.version_name()))
        }
        Some("DL405") if is_elsewhere(cause, &compiled.entity) => Problem::new(
            Code::ForeignKeyViolation,
            "rows of a table that does not allow deletes refer to this row; change those first",
        ),
        Some("DL405") => Problem::delete_blocked(wording.no_deletes),
        Some("23505") => Problem::new(
            Code::UniqueViolation,
            "a row with these values of a unique field, or of the key, already exists; change them",
        ),
        Some("23503" | "23001") => Problem::new(
            Code::ForeignKeyViolation,
            match refers(cause, compiled) {
                Some(true) => {
                    "the row refers to a row that does not exist; create that row first, or change the field that refers to it"
                }
                Some(false) => "other rows still refer to this row; change or delete those first",
                None => {
                    "a row that this row refers to does not exist, or other rows refer to this row; write or remove those first"
                }
            },
        ),
        Some("23502") if !compiled.missing.is_empty() => Problem::new(
            Code::InvalidValue,
            format!(
                "no row has this key, so this request would create one, and a new row of {} needs a non-null value for {}",
                compiled.entity.name,
                rest::problem::quoted(&compiled.missing)
            ),
        ),
        Some("23502") => {
            let scope = context.snapshot.scope(&context.key);
            let rights = scope.entities.get(&compiled.entity.name);
            let fields = compiled.entity.fields.iter().enumerate();
            let named = fields
                .filter(|(_, field)| cause.column.as_deref() == Some(field.column.as_str()))
                .find(|(i, _)| {
                    rights
                        .is_some_and(|it| it.read.get(*i) == Some(&true) || it.create.get(*i) == Some(&true))
                });
            let what = named.map_or_else(
                || "a field that this key cannot set".to_owned(),
                |(_, field)| format!("the field {:?}", field.name),
            );
            Problem::new(Code::ConstraintViolation, format!("{what} must not be null"))
        }
        Some("23P01") => Problem::new(
            Code::ConstraintViolation,
            "the row conflicts with an existing row under an exclusion constraint of the table; change its values",
        ),
        Some("23514") => Problem::new(
            Code::ConstraintViolation,
            "a check of the table, or of a field's type, forbids these values; change them",
        ),
        Some("44000") => Problem::new(
            Code::ConstraintViolation,
            "the view would not show the row, and its check option forbids that; change its values",
        ),
        Some("54000") => Problem::new(
            Code::ConstraintViolation,
            "a value is too long for an index of the table; shorten it",
        ),
        Some("21000") => Problem::new(
            Code::ConstraintViolation,
            "several rows have this key, and none was changed; name fields in keyFields that identify one row",
        ),
        _ => Problem::new(
            Code::ConstraintViolation,
            "a constraint of the table forbids the row; change its values",
        ),
    }
}

/// Whether the row that is written refers to one that is not there (`true`), or others refer to it. `None`: what a trigger or
/// a cascade did to rows of any table was refused, which may be either.
///
/// PostgreSQL names the table that refers, whichever row is wrong. For a table that refers to itself only the message shows it: it
/// names table, constraint and table where others refer to the row; and this in English only.
fn refers(cause: &Cause, compiled: &CompiledWrite) -> Option<bool> {
    if cause.sqlstate.as_deref() == Some("23001") {
        return Some(false);
    }
    if cause.is_inside {
        return None;
    }
    let n_names = cause.message.matches('"').count() / 2;
    match (compiled.verb, is_elsewhere(cause, &compiled.entity)) {
        (Verb::Insert, is_elsewhere) => (!is_elsewhere).then_some(true),
        // an event of a trigger's, looked at when all was done
        (Verb::Delete | Verb::Update | Verb::Upsert, true) => (n_names != 2).then_some(false),
        (Verb::Delete, false) => Some(false),
        (Verb::Update | Verb::Upsert, false) => Some(n_names != 3),
    }
}

/// It is about another table than the one that is written to, or those below a view.
fn is_elsewhere(cause: &Cause, entity: &Entity) -> bool {
    let is_own = |rule: &Rule| {
        let own = entity.under.iter().map(|(schema, table)| (schema, table));
        own.chain([(&entity.schema, &entity.object)])
            .any(|(schema, table)| rule.schema == schema.as_str() && rule.table == table.as_str())
    };
    cause.rule.as_deref().is_some_and(|rule| !is_own(rule))
}
