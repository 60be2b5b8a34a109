//! Query strings: any text is answered, and the next page asks the same question with another cursor.

use std::sync::LazyLock;

use rowgate_sql::request::ReadRequest;
use rowgate_sql::rest::query_string;

use crate::sql;
use crate::tenant::Tenant;

/// `data` is what stands after `?`.
///
/// # Panics
/// When one of these does not hold.
pub fn check(data: &[u8]) {
    static TENANT: LazyLock<Tenant> = LazyLock::new(Tenant::new);
    let text = String::from_utf8_lossy(data);
    let Ok(request) = query_string::parse(&text) else { return };
    let kept: Vec<_> = query_string::without_cursor(&text).chain(["$after=A-_z"]).collect();
    let next = kept.join("&");
    let expected = ReadRequest { after: Some("A-_z".to_owned()), ..request.clone() };
    assert_eq!(query_string::parse(&next).as_ref(), Ok(&expected), "{next:?} after {text:?}");
    if let Ok(compiled) = TENANT.read(&request) {
        sql::check(&compiled);
    }
}
