//! Who may do what: permissions, the ACLs and policies they become, and what only a DBA can change.
//! Pure, as the whole plan is. Key roles and their memberships are in `keys`.

pub(super) mod acl;
pub(super) mod adoptable;
pub(super) mod adopted;
pub(super) mod definers;
pub(super) mod foreign;
pub(super) mod graphql;
pub(super) mod logins;
pub(super) mod readers;
pub(super) mod rights;
pub(super) mod scans;
pub(super) mod security;
pub(super) mod views;

/// Sentences of one kind: more would hide what else a status says.
const MAX_SENTENCES: usize = 20;

/// As many sentences as a status has of one kind. `rest` says in one how many more there are.
fn bounded(mut sentences: Vec<String>, rest: impl FnOnce(usize) -> String) -> Vec<String> {
    let more = sentences.len().saturating_sub(MAX_SENTENCES);
    sentences.truncate(MAX_SENTENCES);
    sentences.extend((0 < more).then(|| rest(more)));
    sentences
}
