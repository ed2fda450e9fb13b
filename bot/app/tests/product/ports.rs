//! Ports for servers and programs that must be told theirs before they bind it.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU32, Ordering};

/// Returns a port that is free, that no other test of this process gets, and that the system hands out to nobody: it lies
/// below Linux's range of ephemeral ports (`net.ipv4.ip_local_port_range`).
pub fn reserved() -> u16 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = std::process::id().wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed));
        let port = 12_000 + u16::try_from(number % 20_000).expect("a small number");
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
}
