//! What can be adopted of an application's database as it is found, with one sentence for each thing that cannot.

use rowgate_crds::Reason;
use rowgate_pg::introspect::actual::{QName, Relation, RelationKind};

use crate::plan::{Finding, differences};

/// Whether a first manifest can name it: a table of `owner`, who owns the database too, before anything of Rowgate's is there. `true`: the
/// application has row-level security on it, which `rowLevelSecurity.existing` takes as it is.
///
/// # Errors
///
/// What it is instead, and what to do.
pub fn adoptable(name: &QName, relation: &Relation, owner: &str) -> Result<bool, Finding> {
    let text = format!("{}.{}", name.0, name.1);
    match relation.kind {
        RelationKind::Table | RelationKind::PartitionedTable => {}
        RelationKind::View => return Err(of_view(&text)),
        RelationKind::MaterializedView => {
            return Err(of_materialized_view(&text, "the tables that it reads"));
        }
        RelationKind::ForeignTable => {
            return unsupported(format!(
                "{text} is a foreign table, whose rows stand on another server, past every policy; adopt the database that holds them"
            ));
        }
        RelationKind::Sequence => return unsupported(format!("{text} is a sequence; expose tables")),
    }
    if relation.owner != owner {
        return Err(of_another_owner(&text, relation, ", and the database to another role", owner));
    }
    if relation.rule.is_some() {
        return Err(of_rule(&text));
    }
    stands_alone(&text, relation)?;
    if relation.primary_key.is_empty() {
        let message = format!(
            "{text} has no primary key; add one, or an entity for it whose keyFields name the columns that identify one row"
        );
        return Err(Finding::new(Reason::FieldNotFound, message));
    }
    of_others((relation.rls_enabled, false), relation, &text)?;
    Ok(relation.rls_enabled)
}

fn unsupported<T>(message: String) -> Result<T, Finding> {
    Err(Finding::new(Reason::SourceUnsupported, message))
}

pub(in crate::plan) fn of_view(text: &str) -> Finding {
    let message = format!(
        "{text} is a view of the application, which PostgreSQL reads with its owner's rights, past every policy; expose the tables that it reads"
    );
    Finding::new(Reason::ViewUnsafe, message)
}

pub(in crate::plan) fn of_materialized_view(text: &str, instead: &str) -> Finding {
    let message =
        format!("{text} is a materialized view, which row-level security cannot filter; expose {instead}");
    Finding::new(Reason::SourceUnsupported, message)
}

/// `beside`: what else there is to say of its owner.
pub(in crate::plan) fn of_another_owner(
    text: &str,
    relation: &Relation,
    beside: &str,
    owner: &str,
) -> Finding {
    let message =
        format!("{text} belongs to {}{beside}; alter table {text} owner to {owner}", relation.owner);
    Finding::new(Reason::NotOwned, message)
}

pub(in crate::plan) fn of_rule(text: &str) -> Finding {
    let message = format!(
        "{text} has a rule, which PostgreSQL runs with the rights of the table's owner, past every policy; replace the rule by a trigger"
    );
    Finding::new(Reason::SourceUnsupported, message)
}

/// Whether its policies hold for its rows, and nothing but them decides what a key sees.
pub(super) fn stands_alone(text: &str, relation: &Relation) -> Result<(), Finding> {
    if relation.is_partition || !relation.parents.is_empty() {
        return unsupported(format!(
            "{text} is a partition or inherits from another table, whose policies do not hold for it; expose the table above it"
        ));
    }
    of_public(relation).map_or(Ok(()), |right| {
        let message = format!(
            "PUBLIC has {right} on {text}, and so would every key, past its permissions; grant it to the roles that need it instead, then run: revoke all on {text} from public;"
        );
        Err(Finding::new(Reason::RightsMissing, message))
    })
}

/// A privilege that everybody has on the table or one of its columns.
fn of_public(relation: &Relation) -> Option<&str> {
    let acls = std::iter::once(&relation.acl).chain(relation.columns.iter().map(|column| &column.acl));
    acls.filter_map(|acl| acl.get("public")?.iter().next()).next().map(|it| it.trim_end_matches('*'))
}

/// Row-level security that the application has already is its own: it holds for keys, too (`existing`), or for the application's roles alone
/// (`replace`), or the table is not taken.
pub(super) fn of_others(
    (is_existing, is_replaced): (bool, bool),
    relation: &Relation,
    text: &str,
) -> Result<(), Finding> {
    let refused = |message: String| Err(Finding::new(Reason::PolicyRefused, message));
    match (relation.rls_enabled, is_existing || is_replaced) {
        (true, true) => Ok(()),
        (false, _) if is_existing => refused(format!(
            "rowLevelSecurity.existing: row-level security of {text} is off; enable it together with policies for the application's roles, or declare policies here"
        )),
        (true, false) => {
            let has = match relation.policies.is_empty() {
                true => String::new(),
                false => {
                    let names = differences::list(relation.policies.keys().map(String::as_str));
                    format!(" ({names})")
                }
            };
            refused(format!(
                "the application has row-level security on {text} already{has}; set rowLevelSecurity.existing: true, by which its policies hold for keys, too, or replace: true, by which they hold for the application's roles alone"
            ))
        }
        (false, _) if !relation.policies.is_empty() => refused(format!(
            "{text} has policies that are switched off, which would hold for the application's roles once row-level security is enabled; drop them"
        )),
        (false, _) if relation.rls_forced => refused(format!(
            "row-level security of {text} is forced on its owner, which would filter the application once it is enabled; alter table {text} no force row level security"
        )),
        (false, _) => Ok(()),
    }
}

/// Whether a table that was adopted with `replace` can stay so.
pub(super) fn stays_replaced(is_replaced: bool, relation: &Relation, text: &str) -> Result<(), Finding> {
    let refused = |message: String| Err(Finding::new(Reason::PolicyRefused, message));
    match (is_replaced, relation.rls_enabled) {
        (true, true) => Ok(()),
        (true, false) => refused(format!(
            "row-level security of {text}, which the application had, was turned off; turn it on again, or take the entity out and add it once the table was given back"
        )),
        (false, _) => refused(format!(
            "{text} was adopted with rowLevelSecurity.replace: true, and is given back first; retrying"
        )),
    }
}
