//! The table of hostile input: what is sent, and the status of each answer that it gets.

/// One line of the table.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) bytes: Vec<u8>,
    /// Closes our side after the bytes: for what is no whole request.
    pub(crate) ends: bool,
    /// The statuses in order. Empty: the connection is closed without a word.
    pub(crate) statuses: Vec<u16>,
}

/// Everything, with `key` where a request is to come past the door.
pub(crate) fn cases(key: &str) -> Vec<Case> {
    let mut cases = Vec::new();
    questions(&mut cases, key);
    paths(&mut cases, key);
    heads(&mut cases, key);
    bodies(&mut cases, key);
    strangers(&mut cases);
    cases
}

/// A whole request, after which the server closes.
pub(crate) fn request(line: &[u8], key: &str, more: &[u8]) -> Vec<u8> {
    let mut bytes = line.to_vec();
    bytes.extend_from_slice(b" HTTP/1.1\r\nHost: x\r\nX-Request-Id: it\r\nConnection: close\r\nX-API-Key: ");
    bytes.extend_from_slice(key.as_bytes());
    bytes.extend_from_slice(b"\r\n");
    bytes.extend_from_slice(more);
    bytes.extend_from_slice(b"\r\n");
    bytes
}

fn case(name: &str, bytes: Vec<u8>, statuses: &[u16]) -> Case {
    Case { name: name.to_owned(), bytes, ends: false, statuses: statuses.to_vec() }
}

fn questions(cases: &mut Vec<Case>, key: &str) {
    let or = |n: usize| vec!["id+eq+1"; n].join("+or+");
    let nested = |open: &str, n: usize| format!("{}id{}+eq+1", open.repeat(n), ")".repeat(n));
    let filters = [
        ("200-deep parentheses", format!("{}id+eq+1{}", "(".repeat(200), ")".repeat(200)), 400),
        ("4,000-deep parentheses", "(".repeat(4000), 400),
        ("200-deep not", format!("{}paid", "not+".repeat(200)), 400),
        ("200-deep minus", format!("{}id+eq+1", "-+".repeat(200)), 400),
        ("200-deep calls", nested("trim(", 200), 400),
        ("200-deep lists", nested("id+in+(", 200), 400),
        ("more than 8 KiB of or", or(1000), 400),
        ("8 KiB of nothing but or", vec!["or"; 2700].join("+"), 400),
        ("10,000 members", format!("id+in+({})", vec!["1"; 10_000].join(",")), 414),
        ("8 KiB of quotes", "'".repeat(8191), 400),
        ("8 KiB of minus", "-".repeat(8191), 400),
        ("a number of 8,000 digits", format!("id+eq+{}", "9".repeat(8000)), 400),
        ("an exponent", "total+eq+1e999999999".to_owned(), 400),
        ("an unclosed quote", "status+eq+'x".to_owned(), 400),
    ];
    for (name, filter, status) in filters {
        let line = format!("GET /auth/shop/api/orders?$filter={filter}");
        cases.push(case(name, request(line.as_bytes(), key, b""), &[status]));
    }
    for query in [
        "$filter=%00",
        "$filter=status+eq+'%00'",
        "%00=1",
        "$filter=status+eq+'%C0%AF'",
        "$filter=status+eq+'%E0%80%AF'",
        "$filter=status+eq+'%F0%80%80%AF'",
        "$filter=status+eq+'%ED%A0%80'",
        "$filter=status+eq+'%F4%90%80%80'",
        "$filter=status+eq+'%ff'",
        "$filter=status+eq+'%C3'",
        "$filter=%",
        "$filter=%2",
        "$filter=%zz",
        "$filter=%u0041",
        "$first=1&$first=1",
        "$first=1&%24first=1",
        "$first=1&%24%66irst=2",
        "$filter=id+eq+1&$filter=id+eq+2",
        "$select=id&$select=id",
        "$orderby=id&$orderby=id",
        "$after=A&$after=A",
        "$first=99999999999999999999",
        "$first=-9223372036854775808",
        "$first=1e3",
        "$after=%00",
        "$after=....",
        "$",
        "=",
        "$filter",
    ] {
        let line = format!("GET /auth/shop/api/orders?{query}");
        cases.push(case(query, request(line.as_bytes(), key, b""), &[400]));
    }
    let many = format!("GET /auth/shop/api/orders?{}$first=x", "a=1&".repeat(3500));
    cases.push(case("3,500 parameters and a wrong one", request(many.as_bytes(), key, b""), &[400]));
    let after = format!("GET /auth/shop/api/orders?$after={}", "A".repeat(12_000));
    cases.push(case("a cursor of 12,000 letters", request(after.as_bytes(), key, b""), &[400]));
    let raw = b"GET /auth/shop/api/orders?$filter=status+eq+'\xff\xfe'";
    cases.push(case("bytes that are no UTF-8 in the query", request(raw, key, b""), &[400]));
}

fn paths(cases: &mut Vec<Case>, key: &str) {
    for (path, status) in [
        ("/auth/shop/api/orders/id/%00", 400),
        ("/auth/shop/api/orders/%00/1", 400),
        ("/auth/shop/api/%00", 400),
        ("/auth/%00/api", 401),
        ("/auth/shop/api/labels/name/%C0%AF/language/en", 400),
        ("/auth/shop/api/orders/id/%ED%A0%80", 400),
        ("/auth/shop/api/orders/id/%ff", 400),
        ("/auth/shop/api/orders/id/%", 400),
        ("/auth/sh%C0%AFop/api/orders", 401),
        ("//auth/shop/api/orders", 404),
        ("/auth//shop/api/orders", 401),
        ("/auth/shop//api/orders", 404),
        ("/auth/shop/api//orders", 404),
        ("/auth/shop/api/orders//", 400),
        ("/auth/shop/api/orders//1", 400),
        ("/auth/shop/api/orders/id/1/", 200),
        ("/auth/shop/api/./orders", 404),
        ("/auth/shop/api/../api/orders", 404),
        ("/auth/shop/api/%2e%2e/api/orders", 404),
        ("/auth/spa/../shop/api/orders", 401),
        ("/auth/spa%2F..%2Fshop/api/orders", 401),
        ("/..%2f..%2fetc%2fpasswd", 404),
        ("/auth/shop/api/orders;x=1", 404),
        ("/auth/shop/api/orders%3F$first=1", 404),
        ("/auth/shop/api/orders%20", 404),
        ("/AUTH/shop/api/orders", 404),
        ("*", 404),
    ] {
        cases.push(case(path, request(format!("GET {path}").as_bytes(), key, b""), &[status]));
    }
    let long = "x".repeat(12_000);
    for (name, path, status) in [
        ("an entity of 12,000 letters", format!("/auth/shop/api/{long}"), 404),
        ("a tenant of 12,000 letters", format!("/auth/{long}/api"), 401),
        ("a key value of 12,000 letters", format!("/auth/shop/api/orders/id/{long}"), 400),
        ("12,000 slashes", format!("/auth/shop/api/orders{}", "/".repeat(12_000)), 400),
        ("4,000 escapes", format!("/auth/shop/api/orders/id/{}", "%41".repeat(4000)), 400),
        ("a path of 60 KiB", format!("/{}", "x".repeat(60 * 1024)), 431),
        ("a path of 1 MiB", format!("/{}", "x".repeat(1024 * 1024)), 431),
    ] {
        cases.push(case(name, request(format!("GET {path}").as_bytes(), key, b""), &[status]));
    }
    for (name, line, status) in [
        ("bytes that are no UTF-8 in the entity", &b"GET /auth/shop/api/\xff\xfe"[..], 400),
        ("bytes that are no UTF-8 in a key value", b"GET /auth/shop/api/orders/id/\xff", 400),
        ("bytes that are no UTF-8 in the tenant", b"GET /auth/\xc0\xaf/api", 400),
        ("NUL in the path", b"GET /auth/shop/api/\0", 400),
        ("a space in the path", b"GET /auth/shop/api/or ders", 400),
        ("a fragment", b"GET /auth/shop/api/orders#x$first=0", 200),
        ("CONNECT", b"CONNECT 127.0.0.1:80", 404),
        ("CONNECT with a path", b"CONNECT /auth/shop/api/orders", 405),
        ("TRACE", b"TRACE /auth/shop/api/orders", 405),
        ("TRACK", b"TRACK /auth/shop/api/orders", 405),
        ("an empty method", b" /auth/shop/api/orders", 400),
        ("a method in brackets", b"G(T) /auth/shop/api/orders", 400),
        ("no path", b"GET ", 400),
        ("a relative path", b"GET auth/shop/api/orders", 400),
        ("a scheme without a place", b"GET http:///auth/shop/api/orders", 400),
    ] {
        cases.push(case(name, request(line, key, b""), &[status]));
    }
}

fn heads(cases: &mut Vec<Case>, key: &str) {
    let line = b"GET /auth/shop/api/orders?$first=1";
    let mut add = |name: &str, more: &[u8], status: u16| {
        cases.push(case(name, request(line, key, more), &[status]));
    };
    let long = |name: &str, n: usize| format!("{name}: {}\r\n", "x".repeat(n)).into_bytes();
    add("a header of 1 MiB", &long("X-Long", 1024 * 1024), 431);
    add("a header name of 1 MiB", &[&b"x".repeat(1024 * 1024)[..], b": y\r\n"].concat(), 431);
    add("a header name of 70,000 letters", &[&b"x".repeat(70_000)[..], b": y\r\n"].concat(), 431);
    add("200 headers", &b"X-One: 1\r\n".repeat(200), 431);
    add("100,000 headers", &b"X: 1\r\n".repeat(100_000), 431);
    add("two hosts", b"Host: y\r\n", 400);
    add("a header without a colon", b"X-Lonely\r\n", 400);
    add("a header without a name", b": x\r\n", 400);
    add("a space before the colon", b"X-Space : x\r\n", 400);
    add("a header name with a space", b"X Space: x\r\n", 400);
    add("a folded header", b"X-Folded: a\r\n b\r\n", 400);
    add("NUL in a header", b"X-Nul: a\0b\r\n", 400);
    add("a bare CR in a header", b"X-Cr: a\rb\r\n", 400);
    add("a header name that is no ASCII", b"X-\xc3\xa4: x\r\n", 400);
    add("a role that is no UTF-8", b"X-MS-API-ROLE: \xff\xfe\r\n", 403);
    add("a second key that is no UTF-8", b"X-API-Key: \xff\xfe\r\n", 401);
    add("a token beside the key", b"Authorization: Bearer \xff\r\n", 400);
    let keys: [(&str, &[u8]); 5] = [
        ("a key that is no UTF-8", b"\xff\xfe"),
        ("a key with its bytes encoded", b"shop%3Adlk_x"),
        ("a key of 12,000 letters", &b"x".repeat(12_000)),
        ("a key of colons", &b":".repeat(12_000)),
        ("a key that looks like SQL", b"shop:dlk_' or '1'='1"),
    ];
    for (name, value) in keys {
        let bytes =
            [line, &b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\nX-API-Key: "[..], value, b"\r\n\r\n"];
        cases.push(case(name, bytes.concat(), &[401]));
    }
    for (name, value) in [("dots", b".".repeat(12_000)), ("a token of 12,000 letters", b"x".repeat(12_000))] {
        let start = &b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer "[..];
        cases.push(case(name, [line, start, &value, b"\r\n\r\n"].concat(), &[401]));
    }
}

/// Two readings of where a request ends: there is one answer, and never one to what hides in a body.
fn bodies(cases: &mut Vec<Case>, key: &str) {
    let hidden = request(b"GET /auth/shop/api/hidden", key, b"");
    let exchange = b"POST /api/auth/apikeys/exchange";
    let mut add = |name: &str, head: &str, body: &[u8], statuses: &[u16]| {
        let head = request(exchange, key, head.as_bytes());
        let head = String::from_utf8(head).expect("ASCII").replace("Connection: close\r\n", "");
        let bytes = [head.as_bytes(), body, &hidden].concat();
        cases.push(case(name, bytes, statuses));
    };
    // What hides is answered where it does not hide.
    add("two requests", "Content-Length: 0\r\n", b"", &[200, 404]);
    add("two lengths", "Content-Length: 0\r\nContent-Length: 5\r\n", b"", &[400]);
    add("two lengths in one", "Content-Length: 0, 5\r\n", b"", &[400]);
    add("a signed length", "Content-Length: +0\r\n", b"", &[400]);
    add("a negative length", "Content-Length: -1\r\n", b"", &[400]);
    add("a hexadecimal length", "Content-Length: 0x0\r\n", b"", &[400]);
    add("a length beyond 64 bits", "Content-Length: 99999999999999999999\r\n", b"", &[400]);
    add("an unknown coding", "Transfer-Encoding: xchunked\r\n", b"0\r\n\r\n", &[400]);
    add("chunked, then another", "Transfer-Encoding: chunked, identity\r\n", b"0\r\n\r\n", &[400]);
    add("two codings", "Transfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n", b"0\r\n\r\n", &[400]);
    add("a coding with a space before its colon", "Transfer-Encoding : chunked\r\n", b"0\r\n\r\n", &[400]);
    let both = "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n";
    add("a length and chunks", both, b"5c\r\n", &[400]);
    let both = "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n";
    add("chunks and a length", both, b"0\r\n\r\n", &[400]);
    add("a chunk beyond 64 bits", "Transfer-Encoding: chunked\r\n", b"fffffffffffffffff\r\n", &[400]);
    add("a chunk of no length", "Transfer-Encoding: chunked\r\n", b"x\r\n", &[400]);
    let length = format!("Content-Length: {}\r\n", hidden.len());
    add("a request in a body", &length, &hidden, &[400]);
}

/// What speaks another protocol, or stops half-way.
fn strangers(cases: &mut Vec<Case>) {
    let lines: [(&str, &[u8], &[u16]); 17] = [
        ("HTTP/0.9", b"GET /\r\n", &[400]),
        ("HTTP/0.9 of a route", b"GET /auth/shop/api\r\n\r\n", &[400]),
        ("HTTP/1.2", b"GET / HTTP/1.2\r\n\r\n", &[400]),
        ("HTTP/3", b"GET / HTTP/3\r\n\r\n", &[400]),
        ("HTTP/2 on one line", b"GET / HTTP/2.0\r\n\r\n", &[400]),
        ("HTTP/2's preface", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0", &[]),
        ("TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", &[400]),
        ("SSH", b"SSH-2.0-OpenSSH_9.2\r\n", &[400]),
        ("PostgreSQL", b"\0\0\0\x08\x04\xd2\x16\x2f", &[400]),
        ("a proxy's line", b"PROXY TCP4 1.1.1.1 2.2.2.2 1 2\r\nGET / HTTP/1.1\r\n\r\n", &[400]),
        ("SMTP", b"EHLO x\r\n", &[400]),
        ("nothing", b"", &[]),
        ("half a line", b"GET /auth/shop", &[]),
        ("half a head", b"GET /auth/shop/api HTTP/1.1\r\nHost: x\r\n", &[]),
        ("only line ends", b"\r\n\r\n\r\n\r\n", &[]),
        ("a letter", b"\xff", &[400]),
        ("NUL", b"\0\0\0\0\0\0\0\0", &[400]),
    ];
    for (name, bytes, statuses) in lines {
        let (name, bytes, statuses) = (name.to_owned(), bytes.to_vec(), statuses.to_vec());
        cases.push(Case { name, bytes, ends: true, statuses });
    }
}
