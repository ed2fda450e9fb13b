//! Keeps the order of thumbs: Discord is asked about the message of each one, and the answers may come in another order
//! than the thumbs did. One that is taken back at once would then count for good.

use std::collections::HashMap;
use std::future::Future;
use std::sync::{Mutex, PoisonError};

use serenity::all::ChannelId;
use tokio::sync::oneshot;
use tokio::sync::oneshot::error::TryRecvError;

/// The newest work on thumbs of each channel where some goes on. A receiver closes when its work has ended.
#[derive(Default)]
pub(crate) struct ThumbTurns(Mutex<HashMap<ChannelId, oneshot::Receiver<()>>>);

impl ThumbTurns {
    /// Does work in the background, when all earlier work of its channel has ended. A reply may be several messages, so
    /// one line for each message would not do.
    pub(crate) fn spawn(&self, channel: ChannelId, work: impl Future<Output = ()> + Send + 'static) {
        let (done, ended) = oneshot::channel::<()>();
        let before = {
            let mut newest = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            newest.retain(|_, ended| ended.try_recv() != Err(TryRecvError::Closed));
            newest.insert(channel, ended)
        };
        tokio::spawn(async move {
            // It is dropped after a panic, too.
            let _done = done;
            if let Some(before) = before {
                before.await.ok();
            }
            work.await;
        });
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[tokio::test]
    async fn work_of_a_channel_waits_for_earlier_work_of_it() {
        let (turns, log) = (ThumbTurns::default(), Arc::new(Mutex::new(Vec::new())));
        let (answer, answered) = oneshot::channel::<()>();
        let note = |what: &'static str| {
            let log = log.clone();
            move || log.lock().unwrap().push(what)
        };
        let (here, elsewhere) = (ChannelId::new(1), ChannelId::new(2));
        let given = note("given");
        turns.spawn(here, async move {
            answered.await.ok();
            given();
        });
        let (taken_back, (done, ended)) = (note("taken back"), oneshot::channel());
        turns.spawn(here, async move {
            taken_back();
            done.send(()).ok();
        });
        let (other, (other_done, other_ended)) = (note("elsewhere"), oneshot::channel());
        turns.spawn(elsewhere, async move {
            other();
            other_done.send(()).ok();
        });
        other_ended.await.unwrap();
        answer.send(()).unwrap();
        ended.await.unwrap();
        assert_eq!(*log.lock().unwrap(), ["elsewhere", "given", "taken back"]);
        tokio::task::yield_now().await;
        turns.spawn(elsewhere, async {});
        assert_eq!(turns.0.lock().unwrap().len(), 1, "nothing is kept of work that has ended");
    }

    #[tokio::test]
    async fn work_goes_on_after_a_panic() {
        let (turns, channel) = (ThumbTurns::default(), ChannelId::new(1));
        turns.spawn(channel, async { panic!("a fault") });
        let (done, ended) = oneshot::channel();
        turns.spawn(channel, async move {
            done.send(()).ok();
        });
        ended.await.unwrap();
    }
}
