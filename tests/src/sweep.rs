//! No secret stands where it does not belong: when a folder of a test ends, the logs and files in it are searched for
//! what looks like a key or a token and for every secret that the state folders of this process hold.
//!
//! Seen to fail with a log line at info that holds the key of each request: 66 of the 84 tests that were run with it.
//! Not searched: what a test ran by itself and whose output it kept, what a process says after the folder's search, and
//! what the last test of the shared server leaves there.

use std::collections::{BTreeSet, HashSet};
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use aho_corasick::AhoCorasick;
use parking_lot::Mutex;
use rowgate_core::derive::Root;
use rowgate_core::name::Ulid;
use rowgate_core::role::TenantLogin;
use rowgate_standalone::postgres::SUPERUSER;

/// Of a longer file this many bytes are searched.
const MAX_BYTES: u64 = 64 << 20;
/// The secret characters of a key string, and those of a password.
const SECRET_LEN: usize = 43;
/// Those of a root in its file.
const ROOT_LEN: usize = 64;
/// How each of our tokens begins: `{"alg":"EdDSA",` in base 64.
const TOKEN: &str = "eyJhbGciOiJFZERTQSIs";
/// What stands before the other characters of a key string.
const KEY: &str = "dlk_";

/// The tests themselves are not optimised, and answers have up to 32 MiB: where keys and tokens begin is found by a library.
static BEGINNINGS: LazyLock<AhoCorasick> =
    LazyLock::new(|| AhoCorasick::new([KEY, TOKEN]).expect("two texts"));

static KNOWN: LazyLock<Mutex<Secrets>> = LazyLock::new(Mutex::default);

#[derive(Default)]
struct Secrets {
    /// What tests run in at this moment.
    folders: BTreeSet<PathBuf>,
    /// Of all tests of this process, ended ones too: a shared server may write down a secret of any.
    secrets: HashSet<String>,
    /// Of which passwords are among them: root, label and role.
    derived: HashSet<String>,
}

fn known<T>(work: impl FnOnce(&mut Secrets) -> T) -> T {
    work(&mut KNOWN.lock())
}

/// Remembers a key string, a password or a root in hex that no state folder holds, or not for long.
pub fn remember(secret: &str) {
    let secret = key_at(secret, secret.find(KEY).unwrap_or(secret.len())).unwrap_or(secret);
    assert!([SECRET_LEN, ROOT_LEN].contains(&secret.len()), "a secret of another length would not be found");
    known(|it| it.secrets.insert(secret.to_owned()));
}

pub(crate) fn begin(folder: &Path) {
    known(|it| it.folders.insert(folder.to_owned()));
}

/// Searches a folder for the last time, and says what stands where.
pub(crate) fn end(folder: &Path) -> Vec<String> {
    let found = look(folder);
    known(|it| it.folders.remove(folder));
    found
}

/// Says what stands where in a folder that is still in use.
pub(crate) fn look(folder: &Path) -> Vec<String> {
    let secrets = known(|it| {
        let states: Vec<PathBuf> = it.folders.iter().map(|folder| folder.join("state")).collect();
        let mut labels: BTreeSet<String> =
            states.iter().filter_map(|state| system_identifier(state)).collect();
        labels.extend(["bootstrap".to_owned(), "control".to_owned()]);
        for state in states {
            it.secrets.extend(secrets_of(&state, &labels, &mut it.derived));
        }
        it.secrets.clone()
    });
    let mut found = Vec::new();
    for path in files(folder) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        // The greeting is there to show keys, and nothing else that is secret.
        let greetings = ["stdout", "ready.json", "ready.json.new"];
        let shows_keys = path.parent() == Some(folder) && greetings.contains(&&*name);
        found.extend(
            leaks(&read(&path), &secrets, shows_keys).into_iter().map(|leak| format!("{name}: {leak}")),
        );
    }
    found
}

/// Fails when an answer holds a key, or a token without being the answer to an exchange. What a caller wrote into the
/// address may come back in the links to further pages.
pub fn answer(url: &str, headers: &str, body: &str) {
    let is_exchange = body.contains("\"expiresIn\"");
    let found = |text| !leaks(text, &HashSet::new(), false).is_empty();
    if found(headers) || (!is_exchange && !found(url) && found(body)) {
        let address = url.split('?').next().unwrap_or_default();
        panic!("an answer of {address} gives a secret away: {headers} {body}");
    }
}

/// The files of a folder that are there to be read by people: no cluster, and nothing that is meant for secrets.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for path in fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()) {
        let meant = path.ends_with("state/secrets")
            || path.ends_with("state/postgres")
            || path.ends_with("state/cluster")
            || path.extension().is_some_and(|it| it == "root");
        match (meant, path.is_dir()) {
            (true, _) => {}
            (false, true) => files.append(&mut self::files(&path)),
            (false, false) => files.push(path),
        }
    }
    files
}

/// A file that may be written at this moment, or go.
fn read(path: &Path) -> String {
    let mut bytes = Vec::new();
    let _gone = File::open(path).and_then(|file| file.take(MAX_BYTES).read_to_end(&mut bytes));
    String::from_utf8(bytes).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// What a state folder holds: the secrets of keys, roots, and the passwords that follow from these for the superuser and
/// for every role that a status names.
fn secrets_of(state: &Path, labels: &BTreeSet<String>, derived: &mut HashSet<String>) -> Vec<String> {
    let mut secrets = Vec::new();
    for text in all_below(&state.join("secrets")).iter().map(|path| read(path)) {
        secrets.extend(text.match_indices(KEY).filter_map(|(at, _)| key_at(&text, at)).map(str::to_owned));
    }
    let roles = roles(state);
    for name in ["operator.root", "dataplane.root", "superuser.root"] {
        let Ok(root) = Root::from_hex(&read(&state.join(name))) else { continue };
        let fingerprint = root.fingerprint();
        for (role, label) in roles.iter().flat_map(|role| labels.iter().map(move |label| (role, label))) {
            // Each once: deriving takes its time.
            if derived.insert(format!("{fingerprint}/{label}/{role}")) {
                secrets.push(root.password(label, role, 1).reveal().to_owned());
            }
        }
        secrets.push(root.reveal_hex());
    }
    secrets
}

fn roles(state: &Path) -> Vec<String> {
    let mut roles = vec![SUPERUSER.to_owned(), "rowgate_operator".to_owned(), "rowgate_dataplane".to_owned()];
    for text in all_below(&state.join("status")).iter().map(|path| read(path)) {
        let named =
            |field| text.lines().filter_map(move |line| line.trim().strip_prefix(field)).map(str::trim);
        roles.extend(named("role: ").map(str::to_owned));
        for id in named("tenantId: ").filter_map(|id| id.parse::<Ulid>().ok()) {
            roles.extend(TenantLogin::ALL.map(|login| login.role(&id)));
        }
    }
    roles
}

/// The number that `pg_control` begins with. A world over a server has its cluster in another folder than its roots.
fn system_identifier(state: &Path) -> Option<String> {
    let file = fs::read(state.join("postgres/data/global/pg_control")).ok()?;
    Some(u64::from_ne_bytes(*file.first_chunk::<8>()?).to_string())
}

fn all_below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    entries.flat_map(|path| if path.is_dir() { all_below(&path) } else { vec![path] }).collect()
}

/// The secret characters of the key string whose `dlk_` stands at `at`.
fn key_at(text: &str, at: usize) -> Option<&str> {
    let body = text.get(at + 4..at + 65)?;
    body.bytes().all(|byte| byte.is_ascii_alphanumeric()).then(|| &body[12..12 + SECRET_LEN])
}

/// What stands before each secret in its line.
fn leaks(text: &str, secrets: &HashSet<String>, shows_keys: bool) -> Vec<String> {
    let mut leaks = Vec::new();
    let mut leak = |what: &str, at: usize| {
        let start = text.floor_char_boundary(at.saturating_sub(160));
        let line = text[start..at].lines().next_back().unwrap_or_default();
        leaks.push(format!("{what} after {line:?}"));
    };
    for found in BEGINNINGS.find_iter(text) {
        let at = found.start();
        if text[at..].starts_with(KEY) {
            if !shows_keys && key_at(text, at).is_some() {
                leak("a key", at);
            }
        } else if is_token(&text[at..]) {
            leak("a token", at);
        }
    }
    let words = if secrets.is_empty() { Vec::new() } else { long_words(text.as_bytes()) };
    for at in words {
        let word = &text[at.clone()];
        let hits = |len: usize| {
            (0..(word.len() + 1).saturating_sub(len)).any(|i| secrets.contains(&word[i..i + len]))
        };
        let shown = shows_keys && word.contains(KEY);
        if !shown && (hits(SECRET_LEN) || hits(ROOT_LEN)) {
            leak("a secret of a state folder", at.start);
        }
    }
    leaks.truncate(5);
    leaks
}

/// Whether three parts begin here, the last of them as long as a signature.
fn is_token(text: &str) -> bool {
    let word = |text: &str| text.bytes().take_while(|byte| is_word(*byte)).count();
    let after_dot = |text: &str| text[word(text)..].starts_with('.').then(|| word(text) + 1);
    let Some(payload) = after_dot(text).map(|at| &text[at..]) else { return false };
    after_dot(payload).is_some_and(|at| SECRET_LEN <= word(&payload[at..]))
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-'
}

/// Where letters and digits of base 62 or 64 stand side by side for as long as a secret is. One byte in so many is
/// looked at: a word of this length cannot stand between two of them.
fn long_words(text: &[u8]) -> Vec<std::ops::Range<usize>> {
    let mut words = Vec::new();
    let mut at = SECRET_LEN - 1;
    while at < text.len() {
        let is_in = |byte: &&u8| is_word(**byte);
        let before = text[..at].iter().rev().take_while(is_in).count();
        let after = text[at..].iter().take_while(is_in).count();
        if 0 < after && SECRET_LEN <= before + after {
            words.push(at - before..at + after);
        }
        at += after + SECRET_LEN;
    }
    words
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use crate::scratch::Scratch;

    const KEY: &str = "shop:dlk_0123456789abABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqABCDEF";

    fn message(work: impl FnOnce()) -> String {
        let panic = catch_unwind(AssertUnwindSafe(work)).expect_err("it panics");
        panic.downcast_ref::<String>().cloned().unwrap_or_default()
    }

    /// A folder with a state folder, as standalone leaves it, and this log.
    fn folder(log: &str) -> Scratch {
        let folder = Scratch::new();
        fs::create_dir_all(folder.path().join("state/secrets/default")).expect("the folder is ours");
        fs::create_dir_all(folder.path().join("state/status")).expect("the folder is ours");
        for (name, text) in [
            ("state/secrets/default/a.yaml", format!("apiKey: {KEY}\n")),
            ("state/operator.root", format!("{}\n", Root::new([77; 32]).reveal_hex())),
            ("state/status/a.yaml", "status:\n  role: key_a\n".to_owned()),
            ("stdout", format!("curl -H 'X-API-Key: {KEY}'\n")),
            ("log", log.to_owned()),
        ] {
            fs::write(folder.path().join(name), text).expect("the folder is ours");
        }
        folder
    }

    #[test]
    fn a_folder_with_a_leak_fails_the_test_and_goes_all_the_same() {
        let secret = &KEY[21..64];
        let root = Root::new([77; 32]);
        let password = root.password("control", "key_a", 1);
        for (leak, what) in [
            (KEY, "a key"),
            (&KEY.replace("shop:dlk_0", "dlk_9"), "a key"),
            (&format!("{TOKEN}xx.eyJ4.{}", "s".repeat(86)), "a token"),
            (&format!("x{secret}y"), "a secret of a state folder"),
            (&root.reveal_hex(), "a secret of a state folder"),
            (password.reveal(), "a secret of a state folder"),
        ] {
            let folder = folder(&format!("line one\nline two {leak}\n"));
            let path = folder.path().to_owned();
            let said = message(|| drop(folder));
            assert!(said.contains(&format!("log: {what} after \"line two")), "{leak}: {said}");
            assert!(!said.contains(secret) && !path.exists(), "{said}");
        }
    }

    #[test]
    fn a_secret_is_found_wherever_it_stands() {
        let secrets = HashSet::from([KEY[21..64].to_owned()]);
        for before in 0..100 {
            let text = format!("{} {}. ä{}", ".".repeat(before), "x".repeat(before % 50), &KEY[21..64]);
            assert_eq!(leaks(&text, &secrets, false).len(), 1, "{text}");
        }
    }

    #[test]
    fn a_folder_without_a_leak_ends_in_silence() {
        let unfinished = format!("{TOKEN}xx.eyJ4.s {TOKEN}xx {}", "s".repeat(86));
        drop(folder(&format!("{} dlk_0123456789ab {unfinished}", "f".repeat(200))));
    }

    /// A panic in a drop while another unwinds would end the process, and with it every other test.
    #[test]
    fn a_test_that_fails_already_fails_with_its_own_words() {
        let said = message(|| {
            let _folder = folder(KEY);
            panic!("{}", "of the test");
        });
        assert_eq!(said, "of the test");
    }

    #[test]
    fn an_answer_holds_a_token_after_an_exchange_only() {
        let token = format!("{TOKEN}xx.eyJ4.{}", "s".repeat(86));
        answer("/", "", &format!("{{\"token\": \"{token}\", \"expiresIn\": 1}}"));
        for (headers, body) in [("", &*token), (&*token, "\"expiresIn\""), ("", KEY), (KEY, "")] {
            assert!(message(|| answer("/", headers, body)).contains("gives a secret away"));
        }
    }
}
