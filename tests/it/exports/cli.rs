//! `rowgate export`, the public client: it waits, downloads, and goes on with what it has.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use rowgate_tests::world::binary;

use super::fixture::{BULK, Depot, gated};

fn rowgate(depot: &Depot, key: &str, folder: &Path, arguments: &[&str]) -> Output {
    let program = binary().with_file_name("rowgate");
    let output = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .env("ROWGATE_URL", depot.world.url())
        .env("ROWGATE_KEY", depot.world.key(key))
        .env("XDG_CONFIG_HOME", folder)
        .output()
        .expect("it is built beside the data plane");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

#[tokio::test(flavor = "multi_thread")]
async fn the_command_line_exports_downloads_lists_resumes_and_cancels() {
    let depot = Depot::open().await;
    let folder = tempfile::tempdir().expect("a folder");
    let said =
        rowgate(&depot, "plain", folder.path(), &["export", "bulk", "--orderby", "id", "-o", "bulk.csv"]);
    let said = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(said.contains("30,000 rows") || said.contains("30000 rows"), "{said}");
    let whole = fs::read(folder.path().join("bulk.csv")).expect("the file");
    assert_eq!(String::from_utf8_lossy(&whole).lines().count(), BULK + 1);

    // a download that broke off in the middle
    let id = depot.ask("plain", "GET", "").await.json()["value"][0]["id"].as_str().expect("an id").to_owned();
    fs::write(folder.path().join("again.csv.part"), &whole[..whole.len() / 2]).expect("written");
    fs::write(folder.path().join("again.csv.part.job"), format!("{id}\n")).expect("written");
    rowgate(&depot, "plain", folder.path(), &["export", "--resume", &id, "-o", "again.csv"]);
    assert!(fs::read(folder.path().join("again.csv")).expect("the file") == whole, "every byte once");
    let log = depot.world.log();
    let is_part =
        |line: &&str| line.contains("/api/ddl/exports/{id}/file") && line.contains("\"status\":206");
    assert!(log.lines().any(|line| is_part(&line)), "only what was missing: {log}");

    // to standard output, which is a pipe here
    for target in ["-", "/dev/stdout"] {
        let arguments = ["export", "--resume", &id, "-o", target];
        let piped = rowgate(&depot, "plain", folder.path(), &arguments).stdout;
        assert!(piped == whole, "{target}: {} bytes of {}", piped.len(), whole.len());
    }

    let query = [
        "export",
        "--query",
        "select id from depot.notes where id <= @n",
        "-p",
        "n=2",
        "-o",
        "some.jsonl.gz",
    ];
    rowgate(&depot, "plain", folder.path(), &query);
    let packed = fs::read(folder.path().join("some.jsonl.gz")).expect("the file");
    let mut text = String::new();
    std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(&packed[..]), &mut text).expect("gzip");
    assert_eq!(text.lines().count(), 2);

    let gate = depot.gate().await;
    let running = depot.started("plain", gated()).await;
    depot.at_the_gate("plain", &running).await;
    rowgate(&depot, "plain", folder.path(), &["exports", "cancel", &running]);
    let listed = rowgate(&depot, "plain", folder.path(), &["exports", "-o", "json"]);
    let listed = String::from_utf8_lossy(&listed.stdout).into_owned();
    assert!(listed.contains(&running) && listed.contains("cancelled") && listed.contains(&id), "{listed}");
    assert!(listed.contains(r#""file":"bulk.csv""#) && listed.contains("query.jsonl.gz"), "{listed}");
    gate.open().await;
}
