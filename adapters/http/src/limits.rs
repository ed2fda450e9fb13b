//! Limits of rate: a bucket of tokens for each client, refilled with time.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use azera_types::Timestamp;

/// Most clients that are counted at once. The fullest buckets go first: their clients did the least.
const MAX_CLIENTS: usize = 10_000;

/// How many requests a client may make.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rate {
    /// Requests at once.
    pub(crate) burst: f64,
    /// Further requests a second.
    pub(crate) per_s: f64,
}

/// Requests of one address or account.
pub(crate) const REQUESTS: Rate = Rate { burst: 120.0, per_s: 20.0 };

/// Messages to a persona of one account.
pub(crate) const MESSAGES: Rate = Rate { burst: 30.0, per_s: 0.5 };

/// Wrong passwords and codes, from one address: ten, then one every minute.
pub(crate) const FAILURES: Rate = Rate { burst: 10.0, per_s: 1.0 / 60.0 };

/// Wrong passwords for one name, from all addresses: fifty, then three every minute. One address alone cannot keep up with
/// that, so it locks nobody out.
pub(crate) const GUESSES: Rate = Rate { burst: 50.0, per_s: 1.0 / 20.0 };

struct Bucket {
    tokens: f64,
    at: Timestamp,
}

/// Counts the requests of each client.
pub(crate) struct RateLimit {
    rate: Rate,
    buckets: Mutex<HashMap<String, Bucket>>,
}

impl RateLimit {
    pub(crate) fn new(rate: Rate) -> Self {
        Self { rate, buckets: Mutex::default() }
    }

    /// Counts a request, before it is done: requests at the same time share the bucket. The error is the number of seconds
    /// to wait.
    pub(crate) fn take(&self, client: &str, now: Timestamp) -> Result<(), u64> {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        let tokens = buckets.get(client).map_or(self.rate.burst, |bucket| self.filled(bucket, now));
        if tokens < 1.0 {
            return Err(((1.0 - tokens) / self.rate.per_s).ceil().max(1.0) as u64);
        }
        if !buckets.contains_key(client) && buckets.len() >= MAX_CLIENTS {
            let mut levels: Vec<f64> = buckets.values().map(|bucket| self.filled(bucket, now)).collect();
            levels.sort_by(f64::total_cmp);
            let median = levels.get(levels.len() / 2).copied().unwrap_or(self.rate.burst);
            buckets.retain(|_, bucket| self.filled(bucket, now) < median);
        }
        buckets.insert(client.to_owned(), Bucket { tokens: tokens - 1.0, at: now });
        Ok(())
    }

    /// Returns what [`Self::take`] took, for a request that turned out to be harmless.
    pub(crate) fn give_back(&self, client: &str) {
        let mut buckets = self.buckets.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(bucket) = buckets.get_mut(client) {
            bucket.tokens = (bucket.tokens + 1.0).min(self.rate.burst);
        }
    }

    fn filled(&self, bucket: &Bucket, now: Timestamp) -> f64 {
        let seconds = now.duration_since(bucket.at).as_secs_f64().max(0.0);
        (bucket.tokens + seconds * self.rate.per_s).min(self.rate.burst)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    #[test]
    fn a_client_waits_once_its_bucket_is_empty() {
        let limit = RateLimit::new(Rate { burst: 2.0, per_s: 0.5 });
        assert_eq!([0, 0, 0].map(|second| limit.take("ann", at(second))), [Ok(()), Ok(()), Err(2)]);
        assert_eq!(limit.take("bob", at(0)), Ok(()), "each client has a bucket of its own");
        assert_eq!(limit.take("ann", at(2)), Ok(()));
        assert_eq!(limit.take("ann", at(2)), Err(2));
    }

    #[test]
    fn a_harmless_request_is_given_back() {
        let limit = RateLimit::new(Rate { burst: 1.0, per_s: 0.001 });
        limit.take("ann", at(0)).unwrap();
        assert!(limit.take("ann", at(0)).is_err());
        limit.give_back("ann");
        limit.give_back("ann");
        assert_eq!(limit.take("ann", at(0)), Ok(()));
        assert!(limit.take("ann", at(0)).is_err(), "nobody gets more than the burst");
    }

    #[test]
    fn many_clients_do_not_free_one_that_is_limited() {
        let limit = RateLimit::new(Rate { burst: 3.0, per_s: 0.001 });
        for _ in 0..3 {
            limit.take("ann", at(0)).unwrap();
        }
        for client in 0..MAX_CLIENTS + 10 {
            limit.take(&format!("client {client}"), at(0)).unwrap();
        }
        assert!(limit.take("ann", at(0)).is_err());
        assert!(limit.buckets.lock().unwrap().len() <= MAX_CLIENTS);
    }
}
