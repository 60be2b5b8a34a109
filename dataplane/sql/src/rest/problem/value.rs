//! What to write where a value does not fit its column.

use crate::resolve::ValueRefusal;

pub(crate) fn wanted(refusal: ValueRefusal) -> String {
    let what = match refusal {
        ValueRefusal::Integer(min, max) => return format!("write a whole number from {min} to {max}"),
        ValueRefusal::Length(max) => return format!("write text of at most {max} bytes"),
        ValueRefusal::Number => "write a number",
        ValueRefusal::Range => "the number is out of range",
        ValueRefusal::Bool => "write true or false",
        ValueRefusal::Unquoted => "write text in single quotes",
        ValueRefusal::NoText => "write text in double quotes",
        ValueRefusal::Nul => "write text without NUL characters, which PostgreSQL cannot store",
        ValueRefusal::NoList => "write a JSON array",
        ValueRefusal::Dimensions => "write an array of at most 6 dimensions",
        ValueRefusal::Escape => "write text whose \\u escapes are characters",
        ValueRefusal::NoObject => "write a JSON object with the attributes of the type",
        ValueRefusal::Quotes => {
            "write fewer quotes and backslashes: at this depth of nesting, they take more than 8 MiB"
        }
        ValueRefusal::NoScalar => "write a single value, not an array or an object",
        ValueRefusal::Uuid => "write 8-4-4-4-12 hexadecimal digits",
        ValueRefusal::Bytea => "write base 64",
        ValueRefusal::Date => "write a date such as 2024-01-31",
        ValueRefusal::Timestamp => {
            "write a timestamp such as 2024-01-31T10:00:00; Z is the only offset allowed"
        }
        ValueRefusal::TimestampTz => "write a timestamp such as 2024-01-31T10:00:00Z",
        ValueRefusal::Time => "write a time such as 10:00:00",
        ValueRefusal::TimeTz => "write a time such as 10:00:00+02:00",
        ValueRefusal::Plus => "write the + of the offset as %2B; an unescaped + in a URL means a space",
        ValueRefusal::Foreign => "it cannot be compared with a constant of another type",
        ValueRefusal::Incomparable => "this type cannot be compared; only eq null and ne null are possible",
    };
    what.to_owned()
}
