//! `__typename` with directives. async-graphql validates nothing of that field, so that a variable which only its directives use
//! counted as unused, and what a directive takes was not looked at. A fragment around it means the same and is validated.

use async_graphql::Positioned;
use async_graphql::parser::types::{
    DocumentOperations, ExecutableDocument, InlineFragment, Selection, SelectionSet,
};

/// Moves directives of `__typename` to a fragment around it.
pub(super) fn unfold(document: &mut ExecutableDocument) {
    match &mut document.operations {
        DocumentOperations::Single(operation) => within(&mut operation.node.selection_set.node),
        DocumentOperations::Multiple(all) => {
            all.values_mut().for_each(|operation| within(&mut operation.node.selection_set.node));
        }
    }
    document.fragments.values_mut().for_each(|fragment| within(&mut fragment.node.selection_set.node));
}

fn within(set: &mut SelectionSet) {
    for item in &mut set.items {
        let pos = item.pos;
        match &mut item.node {
            Selection::Field(field) if field.node.name.node != "__typename" => {
                within(&mut field.node.selection_set.node);
            }
            Selection::Field(field) if !field.node.directives.is_empty() => {
                let directives = std::mem::take(&mut field.node.directives);
                let items = vec![Positioned::new(Selection::Field(field.clone()), pos)];
                let selection_set = Positioned::new(SelectionSet { items }, pos);
                let fragment = InlineFragment { type_condition: None, directives, selection_set };
                item.node = Selection::InlineFragment(Positioned::new(fragment, pos));
            }
            Selection::Field(_) | Selection::FragmentSpread(_) => {}
            Selection::InlineFragment(inline) => within(&mut inline.node.selection_set.node),
        }
    }
}
