//! The one judgement of addresses: public ones are allowed, what hides an IPv4 address is judged by that one too.
//!
//! From the special-purpose registries of IANA, and the addresses at which clouds answer with credentials.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;

/// What an address is that is not public.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressKind {
    Unspecified,
    Loopback,
    Private,
    /// Of carriers that share addresses.
    Shared,
    LinkLocal,
    /// Of a cloud's metadata service.
    Metadata,
    Multicast,
    Broadcast,
    Documentation,
    Benchmarking,
    Reserved,
    /// A form in which IPv6 carries an IPv4 address, here a public one.
    Transition,
}

use AddressKind::*;

impl fmt::Display for AddressKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Unspecified => "unspecified",
            Loopback => "a loopback address",
            Private => "private",
            Shared => "in the shared range of carriers",
            LinkLocal => "link-local",
            Metadata => "the address of a cloud's metadata service",
            Multicast => "a multicast address",
            Broadcast => "a broadcast address",
            Documentation => "reserved for documentation",
            Benchmarking => "reserved for benchmarks",
            Reserved => "reserved",
            Transition => "an IPv6 form of an IPv4 address",
        })
    }
}

impl AddressKind {
    /// Whether the installation may allow it.
    fn is_listable(self) -> bool {
        match self {
            Loopback | Private | Shared | Documentation | Benchmarking | Reserved | Transition => true,
            Unspecified | LinkLocal | Metadata | Multicast | Broadcast => false,
        }
    }
}

/// Says what is wrong with an address, if anything is. `ranges` are those that the installation allows.
pub(super) fn judge(ip: IpAddr, ranges: &[IpNet]) -> Result<(), AddressKind> {
    let is_listed = ranges.iter().any(|range| range.contains(&ip));
    let allow = |kind: Option<AddressKind>| match kind {
        Some(kind) if !(is_listed && kind.is_listable()) => Err(kind),
        Some(_) | None => Ok(()),
    };
    match ip {
        IpAddr::V4(ip) => allow(v4(ip)),
        IpAddr::V6(ip) => {
            // What is carried decides first: a listed form still leads to that address.
            for carried in carried(ip) {
                judge(carried.into(), ranges)?;
            }
            allow(v6(ip))
        }
    }
}

fn v4(ip: Ipv4Addr) -> Option<AddressKind> {
    match ip.octets() {
        [0, 0, 0, 0] => Some(Unspecified),
        [0, ..] => Some(Reserved),
        // Azure's, among public addresses; Alibaba's; Oracle's
        [168, 63, 129, 16] | [100, 100, 100, 200] | [192, 0, 0, 192] | [169, 254, 169, 254] => Some(Metadata),
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => Some(Private),
        [100, 64..=127, ..] => Some(Shared),
        [127, ..] => Some(Loopback),
        [169, 254, ..] => Some(LinkLocal),
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => Some(Documentation),
        // of the IETF, AS112, AMT, the relays of 6to4, AS112 again
        [192, 0, 0, _] | [192, 31, 196, _] | [192, 52, 193, _] | [192, 88, 99, _] | [192, 175, 48, _] => {
            Some(Reserved)
        }
        [198, 18..=19, ..] => Some(Benchmarking),
        [224..=239, ..] => Some(Multicast),
        [255, 255, 255, 255] => Some(Broadcast),
        [240..=255, ..] => Some(Reserved),
        _ => None,
    }
}

fn v6(ip: Ipv6Addr) -> Option<AddressKind> {
    let segments = ip.segments();
    match segments {
        [0, 0, 0, 0, 0, 0, 0, 0] => Some(Unspecified),
        [0, 0, 0, 0, 0, 0, 0, 1] => Some(Loopback),
        // Amazon's, Google's, Oracle's, Scaleway's
        [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254]
        | [0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254]
        | [0xfd00, 0xc1, 0, 0, 0, 0, 0xa9fe, 0xa9fe]
        | [0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42] => Some(Metadata),
        [0xfe80..=0xfebf, ..] => Some(LinkLocal),
        [0xff00..=0xffff, ..] => Some(Multicast),
        _ if carried(ip).next().is_some() => Some(Transition),
        // the latter are site-local, deprecated
        [0xfc00..=0xfdff, ..] | [0xfec0..=0xfeff, ..] => Some(Private),
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => Some(Documentation),
        [0x2001, 2, 0, ..] => Some(Benchmarking),
        // of the IETF: ORCHID, AMT, AS112, drones
        [0x2001, 0..=0x1ff, ..] => Some(Reserved),
        // AS112, 6bone
        [0x2620, 0x4f, 0x8000, ..] | [0x3ffe, ..] => Some(Reserved),
        [0x2000..=0x3fff, ..] => None,
        // discard, SRv6, and what IANA has not given out
        _ => Some(Reserved),
    }
}

/// The IPv4 addresses that an IPv6 address carries by its form.
fn carried(ip: Ipv6Addr) -> impl Iterator<Item = Ipv4Addr> {
    let segments = ip.segments();
    let at = |i: usize| join(segments[i], segments[i + 1]);
    let inverted = |ip: Ipv4Addr| Ipv4Addr::from_bits(!ip.to_bits());
    let found = match segments {
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => [None, None],
        // mapped, compatible, translated
        [0, 0, 0, 0, 0, 0xffff | 0, ..] | [0, 0, 0, 0, 0xffff, 0, ..] => [Some(at(6)), None],
        // NAT64, well-known; of a local network: behind 48 bits, without the reserved octet, or at the end
        [0x64, 0xff9b, 0, 0, 0, 0, ..] => [Some(at(6)), None],
        [0x64, 0xff9b, 1, high, low, next, ..] => {
            let behind_prefix = join(high, low << 8 | next >> 8);
            [behind_prefix, at(6)].map(|ip| Some(ip).filter(|ip| !ip.is_unspecified()))
        }
        // 6to4
        [0x2002, ..] => [Some(at(1)), None],
        // Teredo: server, client
        [0x2001, 0, ..] => [Some(at(2)), Some(inverted(at(6)))],
        // ISATAP, below any prefix
        [_, _, _, _, 0 | 0x200 | 0x100 | 0x300, 0x5efe, ..] => [Some(at(6)), None],
        _ => [None, None],
    };
    found.into_iter().flatten()
}

fn join(high: u16, low: u16) -> Ipv4Addr {
    Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low))
}
