use super::*;

fn policy(ranges: &[&str]) -> Policy {
    let ranges = ranges.iter().map(|range| range.parse().expect("a network")).collect();
    Policy { allow_http: true, ranges }
}

/// Each is refused where nothing is allowed, with these words in the reason.
const REFUSED: &[(&str, &str)] = &[
    // schemes and forms
    ("", "not a URL"),
    ("example.com/hooks", "not a URL"),
    ("//example.com/hooks", "not a URL"),
    ("https://", "not a URL"),
    ("https:///", "not a URL"),
    ("ftp://example.com/", "begin with https://"),
    ("file:///etc/passwd", "begin with https://"),
    ("gopher://127.0.0.1:6379/_x", "begin with https://"),
    ("unix:/run/docker.sock", "begin with https://"),
    ("data:text/plain,x", "begin with https://"),
    ("javascript:alert(1)", "begin with https://"),
    ("jar:https://example.com!/", "begin with https://"),
    ("https://user@example.com/", "user name"),
    ("https://user:secret@example.com/", "user name"),
    ("https://:secret@example.com/", "user name"),
    ("https://127.0.0.1@example.com/", "user name"),
    ("https://example.com/#part", "fragment"),
    ("https://example.com:0/", "port 0"),
    ("https://example.com:99999/", "not a URL"),
    ("https://exa mple.com/", "space"),
    ("https://example.com/\r\nHost: x", "space"),
    ("https://example.com\\@127.0.0.1/", "backslash"),
    ("https://example.com/\t", "space"),
    ("https://exam%00ple.com/", "not a URL"),
    ("https://[::1/", "not a URL"),
    ("https://1.2.3.4.5/", "not a URL"),
    ("https://256.1.1.1/", "not a URL"),
    // names
    ("https://localhost/", "loopback"),
    ("https://LOCALHOST/", "loopback"),
    ("https://localhost./", "loopback"),
    ("https://a.localhost/", "loopback"),
    ("https://backend/", "private network"),
    ("https://kubernetes.default.svc.cluster.local/", "private network"),
    ("https://printer.local./", "private network"),
    ("https://metadata.google.internal/", "private network"),
    ("https://host.docker.internal/", "private network"),
    ("https://1.0.0.127.in-addr.arpa/", "private network"),
    ("https://example.com../", "no host"),
    // spellings of 127.0.0.1
    ("https://127.0.0.1/", "loopback"),
    ("https://127.0.0.1./", "loopback"),
    ("https://127.1/", "loopback"),
    ("https://127.0.1/", "loopback"),
    ("https://2130706433/", "loopback"),
    ("https://0x7f000001/", "loopback"),
    ("https://0x7f.1/", "loopback"),
    ("https://0x7f.0x0.0x0.0x1/", "loopback"),
    ("https://017700000001/", "loopback"),
    ("https://0177.0.0.01/", "loopback"),
    ("https://127%2e0%2e0%2e1/", "loopback"),
    ("https://１２７.０.０.１/", "loopback"),
    ("https://127。0。0。1/", "loopback"),
    ("https://127.255.255.254:8443/", "loopback"),
    ("http:127.0.0.1/", "loopback"),
    ("http:///127.0.0.1/", "loopback"),
    // other addresses of IPv4
    ("https://0.0.0.0/", "this network"),
    ("https://0/", "this network"),
    ("https://0.1.2.3/", "this network"),
    ("https://10.0.0.1/", "private"),
    ("https://172.16.0.1/", "private"),
    ("https://172.31.255.255/", "private"),
    ("https://192.168.1.1/", "private"),
    ("https://100.64.0.1/", "carrier"),
    ("https://100.127.255.255/", "carrier"),
    ("https://169.254.169.254/latest/meta-data/", "link-local"),
    ("https://169.254.170.2/", "link-local"),
    ("https://0xa9fea9fe/", "link-local"),
    ("https://100.100.100.200/", "metadata"),
    ("https://192.0.0.192/", "metadata"),
    ("https://168.63.129.16/", "metadata"),
    ("https://192.0.0.1/", "protocols"),
    ("https://192.88.99.1/", "protocols"),
    ("https://192.0.2.1/", "documentation"),
    ("https://198.51.100.7/", "documentation"),
    ("https://203.0.113.7/", "documentation"),
    ("https://198.18.0.1/", "benchmarks"),
    ("https://198.19.255.255/", "benchmarks"),
    ("https://224.0.0.1/", "multicast"),
    ("https://239.255.255.255/", "multicast"),
    ("https://240.0.0.1/", "reserved"),
    ("https://255.255.255.255/", "reserved"),
    // addresses of IPv6
    ("https://[::]/", "this network"),
    ("https://[::1]/", "loopback"),
    ("https://[0:0:0:0:0:0:0:1]/", "loopback"),
    ("https://[::ffff:127.0.0.1]/", "loopback"),
    ("https://[::ffff:7f00:1]/", "loopback"),
    ("https://[::ffff:10.0.0.1]/", "private"),
    ("https://[::ffff:169.254.169.254]/", "link-local"),
    ("https://[::127.0.0.1]/", "hides"),
    ("https://[::10.0.0.1]/", "hides"),
    ("https://[::ffff:0:127.0.0.1]/", "hides"),
    ("https://[64:ff9b::127.0.0.1]/", "loopback"),
    ("https://[64:ff9b::a9fe:a9fe]/", "link-local"),
    ("https://[64:ff9b:1::7f00:1]/", "hides"),
    ("https://[2002:7f00:1::]/", "hides"),
    ("https://[2002:a9fe:a9fe::1]/", "hides"),
    ("https://[2001:0:4136:e378:8000:63bf:80ff:fffe]/", "hides"),
    ("https://[2606:4700::5efe:7f00:1]/", "hides"),
    ("https://[2606:4700::200:5efe:a00:1]/", "hides"),
    ("https://[fe80::1]/", "link-local"),
    ("https://[febf::1]/", "link-local"),
    ("https://[fec0::1]/", "site-local"),
    ("https://[fc00::1]/", "private"),
    ("https://[fd12:3456::1]/", "private"),
    ("https://[fd00:ec2::254]/", "metadata"),
    ("https://[ff02::1]/", "multicast"),
    ("https://[2001:db8::1]/", "documentation"),
    ("https://[3fff::1]/", "documentation"),
    ("https://[2001:2::1]/", "protocols"),
    ("https://[2001:20::1]/", "protocols"),
    ("https://[100::1]/", "reserved"),
    ("https://[5f00::1]/", "reserved"),
    ("https://[4000::1]/", "reserved"),
];

/// Seen to fail without the look into mapped addresses, and with the forms that hide one left out.
#[test]
fn a_destination_that_is_not_public_is_refused_in_every_spelling() {
    assert!(80 <= REFUSED.len(), "{}", REFUSED.len());
    for (url, words) in REFUSED {
        let refusal = Destination::parse(url, &policy(&[])).expect_err(url).to_string();
        assert!(refusal.contains(words), "{url}: {refusal}");
    }
    let long = format!("https://example.com/{}", "a".repeat(MAX_URL));
    assert!(Destination::parse(&long, &policy(&[])).is_err());
}

#[test]
fn public_hosts_are_taken_as_they_are() {
    for (url, host, port, target) in [
        ("https://example.com/hooks?a=b", "example.com", 443, "/hooks?a=b"),
        ("https://EXAMPLE.com.:8443", "example.com.", 8443, "/"),
        ("http://example.com/", "example.com", 80, "/"),
        ("https://bücher.example/ä", "xn--bcher-kva.example", 443, "/%C3%A4"),
        ("https://8.8.8.8/", "8.8.8.8", 443, "/"),
        ("https://172.32.0.1/", "172.32.0.1", 443, "/"),
        ("https://[2606:4700::1111]:444/", "[2606:4700::1111]", 444, "/"),
        ("https://[::ffff:8.8.8.8]/", "[::ffff:808:808]", 443, "/"),
        ("https://[64:ff9b::8.8.8.8]/", "[64:ff9b::808:808]", 443, "/"),
    ] {
        let destination = Destination::parse(url, &policy(&[])).expect(url);
        assert_eq!((destination.host(), destination.port()), (host, port), "{url}");
        assert_eq!(destination.target(), target, "{url}");
    }
    let strict = Policy { allow_http: false, ranges: Vec::new() };
    let refusal = Destination::parse("http://example.com/", &strict).expect_err("no TLS").to_string();
    assert!(refusal.contains("webhooks.allowHttp"), "{refusal}");
}

/// Seen to fail with ranges that were asked first.
#[test]
fn an_installation_allows_networks_and_never_what_gives_credentials() {
    let policy = policy(&["127.0.0.0/8", "10.0.0.0/8", "169.254.0.0/16", "::/0", "0.0.0.0/0"]);
    for url in ["https://127.0.0.1/", "https://localhost/", "https://10.1.2.3/", "https://[::1]/", "https://backend/",
        "https://[fd12::1]/", "https://[::ffff:10.0.0.1]/"]
    {
        Destination::parse(url, &policy).expect(url);
    }
    for url in ["https://169.254.169.254/", "https://[fe80::1]/", "https://[fd00:ec2::254]/", "https://100.100.100.200/",
        "https://[::ffff:169.254.169.254]/", "https://[64:ff9b::169.254.169.254]/", "https://[2002:a9fe:a9fe::]/"]
    {
        Destination::parse(url, &policy).expect_err(url);
    }
}
