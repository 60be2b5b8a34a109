//! A server for tests: it gives prepared answers in their order, and remembers the requests.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::thread::JoinHandle;

use crate::http::client::Api;
use crate::profiles::connection::Connection;

/// One connection for each answer, closed behind it.
pub(crate) struct Script {
    pub(crate) url: String,
    served: JoinHandle<Vec<String>>,
}

impl Script {
    /// `answers`: as they are sent, with `{url}` for the server's own address. An empty one closes the connection.
    pub(crate) fn new(answers: Vec<String>) -> Script {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let own = url.clone();
        let serve = move || {
            answers.iter().map(|answer| exchange(&listener, &answer.replace("{url}", &own))).collect()
        };
        Script { url, served: std::thread::spawn(serve) }
    }

    pub(crate) fn api(&self, retries: u32) -> Api {
        Api::new(&Connection::of_test(&self.url, retries)).expect("a client")
    }

    /// The requests, in lower case, once all answers were given.
    pub(crate) fn requests(self) -> Vec<String> {
        self.served.join().expect("it served")
    }
}

fn exchange(listener: &TcpListener, answer: &str) -> String {
    let (mut stream, _) = listener.accept().expect("a connection");
    let (mut request, mut len) = (String::new(), 0);
    let mut reader = BufReader::new(stream.try_clone().expect("a socket"));
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).expect("a line");
        let line = line.to_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            len = value.trim().parse().expect("a length");
        }
        if line.trim().is_empty() {
            break;
        }
        request.push_str(&line);
    }
    let mut body = vec![0; len];
    reader.read_exact(&mut body).expect("the body");
    request.push_str(&String::from_utf8_lossy(&body).to_lowercase());
    stream.write_all(answer.as_bytes()).expect("written");
    request
}

/// An answer whose length is that of its body.
pub(crate) fn answer(status: &str, headers: &str, body: &str) -> String {
    let len = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-length: {len}\r\nconnection: close\r\n{headers}\r\n{body}")
}
