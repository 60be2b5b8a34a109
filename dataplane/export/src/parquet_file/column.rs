//! One column of the row group that is held: its values, and where NULLs and lists are among them.

use rowgate_pg::wire::{Fields, Malformed, Unwritten};
use rowgate_sql::shape::{Body, Encoding};
use rowgate_sql::text::Format;

use super::MAX_ROW;
use super::scalar::Scalar;
use crate::Column;
use crate::error::Reason;

/// PostgreSQL knows no more.
const MAX_DIMENSIONS: u32 = 6;
const LEVEL: usize = size_of::<i16>();

// definition levels, by which Parquet says how much of a value is there
const NULL: i16 = 0;
const VALUE: i16 = 1;
const EMPTY_LIST: i16 = 1;
const NULL_ELEMENT: i16 = 2;
const ELEMENT: i16 = 3;

pub(super) struct HeldColumn {
    pub(super) name: String,
    pub(super) values: Scalar,
    /// The type of a list's elements, as declared; `None`: it is no list.
    pub(super) element: Option<u32>,
    /// Of each value, how much of it is there.
    pub(super) definition: Vec<i16>,
    /// Of each element of a list, whether it is in the same list as the one before.
    pub(super) repetition: Vec<i16>,
    encoding: Encoding,
    modifier: i32,
}

/// Why a value cannot be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    Malformed(Malformed),
    Unfit(Reason),
    TooLong,
}

impl From<Unwritten> for Fault {
    fn from(unwritten: Unwritten) -> Fault {
        match unwritten {
            Unwritten::Malformed(malformed) => Fault::Malformed(malformed),
            Unwritten::TooLong => Fault::TooLong,
        }
    }
}

impl From<Malformed> for Fault {
    fn from(malformed: Malformed) -> Fault {
        Fault::Malformed(malformed)
    }
}

impl HeldColumn {
    pub(super) fn new(column: Column) -> HeldColumn {
        let Column { name, encoding, modifier } = column;
        let (element, values) = match element(&encoding) {
            Some((oid, element)) => (Some(oid), Scalar::new(element, modifier)),
            None => (None, Scalar::new(&encoding, modifier)),
        };
        let (definition, repetition) = (Vec::new(), Vec::new());
        HeldColumn { name, values, element, definition, repetition, encoding, modifier }
    }

    /// The definition level of a value that is not NULL.
    pub(super) fn max_definition(&self) -> i16 {
        if self.element.is_some() { ELEMENT } else { VALUE }
    }

    /// Adds the value of a row; returns how many bytes it takes.
    #[inline]
    pub(super) fn push(&mut self, value: Option<&[u8]>) -> Result<usize, Fault> {
        if let Some(oid) = self.element {
            return self.push_list(oid, value);
        }
        match value {
            None => {
                self.definition.push(NULL);
                Ok(LEVEL)
            }
            Some(value) => {
                self.definition.push(VALUE);
                Ok(LEVEL + self.values.push(value)?)
            }
        }
    }

    /// An array in its binary form: how many dimensions; whether there are NULLs; the element's type; length and lower bound of
    /// the dimension; elements.
    fn push_list(&mut self, oid: u32, value: Option<&[u8]>) -> Result<usize, Fault> {
        let Some(value) = value else { return Ok(self.push_level(NULL, 0)) };
        let mut fields = Fields::new(value);
        let n_dimensions = u32::from_be_bytes(fields.bytes()?);
        let _has_null: [u8; 4] = fields.bytes()?;
        if u32::from_be_bytes(fields.bytes()?) != oid {
            return Err(Malformed("an array with an element of an unexpected type").into());
        }
        let mut n_bytes = 0;
        match n_dimensions {
            0 => n_bytes += self.push_level(EMPTY_LIST, 0),
            1 => {
                let n_elements = u32::from_be_bytes(fields.bytes()?);
                let _lower_bound: [u8; 4] = fields.bytes()?;
                if n_elements == 0 {
                    return Err(Malformed("an array whose length differs from its dimensions").into());
                }
                for i in 0..n_elements {
                    if MAX_ROW < n_bytes {
                        return Err(Fault::TooLong);
                    }
                    let repetition = i16::from(0 < i);
                    n_bytes += match fields.sized()? {
                        None => self.push_level(NULL_ELEMENT, repetition),
                        Some(value) => self.push_level(ELEMENT, repetition) + self.values.push(value)?,
                    };
                }
            }
            2..=MAX_DIMENSIONS => return Err(Fault::Unfit(Reason::Dimensions)),
            _ => return Err(Malformed("an array with too many dimensions").into()),
        }
        match fields.rest() {
            [] => Ok(n_bytes),
            _ => Err(Malformed("an array with data after its end").into()),
        }
    }

    fn push_level(&mut self, definition: i16, repetition: i16) -> usize {
        self.definition.push(definition);
        self.repetition.push(repetition);
        2 * LEVEL
    }

    /// Removes all values.
    pub(super) fn clear(&mut self) {
        self.values.clear();
        self.definition.clear();
        self.repetition.clear();
    }

    /// Bytes that the buffers keep when they are cleared.
    pub(super) fn n_kept(&self) -> usize {
        self.values.n_kept() + LEVEL * (self.definition.capacity() + self.repetition.capacity())
    }

    /// Gives all buffers back; there are no values.
    pub(super) fn release(&mut self) {
        let (name, encoding) = (std::mem::take(&mut self.name), self.encoding.clone());
        *self = HeldColumn::new(Column { name, encoding, modifier: self.modifier });
    }
}

/// The element's type and encoding, of an array that becomes a list: its elements have types of their own in Parquet.
fn element(encoding: &Encoding) -> Option<(u32, &Encoding)> {
    let Encoding::Nested(nested) = encoding else { return None };
    match &nested.body {
        Body::Array { element, .. }
            if nested.format == Format::Binary && !matches!(element.encoding, Encoding::Nested(_)) =>
        {
            Some((element.oid, &element.encoding))
        }
        _ => None,
    }
}
