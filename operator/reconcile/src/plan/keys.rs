//! Key roles, their permission sets and their memberships, all made and taken back by the tenant's keys login.

use std::collections::{BTreeMap, BTreeSet};

use jiff::SignedDuration;
use rowgate_core::name::Ulid;
use rowgate_core::role::{SHARED_ROLE, TenantLogin};
use rowgate_pg::introspect::actual::{Cluster, KeySecret, Membership, TenantDb};
use rowgate_sql::ddl::records;
use rowgate_sql::ddl::roles::{self, Kind};
use rowgate_sql::text::{Ident, Sql};

use super::roles_and_database::{ident, repaired};
use super::rows::of_set;
use super::{Closed, Of, Statement, differences};
use crate::desired::{Desired, KeySpec, SecretSpec};
use crate::secrets::rotation;

/// Where every key of the tenant ends after this pass.
pub(super) struct Keys<'a> {
    pub(super) desired: &'a Desired,
    pub(super) cluster: &'a Cluster,
    pub(super) db: &'a TenantDb,
    /// Keys that are to work.
    pub(super) live: Vec<&'a KeySpec>,
    /// By key: the role that will hold its grants, `datalake_user` or `set_<id>`.
    pub(super) sets: BTreeMap<Ulid, String>,
    /// The hash of what each `set_<id>` may do, by role.
    pub(super) hashes: BTreeMap<String, String>,
    pub(super) closed: &'a Closed,
}

impl<'a> Keys<'a> {
    /// Keys that work after this pass: neither revoked in the manifest nor in the database, ever.
    pub(super) fn live(desired: &'a Desired, db: &TenantDb) -> Vec<&'a KeySpec> {
        let dead =
            |key: &KeySpec| key.revoked || db.keys.get(&key.id).is_some_and(|row| row.revoked_at.is_some());
        desired.keys.iter().filter(|key| !dead(key)).collect()
    }

    fn is_closed(&self, id: &Ulid) -> bool {
        self.closed.keys.contains_key(id)
    }

    /// Keys that are to die: their manifest is gone, or says revoked.
    fn dying(&self) -> impl Iterator<Item = &'a Ulid> {
        let live: BTreeSet<&Ulid> = self.live.iter().map(|key| &key.id).collect();
        let rows =
            self.db.keys.iter().filter(move |(id, row)| row.revoked_at.is_none() && !live.contains(id));
        rows.map(|(id, _)| id)
    }

    /// Those of them whose revocation PostgreSQL refused.
    pub(super) fn undying(&self) -> impl Iterator<Item = &'a Ulid> {
        self.dying().filter(|id| self.is_closed(id))
    }

    /// Revokes the keys that are to die and the secrets that no Secret holds any more.
    pub(super) fn revocations(&self) -> Vec<Statement> {
        let dying = self.dying().filter(|id| !self.is_closed(id));
        let revoke = |id: &Ulid| {
            let differs = format!("key {id} is not revoked in dl.keys");
            Of::Key(id.clone()).says(records::revoke_key(id.as_str())).undoing([differs])
        };
        let mut statements: Vec<Statement> = dying.map(revoke).collect();
        for key in self.live.iter().filter(|key| !self.is_closed(&key.id)) {
            let Some(secret) = &key.secret else { continue };
            let rows = self.db.keys.get(&key.id).map(|row| &row.secrets[..]).unwrap_or_default();
            let replaced = replaced(secret, rows);
            let stays = |row: &KeySecret| row.digest == secret.digest || Some(&row.id) == replaced;
            let old = rows.iter().filter(|row| row.revoked_at.is_none() && !stays(row));
            let of = Of::Key(key.id.clone());
            let differs =
                format!("ApiKey {} has a secret in dl.key_secrets that its Secret does not hold", key.name);
            statements.extend(old.map(|row| {
                of.clone().says(records::revoke_secret(row.id.as_str())).undoing([differs.clone()])
            }));
        }
        statements
    }

    /// Closes the roles of dead keys.
    pub(super) fn closures(&self) -> Vec<Statement> {
        let live_roles: BTreeSet<String> = self.live.iter().map(|key| key.role().to_string()).collect();
        let mut statements = Vec::new();
        for (role, present) in self.cluster.roles.iter().filter(|(role, _)| role.starts_with("key_")) {
            if live_roles.contains(role) {
                continue;
            }
            statements.extend(repaired(&ident(role), Kind::Group, present));
            let its = self.memberships().filter(|m| m.role == *role || m.member == *role);
            statements.extend(revoked(its, |m| Some(differences::membership(m, false))));
        }
        statements
    }

    /// Closes keys that may hold nothing though they are not revoked: rows of the owner's, then memberships. Their roles
    /// stay, so that a second pass has nothing to do.
    pub(super) fn denials(&self) -> (Vec<Statement>, Vec<Statement>) {
        let denied: Vec<&&KeySpec> =
            self.live.iter().filter(|key| !self.sets.contains_key(&key.id)).collect();
        let assigned = |key: &&&&KeySpec| self.db.keys.get(&key.id).is_some_and(|row| row.set_role.is_some());
        let rows = denied.iter().filter(assigned);
        let rows = rows.map(|key| Of::Key(key.id.clone()).says(records::assign_key(key.id.as_str(), None)));
        let rows = bumped(rows.collect());
        let roles = denied.iter().map(|key| key.role().to_string()).filter(|role| role != SHARED_ROLE);
        let roles: BTreeSet<String> = roles.collect();
        let held = self.memberships().filter(|m| roles.contains(&m.role) || roles.contains(&m.member));
        (rows, revoked(held, |_| None))
    }

    /// Roles of keys that no manifest names any more, to be dropped at the end: a role that was granted something by hand
    /// cannot be dropped before that is taken back. One that is held stays as it was closed: what is this tenant's to
    /// keep, or stands in another one's database, must not stop the pass.
    pub(super) fn gone(&self) -> impl Iterator<Item = String> + use<'_> {
        let named: BTreeSet<String> = self.desired.keys.iter().map(|key| key.role().to_string()).collect();
        let roles = self.cluster.roles.keys();
        roles.filter(move |role| role.starts_with("key_") && !named.contains(*role)).cloned()
    }

    /// Takes keys that will change their set out of the one they are in: rows of the owner's, then memberships.
    pub(super) fn pauses(&self) -> (Vec<Statement>, Vec<Statement>) {
        let keys: BTreeMap<String, &KeySpec> =
            self.live.iter().map(|key| (key.role().to_string(), *key)).collect();
        let stays = |m: &Membership| match keys.get(&m.member) {
            Some(key) => self.sets.get(&key.id).is_none_or(|set| *set == m.role),
            None => true,
        };
        let leaving: Vec<&Membership> = self.memberships().filter(|m| !stays(m)).collect();
        let members: BTreeSet<&String> = leaving.iter().map(|m| &m.member).collect();
        let rows = members.into_iter().map(|role| {
            let id = &keys[role].id;
            Of::Key(id.clone()).says(records::assign_key(id.as_str(), None))
        });
        // out of the one that its row names it goes because its rights are others now
        let assigned = |m: &Membership| {
            let row = keys.get(&m.member).and_then(|key| self.db.keys.get(&key.id));
            row.and_then(|row| row.set_role.as_ref()) == Some(&m.role)
        };
        let differs = |m: &Membership| (!assigned(m)).then(|| differences::membership(m, false));
        (bumped(rows.collect()), revoked(leaving, differs))
    }

    /// Creates the roles that are missing, without any right; the login of requests may become each key's.
    pub(super) fn creations(&self) -> Vec<Statement> {
        let auth = ident(&TenantLogin::Auth.role(&self.desired.tenant));
        let mut statements = Vec::new();
        for set in self.hashes.keys() {
            match self.cluster.roles.get(set) {
                None => {
                    statements.push(self.of_set(set).says(roles::create(&ident(set), Kind::Group, None)));
                }
                Some(present) => statements.extend(repaired(&ident(set), Kind::Group, present)),
            }
        }
        let scoped = self.live.iter().filter(|key| key.role().as_str() != SHARED_ROLE);
        for key in scoped.filter(|key| !self.is_closed(&key.id)) {
            let (role, of) = (key.role().to_string(), Of::Key(key.id.clone()));
            match self.cluster.roles.get(&role) {
                None => {
                    let missing = self.db.keys.contains_key(&key.id);
                    let missing = missing.then(|| format!("role {role} is missing"));
                    let create = of.says(roles::create_key(&ident(&role), &key.verifier, &auth));
                    statements.push(create.undoing(missing));
                }
                Some(present) => statements.extend(repaired(&ident(&role), Kind::Login, present)),
            }
        }
        statements
    }

    /// Puts every live key into its set, and the login of requests into every live key's role; what else the keys login
    /// granted is taken back: memberships, then rows of the owner's. `paused`: [`Keys::pauses`] ran, so no key is in an
    /// old set any more.
    pub(super) fn assignments(&self, paused: bool) -> (Vec<Statement>, Vec<Statement>) {
        let auth = TenantLogin::Auth.role(&self.desired.tenant);
        let mut wanted: BTreeMap<(String, String), roles::Membership> = BTreeMap::new();
        let mut assigned = Vec::new();
        for key in &self.live {
            let Some(set) = self.sets.get(&key.id) else { continue };
            let role = key.role().to_string();
            if role != SHARED_ROLE {
                if self.cluster.roles.contains_key(&role) {
                    wanted.insert((role.clone(), auth.clone()), roles::Membership::Set);
                }
                wanted.insert((set.clone(), role.clone()), roles::Membership::Inherit);
            }
            // a row whose role is corrected in this plan loses its set with it
            let row = self.db.keys.get(&key.id).filter(|row| row.role == role);
            if row.and_then(|row| row.set_role.as_ref()) != Some(set) {
                assigned.push((key, role, set, row.is_some()));
            }
        }
        let right = |m: &Membership| {
            wanted.get(&(m.role.clone(), m.member.clone())).is_some_and(|kind| match kind {
                roles::Membership::Set => m.set && !m.inherit && !m.admin,
                roles::Membership::Inherit => !m.set && m.inherit && !m.admin,
                roles::Membership::Full => m.set && m.inherit && !m.admin,
            })
        };
        // roles that the closures and denials emptied have no membership left to revoke
        let live = self.live.iter().filter(|key| self.sets.contains_key(&key.id));
        let live: BTreeSet<String> = live.map(|key| key.role().to_string()).collect();
        let live = |role: &String| !role.starts_with("key_") || live.contains(role);
        let wrong = self.memberships().filter(|m| !right(m) && live(&m.role) && live(&m.member));
        let wrong = wrong.filter(|m| !(paused && m.member.starts_with("key_")));
        let wrong: Vec<&Membership> = wrong.collect();
        let is_wanted = |m: &Membership| wanted.contains_key(&(m.role.clone(), m.member.clone()));
        let there: BTreeSet<(&str, &str)> =
            self.memberships().filter(|m| right(m)).map(|m| (m.role.as_str(), m.member.as_str())).collect();
        let mut missing: BTreeMap<(&String, roles::Membership), Vec<Ident>> = BTreeMap::new();
        for ((role, member), kind) in &wanted {
            if !there.contains(&(role.as_str(), member.as_str())) {
                missing.entry((role, *kind)).or_default().push(ident(member));
            }
        }
        // of the set that its row names a key is no longer a member because its rights are others now
        let is_quiet = wrong.is_empty() && missing.is_empty();
        let rows = if is_quiet { BTreeMap::new() } else { self.sets_in_rows() };
        let follows = |m: &Membership| !is_wanted(m) && rows.get(&m.member) == Some(&m.role.as_str());
        let mut statements = revoked(wrong.iter().copied(), |m| {
            (!follows(m)).then(|| differences::membership(m, is_wanted(m)))
        });
        let differs = |role: &str, member: &str| {
            let is_recorded = role.starts_with("key_") || rows.get(member) == Some(&role);
            let is_there = self.cluster.roles.contains_key(member);
            let is_wrong = || wrong.iter().any(|m| m.role == role && m.member == member);
            (is_recorded && is_there && !is_wrong()).then(|| differences::no_membership(role, member))
        };
        statements.extend(missing.iter().map(|((role, kind), members)| {
            let differs = members.iter().filter_map(|member| differs(role, member.as_str()));
            self.of_set(role).says(roles::grant(&ident(role), members, *kind)).undoing(differs)
        }));
        let assigned = assigned.into_iter().map(|(key, role, set, has_row)| {
            // its row alone is another one, or its rights are
            let is_in = || role == SHARED_ROLE || there.contains(&(set.as_str(), role.as_str()));
            let differs = (has_row && is_in())
                .then(|| format!("ApiKey {} has another permission set in dl.keys", key.name));
            let assign = records::assign_key(key.id.as_str(), Some(set));
            Of::Key(key.id.clone()).says(assign).undoing(differs)
        });
        let assigned = bumped(assigned.collect());
        (statements, assigned)
    }

    /// The permission set that each key's row names, by the key's role.
    fn sets_in_rows(&self) -> BTreeMap<String, &str> {
        let row =
            |key: &&KeySpec| Some((key.role().to_string(), self.db.keys.get(&key.id)?.set_role.as_deref()?));
        self.live.iter().filter_map(row).collect()
    }

    /// Rows of `dl.keys` that are new or changed.
    /// `resolved`: what is to stand in `resolved` and does not.
    pub(super) fn rows<'b>(
        &self,
        resolved: impl Fn(&Ulid) -> Option<&'b serde_json::Value>,
    ) -> Vec<Statement> {
        let mut statements: Vec<Statement> = Vec::new();
        for key in self.live.iter().filter(|key| !self.is_closed(&key.id)) {
            let (id, role) = (key.id.as_str(), key.role());
            let row = self.db.keys.get(&key.id);
            let mut push = |sql: Sql, differs: &str| {
                let differs = format!("ApiKey {} {differs}", key.name);
                statements.push(Of::Key(key.id.clone()).says(sql).undoing([differs]));
            };
            if row.is_none() {
                let row = records::insert_key(id, &key.uid, &key.namespace, &key.name, role.as_str());
                push(row, "is not in dl.keys");
            }
            if row.is_some_and(|row| row.role != role.as_str()) {
                push(records::set_key_role(id, role.as_str()), "has another role in dl.keys");
            }
            if !same_time(row.and_then(|row| row.expires_at.as_deref()), key.expires_at.as_deref()) {
                let set = records::set_key_expiry(id, key.expires_at.as_deref());
                push(set, "expires at another time in dl.keys");
            }
            if let Some(value) = resolved(&key.id) {
                let set = records::set_key_resolved(id, &value.to_string());
                push(set, "has other columns in its scope than dl.keys has");
            }
        }
        statements
    }

    /// Digests that the database does not know yet: the last step, after which a key works. In the same transaction the
    /// secret that a new one replaces gets its end.
    pub(super) fn secrets(&self) -> Vec<Statement> {
        let mut statements: Vec<Statement> = Vec::new();
        for key in self.live.iter().filter(|key| !self.is_closed(&key.id)) {
            let Some(secret) = &key.secret else { continue };
            let of = || Of::Key(key.id.clone());
            let row = self.db.keys.get(&key.id);
            let rows = row.map(|row| &row.secrets[..]).unwrap_or_default();
            let known = rows.iter().find(|known| known.digest == secret.digest && known.revoked_at.is_none());
            if known.is_none() {
                let digest: String = secret.digest.iter().map(|byte| format!("{byte:02x}")).collect();
                let replaces = replaced(secret, rows).map(Ulid::as_str);
                let (id, key_id) = (secret.id.as_str(), key.id.as_str());
                let insert = records::insert_secret(id, key_id, &secret.finder, &digest, replaces);
                let missing = row.is_some() && secret.replaces.is_none();
                let missing = missing
                    .then(|| format!("the secret of ApiKey {} is missing in dl.key_secrets", key.name));
                statements.push(of().says(insert).undoing(missing));
                let asked = key
                    .rotate
                    .as_ref()
                    .filter(|asked| row.is_none_or(|row| row.rotated_for.as_ref() != Some(*asked)));
                statements.extend(asked.map(|asked| of().says(records::set_key_rotated_for(key_id, asked))));
            }
            let new = known.map_or(&secret.id, |known| &known.id);
            let old = rows.iter().find(|old| Some(&old.id) == replaced(secret, rows));
            if let Some(old) = old.filter(|old| outlives(old, known, key)) {
                let overlap = u64::try_from(rotation::overlap(key).as_millis()).unwrap_or(u64::MAX);
                let retire = records::retire_secret(old.id.as_str(), new.as_str(), overlap);
                let differs = format!("the replaced secret of ApiKey {} has another end", key.name);
                statements.push(of().says(retire).undoing([differs]));
            }
        }
        statements
    }

    /// Of a role that keys are put into, or of one key's.
    fn of_set(&self, role: &str) -> Of {
        let key = || self.live.iter().find(|key| key.role().as_str() == role && role != SHARED_ROLE);
        match (self.hashes.get(role), key()) {
            (Some(hash), _) => of_set(role, hash),
            (None, Some(key)) => Of::Key(key.id.clone()),
            (None, None) => Of::Tenant,
        }
    }

    /// Memberships that the tenant's keys login granted, and so can take back.
    fn memberships(&self) -> impl Iterator<Item = &Membership> {
        let keys = TenantLogin::Keys.role(&self.desired.tenant);
        self.cluster.memberships.iter().filter(move |m| m.grantor == keys)
    }
}

/// Which of the key's secrets works on beside the one that its Secret holds.
fn replaced<'a>(secret: &'a SecretSpec, rows: &'a [KeySecret]) -> Option<&'a Ulid> {
    match rows.iter().find(|row| row.digest == secret.digest) {
        Some(known) => known.replaces.as_ref(),
        None => secret.replaces.as_ref(),
    }
}

/// Whether the replaced secret has no end yet, or one later than the manifest's `overlap` after its successor `new` came.
fn outlives(old: &KeySecret, new: Option<&KeySecret>, key: &KeySpec) -> bool {
    if old.revoked_at.is_some() {
        return false;
    }
    let (Some(new), Some(end)) = (new, old.expires_at) else { return true };
    let overlap = SignedDuration::try_from(rotation::overlap(key)).unwrap_or(SignedDuration::MAX);
    key.rotation.is_some() && new.created_at.checked_add(overlap).is_ok_and(|latest| latest < end)
}

/// One statement for each role, however many members leave it, and what each leaving undoes.
fn revoked<'a>(
    memberships: impl IntoIterator<Item = &'a Membership>,
    differs: impl Fn(&Membership) -> Option<String>,
) -> Vec<Statement> {
    let mut by_role: BTreeMap<&str, Vec<&Membership>> = BTreeMap::new();
    for membership in memberships {
        by_role.entry(&membership.role).or_default().push(membership);
    }
    let revoke = |(role, left): (&str, Vec<&Membership>)| {
        let members: Vec<Ident> = left.iter().map(|m| ident(&m.member)).collect();
        let differs = left.into_iter().filter_map(&differs);
        Statement::from(roles::revoke(&ident(role), &members)).undoing(differs)
    };
    by_role.into_iter().map(revoke).collect()
}

/// The same rows, and the generation that lets the data planes see them.
fn bumped(mut rows: Vec<Statement>) -> Vec<Statement> {
    if !rows.is_empty() {
        rows.push(records::bump().into());
    }
    rows
}

fn same_time(a: Option<&str>, b: Option<&str>) -> bool {
    let parse = |text: &str| text.parse::<jiff::Timestamp>();
    match (a, b) {
        (None, None) => true,
        (Some(a), Some(b)) => parse(a).is_ok_and(|a| parse(b).is_ok_and(|b| a == b)),
        _ => false,
    }
}
