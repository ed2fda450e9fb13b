//! What one connection may take: a place beside the others of its address, and time to read what it asked for.

use std::collections::HashMap;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep_until};

use crate::guard::network;

/// Most connections at once of one address, unless it is this machine or a trusted proxy.
const MAX_OF_ADDRESS: usize = 64;

/// Longest time in which a client takes nothing of what is sent to it.
const WRITE_TIMEOUT: Duration = Duration::from_secs(30);

/// The connections of each address.
#[derive(Clone, Default)]
pub(crate) struct Places {
    taken: Arc<Mutex<HashMap<IpAddr, usize>>>,
    /// Addresses that bring the requests of many clients.
    proxies: Arc<[IpAddr]>,
}

/// A place of an open connection.
pub(crate) struct Place {
    address: IpAddr,
    places: Places,
}

impl Places {
    pub(crate) fn new(proxies: &[IpAddr]) -> Self {
        Self { taken: Arc::default(), proxies: proxies.into() }
    }

    /// Takes a place; `None` if the address has as many as it may.
    pub(crate) fn take(&self, peer: IpAddr) -> Option<Place> {
        let address = network(peer);
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let count = taken.entry(address).or_default();
        if *count >= MAX_OF_ADDRESS && !peer.is_loopback() && !self.proxies.contains(&peer) {
            return None;
        }
        *count += 1;
        Some(Place { address, places: self.clone() })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = taken.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&self.address);
            }
        }
    }
}

/// A stream that fails when the other end takes nothing for too long.
pub(crate) struct TimedStream<S> {
    stream: S,
    deadline: Pin<Box<Sleep>>,
    is_waiting: bool,
}

impl<S> TimedStream<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self { stream, deadline: Box::pin(sleep_until(Instant::now())), is_waiting: false }
    }

    /// Fails instead of waiting beyond the deadline.
    fn within<T>(&mut self, cx: &mut Context<'_>, done: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if done.is_ready() {
            self.is_waiting = false;
            return done;
        }
        if !self.is_waiting {
            self.is_waiting = true;
            self.deadline.as_mut().reset(Instant::now() + WRITE_TIMEOUT);
        }
        ready!(self.deadline.as_mut().poll(cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for TimedStream<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, into)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for TimedStream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.within(cx, done)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.within(cx, done)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn one_address_leaves_places_for_others() {
        let places = Places::new(&[ip("10.0.0.1")]);
        let mut held: Vec<Place> = (0..MAX_OF_ADDRESS).map(|_| places.take(ip("203.0.113.9")).unwrap()).collect();
        assert!(places.take(ip("203.0.113.9")).is_none());
        assert!(places.take(ip("203.0.113.10")).is_some(), "another address has places of its own");
        held.pop();
        assert!(places.take(ip("203.0.113.9")).is_some(), "a closed connection leaves its place");
        for shared in ["10.0.0.1", "127.0.0.1", "::1"] {
            let many: Vec<Option<Place>> = (0..MAX_OF_ADDRESS + 1).map(|_| places.take(ip(shared))).collect();
            assert!(many.iter().all(Option::is_some), "{shared}");
        }
        drop(held);
        assert!(places.taken.lock().unwrap().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_reads_nothing_is_cut_off() {
        let (server, mut client) = tokio::io::duplex(8);
        let mut server = TimedStream::new(server);
        // Each time that the client takes something, it gets more time.
        let slow = async {
            for _ in 0..3 {
                tokio::time::advance(WRITE_TIMEOUT / 2).await;
                client.read_exact(&mut [0; 8]).await.unwrap();
            }
        };
        let (written, ()) = tokio::join!(server.write_all(&[0; 32]), slow);
        written.unwrap();
        let begun = Instant::now();
        let cut = server.write_all(&[0; 32]).await.unwrap_err();
        assert_eq!((cut.kind(), begun.elapsed()), (io::ErrorKind::TimedOut, WRITE_TIMEOUT));
    }
}
