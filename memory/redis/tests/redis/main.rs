//! Working memory on a real Redis server on loopback.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod fallback;
mod server;
mod working;

use std::time::Duration;

use azera_breaker::Limits;
use azera_memory_redis::{RedisConfig, RedisWorking};
use azera_memory_remote::RetryPolicy;
use azera_types::Timestamp;

/// Retry policy of the tests: a server that is stopped is noticed soon, and asked again with the next call.
const PATIENCE: RetryPolicy = RetryPolicy {
    foreground: Duration::from_secs(2),
    bulk: Duration::from_secs(30),
    retries: 1,
    retry_delay: Duration::from_millis(1),
    breaker: Limits { failures: u32::MAX, first_pause: Duration::ZERO, longest_pause: Duration::ZERO },
};

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn config(server: &server::RedisServer) -> RedisConfig {
    RedisConfig { url: server.url(), password: server.password(), prefix: "azera".into(), patience: PATIENCE }
}

fn connect(server: &server::RedisServer) -> RedisWorking {
    RedisWorking::new(config(server)).unwrap()
}
