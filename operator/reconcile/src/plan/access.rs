//! Who may do what: permissions, the ACLs and policies they become, and what only a DBA can change.
//! Pure, as the whole plan is. Key roles and their memberships are in `keys`.

pub(super) mod acl;
pub(super) mod foreign;
pub(super) mod graphql;
pub(super) mod readers;
pub(super) mod rights;
pub(super) mod scans;
pub(super) mod security;
