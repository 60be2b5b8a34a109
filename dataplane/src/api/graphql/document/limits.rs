//! How large a document is with all its fragments filled in, before anything follows them.

use std::collections::HashMap;

use async_graphql::Name;
use async_graphql::parser::types::{ExecutableDocument, Selection, SelectionSet};
use rowgate_core::problem::Code;

use crate::api::graphql::error::GraphQlError;

/// Fields and aliases of an operation.
const MAX_FIELDS: usize = 500;
/// Fields within each other.
const MAX_DEPTH: usize = 40;

#[derive(Debug, Clone, Copy, Default)]
struct Size {
    fields: usize,
    depth: usize,
}

/// Refuses fragments that lead to themselves, and operations that are too large.
pub(super) fn check(document: &ExecutableDocument) -> Result<(), GraphQlError> {
    let mut sizes = Sizes { document, known: HashMap::new() };
    for name in document.fragments.keys() {
        sizes.fragment(name)?;
    }
    for (_, operation) in document.operations.iter() {
        let size = sizes.of(&operation.node.selection_set.node)?;
        if MAX_FIELDS < size.fields {
            let what = format!("the operation asks for {} fields, and {MAX_FIELDS} is the most", size.fields);
            return Err(GraphQlError::new(Code::BadRequest, what).at(operation.pos));
        }
        if MAX_DEPTH < size.depth {
            let what = format!("the operation is {} fields deep, and {MAX_DEPTH} is the most", size.depth);
            return Err(GraphQlError::new(Code::BadRequest, what).at(operation.pos));
        }
    }
    Ok(())
}

/// Each fragment is measured once, however often it is named.
struct Sizes<'d> {
    document: &'d ExecutableDocument,
    /// `None`: it is being measured.
    known: HashMap<&'d Name, Option<Size>>,
}

impl<'d> Sizes<'d> {
    fn fragment(&mut self, name: &'d Name) -> Result<Size, GraphQlError> {
        let Some(fragment) = self.document.fragments.get(name) else {
            // validation names it
            return Ok(Size::default());
        };
        match self.known.get(name) {
            Some(Some(size)) => return Ok(*size),
            Some(None) => {
                let what = format!("the fragment {name} leads to itself");
                return Err(GraphQlError::new(Code::BadRequest, what).at(fragment.pos));
            }
            None => {}
        }
        self.known.insert(name, None);
        let size = self.of(&fragment.node.selection_set.node)?;
        self.known.insert(name, Some(size));
        Ok(size)
    }

    fn of(&mut self, set: &'d SelectionSet) -> Result<Size, GraphQlError> {
        let mut sum = Size::default();
        for item in &set.items {
            let size = match &item.node {
                Selection::Field(field) => {
                    let within = self.of(&field.node.selection_set.node)?;
                    Size { fields: within.fields.saturating_add(1), depth: within.depth.saturating_add(1) }
                }
                Selection::InlineFragment(inline) => self.of(&inline.node.selection_set.node)?,
                Selection::FragmentSpread(spread) => self.fragment(&spread.node.fragment_name.node)?,
            };
            sum.fields = sum.fields.saturating_add(size.fields);
            sum.depth = sum.depth.max(size.depth);
        }
        Ok(sum)
    }
}

#[cfg(test)]
mod tests {
    use async_graphql::parser::parse_query;

    use super::*;

    #[test]
    fn fragments_count_as_often_as_they_are_named() {
        // 2 to the power of 60 fields
        let doubling: String =
            (0..60).map(|i| format!("fragment f{i} on T {{ ...f{} ...f{} }} ", i + 1, i + 1)).collect();
        let text = format!("{{ ...f0 }} {doubling} fragment f60 on T {{ a }}");
        let refused = check(&parse_query(text).expect("a document")).expect_err("too large");
        assert!(refused.problem.message.contains("fields"), "{refused:?}");
        for cyclic in [
            "{ ...a } fragment a on T { b { ...a } }",
            "{ x } fragment a on T { ...b } fragment b on T { ...a }",
        ] {
            assert!(check(&parse_query(cyclic).expect("a document")).is_err(), "{cyclic}");
        }
        assert!(
            check(&parse_query("{ ...a ...a b } fragment a on T { b { c } }").expect("a document")).is_ok()
        );
    }
}
