//! The page cursor behind `$after`: where a page ended, authenticated, and good for one question only.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use subtle::ConstantTimeEq as _;

use crate::derive::CursorKey;

const VERSION: u8 = 1;
const TAG_LEN: usize = 16;
const BINDING_LEN: usize = 16;
/// A cursor longer than this is refused before it is decoded, and none is given out: a request's head has 16 KiB.
pub const MAX_TOKEN_LEN: usize = 8 * 1024;

/// The order terms' values of the last row of a page, in PostgreSQL's own output format for each column
/// (binary where the column is read in binary), `None` for NULL.
pub type Position = Vec<Option<Vec<u8>>>;

/// What a cursor belongs to: entity, order, filter and key. Any other question gets `InvalidCursor`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Binding([u8; BINDING_LEN]);

/// The token is not ours, was changed, or belongs to another question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the cursor does not fit")]
pub struct BadCursor;

impl Binding {
    /// Binds to every part, in this order; a part's length is hashed too, so that parts cannot run together.
    #[must_use]
    pub fn new(key: &CursorKey, parts: &[&str]) -> Binding {
        let mut text = Vec::new();
        for part in parts {
            text.extend_from_slice(&(part.len() as u64).to_be_bytes());
            text.extend_from_slice(part.as_bytes());
        }
        Binding(key.tag(&text)[..BINDING_LEN].try_into().expect("16 of 32 bytes"))
    }
}

/// The token for `position`: URL-safe base 64 of version, values and tag.
#[must_use]
pub fn encode(key: &CursorKey, binding: Binding, position: &[Option<Vec<u8>>]) -> String {
    let mut payload = vec![VERSION];
    for value in position {
        match value {
            None => payload.extend_from_slice(&u32::MAX.to_be_bytes()),
            Some(bytes) => {
                payload.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
                payload.extend_from_slice(bytes);
            }
        }
    }
    let tag = tag(key, binding, &payload);
    payload.extend_from_slice(&tag);
    URL_SAFE_NO_PAD.encode(payload)
}

/// The position in `token`, if it was made with the same key for the same question.
pub fn decode(key: &CursorKey, binding: Binding, token: &str) -> Result<Position, BadCursor> {
    if MAX_TOKEN_LEN < token.len() {
        return Err(BadCursor);
    }
    let bytes = URL_SAFE_NO_PAD.decode(token).map_err(|_| BadCursor)?;
    let split = bytes.len().checked_sub(TAG_LEN).ok_or(BadCursor)?;
    let (payload, given) = bytes.split_at(split);
    if !bool::from(tag(key, binding, payload)[..].ct_eq(given)) {
        return Err(BadCursor);
    }
    let [VERSION, rest @ ..] = payload else { return Err(BadCursor) };
    values(rest).ok_or(BadCursor)
}

fn values(mut rest: &[u8]) -> Option<Position> {
    let mut position = Vec::new();
    while !rest.is_empty() {
        let (head, tail) = rest.split_first_chunk::<4>()?;
        let len = u32::from_be_bytes(*head);
        rest = tail;
        if len == u32::MAX {
            position.push(None);
            continue;
        }
        let (value, tail) = rest.split_at_checked(len as usize)?;
        position.push(Some(value.to_vec()));
        rest = tail;
    }
    Some(position)
}

fn tag(key: &CursorKey, binding: Binding, payload: &[u8]) -> [u8; TAG_LEN] {
    let mut text = binding.0.to_vec();
    text.extend_from_slice(payload);
    key.tag(&text)[..TAG_LEN].try_into().expect("16 of 32 bytes")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::derive::Root;

    #[test]
    fn a_cursor_reads_back_and_fits_nothing_else() {
        let key = Root::new([1; 32]).cursor_key();
        let binding = Binding::new(&key, &["orders", "id", "", "k1"]);
        let position = vec![None, Some(vec![]), Some(b"x\0y".to_vec())];
        let token = encode(&key, binding, &position);
        assert_eq!(decode(&key, binding, &token), Ok(position.clone()));
        assert_eq!(decode(&key, Binding::new(&key, &["orders", "id", "", "k2"]), &token), Err(BadCursor));
        assert_eq!(decode(&key, Binding::new(&key, &["order", "sid", "", "k1"]), &token), Err(BadCursor));
        assert_eq!(decode(&Root::new([2; 32]).cursor_key(), binding, &token), Err(BadCursor));
        for i in 0..token.len() {
            let mut wrong = token.clone().into_bytes();
            wrong[i] = if wrong[i] == b'A' { b'B' } else { b'A' };
            let wrong = String::from_utf8(wrong).expect("ASCII");
            assert_ne!(decode(&key, binding, &wrong), Ok(position.clone()), "{wrong}");
        }
        for wrong in ["", "A", "====", &token[1..], &"A".repeat(MAX_TOKEN_LEN + 1)] {
            assert_eq!(decode(&key, binding, wrong), Err(BadCursor));
        }
    }
}
