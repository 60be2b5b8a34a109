//! Rules of what a user reads: no word stands in a message that a reader in a hurry stops at.

use rowgate_tests::messages::messages;

use super::root;

const STRANGE: [&str; 8] = ["nobody", "somebody", "whoever", "whomever", "anew", "mend", "mends", "mended"];

#[test]
fn no_message_holds_a_word_that_a_reader_stops_at() {
    let messages = messages(&root());
    assert!(300 < messages.len(), "{} messages: the sources are read", messages.len());
    let found: Vec<String> = messages
        .into_iter()
        .filter(|message| {
            // the user of that name, as code
            let text = message.text.to_lowercase().replace("`nobody`", "");
            text.split(|c: char| !c.is_alphabetic()).any(|word| STRANGE.contains(&word))
        })
        .map(|message| format!("{}:{}: {}", message.path.display(), message.line, message.text))
        .collect();
    assert!(found.is_empty(), "{}", found.join("\n"));
}
