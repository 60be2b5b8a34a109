//! The value of one parameter, as its type takes it.

use rowgate_core::problem::{Code, Problem};

use super::{Argument, shown};
use crate::catalog::FieldType;
use crate::request::input;
use crate::resolve::stored;
use crate::rest::problem::wanted;
use crate::shape::Encoding;
use crate::text::Bind;

/// The bind for a parameter that PostgreSQL gives the type `ty`. What goes in is what comes out of a column of that type.
///
/// # Errors
/// `InvalidValue`, with what to write.
pub fn bind(ty: &FieldType, argument: &Argument) -> Result<Bind, Problem> {
    let refused = |what: String| {
        let name = shown(&argument.name);
        Problem::new(Code::InvalidValue, format!("the parameter {name:?} is {}: {what}", ty.name))
    };
    let value = input(argument.json.get())
        .map_err(|_| refused("write text whose \\u escapes are characters".to_owned()))?;
    stored(ty, &value).map_err(|refusal| refused(wanted(refusal)))
}

/// How values of `ty` are read from the wire.
#[must_use]
pub fn encoding(ty: &FieldType) -> Encoding {
    crate::compile::encoding::of(ty)
}
