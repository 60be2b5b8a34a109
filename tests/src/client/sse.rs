//! Server-sent events as the HTML standard reads them, of an answer that goes on.

use reqwest::Response;
use tokio::time::timeout;

use crate::sweep;
use crate::wait::DEADLINE;

/// What a block of lines says: an event, a comment or a time to connect again.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Block {
    pub id: String,
    pub event: String,
    pub data: String,
    /// Milliseconds.
    pub retry: Option<u64>,
    pub comments: Vec<String>,
}

/// Reads an answer of `text/event-stream`.
#[derive(Debug)]
pub struct EventStream {
    response: Response,
    text: String,
}

impl EventStream {
    /// Of an answer with status 200.
    #[must_use]
    pub fn new(response: Response) -> EventStream {
        assert_eq!(response.status(), 200, "{response:?}");
        assert_eq!(response.headers()["content-type"], "text/event-stream", "{response:?}");
        assert_eq!(response.headers()["cache-control"], "private, no-store", "{response:?}");
        EventStream { response, text: String::new() }
    }

    /// The next block with an event. `None`: the answer is over, or its connection broke.
    pub async fn next(&mut self) -> Option<Block> {
        loop {
            let block = self.block().await?;
            if !block.event.is_empty() {
                return Some(block);
            }
        }
    }

    /// The next block. Lines that no empty line follows are one where the answer is over.
    pub async fn block(&mut self) -> Option<Block> {
        loop {
            if let Some((block, rest)) = self.text.split_once("\n\n") {
                let (block, rest) = (parse(block), rest.to_owned());
                self.text = rest;
                return Some(block);
            }
            let chunk = timeout(DEADLINE, self.response.chunk()).await.expect("a server-sent event comes");
            let Ok(Some(chunk)) = chunk else {
                let rest = std::mem::take(&mut self.text);
                return (!rest.is_empty()).then(|| parse(&rest));
            };
            let text = std::str::from_utf8(&chunk).expect("a piece is text");
            sweep::answer("a stream", "", text);
            self.text.push_str(text);
        }
    }
}

fn parse(text: &str) -> Block {
    let mut block = Block::default();
    for line in text.lines() {
        let (field, value) = line.split_once(':').unwrap_or((line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "" => block.comments.push(value.to_owned()),
            "id" => value.clone_into(&mut block.id),
            "event" => value.clone_into(&mut block.event),
            "retry" => block.retry = Some(value.parse().expect("milliseconds")),
            "data" if block.data.is_empty() => value.clone_into(&mut block.data),
            "data" => {
                block.data.push('\n');
                block.data.push_str(value);
            }
            other => panic!("{other:?} is no field of a server-sent event: {text}"),
        }
    }
    block
}
