//! The PostgreSQL clusters of tenants beside the one of the control database: where each is, for the data planes.

use std::collections::HashMap;
use std::sync::Arc;

use sqlx::{PgConnection, Row as _, postgres::PgRow};

use crate::connect::login::Endpoint;
use crate::connect::tls::{Authorities, Tls};
use crate::control::installation::DataplaneInstallation;
use crate::failure::PgError;

/// A cluster, and how it is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterPlace {
    /// Part of each derived password of its roles.
    pub system_identifier: String,
    pub endpoint: Endpoint,
}

/// A row of `control.servers`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerRow {
    pub system_identifier: String,
    /// Namespace and name of the Secret that named it last.
    pub secret: (String, String),
    host: String,
    port: u16,
    tls: bool,
    authorities: Option<String>,
}

impl ServerRow {
    /// As the Secret `secret` names it.
    #[must_use]
    pub fn of(place: &ClusterPlace, secret: (&str, &str)) -> ServerRow {
        let (host, port, tls, authorities) = match &place.endpoint {
            Endpoint::Unix { directory, port } => {
                (directory.to_string_lossy().into_owned(), *port, false, None)
            }
            Endpoint::Tcp { host, port, tls: Tls::Disable } => (host.clone(), *port, false, None),
            Endpoint::Tcp { host, port, tls: Tls::VerifyFull(authorities) } => {
                let pem = authorities.pem().map(|pem| String::from_utf8_lossy(pem).into_owned());
                (host.clone(), *port, true, pem)
            }
        };
        let (system_identifier, secret) =
            (place.system_identifier.clone(), (secret.0.to_owned(), secret.1.to_owned()));
        ServerRow { system_identifier, secret, host, port, tls, authorities }
    }

    /// How it is reached; an error where its authorities cannot be read.
    pub fn place(&self) -> Result<ClusterPlace, String> {
        let (host, port) = (self.host.clone(), self.port);
        let endpoint = match (host.starts_with('/'), self.tls, &self.authorities) {
            (true, ..) => Endpoint::Unix { directory: host.into(), port },
            (_, false, _) => Endpoint::Tcp { host, port, tls: Tls::Disable },
            (_, true, None) => Endpoint::Tcp { host, port, tls: Tls::default() },
            (_, true, Some(pem)) => {
                let tls = Tls::VerifyFull(Authorities::from_pem(pem.as_bytes())?);
                Endpoint::Tcp { host, port, tls }
            }
        };
        Ok(ClusterPlace { system_identifier: self.system_identifier.clone(), endpoint })
    }
}

/// Where each cluster beside the control database's is, by system identifier.
#[derive(Debug, Default)]
pub struct ServerList(HashMap<String, (ServerRow, Arc<ClusterPlace>)>);

impl ServerList {
    /// As the control database says. As the operator or `rowgate_dataplane`.
    pub async fn read(conn: &mut PgConnection) -> Result<ServerList, PgError> {
        let mut places = ServerList::default();
        places.take(list(conn).await?);
        Ok(places)
    }

    /// Takes over rows; a place whose row is as it was stays the same value. One whose authorities cannot be read is none.
    pub fn take(&mut self, rows: Vec<ServerRow>) {
        let mut before = std::mem::take(&mut self.0);
        for row in rows {
            let kept = before.remove(&row.system_identifier).filter(|(known, _)| *known == row);
            let place = kept.map(|(_, place)| Ok(place)).unwrap_or_else(|| row.place().map(Arc::new));
            match place {
                Ok(place) => drop(self.0.insert(row.system_identifier.clone(), (row, place))),
                Err(why) => {
                    tracing::warn!(
                        cluster = row.system_identifier,
                        why,
                        "the authorities of a server cannot be read"
                    );
                }
            }
        }
    }

    /// Where a tenant's cluster is; `None`: it is that of the control database.
    pub fn of<'a>(
        &'a self,
        installation: &'a DataplaneInstallation,
        cluster: Option<&str>,
    ) -> Result<&'a Arc<ClusterPlace>, PgError> {
        let Some(cluster) = cluster else { return Ok(&installation.home) };
        let place = self.0.get(cluster).map(|(_, place)| place);
        place.ok_or_else(|| {
            PgError::unexpected(format!("control.servers does not say where cluster {cluster} is"))
        })
    }
}

/// All of them. As the operator or `rowgate_dataplane`.
pub async fn list(conn: &mut PgConnection) -> Result<Vec<ServerRow>, PgError> {
    let text =
        "select system_identifier, namespace, secret, host, port, tls, authorities from control.servers";
    Ok(sqlx::query_as(text).fetch_all(conn).await?)
}

/// The cluster with this system identifier.
pub async fn find(conn: &mut PgConnection, system_identifier: &str) -> Result<Option<ServerRow>, PgError> {
    let text = "select system_identifier, namespace, secret, host, port, tls, authorities \
                from control.servers where system_identifier = $1";
    Ok(sqlx::query_as(text).bind(system_identifier).fetch_optional(conn).await?)
}

/// How many tenants have their databases there; `None`: in the cluster of the control database.
pub async fn n_tenants(conn: &mut PgConnection, cluster: Option<&str>) -> Result<i64, PgError> {
    let count =
        sqlx::query_scalar("select count(*) from control.tenants where cluster is not distinct from $1");
    Ok(count.bind(cluster).fetch_one(conn).await?)
}

/// Writes down where a cluster is from now on. As the operator.
pub async fn put(conn: &mut PgConnection, row: &ServerRow) -> Result<(), PgError> {
    let text = "insert into control.servers (system_identifier, namespace, secret, host, port, tls, authorities) \
                values ($1, $2, $3, $4, $5, $6, $7) \
                on conflict (system_identifier) do update set namespace = excluded.namespace, secret = excluded.secret, \
                  host = excluded.host, port = excluded.port, tls = excluded.tls, authorities = excluded.authorities";
    let query = sqlx::query(text).bind(&row.system_identifier).bind(&row.secret.0).bind(&row.secret.1);
    let query = query.bind(&row.host).bind(i32::from(row.port)).bind(row.tls).bind(&row.authorities);
    query.execute(conn).await?;
    Ok(())
}

impl<'r> sqlx::FromRow<'r, PgRow> for ServerRow {
    fn from_row(row: &'r PgRow) -> Result<ServerRow, sqlx::Error> {
        let port: i32 = row.try_get("port")?;
        Ok(ServerRow {
            system_identifier: row.try_get("system_identifier")?,
            secret: (row.try_get("namespace")?, row.try_get("secret")?),
            host: row.try_get("host")?,
            port: u16::try_from(port).map_err(|error| sqlx::Error::Decode(Box::new(error)))?,
            tls: row.try_get("tls")?,
            authorities: row.try_get("authorities")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_leads_to_the_place_that_it_was_made_of() {
        let tcp = |tls: Tls| Endpoint::Tcp { host: "db".into(), port: 6, tls };
        for endpoint in
            [Endpoint::Unix { directory: "/run/pg".into(), port: 7 }, tcp(Tls::Disable), tcp(Tls::default())]
        {
            let place = ClusterPlace { system_identifier: "7".into(), endpoint };
            assert_eq!(ServerRow::of(&place, ("a", "b")).place().as_ref(), Ok(&place));
        }
    }
}
