//! `$after`: what is not ours, or not for this question, is refused, and what is ours reads back.

use std::sync::LazyLock;

use rowgate_core::cursor::{self, Binding, Position};
use rowgate_sql::rest::query_string;

use crate::sql;
use crate::tenant::Tenant;

const ORDERS: [&str; 5] =
    ["", "$orderby=n desc", "$orderby=t,f desc,u", "$orderby=mood,raw desc", "$orderby=b"];

/// `data` is tried as a cursor, and as the values of one: each with a byte before it that says how long it is.
///
/// # Panics
/// When one of these does not hold.
pub fn check(data: &[u8]) {
    static TENANT: LazyLock<Tenant> = LazyLock::new(Tenant::new);
    static BINDINGS: LazyLock<[Binding; ORDERS.len()]> = LazyLock::new(|| {
        ORDERS.map(|question| {
            let first = query_string::parse(question).and_then(|request| TENANT.read(&request));
            first.expect("a question").binding.expect("a page can follow")
        })
    });
    let (head, rest) = data.split_first().unwrap_or((&0, &[]));
    let i = usize::from(*head) % ORDERS.len();
    let (question, binding, key) = (ORDERS[i], BINDINGS[i], &TENANT.cursor_key);

    // Nobody finds 16 bytes of HMAC by chance: a text that is taken is one that we would write.
    if let Ok(text) = std::str::from_utf8(data)
        && let Ok(position) = cursor::decode(key, binding, text)
    {
        assert_eq!(cursor::encode(key, binding, &position), text);
    }

    let position = values(rest);
    let token = cursor::encode(key, binding, &position);
    if cursor::MAX_TOKEN_LEN < token.len() {
        assert!(cursor::decode(key, binding, &token).is_err());
        return;
    }
    assert_eq!(cursor::decode(key, binding, &token).as_ref(), Ok(&position));
    let at = usize::from(*head) * token.len() / 256;
    let mut changed = token.clone().into_bytes();
    changed[at] = if changed[at] == b'A' { b'_' } else { b'A' };
    let changed = String::from_utf8(changed).expect("ASCII");
    assert!(cursor::decode(key, binding, &changed).is_err(), "{changed} for {token}");
    assert!(cursor::decode(key, binding, &token[..at]).is_err(), "{at} of {token}");

    // Ours, but from a replica that held other columns for true: refused or compiled, and never a panic.
    let mut request = query_string::parse(question).expect("a question");
    request.after = Some(token);
    if let Ok(compiled) = TENANT.read(&request) {
        sql::check(&compiled);
    }
}

/// Up to twelve values; a length of 255 is NULL.
fn values(mut rest: &[u8]) -> Position {
    let mut position = Vec::new();
    while let Some((len, tail)) = rest.split_first()
        && position.len() < 12
    {
        let len = if *len == u8::MAX { None } else { Some(usize::from(*len).min(tail.len())) };
        let (value, tail) = tail.split_at(len.unwrap_or(0));
        position.push(len.map(|_| value.to_vec()));
        rest = tail;
    }
    position
}
