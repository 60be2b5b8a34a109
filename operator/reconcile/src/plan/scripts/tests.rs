//! Lists of scripts, those that ran, and what follows: a line each.

use super::*;

/// Scripts by the letters of their texts, `-` for one that is missing: `a` is key `a` of ConfigMap `m`, and `a=b` the same with the text `b`.
fn listed(texts: &str) -> Vec<Script<'_>> {
    let script = |word| {
        let (key, text) = word_of(word);
        Script { name: "m", key, text: (text != "-").then_some(text) }
    };
    texts.split_whitespace().map(script).collect()
}

fn word_of(word: &str) -> (&str, &str) {
    word.split_once('=').unwrap_or((word, word))
}

fn ran(texts: &str) -> Vec<Ran> {
    let ran = |key: &str| Ran { name: "m".to_owned(), key: key.to_owned(), sha256: sha256(key) };
    texts.split_whitespace().map(ran).collect()
}

/// `run 2 b`, `count a`, `done`, or the reason, ` (waits)` and the message.
fn said(listed: &[Script<'_>], ran: &[Ran], bootstrapped: bool) -> String {
    match next(listed, ran, bootstrapped) {
        Next::Done => "done".to_owned(),
        Next::Run { number, text, note } => {
            assert_eq!((note.sha256, &note.key[..]), (sha256(text), listed[number - 1].key));
            format!("run {number} {text}")
        }
        Next::CountFirst(note) => format!("count {}", note.key),
        Next::Stalled { finding, waits } => {
            let waits = if waits { " (waits)" } else { "" };
            format!("{:?}{waits}: {}", finding.reason, finding.message)
        }
    }
}

#[test]
fn each_runs_once_and_in_order() {
    for (list, before, expected) in [
        ("a", "", "run 1 a"),
        ("a b c", "", "run 1 a"),
        ("a b c", "a", "run 2 b"),
        ("a b c", "a b", "run 3 c"),
        ("a b c", "a b c", "done"),
        ("a b c a", "a b c", "run 4 a"),
        ("a z=b", "a b", "done"),
        ("a b=x", "a", "run 2 x"),
    ] {
        assert_eq!(said(&listed(list), &ran(before), !before.is_empty()), expected, "{list} after {before}");
    }
}

#[test]
fn of_a_database_that_was_made_from_one_script_the_first_counts_as_run() {
    assert_eq!(said(&listed("a b"), &[], true), "count a");
    assert_eq!(said(&listed("a b"), &ran("a"), true), "run 2 b");
    assert!(said(&listed("a=- b"), &[], true).starts_with("ConfigMapNotFound (waits): "));
}

#[test]
fn what_ran_is_not_changed_moved_removed_or_missing() {
    let hash = |key: &str| sha256(key)[..12].to_owned();
    let changed = format!(
        "script 2 of bootstrap.scripts, ConfigMap m key b, was changed after it ran; restore the text that ran (its SHA-256 begins with {}), \
         and append a new script with the change",
        hash("b")
    );
    let other = |number: usize, now: &str, before: &str| {
        format!(
            "script {number} of bootstrap.scripts is ConfigMap m key {now}, but ConfigMap m key {before} ran at this place; restore the order of \
             the scripts that ran (the SHA-256 of that one begins with {}), and append new ones behind them",
            hash(before)
        )
    };
    let removed = format!(
        "script 3 of bootstrap.scripts, ConfigMap m key c, ran and is not listed any more; restore it at its place (its SHA-256 begins with \
         {}), and append a new script to undo what it did",
        hash("c")
    );
    let gone = format!(
        "script 2 of bootstrap.scripts ran, and ConfigMap m key b does not exist any more; apply it with the text that ran (its SHA-256 \
         begins with {})",
        hash("b")
    );
    let missing = "script 4 of bootstrap.scripts names ConfigMap m key d, which does not exist; apply it";
    for (list, expected) in [
        ("a b=x c", format!("ScriptChanged: {changed}")),
        ("a b=x c d", format!("ScriptChanged (waits): {changed}")),
        ("a c", format!("ScriptChanged: {}", other(2, "c", "b"))),
        ("b a c", format!("ScriptChanged: {}", other(1, "b", "a"))),
        ("a x b c", format!("ScriptChanged (waits): {}", other(2, "x", "b"))),
        ("a b=c c=b", format!("ScriptChanged: {changed}")),
        ("a b", format!("ScriptChanged: {removed}")),
        ("a b=- c", format!("ConfigMapNotFound: {gone}")),
        ("a b=- c d", format!("ConfigMapNotFound (waits): {gone}")),
        ("a b c d=-", format!("ConfigMapNotFound (waits): {missing}")),
    ] {
        assert_eq!(said(&listed(list), &ran("a b c"), true), expected, "{list}");
    }
}
