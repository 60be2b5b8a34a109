//! The FOR JSON clause as tokens: bare ROOT, which sqlparser does not read, becomes `ROOT('root')`.

use sqlparser::tokenizer::{Span, Token, TokenWithSpan};

use crate::user_select::{Checked, Refusal};

const OPTIONS: &str = "ROOT, ROOT('name'), INCLUDE_NULL_VALUES and WITHOUT_ARRAY_WRAPPER";

pub(super) fn complete(tokens: &mut Vec<TokenWithSpan>) -> Checked {
    let mut at = 0;
    while at < tokens.len() {
        if is(tokens, at, "for") && is(tokens, at + 1, "xml") {
            return refuse(tokens, at, "FOR XML is not supported: write FOR JSON PATH");
        }
        if !(is(tokens, at, "for") && is(tokens, at + 1, "json")) {
            at += 1;
            continue;
        }
        if !is(tokens, at + 2, "path") && !is(tokens, at + 2, "auto") {
            return refuse(tokens, at, "PATH or AUTO follows FOR JSON");
        }
        at = options(tokens, at + 3)?;
    }
    Ok(())
}

/// Reads `, OPTION` as often as it stands there and gives the position after the last.
fn options(tokens: &mut Vec<TokenWithSpan>, mut at: usize) -> Checked<usize> {
    let mut seen: Vec<&str> = Vec::new();
    while matches!(tokens.get(at), Some(TokenWithSpan { token: Token::Comma, .. })) {
        let known = ["root", "include_null_values", "without_array_wrapper"];
        let Some(option) = known.into_iter().find(|option| is(tokens, at + 1, option)) else {
            return refuse(tokens, at + 1, &format!("after FOR JSON PATH or AUTO may stand {OPTIONS}"));
        };
        if seen.contains(&option) {
            return refuse(tokens, at + 1, "each option of FOR JSON stands once");
        }
        seen.push(option);
        if option == "root" && !matches!(tokens.get(at + 2), Some(TokenWithSpan { token: Token::LParen, .. }))
        {
            let span = tokens.get(at + 1).map_or(Span::empty(), |it| it.span);
            let name = [Token::LParen, Token::SingleQuotedString("root".to_owned()), Token::RParen];
            tokens.splice(at + 2..at + 2, name.map(|token| TokenWithSpan { token, span }));
        }
        at += if option == "root" { 5 } else { 2 };
    }
    Ok(at)
}

fn is(tokens: &[TokenWithSpan], at: usize, name: &str) -> bool {
    match tokens.get(at).map(|it| &it.token) {
        Some(Token::Word(word)) => word.quote_style.is_none() && word.value.eq_ignore_ascii_case(name),
        _ => false,
    }
}

fn refuse<T>(tokens: &[TokenWithSpan], at: usize, message: &str) -> Checked<T> {
    let span = tokens.get(at).or(tokens.last()).map_or(Span::empty(), |it| it.span);
    Err(Refusal::new("for json", span, message))
}
