//! A read of rows within rows: several statements in one batch and one snapshot.

use rowgate_core::derive::CursorKey;
use rowgate_core::problem::{Code, Problem};
use rowgate_pg::wire::{Failure, Nested, ReadPage};
use rowgate_sql::compile::{self, CompiledDocument, ListPlan};
use rowgate_sql::query::Document;

use crate::auth::credential::Caller;
use crate::auth::key_context::KeyContext;
use crate::execute::problem::problem_of;
use crate::execute::read::{Answer, Count, after};
use crate::execute::retry::{self, RetryReason};
use crate::execute::wording::Wording;

/// One try of the first read of a document: its rows, with what stands within them, and how many there are where the document has a
/// second read that counts them.
pub(super) async fn read(
    caller: &Caller,
    context: &KeyContext,
    (cursors, wording): (&CursorKey, &Wording),
    document: &Document,
    is_last: bool,
) -> Result<Answer, RetryReason> {
    let compiled = CompiledDocument { members: Vec::new(), ..compiled(context, document, is_last) };
    let is_counted = compiled.levels.get(1).is_some_and(|level| level.is_root_value());
    let binding = compiled.levels.first().and_then(|level| level.binding);
    // no document without a statement is made of a query
    let page = sent(caller, context, (cursors, wording), compiled, is_last).await?;
    let page = page.ok_or_else(|| RetryReason::Final(Problem::internal()))?;
    let after = after(cursors, wording, binding, &page)?;
    let count = is_counted.then(|| Count::Known(page.count.unwrap_or_default()));
    Ok(Answer { json: page.json, after, count, tail: None, tagged: None })
}

/// One try of a document, in one batch: an object of all its members. `None` where it has no statement.
pub(crate) async fn page(
    caller: &Caller,
    context: &KeyContext,
    (cursors, wording): (&CursorKey, &Wording),
    document: &Document,
    is_last: bool,
) -> Result<Option<ReadPage>, RetryReason> {
    sent(caller, context, (cursors, wording), compiled(context, document, is_last), is_last).await
}

/// Lists are asked for together, unless these were seen to be too long for it.
fn compiled(context: &KeyContext, document: &Document, is_last: bool) -> CompiledDocument {
    let together = compile::document(document, ListPlan::Together);
    let is_bound = together.levels.iter().any(|level| level.bound.is_some());
    match is_bound && (is_last || context.snapshot.long_lists.holds(&together)) {
        true => compile::document(document, ListPlan::Apart),
        false => together,
    }
}

async fn sent(
    caller: &Caller,
    context: &KeyContext,
    (cursors, wording): (&CursorKey, &Wording),
    compiled: CompiledDocument,
    is_last: bool,
) -> Result<Option<ReadPage>, RetryReason> {
    let long_lists = &context.snapshot.long_lists;
    let name = long_lists.name(&compiled);
    let Some(nested) = Nested::document(compiled, cursors.clone()) else { return Ok(None) };
    let entity = nested.first().entity.clone();
    // The last try takes what it gets: where tables change without end, answers must come all the same.
    let page = retry::read_nested(caller, context, !is_last, nested).await;
    let page = page.map_err(|failure| match failure {
        Failure::TooLong => RetryReason::Final(Problem::new(Code::TooLarge, wording.long_nested)),
        failure => {
            if matches!(failure, Failure::ListsCut) {
                long_lists.note(name);
            }
            problem_of(caller, context, wording, &entity, failure, |_| None)
        }
    })?;
    if page.key.generation > context.snapshot.catalog.generation && !is_last {
        return Err(RetryReason::Behind);
    }
    let _first = caller.trace.rows.set(page.n_rows);
    Ok(Some(page))
}
