//! Why no connection can be opened as a login: a stable word of ours, the route it was tried on, and what else helps whoever
//! has to change something. It is written into the control database and shown in a status, so it holds no secret and is short.

use std::fmt;
use std::net::IpAddr;

use crate::connect::login::Endpoint;
use crate::connect::tls;
use crate::failure::PgError;

/// As much as is kept of what was said, in characters.
const MAX_DETAIL: usize = 300;

/// The roles that are ours, as pg_hba.conf spells them: who made do without a password here goes on doing so.
const ROLES: &str = "\"/^(rowgate_|key_|t[0-9a-z]{26}_)\"";

/// A login that failed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LoginFailure {
    pub cause: LoginCause,
    pub route: Route,
    /// One line, bounded: our own words, or the first of PostgreSQL's.
    pub detail: String,
}

macro_rules! causes {
    ($($(#[$doc:meta])* $name:ident $word:literal,)+) => {
        /// What kept the login out. The words are stored, so they are added and never renamed.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum LoginCause { $($(#[$doc])* $name,)+ }

        impl LoginCause {
            pub const ALL: &[LoginCause] = &[$(LoginCause::$name,)+];

            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(LoginCause::$name => $word,)+ }
            }
        }
    };
}

causes! {
    /// The server asks for no password (`trust`), so nothing proves that it is ours.
    NoPassword "no_password",
    ClearText "clear_text",
    Md5 "md5",
    /// GSSAPI, SSPI, OAuth.
    OtherMethod "other_method",
    /// `cert`, or `clientcert` beside another method.
    Certificate "certificate",
    /// No line of pg_hba.conf, a line that rejects, or one whose method failed.
    Rejected "rejected",
    WrongPassword "wrong_password",
    /// The server could not prove that it knows the password's verifier.
    Unproven "unproven",
    Tls "tls",
    TooManyConnections "too_many_connections",
    Unreachable "unreachable",
    TimedOut "timed_out",
    /// Any other answer to the greeting.
    Refused "refused",
}

/// How the server was asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Route {
    Socket,
    /// From this address of ours, where it is known.
    Tcp(Option<IpAddr>),
    Tls(Option<IpAddr>),
    Pooler,
}

impl LoginFailure {
    pub(crate) fn new(cause: LoginCause, route: Route, said: &str) -> LoginFailure {
        LoginFailure { cause, route, detail: bounded(said) }
    }

    /// Reads what [`LoginFailure`] displays, whichever version wrote it.
    #[must_use]
    pub fn parse(text: &str) -> LoginFailure {
        let mut parts = text.splitn(3, ' ');
        let mut next = || parts.next().unwrap_or_default();
        let (cause, route, detail) = (next(), next(), next());
        let cause = LoginCause::ALL.iter().find(|it| it.as_str() == cause);
        LoginFailure::new(cause.copied().unwrap_or(LoginCause::Refused), Route::parse(route), detail)
    }

    /// Of an exchange outside the hot path. `None`: a connection was there.
    #[must_use]
    pub fn of(error: &PgError, endpoint: &Endpoint) -> Option<LoginFailure> {
        use sqlx::Error as Sqlx;
        let cause = match error {
            PgError::Sqlstate { code, message, source } => {
                let routine = match source {
                    Sqlx::Database(said) => said
                        .try_downcast_ref::<sqlx::postgres::PgDatabaseError>()
                        .and_then(|said| said.routine())
                        .unwrap_or_default(),
                    _ => "",
                };
                LoginCause::of_server(code, routine, message).filter(|_| code.starts_with("28"))?
            }
            PgError::Unavailable { source: Some(Sqlx::Database(said)), .. } => {
                let code = said.code().unwrap_or_default();
                LoginCause::of_server(&code, "", said.message()).unwrap_or(LoginCause::Refused)
            }
            PgError::Unavailable { source: Some(Sqlx::Tls(_)), .. } => LoginCause::Tls,
            PgError::Unavailable { source: Some(Sqlx::Io(error)), .. } if tls::explain(error).is_some() => {
                LoginCause::Tls
            }
            PgError::Unavailable { source: Some(Sqlx::Io(_)), .. } => LoginCause::Unreachable,
            PgError::Unavailable { source: Some(Sqlx::PoolTimedOut) | None, .. } => LoginCause::TimedOut,
            PgError::Unavailable { .. } => LoginCause::Refused,
            PgError::Unexpected { .. }
            | PgError::Beyond { .. }
            | PgError::Replaced
            | PgError::Fenced { .. } => return None,
        };
        Some(LoginFailure::new(cause, Route::of(endpoint), &error.to_string()))
    }

    /// Whether somebody has to change something before it works.
    #[must_use]
    pub fn needs_a_change(&self) -> bool {
        use LoginCause as Cause;
        match self.cause {
            Cause::NoPassword
            | Cause::ClearText
            | Cause::Md5
            | Cause::OtherMethod
            | Cause::Certificate
            | Cause::Rejected
            | Cause::Unproven
            | Cause::Tls => true,
            // PostgreSQL's own passwords are derived, and the operator sets them again
            Cause::WrongPassword => self.route == Route::Pooler,
            Cause::TooManyConnections | Cause::Unreachable | Cause::TimedOut | Cause::Refused => false,
        }
    }

    /// What happened, and what to change: two parts of a sentence for a status or a terminal.
    #[must_use]
    pub fn sentence(&self) -> String {
        let server = if self.route == Route::Pooler { "the pooler" } else { "PostgreSQL" };
        let what = match self.cause {
            LoginCause::NoPassword => format!("{server} asks for no password (trust)"),
            LoginCause::ClearText => format!("{server} asks for the password in clear text (password)"),
            LoginCause::Md5 => format!("{server} asks for an MD5 password (md5)"),
            LoginCause::Certificate => format!("{server} asks for a client certificate (cert or clientcert)"),
            _ => self.detail.clone(),
        };
        match self.remedy() {
            Some(remedy) => format!("{what}; {remedy}"),
            None => what,
        }
    }

    /// `None`: it may pass by itself, or the detail says it.
    fn remedy(&self) -> Option<String> {
        use LoginCause as Cause;
        Some(match (self.cause, self.route) {
            (Cause::WrongPassword, Route::Pooler) => {
                "set auth_user and auth_query in pgbouncer.ini, so that PgBouncer asks PostgreSQL for the password of each role, and reload PgBouncer".to_owned()
            }
            (Cause::NoPassword | Cause::ClearText | Cause::Md5 | Cause::OtherMethod | Cause::Certificate, Route::Pooler) => {
                "set auth_type = scram-sha-256 in pgbouncer.ini, and reload PgBouncer".to_owned()
            }
            (
                Cause::NoPassword
                | Cause::ClearText
                | Cause::Md5
                | Cause::OtherMethod
                | Cause::Certificate
                | Cause::Rejected,
                route,
            ) => format!(
                "put the line `{}` before all others in pg_hba.conf, and run `select pg_reload_conf()`",
                route.line()
            ),
            (Cause::Unproven, _) => "name the PostgreSQL of this installation in --control and --pooler".to_owned(),
            (Cause::TooManyConnections, Route::Pooler) => {
                "raise max_client_conn of PgBouncer, or let clients end their connections".to_owned()
            }
            (Cause::TooManyConnections, _) => {
                "raise max_connections of PostgreSQL, or end sessions that are not needed (pg_stat_activity)".to_owned()
            }
            (Cause::Unreachable | Cause::TimedOut, _) => {
                "check that the address is right and that no firewall or NetworkPolicy blocks it".to_owned()
            }
            (Cause::WrongPassword | Cause::Tls | Cause::Refused, _) => return None,
        })
    }
}

impl LoginCause {
    /// What an error before the greeting means. Only its text tells a certificate that is missing from a line that is.
    pub(crate) fn of_server(sqlstate: &str, routine: &str, message: &str) -> Option<LoginCause> {
        // a role that may not log in is the operator's to mend
        let is_role = routine == "InitializeSessionUserId";
        Some(match sqlstate {
            "28P01" => LoginCause::WrongPassword,
            "28000" if message.contains("client certificate") => LoginCause::Certificate,
            "28000" if message.contains("channel binding") => LoginCause::Unproven,
            "28000" if !is_role => LoginCause::Rejected,
            "53300" => LoginCause::TooManyConnections,
            // PgBouncer's code for all that it does not like
            "08P01"
                if ["authentication failed", "no such user", "no authentication"]
                    .iter()
                    .any(|it| message.contains(it)) =>
            {
                LoginCause::WrongPassword
            }
            "08P01" if message.contains("no more connections allowed") => LoginCause::TooManyConnections,
            _ => return None,
        })
    }
}

impl Route {
    pub(crate) fn of(endpoint: &Endpoint) -> Route {
        match endpoint {
            Endpoint::Unix { .. } => Route::Socket,
            Endpoint::Tcp { tls: tls::Tls::Disable, .. } => Route::Tcp(None),
            Endpoint::Tcp { .. } => Route::Tls(None),
        }
    }

    /// The line of pg_hba.conf that lets our logins in this way, and changes nothing for anybody else.
    fn line(self) -> String {
        let from = |ip: Option<IpAddr>| match ip {
            Some(ip) => format!("{ip}/{}", if ip.is_ipv4() { 32 } else { 128 }),
            None => "all".to_owned(),
        };
        match self {
            Route::Socket => format!("local all {ROLES} scram-sha-256"),
            Route::Pooler => format!("host all {ROLES} all scram-sha-256"),
            Route::Tcp(ip) => format!("host all {ROLES} {} scram-sha-256", from(ip)),
            Route::Tls(ip) => format!("hostssl all {ROLES} {} scram-sha-256", from(ip)),
        }
    }

    fn parse(text: &str) -> Route {
        let (kind, ip) = text.split_once('=').unwrap_or((text, ""));
        match kind {
            "pooler" => Route::Pooler,
            "tcp" => Route::Tcp(ip.parse().ok()),
            "tls" => Route::Tls(ip.parse().ok()),
            _ => Route::Socket,
        }
    }
}

/// As it is stored.
impl fmt::Display for LoginFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.cause.as_str(), self.route, self.detail)
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Route::Socket => f.write_str("socket"),
            Route::Pooler => f.write_str("pooler"),
            Route::Tcp(None) => f.write_str("tcp"),
            Route::Tls(None) => f.write_str("tls"),
            Route::Tcp(Some(ip)) => write!(f, "tcp={ip}"),
            Route::Tls(Some(ip)) => write!(f, "tls={ip}"),
        }
    }
}

/// One line of readable characters, cut where it is long.
fn bounded(said: &str) -> String {
    let one_line = said.chars().map(|c| if c.is_control() { ' ' } else { c });
    one_line.take(MAX_DETAIL).collect::<String>().trim().to_owned()
}

#[cfg(test)]
mod tests;
