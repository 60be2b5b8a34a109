//! Query strings: split first, percent-decoded once and strictly afterwards, so that `%26` in a literal survives.

use rowgate_core::percent::{self, BadEncoding};
use rowgate_core::problem::{Code, Problem};

/// Names and values, decoded. A parameter without a name, or without `=`, is a problem; an empty one (`&&`) is none.
/// A shell makes `?=3` of `"?$first=3"`.
pub fn parameters(query: &str) -> impl Iterator<Item = Result<(String, String), Problem>> {
    query.split('&').filter(|parameter| !parameter.is_empty()).map(|parameter| {
        let (name, value) = parameter.split_once('=').ok_or_else(valueless)?;
        let (name, value) = (decode(name)?, decode(value)?);
        match name.trim().is_empty() {
            true => Err(nameless()),
            false => Ok((name, value)),
        }
    })
}

/// The parameters as they were written, but `$after`: with another cursor they ask for another page.
pub fn without_cursor(query: &str) -> impl Iterator<Item = &str> {
    let is_after = |parameter: &str| {
        let name = parameter.split('=').next().unwrap_or_default();
        decode(name).is_ok_and(|name| name == "$after")
    };
    query.split('&').filter(move |parameter| !parameter.is_empty() && !is_after(parameter))
}

fn decode(text: &str) -> Result<String, Problem> {
    let spaced = text.replace('+', " ");
    let text = percent::decode(&spaced).map_err(|why| match why {
        BadEncoding::Escape => bad_escape(),
        BadEncoding::NotUtf8 => {
            Problem::new(Code::BadRequest, "the query string is not UTF-8 after percent-decoding")
        }
    })?;
    if text.contains('\0') {
        return Err(Problem::new(Code::BadRequest, "the query string holds a NUL character; leave it out"));
    }
    Ok(text.into_owned())
}

fn bad_escape() -> Problem {
    Problem::new(
        Code::BadRequest,
        "a percent sign in the query string is not followed by two hexadecimal digits; write it %25",
    )
}

fn valueless() -> Problem {
    Problem::new(Code::BadRequest, "a parameter has no value; write name=value, and & as %26")
}

fn nameless() -> Problem {
    Problem::new(
        Code::BadRequest,
        "a parameter has no name before its =; in a shell, put single quotes around the URL, because the shell replaces $first within double quotes",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_split_before_they_are_decoded() {
        let read = |query: &str| parameters(query).collect::<Result<Vec<_>, _>>();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(read("").expect("nothing"), []);
        assert_eq!(
            read("a=b%26c%3Dd&&%24x=1+2=%2B3%c3%a9&").expect("well-formed"),
            [pair("a", "b&c=d"), pair("$x", "1 2=+3é")]
        );
        for wrong in [
            "a", "=b", "%20=b", "+=", " =b", "%20", "a=%", "a=%4", "a=%g1", "a=%+1", "a=%ff", "a=%00",
            "%zz=1",
        ] {
            assert_eq!(read(wrong).expect_err(wrong).code, Code::BadRequest, "{wrong}");
        }
    }

    #[test]
    fn all_but_the_cursor_stays_as_it_was_written() {
        for (query, kept) in [
            ("", ""),
            ("&$first=2&", "$first=2"),
            ("%24after=A&$filter=a+eq+'%26'&$aft%65r=B", "$filter=a+eq+'%26'"),
        ] {
            assert_eq!(without_cursor(query).collect::<Vec<_>>().join("&"), kept);
        }
    }
}
