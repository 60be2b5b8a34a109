//! The operators that a caller's SELECT may use, by name: those of PostgreSQL on built-in types. `OPERATOR(schema.+)` is refused, because
//! it names an operator of anyone.

use sqlparser::ast::{BinaryOperator as B, UnaryOperator as U};

pub(super) fn is_binary_allowed(op: &B) -> bool {
    match op {
        B::Plus | B::Minus | B::Multiply | B::Divide | B::Modulo | B::PGExp | B::StringConcat => true,
        B::Gt | B::Lt | B::GtEq | B::LtEq | B::Eq | B::NotEq | B::And | B::Or => true,
        B::BitwiseOr | B::BitwiseAnd | B::PGBitwiseXor | B::PGBitwiseShiftLeft | B::PGBitwiseShiftRight => {
            true
        }
        B::PGRegexMatch | B::PGRegexIMatch | B::PGRegexNotMatch | B::PGRegexNotIMatch | B::PGStartsWith => {
            true
        }
        B::PGLikeMatch | B::PGILikeMatch | B::PGNotLikeMatch | B::PGNotILikeMatch => true,
        B::Arrow | B::LongArrow | B::HashArrow | B::HashLongArrow | B::HashMinus => true,
        B::AtArrow
        | B::ArrowAt
        | B::AtQuestion
        | B::AtAt
        | B::Question
        | B::QuestionAnd
        | B::QuestionPipe => true,
        B::PGOverlap | B::Overlaps => true,
        _ => false,
    }
}

pub(super) fn is_unary_allowed(op: &U) -> bool {
    matches!(op, U::Plus | U::Minus | U::Not | U::BitwiseNot)
}
