//! What was kept of the fuzzers' inputs, tried anew in every test run.

use std::fs;
use std::path::{Path, PathBuf};

fn folder(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds").join(target)
}

/// Gives each seed, each beginning of it, and the seed with each byte changed to `check`.
fn replay(target: &str, check: fn(&[u8])) {
    let mut n_seeds = 0;
    for entry in fs::read_dir(folder(target)).expect("the seeds are committed") {
        let seed = fs::read(entry.expect("a readable folder").path()).expect("a readable file");
        n_seeds += 1;
        check(&seed);
        for i in 0..seed.len() {
            check(&seed[..i]);
            let mut changed = seed.clone();
            changed[i] = if changed[i] == b'(' { b'\'' } else { b'(' };
            check(&changed);
        }
    }
    assert!(3 <= n_seeds, "{target} has {n_seeds} seeds");
}

/// Seen to fail with a `Display` that leaves out the parentheses of a sum within a product, and with a compiler that
/// writes a text into the SQL instead of binding it.
#[test]
fn filters() {
    replay("filter", rowgate_fuzz::filter::check);
}

#[test]
fn query_strings() {
    replay("query", rowgate_fuzz::query::check);
}

/// Seen to fail with a `decode` that does not compare the tag.
#[test]
fn cursors() {
    replay("cursor", rowgate_fuzz::cursor::check);
}

/// Seen to fail with a `verify` that does not check signatures.
#[test]
fn tokens() {
    let seed = fs::read_to_string(folder("token").join("ours")).expect("it is committed");
    assert_eq!(seed, rowgate_fuzz::token::ours(), "another form of token needs another seed");
    replay("token", rowgate_fuzz::token::check);
}

#[test]
fn keys() {
    replay("key", rowgate_fuzz::key::check);
}
