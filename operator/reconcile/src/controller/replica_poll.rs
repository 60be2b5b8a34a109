//! Polls the control database: what each replica serves, and whether another reconciler has taken over.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use rowgate_core::name::Ulid;
use rowgate_pg::connect::login_failure::LoginFailure;
use rowgate_pg::connect::session;
use rowgate_pg::control::installation::Installation;
use rowgate_pg::control::replicas::{self, Seen, Serving};
use rowgate_pg::control::subscriptions::{self, Said, Version};
use rowgate_pg::control::{leader, tenants};
use rowgate_pg::failure::PgError;
use rowgate_pg::wire::try_login;
use sqlx::PgConnection;

/// What it showed.
pub(crate) struct ReplicaPoll {
    /// The live replicas, each with what it serves of every tenant.
    pub(crate) live: Vec<BTreeMap<Ulid, Serving>>,
    /// Why no data plane can log in to the control database, where none lives and it was tried.
    pub(crate) control: Option<Result<(), LoginFailure>>,
    pub(crate) seen: Seen,
    /// Whether one of them looks up as the login of requests.
    pub(crate) has_older: bool,
    /// What the data planes say of subscriptions, if that was asked for and is not what it was.
    pub(crate) said: Option<(Version, Vec<Said>)>,
    /// Who reconciles now.
    pub(crate) lead: leader::Look,
}

/// The connection is kept: this is asked many times a second while a replica is waited for. `tries`: where no replica
/// lives the data plane's login is tried as replicas do, from here. `version`: what is said of subscriptions is asked for, if it is not what it was then.
pub(crate) async fn poll_replicas(
    installation: Arc<Installation>,
    conn: Option<PgConnection>,
    tries: bool,
    version: Option<Version>,
) -> Result<(PgConnection, ReplicaPoll), PgError> {
    let mut conn = match conn {
        Some(conn) => conn,
        None => session::connect(&installation.operator()).await?,
    };
    let live: Vec<_> = replicas::live(&mut conn).await?.into_iter().map(|(_, served)| served).collect();
    let control = match tries && live.is_empty() {
        true => Some(try_login(&installation.dataplane()).await),
        false => None,
    };
    let seen = replicas::seen(&mut conn).await?;
    let has_older = replicas::any_before(&mut conn, 3).await?;
    let said = match version {
        Some(version) => subscriptions::said(&mut conn, &version).await?,
        None => None,
    };
    let lead = leader::look(&mut conn).await?;
    Ok((conn, ReplicaPoll { live, control, seen, has_older, said, lead }))
}

/// The tenants that are not retired yet.
pub(crate) async fn listed(installation: &Installation) -> Result<Vec<tenants::Record>, PgError> {
    tenants::not_retained(&mut session::connect(&installation.operator()).await?).await
}

/// What the tables of each tenant were seen to be, last.
#[derive(Debug, Default)]
pub(crate) struct SeenTables(BTreeMap<Ulid, BTreeSet<i64>>);

impl SeenTables {
    /// Takes in what the replicas say, and gives the tenants whose tables are other ones than before: a hand has changed
    /// them, or we have. A tenant that was not seen before is not among them.
    pub(crate) fn changed(&mut self, seen: &Seen) -> Vec<Ulid> {
        let mut now: BTreeMap<Ulid, BTreeSet<i64>> = BTreeMap::new();
        for ((tenant, _), fingerprints) in seen {
            now.entry(tenant.clone()).or_default().extend(fingerprints);
        }
        let other = |tenant: &Ulid, now: &BTreeSet<i64>| {
            self.0.get(tenant).is_some_and(|before| !now.is_subset(before))
        };
        let changed =
            now.iter().filter(|(tenant, now)| other(tenant, now)).map(|(it, _)| it.clone()).collect();
        // a replica that starts again says nothing for a moment, and what was seen before still counts
        self.0.extend(now);
        changed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_stirred_when_a_replica_sees_others_whatever_the_generation() {
        let tenant = Ulid::from_parts(1, [1; 10]);
        let seen = |generation: i64, fingerprints: &[i64]| {
            Seen::from([((tenant.clone(), generation), fingerprints.iter().copied().collect())])
        };
        let mut tables = SeenTables::default();
        for (what, now, changed) in [
            ("first seen", seen(1, &[7]), false),
            ("the same", seen(1, &[7]), false),
            ("nothing, while it starts again", Seen::new(), false),
            ("the same at another generation", seen(2, &[7]), false),
            ("others at the same generation", seen(2, &[8]), true),
            ("the same again", seen(2, &[8]), false),
            ("others together with a generation", seen(3, &[9]), true),
            ("two replicas, one still behind", seen(3, &[9, 8]), true),
            ("both", seen(3, &[9]), false),
        ] {
            assert_eq!(!tables.changed(&now).is_empty(), changed, "{what}");
        }
    }
}
