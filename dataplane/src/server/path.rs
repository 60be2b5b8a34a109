//! Paths, percent-decoded exactly once and after they were split, so that `%2F` stays inside its part.

use rowgate_core::percent::{self, BadEncoding};
use rowgate_core::problem::{Code, Problem};

/// One part, decoded once. Broken escapes, bytes that are no UTF-8 and NUL are refused.
pub fn decode(part: &str) -> Result<String, Problem> {
    let refuse = |why: &str| Err(Problem::new(Code::BadRequest, format!("a part of the path {why}")));
    match percent::decode(part) {
        Err(BadEncoding::Escape) => refuse("holds a % without two hexadecimal digits; write % itself as %25"),
        Err(BadEncoding::NotUtf8) => refuse("is not UTF-8 after percent-decoding"),
        Ok(text) if text.contains('\0') => refuse("holds a NUL character"),
        Ok(text) => Ok(text.into_owned()),
    }
}

/// The path without the slash at its end, where that ends nothing: `/auth/shop/api/orders/`, `.../orders/id/7/`. `None`: there
/// is none, or it stands before an empty value of a key, as in `.../labels/name/`.
pub fn without_slash(path: &str) -> Option<&str> {
    let shorter = path.strip_suffix('/').filter(|shorter| !shorter.is_empty())?;
    let parts: Vec<&str> = path.split('/').collect();
    let is_of_rows = parts.len() > 5 && parts[1] == "auth" && parts[3] == "api";
    (!is_of_rows || parts[5..].len() % 2 == 1).then_some(shorter)
}

/// `pk/value/pk2/value2` as pairs.
pub fn key_pairs(parts: Vec<String>) -> Result<Vec<(String, String)>, Problem> {
    if !parts.len().is_multiple_of(2) {
        return Err(Problem::new(
            Code::BadRequest,
            "a row's path is /{entity}/{key field}/{value}, with a further pair for each further key field",
        ));
    }
    let mut parts = parts.into_iter();
    Ok(std::iter::from_fn(|| Some((parts.next()?, parts.next()?))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_is_decoded_once() {
        assert_eq!(decode("a%2Fb").expect("good"), "a/b");
        assert_eq!(decode("100%2525").expect("good"), "100%25");
        assert_eq!(decode("a+b%20c").expect("good"), "a+b c");
        assert_eq!(decode("%C3%A4").expect("good"), "ä");
    }

    #[test]
    fn broken_escapes_other_encodings_and_nul_are_refused() {
        for wrong in ["%", "%2", "%zz", "a%", "%%20", "%ff", "%C3", "%00"] {
            assert_eq!(decode(wrong).expect_err(wrong).code, Code::BadRequest);
        }
    }

    #[test]
    fn a_slash_at_the_end_is_none_but_before_an_empty_value() {
        for (path, shorter) in [
            ("/", None),
            ("/auth/shop/api", None),
            ("/auth/shop/api/", Some("/auth/shop/api")),
            ("/auth/shop/api/orders/", Some("/auth/shop/api/orders")),
            ("/auth/shop/api/orders/id/", None),
            ("/auth/shop/api/orders/id/7", None),
            ("/auth/shop/api/orders/id/7/", Some("/auth/shop/api/orders/id/7")),
            ("/auth/shop/api/labels/language/en/name/", None),
            ("/auth/shop/api/labels/language/en/name//", Some("/auth/shop/api/labels/language/en/name/")),
            ("/api/auth/apikeys/exchange/", Some("/api/auth/apikeys/exchange")),
        ] {
            assert_eq!(without_slash(path), shorter, "{path}");
        }
    }

    #[test]
    fn a_key_path_is_pairs() {
        let parts = |texts: &[&str]| texts.iter().map(ToString::to_string).collect();
        assert_eq!(key_pairs(parts(&["id", "7"])).expect("a pair"), [("id".into(), "7".into())]);
        assert!(key_pairs(parts(&["7"])).is_err());
        assert!(key_pairs(parts(&["id", "7", ""])).is_err());
    }
}
