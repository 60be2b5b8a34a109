//! What to write where a value does not fit its column.

use crate::resolve::Misfit;

pub(super) fn wanted(misfit: Misfit) -> String {
    let what = match misfit {
        Misfit::Integer(min, max) => return format!("write a whole number from {min} to {max}"),
        Misfit::Length(max) => return format!("write text of at most {max} bytes"),
        Misfit::Number => "write a number",
        Misfit::Range => "the number is out of range",
        Misfit::Bool => "write true or false",
        Misfit::Unquoted => "write text in single quotes",
        Misfit::NoText => "write text in double quotes",
        Misfit::Nul => "write text without NUL characters, which PostgreSQL cannot store",
        Misfit::NoList => "write a JSON array",
        Misfit::Dimensions => "write an array of at most 6 dimensions",
        Misfit::Escape => "write text whose \\u escapes are characters",
        Misfit::NoObject => "write a JSON object with the attributes of the type",
        Misfit::Quotes => {
            "write fewer quotes and backslashes: nested as deep as here, they take more than 8 MiB"
        }
        Misfit::NoScalar => "write a single value, not an array or an object",
        Misfit::Uuid => "write 8-4-4-4-12 hexadecimal digits",
        Misfit::Bytea => "write base 64",
        Misfit::Date => "write a date such as 2024-01-31",
        Misfit::Timestamp => "write a time stamp such as 2024-01-31T10:00:00, with no offset but Z",
        Misfit::TimestampTz => "write a time stamp such as 2024-01-31T10:00:00Z",
        Misfit::Time => "write a time such as 10:00:00",
        Misfit::TimeTz => "write a time such as 10:00:00+02:00",
        Misfit::Plus => "write the + of the offset as %2B; a bare + in an address is a blank",
        Misfit::Foreign => "it cannot be compared with a constant of another type",
        Misfit::Incomparable => "this type cannot be compared; only eq null and ne null are possible",
    };
    what.to_owned()
}
