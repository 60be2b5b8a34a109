//! Entity tags of rows that keep their version, and 304 to who has the row as it is.
//!
//! Nothing is answered from memory: the key was checked and the row was read before a 304, in the statement that a 200
//! needs too. What is saved is the body.

use axum::body::Body;
use axum::http::header::{CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, ETAG, IF_MATCH, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode};
use axum::response::Response;
use rowgate_core::entity_tag::{Basis, EntityTag, Tag, Tags};
use rowgate_core::problem::{Code, Problem};
use rowgate_sql::resolve::Precondition;

use crate::execute::row_version::RowVersion;

/// What a client says that it has of what it asks for; what is no list of tags says nothing.
pub fn if_none_match(method: &Method, headers: &HeaderMap) -> Option<Tags> {
    let is_read = method == Method::GET || method == Method::HEAD;
    let lines = headers.get_all(IF_NONE_MATCH).iter().map(HeaderValue::as_bytes);
    (is_read && headers.contains_key(IF_NONE_MATCH)).then(|| Tags::parse(lines).ok()).flatten()
}

/// Gives a tagged answer its `ETag`, after it was encoded, and takes the body away from who has it.
pub fn finish(mut response: Response, if_none_match: Option<&Tags>) -> Response {
    let (row, contents) = (response.extensions_mut().remove(), response.extensions_mut().remove::<Basis>());
    let encoding = response.headers().get(CONTENT_ENCODING).and_then(|it| it.to_str().ok());
    let tag = match (row, contents) {
        (Some(RowVersion { version, basis }), _) => {
            EntityTag::new(version, &basis, encoding.unwrap_or_default())
        }
        (None, Some(basis)) => EntityTag::of_contents(&basis, encoding.unwrap_or_default()),
        (None, None) => return response,
    };
    if response.status() == StatusCode::OK
        && if_none_match.is_some_and(|if_none_match| if_none_match.hold(&tag))
    {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
        *response.body_mut() = Body::empty();
        for name in [CONTENT_TYPE, CONTENT_LENGTH, CONTENT_ENCODING] {
            response.headers_mut().remove(name);
        }
    }
    let tag = HeaderValue::try_from(tag.as_str()).expect("a tag is hexadecimal digits");
    response.headers_mut().insert(ETAG, tag);
    response
}

/// What `If-Match` and `If-None-Match` ask of the row that is to be written.
///
/// A weak tag never matches (RFC 9110, 13.1.1), nor does one that is not ours; of ours the version counts, see
/// [`rowgate_core::entity_tag`].
pub fn precondition(headers: &HeaderMap) -> Result<Precondition, Problem> {
    let tags = |name| {
        let lines = headers.get_all(&name).iter().map(HeaderValue::as_bytes);
        let refused = |no_tags| Problem::new(Code::BadRequest, format!("{name} is not valid: {no_tags}"));
        headers.contains_key(&name).then(|| Tags::parse(lines).map_err(refused)).transpose()
    };
    match (tags(IF_MATCH)?, tags(IF_NONE_MATCH)?) {
        (None, None) => Ok(Precondition::Either),
        (Some(Tags::Any), None) => Ok(Precondition::Present),
        (Some(Tags::List(list)), None) => {
            Ok(Precondition::Tagged(list.iter().filter_map(Tag::version).collect()))
        }
        (None, Some(Tags::Any)) => Ok(Precondition::Absent),
        (None, Some(Tags::List(_))) => Err(Problem::new(
            Code::BadRequest,
            "a write accepts only * in If-None-Match, which requires a new row; to change a row, send its version in If-Match",
        )),
        (Some(_), Some(_)) => Err(Problem::new(
            Code::BadRequest,
            "the request holds both If-Match and If-None-Match; send one of them",
        )),
    }
}

#[cfg(test)]
mod tests {
    use rowgate_core::entity_tag::{Basis, Version};

    use super::*;

    fn headers(list: &[(&'static str, &'static str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in list {
            headers.append(*name, HeaderValue::from_static(value));
        }
        headers
    }

    fn answer(encoding: Option<&'static str>) -> Response {
        let mut response = Response::new(Body::from("{}"));
        response.extensions_mut().insert(RowVersion { version: Version(1), basis: Basis::new([&b"x"[..]]) });
        for (name, value) in
            encoding.map(|it| (CONTENT_ENCODING, it)).into_iter().chain([(CONTENT_TYPE, "x")])
        {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        response
    }

    #[test]
    fn who_has_the_row_gets_no_body_and_another_encoding_is_another_row() {
        let tag = |response: &Response| response.headers()[ETAG].to_str().expect("ASCII").to_owned();
        let plain = tag(&finish(answer(None), None));
        let if_none_match = |text: &str| Tags::parse([text.as_bytes()]).expect("tags");
        for (encoding, have, status) in [
            (None, if_none_match(&plain), 304),
            (None, if_none_match(&format!("\"a\", W/{plain}")), 304),
            (None, if_none_match("*"), 304),
            (None, if_none_match("\"a\""), 200),
            (Some("gzip"), if_none_match(&plain), 200),
        ] {
            let response = finish(answer(encoding), Some(&have));
            assert_eq!(response.status().as_u16(), status, "{encoding:?} {have:?}");
            assert_eq!(response.headers().contains_key(CONTENT_TYPE), status == 200);
            assert!(status == 200 || !response.headers().contains_key(CONTENT_ENCODING));
            assert_eq!(tag(&response) == plain, encoding.is_none());
        }
        let mut whole = answer(None);
        let _row = whole.extensions_mut().remove::<RowVersion>();
        whole.extensions_mut().insert(Basis::new([&b"x"[..]]));
        let tag = tag(&finish(whole, None));
        let Ok(Tags::List(list)) = Tags::parse([tag.as_bytes()]) else { panic!("{tag}") };
        assert_eq!(list[0].version(), None, "what is no row has no version: {tag}");
        let untagged = finish(Response::new(Body::empty()), Some(&Tags::Any));
        assert!(untagged.status() == 200 && !untagged.headers().contains_key(ETAG));
        let mut refused = answer(None);
        *refused.status_mut() = StatusCode::CREATED;
        assert_eq!(finish(refused, Some(&Tags::Any)).status(), 201);
    }

    #[test]
    fn a_write_asks_for_a_version_for_any_row_or_for_none() {
        let ours = "\"000000000000002a-0123456789abcdef\"";
        for (list, expected) in [
            (&[][..], Ok(Precondition::Either)),
            (&[("if-match", "*")], Ok(Precondition::Present)),
            (&[("if-none-match", "*")], Ok(Precondition::Absent)),
            (&[("if-match", ours)], Ok(Precondition::Tagged(vec![Version(42)]))),
            (&[("if-match", "\"a\""), ("if-match", ours)], Ok(Precondition::Tagged(vec![Version(42)]))),
            (
                &[("if-match", "W/\"000000000000002a-0123456789abcdef\"")],
                Ok(Precondition::Tagged(Vec::new())),
            ),
            (&[("if-match", "")], Err(Code::BadRequest)),
            (&[("if-match", "x")], Err(Code::BadRequest)),
            (&[("if-none-match", ours)], Err(Code::BadRequest)),
            (&[("if-match", "*"), ("if-none-match", "*")], Err(Code::BadRequest)),
        ] {
            assert_eq!(precondition(&headers(list)).map_err(|problem| problem.code), expected, "{list:?}");
        }
    }

    #[test]
    fn only_a_read_says_what_it_has() {
        let sent = headers(&[("if-none-match", "\"a\"")]);
        assert!(
            if_none_match(&Method::GET, &sent).is_some() && if_none_match(&Method::HEAD, &sent).is_some()
        );
        assert!(
            if_none_match(&Method::PATCH, &sent).is_none()
                && if_none_match(&Method::GET, &HeaderMap::new()).is_none()
        );
        assert!(if_none_match(&Method::GET, &headers(&[("if-none-match", "a")])).is_none());
    }
}
