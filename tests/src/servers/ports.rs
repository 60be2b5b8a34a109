//! Ports for servers of tests.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU32, Ordering};

/// Ports that the kernel gives to no socket by itself: one that it had given us might be a client's before a server takes it.
const PORTS: std::ops::Range<u16> = 10_000..32_000;

/// A port on which no program listens at this moment, and that no other test of this process is given soon.
#[must_use]
pub fn free_port() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    // apart from those of another run beside us
    let first = std::process::id().wrapping_mul(997);
    let n_ports = u32::from(PORTS.end - PORTS.start);
    let mut ports = (0..n_ports).map(|_| {
        let offset = first.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % n_ports;
        PORTS.start + u16::try_from(offset).expect("smaller than a port")
    });
    ports.find(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()).expect("some port is free")
}
