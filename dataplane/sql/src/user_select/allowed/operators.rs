//! The operators that a caller's SELECT may use, by name: those of PostgreSQL on built-in types. `OPERATOR(schema.+)` is refused, because
//! it names an operator of anyone.

use sqlparser::ast::{BinaryOperator as B, UnaryOperator as U};

pub(in crate::user_select) fn is_binary_allowed(op: &B) -> bool {
    matches!(
        op,
        B::Plus
            | B::Minus
            | B::Multiply
            | B::Divide
            | B::Modulo
            | B::PGExp
            | B::StringConcat
            | B::Gt
            | B::Lt
            | B::GtEq
            | B::LtEq
            | B::Eq
            | B::NotEq
            | B::And
            | B::Or
            | B::BitwiseOr
            | B::BitwiseAnd
            | B::PGBitwiseXor
            | B::PGBitwiseShiftLeft
            | B::PGBitwiseShiftRight
            | B::PGRegexMatch
            | B::PGRegexIMatch
            | B::PGRegexNotMatch
            | B::PGRegexNotIMatch
            | B::PGStartsWith
            | B::PGLikeMatch
            | B::PGILikeMatch
            | B::PGNotLikeMatch
            | B::PGNotILikeMatch
            | B::Arrow
            | B::LongArrow
            | B::HashArrow
            | B::HashLongArrow
            | B::HashMinus
            | B::AtArrow
            | B::ArrowAt
            | B::AtQuestion
            | B::AtAt
            | B::Question
            | B::QuestionAnd
            | B::QuestionPipe
            | B::PGOverlap
            | B::Overlaps
    )
}

pub(in crate::user_select) fn is_unary_allowed(op: &U) -> bool {
    matches!(op, U::Plus | U::Minus | U::Not | U::BitwiseNot)
}
