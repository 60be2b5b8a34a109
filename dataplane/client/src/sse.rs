//! Server-sent events, taken from a body that arrives in pieces of any size.

use std::time::Duration;

/// One event of a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SseEvent {
    /// `message` where the stream names none.
    pub(crate) name: String,
    pub(crate) data: String,
    /// The last id by then, which is sent as `Last-Event-ID` to go on behind this event.
    pub(crate) id: Option<String>,
}

/// The state of one connection. An event without data is given too: it moves the id on.
#[derive(Debug, Default)]
pub(crate) struct SseParser {
    line: Vec<u8>,
    /// The line before ended in a carriage return: a line feed behind it belongs to that.
    after_cr: bool,
    is_started: bool,
    name: String,
    data: Option<String>,
    has_fields: bool,
    id: Option<String>,
    retry: Option<Duration>,
}

impl SseParser {
    /// How long the server wants a reader to wait before it connects again.
    #[must_use]
    pub(crate) fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// The events that are complete with this piece.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Vec<SseEvent> {
        let mut events = Vec::new();
        for &byte in piece {
            let is_second = byte == b'\n' && self.after_cr;
            self.after_cr = byte == b'\r';
            match byte {
                b'\n' if is_second => {}
                b'\n' | b'\r' => events.extend(self.take_line()),
                byte => self.line.push(byte),
            }
        }
        events
    }

    fn take_line(&mut self) -> Option<SseEvent> {
        let bytes = std::mem::take(&mut self.line);
        let text = String::from_utf8_lossy(&bytes);
        let text = match self.is_started {
            false => text.strip_prefix('\u{feff}').unwrap_or(&text),
            true => &text,
        };
        self.is_started = true;
        if text.is_empty() {
            return self.dispatch();
        }
        let (field, value) = text.split_once(':').unwrap_or((text, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => value.clone_into(&mut self.name),
            "data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.data = Some(value.to_owned()),
            },
            "id" if !value.contains('\0') => self.id = Some(value.to_owned()),
            "retry" => {
                if let Ok(milliseconds) = value.parse() {
                    self.retry = Some(Duration::from_millis(milliseconds));
                }
                return None;
            }
            // a comment, or a field of a later version
            _ => return None,
        }
        self.has_fields = true;
        None
    }

    fn dispatch(&mut self) -> Option<SseEvent> {
        let (name, data) = (std::mem::take(&mut self.name), self.data.take().unwrap_or_default());
        if !std::mem::take(&mut self.has_fields) {
            return None;
        }
        let name = if name.is_empty() { "message".to_owned() } else { name };
        Some(SseEvent { name, data, id: self.id.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = "\u{feff}retry: 1000\n:open\n\nid: 1.4.17\nevent: change\ndata: {\"a\":\ndata: \"ü\"}\n\n\
                          :\n\nid: 1.4.18\nevent: position\ndata\n\nid: 1.4.19\nevent: change\ndata:x\n\nevent: change\ndata: cut";

    fn event(name: &str, data: &str, id: &str) -> SseEvent {
        SseEvent { name: name.to_owned(), data: data.to_owned(), id: Some(id.to_owned()) }
    }

    fn expected() -> Vec<SseEvent> {
        vec![
            event("change", "{\"a\":\n\"ü\"}", "1.4.17"),
            event("position", "", "1.4.18"),
            event("change", "x", "1.4.19"),
        ]
    }

    #[test]
    fn pieces_of_any_size_make_the_same_events() {
        for ends in ["\n", "\r\n", "\r"] {
            let stream = STREAM.replace('\n', ends);
            for size in 1..stream.len() {
                let mut parser = SseParser::default();
                let events: Vec<_> =
                    stream.as_bytes().chunks(size).flat_map(|piece| parser.push(piece)).collect();
                assert_eq!(events, expected(), "{ends:?} {size}");
                assert_eq!(parser.retry(), Some(Duration::from_secs(1)));
            }
        }
    }

    #[test]
    fn an_id_stays_until_another_comes() {
        let mut parser = SseParser::default();
        let events = parser.push(b"id: 1\n\ndata: a\n\nid: \0\ndata: b\n\n");
        let ids: Vec<_> = events.iter().map(|event| event.id.as_deref()).collect();
        assert_eq!(ids, [Some("1"); 3]);
        assert_eq!(events[0].data, "");
    }

    #[test]
    fn what_is_not_complete_is_not_given() {
        let mut parser = SseParser::default();
        assert!(parser.push(b"data: a\n").is_empty());
        assert!(parser.push(b"retry: soon\n").is_empty());
        assert_eq!(parser.push(b"\n").len(), 1);
        assert!(parser.push(b"\n\n").is_empty());
    }
}
