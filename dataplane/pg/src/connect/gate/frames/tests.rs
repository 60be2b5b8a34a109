//! Messages in whatever pieces, and those that are beyond the bounds.

use super::{Beyond, Frames, refusal};
use crate::tenant::read_limits::{MAX_ERROR, MAX_ROW, MAX_ROWS, MAX_TOTAL};

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).expect("a test's is short");
    [&[tag][..], &length.to_be_bytes(), body].concat()
}

fn feed(frames: &mut Frames, bytes: &[u8], size: usize) -> Result<Vec<u8>, Beyond> {
    let mut out = Vec::new();
    for chunk in bytes.chunks(size) {
        frames.feed(chunk, &mut out)?;
    }
    Ok(out)
}

#[test]
fn what_is_within_the_bounds_passes_in_whatever_pieces_it_comes() {
    let key = message(b'K', &[0, 0, 1, 2, 9, 9, 9, 9]);
    let kept = [
        message(b'R', &[0, 0, 0, 0]),
        key,
        message(b'S', b"TimeZone\0UTC\0"),
        message(b'Z', b"I"),
        message(b'1', b""),
        message(b'D', b"a row"),
        refusal("42501", "no", "acl.c", "aclcheck_error"),
        message(b'Z', b"I"),
    ];
    let aside = [message(b'N', &[b'n'; 3 << 20]), message(b'A', b"news"), message(b'S', &[b's'; 2000])];
    let sent = [kept[..4].concat(), aside.concat(), kept[4..].concat()].concat();
    for size in [1, 2, 3, 7, 4096, sent.len()] {
        let mut frames = Frames::default();
        assert_eq!(feed(&mut frames, &sent, size), Ok(kept.concat()), "in pieces of {size}");
        assert_eq!((frames.pid, frames.is_ready), (258, true));
    }
}

#[test]
fn an_error_that_a_tenant_words_is_cut() {
    let mut fields = b"SERROR\0VERROR\0CP0001\0M".to_vec();
    fields.extend("ä".repeat(MAX_ERROR).bytes());
    fields.extend(b"\0Ddetail\0\0");
    let out = feed(&mut Frames::default(), &message(b'E', &fields), 1000).expect("an error passes");
    assert!(out.len() <= MAX_ERROR + 7 && out.ends_with("ä\0\0".as_bytes()), "{} bytes", out.len());
    let length = u32::from_be_bytes([out[1], out[2], out[3], out[4]]);
    assert_eq!(length as usize + 1, out.len());
}

#[test]
fn what_is_beyond_the_bounds_stops_before_it_has_come() {
    let mut frames = Frames::default();
    let head = [&[b'D'][..], &(60_u32 << 20).to_be_bytes()].concat();
    assert_eq!(feed(&mut frames, &head, 5), Err(Beyond::Row((60 << 20) - 4)));

    let mut frames = Frames::default();
    let rows = message(b'D', b"").repeat(MAX_ROWS);
    let done = message(b'C', b"SELECT\0");
    for _ in 0..2 {
        assert!(feed(&mut frames, &[&rows[..], &done].concat(), 8192).is_ok(), "of each statement so many");
    }
    assert_eq!(feed(&mut frames, &[&rows[..], &message(b'D', b"")].concat(), 8192), Err(Beyond::Rows));

    let mut frames = Frames::default();
    let row = message(b'D', &vec![0; MAX_ROW]);
    let until = MAX_TOTAL / row.len();
    let within = message(b'Z', b"T");
    for _ in 0..until {
        assert!(feed(&mut frames, &row, 8192).is_ok());
        assert!(feed(&mut frames, &within, 8192).is_ok(), "the transaction goes on");
    }
    assert_eq!(feed(&mut frames, &row, 8192), Err(Beyond::Total));
    let mut frames = Frames::default();
    for _ in 0..2 * until {
        assert!(feed(&mut frames, &[&row[..], &message(b'Z', b"I")].concat(), 8192).is_ok());
    }
}

#[test]
fn a_password_that_takes_long_to_prove_is_refused_before_it_is_proved() {
    let challenge = |rounds: u64| {
        let body = [&[0, 0, 0, 11][..], format!("r=nonce,s=c2FsdA==,i={rounds}").as_bytes()].concat();
        message(b'R', &body)
    };
    for size in [1, 7, 4096] {
        let own = challenge(4096);
        assert_eq!(feed(&mut Frames::default(), &own, size), Ok(own), "in pieces of {size}");
        assert_eq!(feed(&mut Frames::default(), &challenge(4097), size), Err(Beyond::Rounds(4097)));
    }
    let long = message(b'R', &[b'r'; MAX_ERROR + 1]);
    assert_eq!(feed(&mut Frames::default(), &long, 4096), Err(Beyond::Row(MAX_ERROR + 1)));
}
