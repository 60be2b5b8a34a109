//! A plan as the status of its Tenant shows it: statements in order, without verifiers of passwords, as many as a status holds.

use std::fmt::Write as _;

use rowgate_core::name::Ulid;
use rowgate_core::role::TenantLogin;
use rowgate_pg::introspect::actual::{Cluster, TenantDb};
use rowgate_sql::text::Sql;

use super::accept::qname;
use super::{As, Op, Outcome};
use crate::desired::Desired;

/// A status is read whole by everything that watches it.
const MAX_STATEMENTS: usize = 500;
/// Of all statements.
const MAX_BYTES: usize = 64 * 1024;
const MAX_STATEMENT_BYTES: usize = 4 * 1024;
const MAX_REMARKS: usize = 100;
const MAX_REMARK_BYTES: usize = 1024;

/// How a SCRAM verifier begins, which lets passwords be tried against it.
const VERIFIER: &str = "SCRAM-SHA-256$";
/// What stands in its place.
pub(crate) const HIDDEN: &str = "(hidden)";

/// What `status.plan` is made of.
#[derive(Debug, Default)]
pub(crate) struct Shown {
    /// What is to be known before the statements run.
    pub(crate) remarks: Vec<String>,
    pub(crate) ops: Vec<Op>,
    /// What is planned only when they have run.
    pub(crate) later: Vec<String>,
}

impl Shown {
    pub(crate) fn n_statements(&self) -> usize {
        self.ops.iter().map(|op| op.statements.len()).sum()
    }

    /// A line for each, remarks as comments of SQL. What is beyond the bounds is counted.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> = self.remarks.iter().take(MAX_REMARKS).map(|it| comment(it)).collect();
        let n_more = self.remarks.len().saturating_sub(MAX_REMARKS);
        lines.extend((0 < n_more).then(|| comment(&format!("{n_more} more remarks are left out"))));
        let (mut n_shown, mut n_bytes, mut n_left) = (0, 0, 0_usize);
        for op in &self.ops {
            let mut about = Some(comment(&format!("as {}: {}", login(op.login), op.about)));
            for statement in &op.statements {
                let text = line(&statement.sql);
                let n_new = text.len() + about.as_ref().map_or(0, String::len);
                // a short one behind one that is left out would stand out of its order
                if 0 < n_left || n_shown == MAX_STATEMENTS || MAX_BYTES < n_bytes + n_new {
                    n_left += 1;
                    continue;
                }
                lines.extend(about.take());
                lines.push(text);
                n_shown += 1;
                n_bytes += n_new;
            }
        }
        let left = || comment(&format!("{n_left} more statements are left out: a status holds no more"));
        lines.extend((0 < n_left).then(left));
        lines.extend(self.later.iter().map(|it| comment(it)));
        lines
    }
}

/// The roles as they are once the login roles are made, which the plan for the inside of a database counts on.
pub(crate) fn with_logins(mut cluster: Cluster, tenant: &Ulid) -> Cluster {
    for login in TenantLogin::ALL.into_iter().filter(|login| *login != TenantLogin::Migrations) {
        cluster.roles.entry(login.role(tenant)).or_default();
    }
    cluster
}

/// The tables whose row-level security the plan enables, by oid.
pub(crate) fn enabled(desired: &Desired, db: &TenantDb, outcome: &Outcome) -> Vec<u32> {
    let served = desired.entities.iter().filter(|spec| outcome.entities.contains(&spec.name));
    let relations = served.filter_map(|spec| db.relations.get(&qname(spec)));
    relations.filter(|relation| !relation.rls_enabled).map(|relation| relation.oid).collect()
}

fn login(login: As) -> &'static str {
    match login {
        As::Operator => "Rowgate's login",
        As::Owner => "the owner of the tables",
        As::Records => "the owner of schema dl",
        As::Keys => "the login that makes roles of keys",
    }
}

fn comment(text: &str) -> String {
    format!("-- {}", cut(&text.replace('\n', " "), MAX_REMARK_BYTES))
}

/// The statement with its values behind it.
fn line(sql: &Sql) -> String {
    let mut text = format!("{};", hidden(sql.as_str()));
    for (i, bind) in sql.binds().iter().enumerate() {
        let value = bind.value.as_deref().map(String::from_utf8_lossy);
        let value = hidden(value.as_deref().unwrap_or("null")).replace('\n', " ");
        let before = if i == 0 { " --" } else { "," };
        write!(text, "{before} ${} = {value}", i + 1).expect("a String takes it");
    }
    cut(&text, MAX_STATEMENT_BYTES)
}

/// The text without verifiers.
fn hidden(text: &str) -> String {
    let mut parts = text.split(VERIFIER);
    let mut shown = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        shown.push_str(HIDDEN);
        let end = part.find(|c: char| c == '\'' || c == '"' || c.is_whitespace());
        shown.push_str(end.map_or("", |end| &part[end..]));
    }
    shown
}

fn cut(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let end = (0..=max).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
    format!("{} ...", &text[..end])
}

#[cfg(test)]
mod tests;
