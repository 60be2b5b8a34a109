//! The text becomes tokens: bounds before the parser, `@name` becomes `$n`, and T-SQL that PostgreSQL reads as something else is
//! refused. Whitespace and comments end here.

use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Span, Token, TokenWithSpan, Tokenizer, Word};

use super::refusal::{Checked, Refusal, TextPosition};

/// Bytes of a text. At 64 KiB of `a or a or ...` sqlparser needs several megabytes of stack, hence the other bounds.
pub const MAX_BYTES: usize = 64 * 1024;
/// Brackets within brackets.
pub const MAX_NESTING: usize = 32;
/// Keywords and operators: each may be a level of the tree, as in `a or a or a`.
pub const MAX_OPERATORS: usize = 2_000;

/// What follows FOR in a locking clause.
const LOCKS: [&str; 4] = ["update", "share", "no", "key"];

/// The parameters that a text may name.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Parameters<'a> {
    /// Each name; the first spelling of one counts.
    Any,
    /// These and no others, compared without case unless two differ in nothing else.
    Of(&'a [String]),
}

#[derive(Debug)]
pub(crate) struct Tokens {
    pub(crate) tokens: Vec<TokenWithSpan>,
    /// The name of `$n` at n - 1.
    pub(crate) parameters: Vec<String>,
}

pub(crate) fn read(text: &str, allowed: Parameters<'_>) -> Checked<Tokens> {
    if MAX_BYTES < text.len() {
        let message = format!("the text has {} bytes; at most {MAX_BYTES} are allowed", text.len());
        return Err(Refusal::new("size", TextPosition::default(), message));
    }
    if text.contains('\0') {
        return Err(Refusal::new("character", TextPosition::default(), "the text holds a NUL character"));
    }
    let mut tokens = tokens_of(text)?;
    check_bounds(&tokens)?;
    tokens.retain(|it| !matches!(it.token, Token::Whitespace(_)));
    check_habits(&tokens)?;
    let parameters = bind_parameters(&mut tokens, allowed)?;
    Ok(Tokens { tokens, parameters })
}

pub(crate) fn tokens_of(text: &str) -> Checked<Vec<TokenWithSpan>> {
    Tokenizer::new(&PostgreSqlDialect {}, text).tokenize_with_location().map_err(|error| {
        let message =
            "the text cannot be split into words; a string, a quoted name or a comment may be unfinished";
        Refusal::new("syntax", error.location, message)
    })
}

fn check_bounds(tokens: &[TokenWithSpan]) -> Checked {
    let (mut depth, mut n_operators) = (0_usize, 0_usize);
    for TokenWithSpan { token, span } in tokens {
        match token {
            Token::LParen | Token::LBracket | Token::LBrace => depth += 1,
            Token::RParen | Token::RBracket | Token::RBrace => depth = depth.saturating_sub(1),
            Token::Word(Word { keyword: Keyword::NoKeyword, .. }) => continue,
            Token::Whitespace(_) | Token::Comma | Token::Number(..) | Token::SingleQuotedString(_) => {
                continue;
            }
            _ => {}
        }
        if MAX_NESTING < depth {
            let message = format!("brackets stand more than {MAX_NESTING} deep");
            return Err(Refusal::new("nesting", *span, message));
        }
        n_operators += 1;
        if MAX_OPERATORS < n_operators {
            let message = format!("the text has more than {MAX_OPERATORS} keywords and operators");
            return Err(Refusal::new("length", *span, message));
        }
    }
    Ok(())
}

/// What a T-SQL author writes and PostgreSQL reads otherwise or not at all.
fn check_habits(tokens: &[TokenWithSpan]) -> Checked {
    for (at, TokenWithSpan { token, span }) in tokens.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| tokens.get(at)).map(|it| &it.token);
        let after = tokens.get(at + 1).map(|it| &it.token);
        match token {
            Token::LBracket if !is_subscripted(before) => {
                let message = "names stand in double quotes in PostgreSQL: write \"name\" for [name]";
                return Err(Refusal::new("brackets", *span, message));
            }
            Token::Word(word)
                if is(word, "top")
                    && matches!(before, Some(Token::Word(it)) if it.keyword == Keyword::SELECT || it.keyword == Keyword::DISTINCT)
                    && matches!(after, Some(Token::Number(..) | Token::LParen | Token::AtSign)) =>
            {
                let message = "TOP is not PostgreSQL: write limit 10 at the end of the SELECT";
                return Err(Refusal::new("top", *span, message));
            }
            Token::Word(word) if is(word, "nolock") && before == Some(&Token::LParen) => {
                let message = "WITH (NOLOCK) is not PostgreSQL: leave it out, a SELECT takes no row locks";
                return Err(Refusal::new("hint", *span, message));
            }
            Token::Word(word) if word.keyword == Keyword::APPLY => {
                let message = "APPLY is not PostgreSQL: write cross join lateral (select ...) as x";
                return Err(Refusal::new("apply", *span, message));
            }
            Token::Word(word) if word.keyword == Keyword::OPERATOR && after == Some(&Token::LParen) => {
                let message = "OPERATOR(...) is not allowed here: write the operator itself";
                return Err(Refusal::new("operator", *span, message));
            }
            Token::Word(word)
                if word.keyword == Keyword::FOR
                    && matches!(after, Some(Token::Word(it)) if LOCKS.iter().any(|lock| is(it, lock))) =>
            {
                let message = "FOR UPDATE and FOR SHARE are not allowed: a SELECT here only reads";
                return Err(Refusal::new("locking", *span, message));
            }
            Token::Placeholder(name) => {
                let message = format!("{name} is not a parameter here: write @name");
                return Err(Refusal::new("parameter", *span, message));
            }
            Token::AtAt if matches!(after, Some(Token::Word(_))) && touches(tokens, at) => {
                return Err(Refusal::new(
                    "parameter",
                    *span,
                    "system variables such as @@rowcount do not exist in PostgreSQL",
                ));
            }
            _ => {}
        }
    }
    Ok(())
}

fn is(word: &Word, name: &str) -> bool {
    word.quote_style.is_none() && word.value.eq_ignore_ascii_case(name)
}

/// `a[1]`, `(a)[1]`, `a[1][2]`, `array[...]`, `int[]`: what stands before the bracket is a value or a type.
fn is_subscripted(before: Option<&Token>) -> bool {
    match before {
        Some(Token::Word(word)) => {
            !matches!(
                word.keyword,
                Keyword::SELECT
                    | Keyword::FROM
                    | Keyword::JOIN
                    | Keyword::WHERE
                    | Keyword::AND
                    | Keyword::OR
                    | Keyword::ON
                    | Keyword::BY
                    | Keyword::AS
                    | Keyword::DISTINCT
                    | Keyword::NOT
                    | Keyword::IN
                    | Keyword::WHEN
                    | Keyword::THEN
                    | Keyword::ELSE
                    | Keyword::HAVING
                    | Keyword::CASE
            ) || word.quote_style.is_some()
        }
        Some(Token::RParen | Token::RBracket | Token::SingleQuotedString(_)) => true,
        // array[[1,2],[3,4]]
        Some(Token::LBracket | Token::Comma) => true,
        _ => false,
    }
}

/// Whether nothing stands between this token and the next.
fn touches(tokens: &[TokenWithSpan], at: usize) -> bool {
    let end = tokens.get(at).map(|it| it.span.end);
    end.is_some() && end == tokens.get(at + 1).map(|it| it.span.start)
}

fn bind_parameters(tokens: &mut Vec<TokenWithSpan>, allowed: Parameters<'_>) -> Checked<Vec<String>> {
    let mut parameters: Vec<String> = Vec::new();
    let mut bound: Vec<TokenWithSpan> = Vec::with_capacity(tokens.len());
    let mut at = 0;
    while let Some(TokenWithSpan { token, span }) = tokens.get(at).cloned() {
        let name = match tokens.get(at + 1).map(|it| &it.token) {
            Some(Token::Word(word)) if touches(tokens, at) => word.value.clone(),
            _ => {
                bound.push(TokenWithSpan { token, span });
                at += 1;
                continue;
            }
        };
        let operator = match &token {
            Token::AtSign => None,
            Token::CustomBinaryOperator(text) if text.ends_with('@') => {
                let operator = match text.trim_end_matches('@') {
                    "=" => Token::Eq,
                    "<>" | "!=" => Token::Neq,
                    ">=" => Token::GtEq,
                    "<=" => Token::LtEq,
                    "+" => Token::Plus,
                    "-" => Token::Minus,
                    "*" => Token::Mul,
                    "/" => Token::Div,
                    "||" => Token::StringConcat,
                    ">" => Token::Gt,
                    _ => return Err(glued(span)),
                };
                Some(operator)
            }
            Token::ArrowAt => return Err(glued(span)),
            _ => {
                bound.push(TokenWithSpan { token, span });
                at += 1;
                continue;
            }
        };
        bound.extend(operator.map(|token| TokenWithSpan { token, span }));
        let n = number_of(&name, span, allowed, &mut parameters)?;
        bound.push(TokenWithSpan { token: Token::Placeholder(format!("${n}")), span });
        at += 2;
    }
    *tokens = bound;
    Ok(parameters)
}

fn glued(span: Span) -> Refusal {
    Refusal::new("parameter", span, "write a space between the operator and the parameter's @")
}

fn number_of(name: &str, span: Span, allowed: Parameters<'_>, into: &mut Vec<String>) -> Checked<usize> {
    let name = match allowed {
        Parameters::Any => into.iter().find(|it| it.eq_ignore_ascii_case(name)).map_or(name, String::as_str),
        Parameters::Of(names) => {
            let exact = names.iter().find(|it| *it == name);
            let mut alike = names.iter().filter(|it| it.eq_ignore_ascii_case(name));
            match (exact, alike.next(), alike.next()) {
                (Some(exact), _, _) => exact,
                (None, Some(only), None) => only,
                _ => {
                    let names: Vec<_> = names.iter().map(|it| format!("@{it}")).collect();
                    let shown: String = name.chars().take(80).collect();
                    let message =
                        format!("@{shown} is not a variable here; the variables are {}", names.join(", "));
                    return Err(Refusal::new("variable", span, message));
                }
            }
        }
    };
    let name = name.to_owned();
    let at = into.iter().position(|it| *it == name).unwrap_or_else(|| {
        into.push(name);
        into.len() - 1
    });
    Ok(at + 1)
}
