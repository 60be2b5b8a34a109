//! Forms in which destinations are spelled, each with the reason for which it is refused, and those that are allowed.

use super::address::AddressKind::*;
use super::*;

fn ranges(texts: &[&str]) -> Vec<IpNet> {
    texts.iter().map(|text| text.parse().expect("a range")).collect()
}

#[track_caller]
fn refused(url: &str, policy: &Policy, expected: Refusal) {
    assert_eq!(Destination::parse(url, policy), Err(expected), "{url}");
}

#[track_caller]
fn allowed(url: &str, policy: &Policy, expected: &str) {
    let found = Destination::parse(url, policy).map(|it| it.url().to_string());
    assert_eq!(found.as_deref(), Ok(expected), "{url}");
}

#[test]
fn urls_that_are_refused() {
    let with_http = Policy { allow_http: true, ranges: vec![] };
    let long = format!("https://example.com/{}", "a".repeat(MAX_URL_LEN));
    let long_label = format!("https://{}.com/", "a".repeat(64));
    let long_name = format!("https://{}com/", "abcdefg.".repeat(32));
    for (url, expected) in [
        ("", Refusal::Scheme),
        ("example.com", Refusal::Scheme),
        ("//example.com/", Refusal::Scheme),
        ("ftp://example.com/", Refusal::Scheme),
        ("gopher://127.0.0.1/", Refusal::Scheme),
        ("file:///etc/passwd", Refusal::Scheme),
        ("javascript://example.com/%0aalert(1)", Refusal::Scheme),
        ("https:example.com", Refusal::Scheme),
        ("http:127.0.0.1", Refusal::Scheme),
        (" https://example.com/", Refusal::Scheme),
        ("https:///127.0.0.1/", Refusal::Unreadable),
        ("https:////example.com/", Refusal::Unreadable),
        (r"https:\\127.0.0.1/", Refusal::Scheme),
        (r"https://example.com\@127.0.0.1/", Refusal::Unreadable),
        ("https://exam\nple.com/", Refusal::Unreadable),
        ("https://exam\tple.com/", Refusal::Unreadable),
        ("https://example.com/\r\nX-Header: 1", Refusal::Unreadable),
        ("https://example.com/a b", Refusal::Unreadable),
        ("https://", Refusal::Unreadable),
        ("https://:443/", Refusal::Unreadable),
        ("https://?a", Refusal::Unreadable),
        ("https://example.com:65536/", Refusal::Unreadable),
        ("https://example.com:https/", Refusal::Unreadable),
        ("https://example.com:0/", Refusal::Port),
        ("https://user@example.com/", Refusal::UserInfo),
        ("https://user:password@example.com/", Refusal::UserInfo),
        ("https://@example.com/", Refusal::UserInfo),
        ("https://:@example.com/", Refusal::UserInfo),
        ("https://example.com@127.0.0.1/", Refusal::UserInfo),
        ("https://example.com%40127.0.0.1/", Refusal::Unreadable),
        ("https://exa%00mple.com/", Refusal::Unreadable),
        ("https://example.com%2f.internal.example/", Refusal::Unreadable),
        ("https://a..b.com/", Refusal::HostName),
        ("https://example.com../", Refusal::HostName),
        ("https://a*b.com/", Refusal::HostName),
        ("https://[::1%25eth0]/", Refusal::Unreadable),
        ("https://[fe80::1%eth0]/", Refusal::Unreadable),
        ("https://[127.0.0.1]/", Refusal::Unreadable),
        ("https://[example.com]/", Refusal::Unreadable),
        ("https://::1/", Refusal::Unreadable),
        ("https://1.2.3.4.5/", Refusal::Unreadable),
        ("https://256.256.256.256/", Refusal::Unreadable),
        ("https://4294967296/", Refusal::Unreadable),
        ("https://example.0x7f/", Refusal::Unreadable),
        ("https://xn--a/", Refusal::Unreadable),
        (&long, Refusal::TooLong),
        (&long_label, Refusal::HostName),
        (&long_name, Refusal::HostName),
    ] {
        refused(url, &with_http, expected);
    }
    refused("http://example.com/", &Policy::default(), Refusal::PlainHttp);
    refused("HTTP://example.com/", &Policy::default(), Refusal::PlainHttp);
}

#[test]
fn names_of_local_networks_are_refused() {
    for url in [
        "https://localhost/",
        "https://LOCALHOST/",
        "https://localhost./",
        "https://localhost:8443/",
        "https://%6c%6f%63alhost/",
        "https://ｌｏｃａｌｈｏｓｔ/",
        "https://ⓛⓞⓒⓐⓛⓗⓞⓢⓣ/",
        "https://app.localhost/",
        "https://app.localhost./",
        "https://localhost.localdomain/",
        "https://printer.local/",
        "https://printer。local/",
        "https://metadata.google.internal/computeMetadata/v1/",
        "https://metadata/",
        "https://kubernetes/",
        "https://kubernetes.default.svc/",
        "https://kubernetes.default.svc.cluster.local/",
        "https://router.lan/",
        "https://router.home/",
        "https://nas.home.arpa/",
        "https://wiki.corp/",
        "https://wiki.intranet/",
        "https://db.private/",
    ] {
        refused(url, &Policy::default(), Refusal::LocalName);
    }
    let listed = Policy { allow_http: true, ranges: ranges(&["10.96.0.0/12"]) };
    allowed(
        "http://receiver.shop.svc.cluster.local:8080/",
        &listed,
        "http://receiver.shop.svc.cluster.local:8080/",
    );
    allowed("https://localhost./", &listed, "https://localhost/");
    refused("https://10.1.0.1/", &listed, Refusal::Address(Private));
}

/// Hosts that are addresses, in every spelling that the parser of URLs reads.
#[test]
fn addresses_that_are_not_public_are_refused() {
    for (host, kind) in [
        // spellings of one address
        ("127.0.0.1", Loopback),
        ("127.0.0.1.", Loopback),
        ("127.1", Loopback),
        ("127.0.1", Loopback),
        ("2130706433", Loopback),
        ("0x7f000001", Loopback),
        ("0x7f.1", Loopback),
        ("0X7F.0.0.1", Loopback),
        ("017700000001", Loopback),
        ("0177.0.0.01", Loopback),
        ("0x7f.0.0x0.01", Loopback),
        ("127%2e0%2e0%2e1", Loopback),
        ("%31%32%37.0.0.1", Loopback),
        ("１２７.0.0.1", Loopback),
        ("127。0。0。1", Loopback),
        ("①②⑦.0.0.①", Loopback),
        ("127.255.255.254", Loopback),
        ("0", Unspecified),
        ("0.0.0.0", Unspecified),
        ("0x0", Unspecified),
        ("0.1.2.3", Reserved),
        ("10.0.0.1", Private),
        ("10.255.255.255", Private),
        ("012.1", Private),
        ("172.16.0.1", Private),
        ("172.31.255.255", Private),
        ("192.168.0.1", Private),
        ("0xc0a80001", Private),
        ("100.64.0.1", Shared),
        ("100.127.255.255", Shared),
        ("100.100.100.200", Metadata),
        ("169.254.169.254", Metadata),
        ("2852039166", Metadata),
        ("0xa9fea9fe", Metadata),
        ("0251.0376.0251.0376", Metadata),
        ("169.254.43518", Metadata),
        ("168.63.129.16", Metadata),
        ("192.0.0.192", Metadata),
        ("169.254.0.1", LinkLocal),
        ("169.254.170.2", LinkLocal),
        ("192.0.0.1", Reserved),
        ("192.0.2.1", Documentation),
        ("198.51.100.1", Documentation),
        ("203.0.113.1", Documentation),
        ("192.88.99.1", Reserved),
        ("192.31.196.1", Reserved),
        ("192.52.193.1", Reserved),
        ("192.175.48.1", Reserved),
        ("198.18.0.1", Benchmarking),
        ("198.19.255.255", Benchmarking),
        ("224.0.0.1", Multicast),
        ("239.255.255.255", Multicast),
        ("240.0.0.1", Reserved),
        ("255.255.255.254", Reserved),
        ("255.255.255.255", Broadcast),
        // IPv6
        ("[::]", Unspecified),
        ("[0:0:0:0:0:0:0:0]", Unspecified),
        ("[::1]", Loopback),
        ("[0000:0000:0000:0000:0000:0000:0000:0001]", Loopback),
        ("[fe80::1]", LinkLocal),
        ("[febf::1]", LinkLocal),
        ("[fe80::5efe:8.8.8.8]", LinkLocal),
        ("[fc00::1]", Private),
        ("[fd12:3456::1]", Private),
        ("[fec0::1]", Private),
        ("[fd00:ec2::254]", Metadata),
        ("[fd20:ce::254]", Metadata),
        ("[fd00:c1::a9fe:a9fe]", Metadata),
        ("[fd00:42::42]", Metadata),
        ("[ff02::1]", Multicast),
        ("[ff0e::1]", Multicast),
        ("[2001:db8::1]", Documentation),
        ("[3fff::1]", Documentation),
        ("[2001:2::1]", Benchmarking),
        ("[2001:10::1]", Reserved),
        ("[2001:20::1]", Reserved),
        ("[2001:30::1]", Reserved),
        ("[2001:3::1]", Reserved),
        ("[2001:4:112::1]", Reserved),
        ("[2620:4f:8000::1]", Reserved),
        ("[3ffe::1]", Reserved),
        ("[100::1]", Reserved),
        ("[100:0:0:1::1]", Reserved),
        ("[5f00::1]", Reserved),
        ("[4000::1]", Reserved),
        ("[64:ff9b:2::1]", Reserved),
        // IPv6 that carries IPv4
        ("[::ffff:127.0.0.1]", Loopback),
        ("[::ffff:7f00:1]", Loopback),
        ("[::ffff:10.0.0.1]", Private),
        ("[::ffff:169.254.169.254]", Metadata),
        ("[::ffff:8.8.8.8]", Transition),
        ("[::127.0.0.1]", Loopback),
        ("[::a00:1]", Private),
        ("[::8.8.8.8]", Transition),
        ("[::ffff:0:127.0.0.1]", Loopback),
        ("[::ffff:0:8.8.8.8]", Transition),
        ("[64:ff9b::127.0.0.1]", Loopback),
        ("[64:ff9b::a9fe:a9fe]", Metadata),
        ("[64:ff9b::8.8.8.8]", Transition),
        ("[64:ff9b:1::10.0.0.1]", Private),
        ("[64:ff9b:1:a9fe:a9:fe00::]", Metadata),
        ("[64:ff9b:1::8.8.8.8]", Transition),
        ("[64:ff9b:1::]", Reserved),
        ("[2002:7f00:1::]", Loopback),
        ("[2002:c0a8:101::1]", Private),
        ("[2002:808:808::1]", Transition),
        ("[2001:0:808:808::f5ff:fffe]", Private),
        ("[2001:0:a00:1::f7f7:f7f7]", Private),
        ("[2001:0:808:808::f7f7:f7f7]", Transition),
        ("[2606:4700::5efe:10.0.0.1]", Private),
        ("[2606:4700::200:5efe:127.0.0.1]", Loopback),
        ("[2606:4700::5efe:8.8.8.8]", Transition),
    ] {
        refused(&format!("https://{host}/hook"), &Policy::default(), Refusal::Address(kind));
    }
}

#[test]
fn what_is_allowed() {
    let policy = Policy::default();
    for (url, expected) in [
        ("https://example.com", "https://example.com/"),
        ("HTTPS://EXAMPLE.com/Hook?a=b%20c", "https://example.com/Hook?a=b%20c"),
        ("https://example.com.:8443/", "https://example.com:8443/"),
        ("https://example.com:443/#part", "https://example.com/"),
        ("https://bücher.example/", "https://xn--bcher-kva.example/"),
        ("https://under_score.example.com/", "https://under_score.example.com/"),
        ("https://localhost.example.com/", "https://localhost.example.com/"),
        ("https://notlocal.example/@user", "https://notlocal.example/@user"),
        ("https://mylocal.example:22/", "https://mylocal.example:22/"),
        ("https://8.8.8.8/", "https://8.8.8.8/"),
        ("https://134744072/", "https://8.8.8.8/"),
        ("https://172.32.0.1/", "https://172.32.0.1/"),
        ("https://100.128.0.1/", "https://100.128.0.1/"),
        ("https://[2606:4700::1111]/", "https://[2606:4700::1111]/"),
        ("https://[2001:200::1]/", "https://[2001:200::1]/"),
        ("https://[2a00:1450::1]:8443/", "https://[2a00:1450::1]:8443/"),
    ] {
        allowed(url, &policy, expected);
    }
    allowed("http://example.com:80/", &Policy { allow_http: true, ..policy }, "http://example.com/");
}

#[test]
fn the_installation_allows_ranges_but_never_link_local_ones_or_metadata() {
    let listed = |texts: &[&str]| Policy { allow_http: false, ranges: ranges(texts) };
    let all = listed(&["0.0.0.0/0", "::/0"]);
    for host in
        ["127.0.0.1", "10.0.0.1", "100.64.0.1", "240.0.0.1", "[::1]", "[fd12::1]", "[64:ff9b::8.8.8.8]"]
    {
        assert!(Destination::parse(&format!("https://{host}/"), &all).is_ok(), "{host}");
    }
    for (host, kind) in [
        ("169.254.169.254", Metadata),
        ("169.254.0.1", LinkLocal),
        ("168.63.129.16", Metadata),
        ("100.100.100.200", Metadata),
        ("0.0.0.0", Unspecified),
        ("224.0.0.1", Multicast),
        ("255.255.255.255", Broadcast),
        ("[::]", Unspecified),
        ("[fe80::1]", LinkLocal),
        ("[fe80::5efe:8.8.8.8]", LinkLocal),
        ("[fd00:ec2::254]", Metadata),
        ("[::ffff:169.254.169.254]", Metadata),
        ("[64:ff9b::169.254.169.254]", Metadata),
        ("[2002:a9fe:a9fe::]", Metadata),
        ("[ff02::1]", Multicast),
    ] {
        refused(&format!("https://{host}/"), &all, Refusal::Address(kind));
    }
    let loopback = listed(&["127.0.0.0/8", "::1/128"]);
    refused("https://[::ffff:127.0.0.1]/", &loopback, Refusal::Address(Transition));
    refused("https://10.0.0.1/", &loopback, Refusal::Address(Private));
    refused("https://[fd12::1]/", &listed(&["10.0.0.0/8"]), Refusal::Address(Private));
    let nat64 = listed(&["64:ff9b::/96"]);
    assert!(Destination::parse("https://[64:ff9b::8.8.8.8]/", &nat64).is_ok());
    refused("https://[64:ff9b::10.0.0.1]/", &nat64, Refusal::Address(Private));
}

#[test]
fn a_refusal_says_why_and_holds_no_address() {
    let text =
        Destination::parse("https://[::ffff:10.0.0.1]/", &Policy::default()).map_err(|why| why.to_string());
    assert_eq!(text, Err("the address of the host is private, and nothing is sent there".to_owned()));
}

#[test]
fn ports_and_spellings_share_a_host() {
    for url in [
        "https://example.com",
        "https://Example.com/a",
        "https://example.com:8443/b",
        "http://example.com.?c",
        "https://%65xample.com/",
        "https://ｅxample.com/",
    ] {
        assert_eq!(host_of(url).as_deref(), Some("example.com"), "{url}");
    }
    assert_eq!(host_of("https://[0::1]:8443/").as_deref(), Some("[::1]"));
    assert_eq!(host_of("https://2130706433/").as_deref(), Some("127.0.0.1"));
    assert_eq!(host_of("nonsense"), None);
}
