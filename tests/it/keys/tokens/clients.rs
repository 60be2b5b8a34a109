//! Public clients: jose (npm) and PyJWT (PyPI) verify our tokens, and no token that they make is one of ours.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use rowgate_core::jwt::{AUDIENCE, ISSUER};
use rowgate_tests::servers::setup;
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::Sha256;

use super::shop::{EXCHANGE, PATHS, Shop};

/// What a script of `tests/clients` says.
#[derive(Debug, Deserialize)]
struct Said {
    claims: Value,
    header: Value,
    /// The token's claims under our key, signed by the client: each forgery differs from it in one thing.
    control: String,
    /// Names and texts.
    forgeries: Vec<(String, String)>,
}

/// The folder `tests`.
pub(crate) fn tests() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The folder with the public clients; downloads them the first time.
pub(crate) fn packages() -> PathBuf {
    setup::path("clients.sh", &[])
}

/// The private key behind a `kid`, HKDF-SHA-256 of the root. The product never gives it away; the root does.
fn seed(shop: &Shop, kid: &str) -> String {
    let (generation, _) = kid.split_once('-').expect("a generation and a thumbprint");
    let mac = |key: &[u8], text: &[u8]| {
        let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("any length");
        mac.update(text);
        mac.finalize().into_bytes()
    };
    let text = std::fs::read_to_string(shop.world.state().join("dataplane.root")).expect("it was made");
    let hex = text.trim();
    let root: Vec<u8> = (0..hex.len())
        .step_by(2)
        .map(|i| u8::from_str_radix(&hex[i..i + 2], 16).expect("hexadecimal digits"))
        .collect();
    URL_SAFE_NO_PAD.encode(mac(&mac(b"rowgate", &root), format!("token/{generation}\x01").as_bytes()))
}

fn run(command: &mut Command, input: &Value) -> Said {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .expect("tests/setup/clients.sh found it");
    let mut stdin = child.stdin.take().expect("it was asked for");
    stdin.write_all(input.to_string().as_bytes()).expect("it reads");
    drop(stdin);
    let output = child.wait_with_output().expect("it ends");
    assert!(output.status.success(), "{command:?} failed; what it said stands above");
    serde_json::from_slice(&output.stdout).expect("it prints JSON")
}

async fn is_verified_and_makes_nothing_that_we_take(shop: &Shop, command: &mut Command, packages: &Path) {
    let token = shop.token("shop-admin").await;
    let input = json!({
        "packages": packages,
        "jwks": format!("{}/.well-known/jwks.json", shop.world.url()),
        "issuer": ISSUER,
        "audience": AUDIENCE,
        "token": token.text(),
        "d": seed(shop, token.part(0)["kid"].as_str().expect("a text")),
    });
    let said = run(command, &input);
    assert_eq!((&said.claims, &said.header), (&token.part(1), &token.part(0)));
    assert_eq!(said.header["alg"], "EdDSA");
    assert!(60 <= said.forgeries.len(), "{}", said.forgeries.len());

    let control = shop.ask("GET", PATHS[1], &[("authorization", &bearer(&said.control))]).await;
    assert_eq!(control.status, 200, "the client signs as we do: {control:?}");

    let stranger = shop.stranger().await;
    for (name, text) in &said.forgeries {
        let header = bearer(text);
        for path in PATHS {
            let reply = shop.ask("GET", path, &[("authorization", &header)]).await;
            assert_eq!(reply, stranger, "{name}: {path}");
        }
        let reply = shop.ask("POST", EXCHANGE, &[("authorization", &header)]).await;
        assert_eq!(reply, stranger, "{name}");
    }
    assert_eq!(shop.get(PATHS[1], &token).await.status, 200, "the token itself still holds");
}

fn bearer(token: &str) -> String {
    format!("Bearer {token}")
}

/// Seen to fail with a data plane that looks for `kid` in the header instead of comparing it whole, one that takes HS256
/// under the public key's bytes, one that does not compare `aud`, and one that does not look at `nbf`.
#[tokio::test]
async fn jose_verifies_our_tokens_and_makes_none() {
    let (shop, packages) = (Shop::open().await, packages());
    let mut command = Command::new("node");
    command.arg(tests().join("clients/jose.mjs"));
    is_verified_and_makes_nothing_that_we_take(&shop, &mut command, &packages).await;
}

/// Seen to fail with the same four.
#[tokio::test]
async fn pyjwt_verifies_our_tokens_and_makes_none() {
    let (shop, packages) = (Shop::open().await, packages());
    let mut command = Command::new("python3");
    command.args([
        "-I",
        "-B",
        "-c",
        "import runpy, sys; sys.path.insert(0, sys.argv[1]); runpy.run_path(sys.argv[2])",
    ]);
    command.arg(packages.join("python")).arg(tests().join("clients/pyjwt.py"));
    is_verified_and_makes_nothing_that_we_take(&shop, &mut command, &packages).await;
}
