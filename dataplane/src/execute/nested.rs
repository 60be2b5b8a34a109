//! A read of rows within rows: one batch and one snapshot, of as many statements as it takes.

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
    let mut binding = None;
    let nested = |compiled: CompiledDocument| {
        binding = compiled.levels.first().and_then(|level| level.binding);
        Nested::rows(compiled, cursors.clone())
    };
    // no document without a statement is made of a query
    let page = ask(caller, context, wording, (document, nested), is_last).await?;
    let page = page.ok_or_else(|| RetryReason::Final(Problem::internal()))?;
    let after = after(cursors, wording, binding, &page)?;
    let count = page.count.map(Count::Known);
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
    let nested = |compiled| Nested::document(compiled, cursors.clone());
    ask(caller, context, wording, (document, nested), is_last).await
}

/// Asks for lists together, and for each by itself where these are too long for that, as is seen now or was before.
async fn ask(
    caller: &Caller,
    context: &KeyContext,
    wording: &Wording,
    (document, mut nested): (&Document, impl FnMut(CompiledDocument) -> Option<Nested>),
    is_last: bool,
) -> Result<Option<ReadPage>, RetryReason> {
    let long_lists = &context.snapshot.long_lists;
    let mut compiled = compile::document(document, ListPlan::Together);
    if long_lists.hold(&compiled) {
        compiled = compile::document(document, ListPlan::Apart);
    }
    let Some(asked) = nested(compiled) else { return Ok(None) };
    let entity = asked.first().entity.clone();
    // The last try takes what it gets: where tables change without end, answers must come all the same.
    let mut page = retry::read_nested(caller, context, !is_last, asked).await;
    if matches!(page, Err(Failure::ListsCut)) {
        long_lists.note(&compile::document(document, ListPlan::Together));
        let Some(asked) = nested(compile::document(document, ListPlan::Apart)) else { return Ok(None) };
        page = retry::read_nested(caller, context, !is_last, asked).await;
    }
    let page = page.map_err(|failure| match failure {
        Failure::TooLong => RetryReason::Final(Problem::new(Code::TooLarge, wording.long_nested)),
        failure => problem_of(caller, context, wording, &entity, failure, |_| None),
    })?;
    if page.key.generation > context.snapshot.catalog.generation && !is_last {
        return Err(RetryReason::Behind);
    }
    let _first = caller.trace.rows.set(page.n_rows);
    Ok(Some(page))
}
