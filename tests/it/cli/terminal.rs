//! On a terminal: tables cut to its width, a prompt that does not show the key, and completions that shells accept.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::sync::Arc;

use nix::pty::{Winsize, openpty};
use nix::sys::termios::{LocalFlags, tcgetattr};
use parking_lot::Mutex;
use rowgate_tests::wait::until;
use tokio::process::{Child, Command};

use super::fixture::{Desk, done, secretive};

const COLUMNS: u16 = 44;

/// A run whose standard streams are a terminal.
struct Terminal {
    child: Child,
    master: File,
    shown: Arc<Mutex<String>>,
    slave: OwnedFd,
}

impl Terminal {
    fn run(mut command: Command) -> Terminal {
        let size = Winsize { ws_row: 24, ws_col: COLUMNS, ws_xpixel: 0, ws_ypixel: 0 };
        let terminal = openpty(&size, None).expect("the machine has terminals");
        let stream = || Stdio::from(terminal.slave.try_clone().expect("a descriptor"));
        command.stdin(stream()).stdout(stream()).stderr(stream());
        let child = command.spawn().expect("it was built");
        let master = File::from(terminal.master);
        let (mut reader, shown) =
            (master.try_clone().expect("a descriptor"), Arc::new(Mutex::new(String::new())));
        let sink = shown.clone();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            // Linux ends a terminal that nobody has open any more with an error.
            while let Ok(n @ 1..) = reader.read(&mut buffer) {
                sink.lock().push_str(&String::from_utf8_lossy(&buffer[..n]));
            }
        });
        Terminal { child, master, shown, slave: terminal.slave }
    }

    async fn shows(&self, text: &str) {
        until(text, async || self.shown.lock().contains(text).then_some(())).await;
    }

    fn types(&mut self, text: &str) {
        self.master.write_all(text.as_bytes()).expect("the terminal is open");
    }

    /// The exit code, once all of `last` is shown.
    async fn ends(&mut self, last: &str) -> (Option<i32>, String) {
        let status = self.child.wait().await.expect("it is our child");
        self.shows(last).await;
        (status.code(), self.shown.lock().replace("\r\n", "\n"))
    }

    fn echoes(&self) -> bool {
        let flags = tcgetattr(&self.slave).expect("a terminal").local_flags;
        flags.contains(LocalFlags::ECHO | LocalFlags::ISIG)
    }
}

#[tokio::test]
async fn a_terminal_gets_tables_of_its_width() {
    let desk = Desk::open().await;
    let command =
        desk.command("all", &["get", "orders", "--filter", "id eq 1", "--select", "id,note,region,total"]);
    let (code, shown) = Terminal::run(command).ends("1.50").await;
    assert_eq!(code, Some(0));
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines.len(), 3, "{shown}");
    assert!(lines.iter().all(|line| line.chars().count() <= usize::from(COLUMNS)), "{shown}");
    assert!(lines[2].starts_with(" 1  a \"quote\",\\nand") && lines[2].contains('…'), "{shown}");

    let (code, shown) = Terminal::run(desk.command("north", &["whoami"])).ends("id, region").await;
    assert_eq!(code, Some(0));
    assert!(shown.starts_with(&format!("server  {}\ntenant  desk\n", desk.world.url())), "{shown}");
}

#[tokio::test]
async fn the_prompt_for_a_key_shows_nothing_and_ctrl_c_leaves_the_terminal_as_it_was() {
    let desk = Desk::open().await;
    let url = desk.world.url();
    let add = || desk.bare(&["profile", "add", "desk", "--url", &url]);
    let mut asked = Terminal::run(add());
    asked.shows("API key: ").await;
    assert!(!asked.echoes());
    asked.types("desk:dlk_hal\u{3}");
    let (code, shown) = asked.ends("\n").await;
    assert_eq!((code, shown.as_str()), (Some(130), "API key: \n"));
    assert!(asked.echoes() && !desk.profiles().exists());

    let mut asked = Terminal::run(add());
    asked.shows("API key: ").await;
    asked.types(&format!("{}\n", desk.world.key("all")));
    let (code, shown) = asked.ends("tries it").await;
    assert!(code == Some(0) && asked.echoes() && !secretive(&shown), "{shown}");
    assert_eq!(done(desk.bare(&["whoami"])).await.code, 0);
}

#[tokio::test]
async fn completions_are_scripts_that_name_every_command() {
    let desk = Desk::open().await;
    for shell in ["bash", "zsh", "fish"] {
        let script = desk.prints("all", &["completions", shell]).await;
        for command in ["query", "get", "tail", "webhooks", "rotate-secret", "profile", "whoami"] {
            assert!(script.contains(command), "{shell} {command}");
        }
    }
    let script = desk.prints("all", &["completions", "bash"]).await;
    let ask =
        "\nCOMP_WORDS=(rowgate get --or) COMP_CWORD=2\n_rowgate rowgate --or get\necho \"${COMPREPLY[@]}\"";
    let file = desk.file("complete.sh", &(script + ask));
    let answer = done(bash(&file)).await;
    assert_eq!((answer.stdout.as_str(), answer.stderr.as_str()), ("--orderby\n", ""));
}

fn bash(file: &str) -> Command {
    let mut command = Command::new("bash");
    command.arg(file);
    command
}
