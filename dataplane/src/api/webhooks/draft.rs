//! What a caller writes of a subscription: all of it when it is made, a part of it when it is changed.

use axum::http::{HeaderName, HeaderValue};
use rowgate_core::problem::Problem;
use rowgate_pg::tenant::subscriptions::Spec;
use serde_json::{Map, Value};

use super::body::{Members, bad, invalid};
use crate::api::events::request::OPS;

const MEMBERS: [&str; 8] = ["name", "url", "filter", "payloadQuery", "batch", "retry", "headers", "suspend"];
const MAX_NAME: usize = 100;
const MAX_TABLES: usize = 1000;
const MAX_PAYLOAD_QUERY: usize = 16 << 10;
const MAX_HEADERS: usize = 20;
const MAX_HEADER_NAME: usize = 100;
const MAX_HEADER_VALUE: usize = 1024;
/// Headers that we or HTTP write.
const RESERVED: [&str; 17] = [
    "accept-encoding",
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "date",
    "expect",
    "host",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "user-agent",
];

/// What is given; what is not stays as it is.
pub(super) struct Draft {
    name: Option<String>,
    pub(super) url: Option<String>,
    /// `Some(None)`: all that the key may read.
    pub(super) tables: Option<Option<Vec<String>>>,
    /// As stored.
    pub(super) ops: Option<Vec<String>>,
    /// `Some(None)`: none.
    pub(super) payload_query: Option<Option<String>>,
    headers: Option<String>,
    max_events: Option<i32>,
    max_bytes: Option<i32>,
    max_attempts: Option<i32>,
    initial_seconds: Option<i32>,
    max_seconds: Option<i32>,
    disable_on_gone: Option<bool>,
    pub(super) suspend: Option<bool>,
}

impl Draft {
    pub(super) fn parse(bytes: &[u8]) -> Result<Draft, Problem> {
        let mut body = Members::read(Some(bytes), &MEMBERS)?;
        let name = body.text("name")?;
        if let Some(name) = &name {
            let n = name.chars().count();
            if n == 0 || MAX_NAME < n || name.chars().any(char::is_control) {
                return Err(invalid(format!(
                    "name is a text of 1 to {MAX_NAME} characters, none of them a control character"
                )));
            }
        }
        let mut filter = body.object("filter", &["tables", "ops"])?;
        let (tables, ops) = match &mut filter {
            None => (None, None),
            Some(filter) => (filter.texts_or_null("tables")?, filter.texts_or_null("ops")?),
        };
        if let Some(Some(tables)) = &tables {
            checked_tables(tables)?;
        }
        let (mut batch, mut retry) = (
            body.object("batch", &["maxEvents", "maxBytes"])?,
            body.object("retry", &["maxAttempts", "initialDelay", "maxDelay", "disableOnGone"])?,
        );
        let of = |members: &mut Option<Members>, name: &str, least, most| match members {
            None => Ok(None),
            Some(members) => members.number(name, least, most),
        };
        Ok(Draft {
            name,
            url: body.text("url")?,
            tables,
            ops: ops.map(stored).transpose()?,
            payload_query: body.text_or_null("payloadQuery")?.map(written).map(short).transpose()?,
            headers: body.map("headers")?.map(headers).transpose()?,
            max_events: of(&mut batch, "maxEvents", 1, 100)?,
            max_bytes: of(&mut batch, "maxBytes", 1 << 10, 256 << 10)?,
            max_attempts: of(&mut retry, "maxAttempts", 1, 20)?,
            initial_seconds: of(&mut retry, "initialDelay", 1, 3600)?,
            max_seconds: of(&mut retry, "maxDelay", 1, 86_400)?,
            disable_on_gone: retry.as_mut().map_or(Ok(None), |retry| retry.flag("disableOnGone"))?,
            suspend: body.flag("suspend")?,
        })
    }

    /// A new subscription of it.
    pub(super) fn made(&self) -> Result<Spec, Problem> {
        let missing = |name: &str, example: &str| {
            bad(format!("{name} is missing; send such as \"{name}\": \"{example}\""))
        };
        let name = self.name.clone().ok_or_else(|| missing("name", "orders"))?;
        let url = self.url.clone().ok_or_else(|| missing("url", "https://example.com/hooks"))?;
        self.changed(Spec {
            name,
            url,
            tables: None,
            ops: ["i", "u", "d"].map(str::to_owned).to_vec(),
            payload_query: None,
            headers: "{}".to_owned(),
            max_events: 100,
            max_bytes: 256 << 10,
            max_attempts: 10,
            initial_seconds: 5,
            max_seconds: 3600,
            disable_on_gone: false,
            suspend: false,
        })
    }

    /// What a subscription becomes with it.
    pub(super) fn changed(&self, old: Spec) -> Result<Spec, Problem> {
        let spec = Spec {
            name: self.name.clone().unwrap_or(old.name),
            url: self.url.clone().unwrap_or(old.url),
            tables: self.tables.clone().unwrap_or(old.tables),
            ops: self.ops.clone().unwrap_or(old.ops),
            payload_query: self.payload_query.clone().unwrap_or(old.payload_query),
            headers: self.headers.clone().unwrap_or(old.headers),
            max_events: self.max_events.unwrap_or(old.max_events),
            max_bytes: self.max_bytes.unwrap_or(old.max_bytes),
            max_attempts: self.max_attempts.unwrap_or(old.max_attempts),
            initial_seconds: self.initial_seconds.unwrap_or(old.initial_seconds),
            max_seconds: self.max_seconds.unwrap_or(old.max_seconds),
            disable_on_gone: self.disable_on_gone.unwrap_or(old.disable_on_gone),
            suspend: self.suspend.unwrap_or(old.suspend),
        };
        match spec.initial_seconds <= spec.max_seconds {
            true => Ok(spec),
            false => Err(invalid(
                "retry.initialDelay is longer than retry.maxDelay; make initialDelay shorter or maxDelay longer",
            )),
        }
    }

    /// Whether what it is sent may be other events than before.
    pub(super) fn names_events(&self) -> bool {
        self.tables.is_some() || self.ops.is_some()
    }
}

fn checked_tables(tables: &[String]) -> Result<(), Problem> {
    match tables {
        [] => {
            Err(bad("filter.tables names no table; leave it out for all whose events the API key may read"))
        }
        tables if MAX_TABLES < tables.len() => {
            Err(invalid(format!("filter.tables names more than {MAX_TABLES} tables")))
        }
        tables => match tables.iter().find(|table| table.contains(',')) {
            Some(table) => Err(bad(format!(
                "filter.tables: {table:?} holds a comma; write each table as a text of its own"
            ))),
            None => Ok(()),
        },
    }
}

fn stored(ops: Option<Vec<String>>) -> Result<Vec<String>, Problem> {
    let Some(ops) = ops else { return Ok(["i", "u", "d"].map(str::to_owned).to_vec()) };
    if ops.is_empty() {
        return Err(bad("filter.ops names no op; leave it out for insert, update and delete"));
    }
    let mut stored: Vec<String> = Vec::new();
    for op in ops {
        let Some((_, short)) = OPS.iter().find(|(name, _)| *name == op) else {
            return Err(bad(format!(
                "filter.ops: {op:?} is not an op; name some of insert, update, delete and truncate"
            )));
        };
        if stored.iter().any(|it| it == short) {
            return Err(bad(format!("filter.ops names {op} twice; name it once")));
        }
        stored.push((*short).to_owned());
    }
    Ok(stored)
}

/// A blank one is none.
fn written(query: Option<String>) -> Option<String> {
    query.filter(|query| !query.trim().is_empty())
}

fn short(query: Option<String>) -> Result<Option<String>, Problem> {
    match query.as_ref().is_some_and(|query| MAX_PAYLOAD_QUERY < query.len()) {
        true => Err(invalid("payloadQuery is longer than 16 KiB")),
        false => Ok(query),
    }
}

fn headers(members: Map<String, Value>) -> Result<String, Problem> {
    if MAX_HEADERS < members.len() {
        return Err(invalid(format!("headers has more than {MAX_HEADERS} members")));
    }
    let mut seen: Vec<HeaderName> = Vec::new();
    for (name, value) in &members {
        let Some(header) = HeaderName::try_from(name).ok().filter(|_| name.len() <= MAX_HEADER_NAME) else {
            return Err(invalid(format!("headers: {name:?} is not the name of a header")));
        };
        let text = header.as_str();
        let is_ours = text.starts_with("rowgate-") || text.starts_with("webhook-");
        if is_ours || RESERVED.contains(&text) {
            return Err(invalid(format!("headers: {name} is set by Rowgate or by HTTP; leave it out")));
        }
        if seen.contains(&header) {
            return Err(bad(format!("headers names {name} twice, in other letters; name it once")));
        }
        let Value::String(value) = value else {
            return Err(bad(format!("headers: the value of {name} is a text in quotes")));
        };
        let is_ascii = value.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        if !is_ascii || MAX_HEADER_VALUE < value.len() || HeaderValue::from_str(value).is_err() {
            return Err(invalid(format!(
                "headers: the value of {name} is at most {MAX_HEADER_VALUE} characters of printable ASCII"
            )));
        }
        seen.push(header);
    }
    Ok(Value::Object(members).to_string())
}
