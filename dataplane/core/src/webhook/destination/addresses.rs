//! What an address is, if webhooks are not to go there. Sources: the IANA registries of special-purpose addresses, and RFC 6890.

use std::net::{Ipv4Addr, Ipv6Addr};

/// Addresses at which clouds give credentials to whoever asks, outside link-local.
const METADATA_V4: [Ipv4Addr; 3] = [
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(192, 0, 0, 192),
    Ipv4Addr::new(168, 63, 129, 16),
];
const METADATA_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);

/// What no installation allows.
pub(super) fn v4_never(address: Ipv4Addr) -> Option<&'static str> {
    match address.octets() {
        [169, 254, ..] => Some("a link-local address, at which clouds give credentials"),
        _ if METADATA_V4.contains(&address) => Some("a metadata address, at which clouds give credentials"),
        _ => None,
    }
}

/// What an installation has to allow; `None`: a public address.
pub(super) fn v4(address: Ipv4Addr) -> Option<&'static str> {
    match address.octets() {
        [0, ..] => Some("an address of this network"),
        [127, ..] => Some("a loopback address"),
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => Some("a private address"),
        [100, 64..=127, ..] => Some("an address behind a carrier's NAT"),
        [192, 0, 0, _] | [192, 31, 196, _] | [192, 52, 193, _] | [192, 88, 99, _] | [192, 175, 48, _] => {
            Some("an address for protocols")
        }
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => Some("an address for documentation"),
        [198, 18..=19, ..] => Some("an address for benchmarks"),
        [224..=239, ..] => Some("a multicast address"),
        [240..=255, ..] => Some("a reserved address"),
        _ => None,
    }
}

/// The address of IPv4 that an IPv4-mapped address, or one of the NAT64 of a network without IPv4, leads to.
pub(super) fn carried(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let inner = last_four(address);
    match address.segments() {
        [0, 0, 0, 0, 0, 0xffff, ..] | [0x64, 0xff9b, 0, 0, 0, 0, ..] => Some(inner),
        _ => None,
    }
}

/// What no installation allows.
pub(super) fn v6_never(address: Ipv6Addr) -> Option<&'static str> {
    match address.segments() {
        [0xfe80..=0xfebf, ..] => Some("a link-local address"),
        _ if address == METADATA_V6 => Some("a metadata address, at which clouds give credentials"),
        _ => hides(address).then_some("an address of IPv6 that hides one of IPv4"),
    }
}

/// What an installation has to allow; `None`: a public address.
pub(super) fn v6(address: Ipv6Addr) -> Option<&'static str> {
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => Some("an address of this network"),
        [0, 0, 0, 0, 0, 0, 0, 1] => Some("a loopback address"),
        [0xfc00..=0xfdff, ..] => Some("a private address"),
        [0xfec0..=0xfeff, ..] => Some("a site-local address"),
        [0xff00..=0xffff, ..] => Some("a multicast address"),
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => Some("an address for documentation"),
        [0x2001, 0..=0x1ff, ..] => Some("an address for protocols"),
        [0x2620, 0x4f, 0x8000, ..] => Some("an address for protocols"),
        [0x2000..=0x3fff, ..] => None,
        _ => Some("a reserved address"),
    }
}

/// Forms that carry an address of IPv4 and lead to it in some networks.
fn hides(address: Ipv6Addr) -> bool {
    match address.segments() {
        // compatible, but for :: and ::1
        [0, 0, 0, 0, 0, 0, high, low] => (high, low) != (0, 0) && (high, low) != (0, 1),
        // translated (SIIT)
        [0, 0, 0, 0, 0xffff, 0, ..] => true,
        // NAT64 with a prefix of its own
        [0x64, 0xff9b, 1, ..] => true,
        // Teredo and 6to4
        [0x2001, 0, ..] | [0x2002, ..] => true,
        // ISATAP
        [_, _, _, _, 0 | 0x200, 0x5efe, ..] => true,
        _ => false,
    }
}

fn last_four(address: Ipv6Addr) -> Ipv4Addr {
    let [.., a, b, c, d] = address.octets();
    Ipv4Addr::new(a, b, c, d)
}
