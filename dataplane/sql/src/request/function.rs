//! The functions of a filter, by name.

/// What each takes and gives stands in `resolve/signature.rs`, its SQL in `compile/value.rs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Function {
    Contains,
    StartsWith,
    EndsWith,
    ToLower,
    ToUpper,
    Trim,
    Length,
    IndexOf,
    Substring,
    Concat,
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
    Date,
    Time,
    Round,
    Floor,
    Ceiling,
}

impl Function {
    pub const ALL: [Function; 21] = [
        Function::Contains,
        Function::StartsWith,
        Function::EndsWith,
        Function::ToLower,
        Function::ToUpper,
        Function::Trim,
        Function::Length,
        Function::IndexOf,
        Function::Substring,
        Function::Concat,
        Function::Year,
        Function::Month,
        Function::Day,
        Function::Hour,
        Function::Minute,
        Function::Second,
        Function::Date,
        Function::Time,
        Function::Round,
        Function::Floor,
        Function::Ceiling,
    ];

    #[must_use]
    pub fn from_word(word: &str) -> Option<Function> {
        Function::ALL.into_iter().find(|function| function.word() == word)
    }

    /// As a filter spells it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Function::Contains => "contains",
            Function::StartsWith => "startswith",
            Function::EndsWith => "endswith",
            Function::ToLower => "tolower",
            Function::ToUpper => "toupper",
            Function::Trim => "trim",
            Function::Length => "length",
            Function::IndexOf => "indexof",
            Function::Substring => "substring",
            Function::Concat => "concat",
            Function::Year => "year",
            Function::Month => "month",
            Function::Day => "day",
            Function::Hour => "hour",
            Function::Minute => "minute",
            Function::Second => "second",
            Function::Date => "date",
            Function::Time => "time",
            Function::Round => "round",
            Function::Floor => "floor",
            Function::Ceiling => "ceiling",
        }
    }
}
