//! Which version of a row a change is made to: as the body says it, as `If-Match` does, or neither.

use rowgate_core::entity_tag::Version;
use rowgate_core::problem::{Code, Problem};

use crate::query::Nothing;
use crate::resolve::value::moment;
use crate::resolve::visible::Visible;
use crate::rest::body::Input;
use crate::text::{Bind, Format};

const TIMESTAMPTZ: u32 = 1184;
const TIMESTAMPTZ_ARRAY: u32 = 1185;

/// What the headers ask of the row before anything is written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Only {
    #[default]
    Either,
    /// `If-Match: *`
    Present,
    /// `If-None-Match: *`
    Absent,
    /// `If-Match` with tags: the versions that those of ours name.
    Tagged(Vec<Version>),
}

/// The row must have one of these versions.
pub(crate) struct Expected {
    /// An array of `timestamptz`.
    pub(crate) versions: Bind,
    /// What it means that no row has them.
    pub(crate) nothing: Nothing,
}

/// `body`: the value of the field that holds the version. `None`: nobody says which version is meant.
pub(crate) fn expected(
    visible: &Visible<'_>,
    body: Option<&Input<'_>>,
    only: &Only,
) -> Result<Option<Expected>, Problem> {
    let Some(version) = visible.entity.version() else {
        return match only {
            Only::Tagged(_) => Err(Problem::new(
                Code::BadRequest,
                "this table keeps no version of its rows; send If-Match: * to change only a row that is there, or \
                 If-None-Match: * to make only one that is not",
            )),
            _ => Ok(None),
        };
    };
    let name = visible.entity.version_name();
    let text = body.map(|input| text(input, name)).transpose()?;
    match (text, only) {
        (None, Only::Tagged(versions)) => {
            let (versions, nothing) = (binary(versions), Nothing::Unmatched);
            Ok(Some(Expected { versions, nothing }))
        }
        (None, _) => Ok(None),
        (Some(_), Only::Absent) => Err(Problem::new(
            Code::BadRequest,
            format!(
                "{name} names a row that is there, and If-None-Match: * asks for a new one; leave one out"
            ),
        )),
        (Some(text), Only::Tagged(versions)) => {
            if !moment::micros(text).is_some_and(|micros| versions.contains(&Version(micros))) {
                return Err(Problem::new(
                    Code::BadRequest,
                    format!("If-Match and {name} name different versions of the row; send one of them"),
                ));
            }
            Ok(Some(Expected { versions: array(version, text), nothing: Nothing::Unmatched }))
        }
        (Some(text), Only::Either | Only::Present) => {
            Ok(Some(Expected { versions: array(version, text), nothing: Nothing::Stale }))
        }
    }
}

/// Whoever has never read the row leaves the field, `name`, out; null is no version.
fn text<'a>(input: &'a Input<'_>, name: &str) -> Result<&'a str, Problem> {
    match input {
        // A row from before its table was protected may hold any moment.
        Input::Text(text) if moment::is_timestamp(text, true) || moment::is_infinite(text) => Ok(text),
        _ => Err(Problem::new(
            Code::InvalidValue,
            format!(
                "{name} is the text that a read of the row gives; send it as it was read, or leave it out to make a new row"
            ),
        )),
    }
}

/// Of one version as the caller wrote it: nothing that [`moment::is_timestamp`] lets through ends the quotes.
fn array(field: usize, text: &str) -> Bind {
    let field = u16::try_from(field).ok();
    Bind { field, ..Bind::text(TIMESTAMPTZ_ARRAY, format!("{{\"{text}\"}}")) }
}

/// The array in PostgreSQL's binary form: dimensions, NULLs, the element's type; length and lower bound; elements.
fn binary(versions: &[Version]) -> Bind {
    let mut value = Vec::with_capacity(20 + 12 * versions.len());
    let n_dimensions = i32::from(!versions.is_empty());
    value.extend_from_slice(&n_dimensions.to_be_bytes());
    value.extend_from_slice(&0_i32.to_be_bytes());
    value.extend_from_slice(&TIMESTAMPTZ.to_be_bytes());
    if !versions.is_empty() {
        let n = i32::try_from(versions.len()).expect("headers hold a few hundred tags");
        value.extend_from_slice(&n.to_be_bytes());
        value.extend_from_slice(&1_i32.to_be_bytes());
    }
    for Version(micros) in versions {
        value.extend_from_slice(&8_i32.to_be_bytes());
        value.extend_from_slice(&micros.to_be_bytes());
    }
    Bind { value: Some(value), format: Format::Binary, ..Bind::text(TIMESTAMPTZ_ARRAY, "") }
}
