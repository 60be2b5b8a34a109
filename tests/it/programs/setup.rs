//! What `make` says on a machine that lacks something: all of it, by name, before anything is built.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use rowgate_tests::servers::postgres::BIN;

fn root() -> PathBuf {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR"));
    tests.parent().expect("the tests stand in the workspace").to_owned()
}

/// Stand-ins for programs that are asked for nothing but their version, and need a moment for it.
const NEW_ENOUGH: [(&str, &str); 4] =
    [("node", "echo 22"), ("python3", "exit 0"), ("go", "echo go1.26.0"), ("dpkg", "echo amd64")];

/// A machine that has what this one has, by links to every program of its PATH, and nothing in the cache.
struct Machine {
    folder: tempfile::TempDir,
}

impl Machine {
    fn new() -> Machine {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let machine = Machine { folder };
        for folder in ["bin", "aside"] {
            fs::create_dir(machine.path(folder)).expect("the folder is ours");
        }
        for (program, script) in NEW_ENOUGH {
            machine.put(program, script);
        }
        let mut known: BTreeSet<_> = NEW_ENOUGH.iter().map(|(program, _)| (*program).into()).collect();
        let path = std::env::var_os("PATH").expect("a PATH");
        for entry in std::env::split_paths(&path).filter_map(|folder| folder.read_dir().ok()).flatten() {
            let entry = entry.expect("the folder is read");
            // The first folder of the PATH that has a name wins, as it does for a shell.
            if known.insert(entry.file_name()) {
                symlink(entry.path(), machine.path("bin").join(entry.file_name())).expect("it is ours");
            }
        }
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// In place of a link to a program of this machine, and never through it.
    fn put(&self, program: &str, script: &str) {
        let path = self.path("bin").join(program);
        // Another process writes it: a program that we had open could not run while a child that another test starts holds
        // it open, too. `noclobber` refuses whatever is there, so that a script never ends up in the machine's own program.
        let write = r#"rm -f "$1"; set -C; printf '#!/bin/sh\n%s\n' "$2" >"$1" && chmod 755 "$1""#;
        let status = Command::new("sh").args(["-c", write, "put"]).arg(&path).arg(script).status();
        assert!(status.expect("a shell runs").success(), "{} cannot be written", path.display());
        assert!(!path.is_symlink(), "{} is a link to a program of this machine", path.display());
    }

    /// A line of a shell in the checkout. What is installed beyond the PATH does not count.
    fn run(&self, line: &str) -> Output {
        let mut command = Command::new("bash");
        command.args(["-c", line]).current_dir(root());
        for name in [BIN, "POSTGRES", "KUBEBUILDER_ASSETS", "MAKEFLAGS", "MAKELEVEL"] {
            command.env_remove(name);
        }
        command.env("PATH", self.path("bin")).env("ROWGATE_PINNED", "1");
        command.env("ROWGATE_CACHE", self.path("cache")).output().expect("bash runs")
    }

    /// What `line` says to be missing once these programs are gone, in the order in which it says it.
    fn without(&self, programs: &[&str], line: &str) -> Vec<String> {
        let (bin, aside) = (self.path("bin"), self.path("aside"));
        for program in programs {
            // Few machines have all of them.
            let _absent = fs::rename(bin.join(program), aside.join(program));
        }
        let lines = self.lacks(line);
        for program in programs {
            let _absent = fs::rename(aside.join(program), bin.join(program));
        }
        lines
    }

    /// As [`Machine::without`], with scripts in place of programs.
    fn with(&self, programs: &[(&str, &str)], line: &str) -> Vec<String> {
        let (bin, aside) = (self.path("bin"), self.path("aside"));
        for (program, script) in programs {
            let _absent = fs::rename(bin.join(program), aside.join(program));
            self.put(program, script);
        }
        let lines = self.lacks(line);
        for (program, _) in programs {
            fs::remove_file(bin.join(program)).expect("it was put there");
            let _absent = fs::rename(aside.join(program), bin.join(program));
        }
        lines
    }

    fn lacks(&self, line: &str) -> Vec<String> {
        let output = self.run(line);
        let text = String::from_utf8(output.stderr).expect("UTF-8");
        assert_eq!(output.status.code(), Some(2), "{line}: {text}");
        assert!(!self.path("cache").exists(), "{line} built something: {text}");
        assert!(text.contains("this machine lacks what make "), "{line}: {text}");
        text.lines().filter_map(|line| line.strip_prefix("  ")).map(str::to_owned).collect()
    }
}

/// Exactly one thing is missing, and the line about it begins so.
fn one(lines: &[String], start: &str) {
    assert!(lines.len() == 1 && lines[0].starts_with(start), "{start:?}: {lines:?}");
}

/// Seen to fail with a script that is written through the link, into a program of this machine.
#[test]
fn a_script_takes_the_place_of_a_link_and_leaves_what_it_leads_to() {
    let machine = Machine::new();
    let own = machine.path("own");
    fs::write(&own, "as it was").expect("the folder is ours");
    symlink(&own, machine.path("bin/rowgate-none")).expect("it is ours");
    machine.put("rowgate-none", "exit 0");
    assert_eq!(fs::read_to_string(&own).expect("it is there"), "as it was");
    assert!(!machine.path("bin/rowgate-none").is_symlink());
}

#[test]
fn what_a_machine_lacks_is_told_by_name() {
    let machine = Machine::new();
    // So that it may lack apt-get only, wherever this runs.
    machine.put("apt-get", "exit 1");
    machine.put("dpkg-deb", "exit 1");
    machine.put("apt-cache", "echo '  Candidate: 1.18.0-1'; seq 100000");
    let pgbouncer = "apt-get and dpkg-deb, with which PgBouncer is downloaded: ";
    for (target, program, told) in [
        ("run", "cargo", "cargo: install rustup, "),
        ("run", "cc", "cc: install a C compiler, "),
        ("run", "curl", "curl: "),
        ("run", "npm", "npm: install Node.js 18 or newer with npm"),
        ("run", "tar", "tar: "),
        ("cluster", "go", "go: install Go 1.26 or newer, "),
        ("test", "go", "go: install Go 1.26 or newer, "),
        ("test", "node", "npm: install Node.js 20 or newer with npm"),
        ("test", "python3", "python3: install Python 3.10 or newer with pip, "),
        ("test", "git", "git: "),
        ("test", "apt-get", pgbouncer),
        ("test", "dpkg-deb", pgbouncer),
        ("console", "npm", "npm: install Node.js 20 or newer with npm"),
    ] {
        one(&machine.without(&[program], &format!("tests/setup/preflight.sh {target}")), told);
    }
    let old_go = "echo 'go: go.mod requires go >= 1.26' >&2; exit 1";
    let old_cargo = "echo cargo 1.70.0";
    for (programs, told) in [
        (&[("node", "echo 18")][..], "npm: install Node.js 20 or newer with npm"),
        (&[("python3", "exit 1")], "python3: install Python 3.10 or newer with pip, "),
        (&[("python3", "[ \"$1\" != -m ]")], "pip: python3 has none"),
        (
            &[("go", old_go)],
            "Go 1.26 or newer, with which an API server is built: go: go.mod requires go >= 1.26",
        ),
        // A user who is not root on a machine where apt-get update ran. Seen to fail with a grep that does not read to the end.
        (&[("id", "echo 1000"), ("python3", "exit 1")], "python3: install Python 3.10 or newer with pip, "),
        // And where it never ran; root's set-up runs it.
        (
            &[("id", "echo 1000"), ("apt-cache", "exit 0")],
            "apt's lists of packages, in which PgBouncer stands: run apt-get update as root",
        ),
    ] {
        one(&machine.with(programs, "tests/setup/preflight.sh test"), told);
    }
    fs::remove_file(machine.path("bin/rustup")).ok();
    one(&machine.with(&[("cargo", old_cargo)], "tests/setup/preflight.sh lint"), "Rust 1.");
}

#[test]
fn make_tells_all_of_it_at_once_and_builds_nothing() {
    let machine = Machine::new();
    let gone =
        ["cargo", "rustup", "cc", "curl", "node", "npm", "go", "git", "python3", "apt-get", "dpkg-deb"];
    let pgbouncer = "apt-get and dpkg-deb, with which PgBouncer is downloaded";
    for (target, told) in [
        ("run", &["cargo", "cc", "curl", "npm"][..]),
        ("cluster", &["cargo", "cc", "curl", "go", "npm"]),
        ("test", &["cargo", "cc", "curl", "git", "python3", pgbouncer, "go", "npm"]),
        ("kubernetes", &["go"]),
        ("lint", &["cargo", "cc"]),
    ] {
        let lines = machine.without(&gone, &format!("make {target}"));
        let names: Vec<&str> = lines.iter().filter_map(|line| line.split(": ").next()).collect();
        assert_eq!(names, told, "make {target}");
    }
}

/// A name that no test has any more would run nothing and be green.
#[test]
fn every_name_that_make_gives_to_the_tests_is_one_of_a_test() {
    let own = std::env::current_exe().expect("the tests run");
    let list = Command::new(own).arg("--list").output().expect("it lists its tests").stdout;
    let list = String::from_utf8(list).expect("names are UTF-8");
    let makefile = fs::read_to_string(root().join("Makefile")).expect("it is committed").replace("\\\n", " ");
    for variable in ["on_oldest", "soaks"] {
        let start = format!("\n{variable} := ");
        let names =
            makefile.split(&start).nth(1).and_then(|rest| rest.lines().next()).expect("it stands there");
        for name in names.split_whitespace().filter(|name| !name.starts_with("--")) {
            assert!(list.contains(name), "{variable}: no test has {name} in its name");
        }
    }
}
