//! Columns whose names say that they hold secrets. A guess: the manifest lists what it leaves out, for a person to judge.

use rowgate_pg::introspect::actual::Relation;

/// Anywhere in a name, whatever stands between its words.
const ANYWHERE: [&str; 10] = [
    "password",
    "passwd",
    "passphrase",
    "secret",
    "credential",
    "apikey",
    "privatekey",
    "accesskey",
    "signingkey",
    "encryptionkey",
];
/// As a word of a name; within other words they are harmless, as in `hashtag`.
const WORDS: [&str; 11] =
    ["token", "tokens", "hash", "hashes", "salt", "pwd", "pass", "otp", "totp", "nonce", "cvv"];

/// The columns to be left out. Those of the primary key, which cannot be, are the second list.
pub(super) fn secrets(relation: &Relation) -> [Vec<&str>; 2] {
    let names = relation.columns.iter().map(|column| column.name.as_str()).filter(|name| is_secret(name));
    let (key, others) = names.partition(|name| relation.primary_key.iter().any(|key| key == name));
    [others, key]
}

fn is_secret(name: &str) -> bool {
    let letters: String = name.chars().filter(|c| c.is_alphanumeric()).collect();
    let letters = letters.to_lowercase();
    ANYWHERE.iter().any(|part| letters.contains(part))
        || words(name).iter().any(|word| WORDS.contains(&word.as_str()))
}

/// `apiToken`, `api_token` and `API-TOKEN` have the words `api` and `token`.
fn words(name: &str) -> Vec<String> {
    let mut spaced = String::new();
    let mut was_lower = false;
    for c in name.chars() {
        if c.is_uppercase() && was_lower {
            spaced.push(' ');
        }
        was_lower = c.is_lowercase() || c.is_numeric();
        spaced.push(c);
    }
    let words = spaced.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_say_so_are_left_out() {
        for name in [
            "password",
            "password_hash",
            "encrypted_password",
            "passwordhash",
            "passwd",
            "pwd",
            "client_secret",
            "secretKey",
            "token",
            "apiToken",
            "API-TOKEN",
            "refresh token",
            "hash",
            "salt",
            "api_key",
            "apikey",
            "private_key",
            "otp",
        ] {
            assert!(is_secret(name), "{name}");
        }
        for name in [
            "id",
            "name",
            "hashtag",
            "salted_caramel",
            "tokenizer",
            "passenger",
            "key",
            "public_key",
            "compass",
            "secured",
        ] {
            assert!(!is_secret(name), "{name}");
        }
    }
}
