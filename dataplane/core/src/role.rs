//! Database roles. A role is made from an identifier of ours, never from request text.

use std::fmt;

use crate::name::Ulid;

/// What an API key is in the database: the shared role, or the role of one scoped key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DbRole(String);

/// The role of every unscoped key. It is fixed by the contract and the same in every tenant.
pub const SHARED_ROLE: &str = "datalake_user";

impl DbRole {
    /// `datalake_user`, the role of every unscoped key.
    #[must_use]
    pub fn shared() -> DbRole {
        DbRole(SHARED_ROLE.to_owned())
    }

    /// `key_<apiKeyId>`, the role of one scoped key.
    #[must_use]
    pub fn for_key(id: &Ulid) -> DbRole {
        DbRole(format!("key_{id}"))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for DbRole {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The role that holds every grant of one distinct permission set.
#[must_use]
pub fn set_role(id: &Ulid) -> String {
    format!("set_{id}")
}

/// The login roles of one tenant (architecture, section 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TenantLogin {
    /// Owns the exposed objects; every SQL expression of a manifest runs logged in as it.
    Owner,
    /// Owns schema `dl`. No code of the tenant runs as it, so that the tenant changes nothing there.
    Records,
    /// Creates, grants and revokes this tenant's key roles.
    Keys,
    /// For requests: becomes `datalake_user` or a key's role for one transaction.
    Auth,
    /// For calls and queries of unscoped keys.
    Sql,
    /// For migration tools, where a Tenant asks for it: has the rights of the owner, and each of its sessions begins as the owner.
    Migrations,
    /// Owns the views that keys reach, has no login, and sees of their tables what the policies let the caller see.
    Views,
    /// Looks keys and catalogs up, revokes, and writes subscriptions. No request runs as it, and it becomes no other role.
    Lookups,
}

impl TenantLogin {
    pub const ALL: [TenantLogin; 8] = [
        TenantLogin::Owner,
        TenantLogin::Keys,
        TenantLogin::Auth,
        TenantLogin::Sql,
        TenantLogin::Records,
        TenantLogin::Lookups,
        TenantLogin::Views,
        TenantLogin::Migrations,
    ];

    /// `t<id>_owner`, `t<id>_keys`, `t<id>_auth`, `t<id>_sql`, `t<id>_dl`, `t<id>_lookups`, `t<id>_views` or `t<id>_mig`.
    #[must_use]
    pub fn role(self, tenant: &Ulid) -> String {
        format!("t{tenant}_{}", self.kind())
    }

    /// Which one of a tenant's a role is; `None`: it is none.
    #[must_use]
    pub fn of_role(role: &str) -> Option<TenantLogin> {
        let (id, kind) = role.strip_prefix('t')?.split_once('_')?;
        id.parse::<Ulid>().ok()?;
        TenantLogin::ALL.into_iter().find(|login| login.kind() == kind)
    }

    /// How the name of its role ends, after the underscore.
    #[must_use]
    pub fn kind(self) -> &'static str {
        match self {
            TenantLogin::Owner => "owner",
            TenantLogin::Keys => "keys",
            TenantLogin::Auth => "auth",
            TenantLogin::Sql => "sql",
            TenantLogin::Records => "dl",
            TenantLogin::Views => "views",
            TenantLogin::Lookups => "lookups",
            TenantLogin::Migrations => "mig",
        }
    }
}

/// The data plane's login on the control database.
pub const DATAPLANE_ROLE: &str = "rowgate_dataplane";
/// The operator's login where Rowgate makes it itself (standalone).
pub const OPERATOR_ROLE: &str = "rowgate_operator";
/// The control database's name.
pub const CONTROL_DATABASE: &str = "rowgate";
/// The database that tenants' databases are copies of, where a superuser could make it.
pub const TEMPLATE_DATABASE: &str = "rowgate_template";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_says_which_login_it_is() {
        let id: Ulid = "01hf7yat00eg0g000000000001".parse().expect("an id");
        for login in TenantLogin::ALL {
            assert_eq!(TenantLogin::of_role(&login.role(&id)), Some(login));
        }
        for other in
            ["t_owner", "t01hf7yat00eg0g000000000001_other", "key_01hf7yat00eg0g000000000001", "tx_owner"]
        {
            assert_eq!(TenantLogin::of_role(other), None, "{other}");
        }
    }
}
