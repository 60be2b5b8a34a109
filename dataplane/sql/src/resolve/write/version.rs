//! Which version of a row a change is made to: as the body says it, as what goes along with it does, or neither.

use rowgate_core::entity_tag::Version;

use crate::query::NoRowReason;
use crate::request::Input;
use crate::resolve::refusal::VersionRefusal;
use crate::resolve::value::moment;
use crate::resolve::visible::Visible;
use crate::text::{Bind, Format};

const TIMESTAMPTZ: u32 = 1184;
const TIMESTAMPTZ_ARRAY: u32 = 1185;

/// What is asked of the row before anything is written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Precondition {
    #[default]
    Either,
    /// Some row.
    Present,
    /// None.
    Absent,
    /// A row of one of these versions.
    Tagged(Vec<Version>),
}

/// The row must have one of these versions.
pub(crate) struct Expected {
    /// An array of `timestamptz`.
    pub(crate) versions: Bind,
    /// What it means that no row has them.
    pub(crate) no_row: NoRowReason,
}

/// `body`: the value of the field that holds the version. `None`: nobody says which version is meant.
pub(crate) fn expected(
    visible: &Visible<'_>,
    body: Option<&Input<'_>>,
    precondition: &Precondition,
) -> Result<Option<Expected>, VersionRefusal> {
    let Some(version) = visible.entity.version() else {
        return match precondition {
            Precondition::Tagged(_) => Err(VersionRefusal::None),
            _ => Ok(None),
        };
    };
    let text = body.map(|input| text(input)).transpose()?;
    match (text, precondition) {
        (None, Precondition::Tagged(versions)) => {
            let (versions, no_row) = (binary(versions), NoRowReason::Unmatched);
            Ok(Some(Expected { versions, no_row }))
        }
        (None, _) => Ok(None),
        (Some(_), Precondition::Absent) => Err(VersionRefusal::OfNewRow),
        (Some(text), Precondition::Tagged(versions)) => {
            if !moment::micros(text).is_some_and(|micros| versions.contains(&Version(micros))) {
                return Err(VersionRefusal::Different);
            }
            Ok(Some(Expected { versions: array(version, text), no_row: NoRowReason::Unmatched }))
        }
        (Some(text), Precondition::Either | Precondition::Present) => {
            Ok(Some(Expected { versions: array(version, text), no_row: NoRowReason::Stale }))
        }
    }
}

/// Whoever has never read the row leaves the field out; null is no version.
fn text<'a>(input: &'a Input<'_>) -> Result<&'a str, VersionRefusal> {
    match input {
        // A row from before its table was protected may hold any moment.
        Input::Text(text) if moment::is_timestamp(text, true) || moment::is_infinite(text) => Ok(text),
        _ => Err(VersionRefusal::Unreadable),
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
        let n = i32::try_from(versions.len()).expect("a request names a few hundred versions");
        value.extend_from_slice(&n.to_be_bytes());
        value.extend_from_slice(&1_i32.to_be_bytes());
    }
    for Version(micros) in versions {
        value.extend_from_slice(&8_i32.to_be_bytes());
        value.extend_from_slice(&micros.to_be_bytes());
    }
    Bind { value: Some(value), format: Format::Binary, ..Bind::text(TIMESTAMPTZ_ARRAY, "") }
}
