//! A PostgreSQL whose disk takes as long as one says. What a durable commit costs depends on that more than on all else, and disks differ:
//! 0.1 ms with a battery behind it, 1 to 4 ms over a network.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rowgate_tests::scratch::Scratch;
use rowgate_tests::servers::postgres::Server;

const SLOW_SYNC: &str = include_str!("slow_sync.c");

/// It begins with the disk of the machine, or its memory.
pub(crate) struct SlowDisk {
    pub(crate) server: Server,
    _programs: Scratch,
}

impl SlowDisk {
    /// `like`: a server whose programs are taken.
    pub(crate) async fn of(like: &Server, settings: &[&str]) -> SlowDisk {
        let programs = Scratch::new();
        let real = fs::read_link(format!("/proc/{}/exe", like.pid())).expect("it runs");
        wrap(&real, programs.path());
        let server = Server::of_programs(settings, programs.path().to_owned()).await;
        SlowDisk { server, _programs: programs }
    }

    /// From now on, a sync takes so much longer.
    pub(crate) fn take(&self, longer: Duration) {
        let said = self.server.data().join("slow_sync_us");
        let draft = said.with_extension("draft");
        fs::write(&draft, longer.as_micros().to_string()).expect("the folder is ours");
        fs::set_permissions(&draft, fs::Permissions::from_mode(0o644)).expect("the file is ours");
        fs::rename(&draft, &said).expect("the folder is ours");
    }
}

/// Makes of a folder one of the programs beside `postgres`, where that one is slow to sync.
fn wrap(postgres: &Path, folder: &Path) {
    let bin = postgres.parent().expect("it is in a folder");
    for program in fs::read_dir(bin).expect("a folder of programs") {
        let program = program.expect("it is there").path();
        if program != postgres {
            symlink(&program, folder.join(program.file_name().expect("it has a name"))).expect("it is new");
        }
    }
    let library = library(folder);
    let script = folder.join("postgres");
    let text = format!("#!/bin/sh\nLD_PRELOAD={} exec {} \"$@\"\n", library.display(), postgres.display());
    fs::write(&script, text).expect("the folder is ours");
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("the file is ours");
}

fn library(folder: &Path) -> PathBuf {
    let (source, library) = (folder.join("slow_sync.c"), folder.join("slow_sync.so"));
    fs::write(&source, SLOW_SYNC).expect("the folder is ours");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", "-O2", "-o"]).arg(&library).arg(&source);
    let compiled = compiler.status().expect("cc runs where Rust is compiled");
    assert!(compiled.success(), "{compiler:?}: {compiled}");
    fs::set_permissions(&library, fs::Permissions::from_mode(0o755)).expect("the file is ours");
    library
}
