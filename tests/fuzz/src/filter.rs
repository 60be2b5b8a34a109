//! `$filter`: any text is answered, what was read has one canonical form, and no text of a stranger becomes SQL.

use std::sync::LazyLock;

use rowgate_core::problem::Problem;
use rowgate_sql::request::ReadRequest;
use rowgate_sql::rest::filter::MAX_FILTER_LEN;
use rowgate_sql::rest::query_string;

use crate::sql;
use crate::tenant::Tenant;

/// `data` is the filter as a client means it, before it is encoded.
///
/// # Panics
/// When one of these does not hold.
pub fn check(data: &[u8]) {
    static TENANT: LazyLock<Tenant> = LazyLock::new(Tenant::new);
    let Ok(request) = parse(data) else { return };
    let filter = request.filter.as_ref().expect("it was given");
    let printed = filter.to_string();
    if printed.len() <= MAX_FILTER_LEN {
        let again = parse(printed.as_bytes()).unwrap_or_else(|problem| panic!("{printed}: {problem:?}"));
        let again = again.filter.expect("it was given");
        assert!(again == *filter, "{printed} was {filter:?} and is {again:?}");
        assert_eq!(again.to_string(), printed);
    }
    if let Ok(compiled) = TENANT.read(&request) {
        sql::check(&compiled);
    }
}

fn parse(filter: &[u8]) -> Result<ReadRequest, Problem> {
    let mut query = "$filter=".to_owned();
    for byte in filter {
        query.push_str(&format!("%{byte:02x}"));
    }
    query_string::parse(&query)
}
