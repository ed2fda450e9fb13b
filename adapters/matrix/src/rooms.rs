//! The workers: one per room, so that the engine gets a room's events in order and once.

use std::collections::HashMap;
use std::sync::Arc;

use azera_adapter::Host;
use matrix_sdk::Room;
use matrix_sdk::deserialized_responses::TimelineEvent;
use matrix_sdk::ruma::OwnedRoomId;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::Matrix;
use crate::worker::Worker;

/// Most queued work of one room; then the sync waits.
const MAX_WAITING: usize = 256;

/// Work for a room's worker.
pub(crate) enum Work {
    /// Events of a sync without a gap before them.
    Events(Vec<TimelineEvent>),
    /// There may be a gap: find everything since the last handled event.
    CatchUp,
    /// Decryption keys may have arrived.
    Retry,
}

/// The workers of all rooms.
pub(crate) struct Rooms {
    matrix: Arc<Matrix>,
    host: Arc<dyn Host>,
    stop: CancellationToken,
    workers: HashMap<OwnedRoomId, mpsc::Sender<Work>>,
    tasks: TaskTracker,
}

impl Rooms {
    pub(crate) fn new(matrix: Arc<Matrix>, host: Arc<dyn Host>, stop: CancellationToken) -> Self {
        Self { matrix, host, stop, workers: HashMap::new(), tasks: TaskTracker::new() }
    }

    /// Queues work for a room; waits while its queue is full.
    pub(crate) async fn give(&mut self, room: &Room, work: Work) {
        let id = room.room_id();
        let sender = self.workers.entry(id.to_owned()).or_insert_with(|| {
            let (sender, receiver) = mpsc::channel(MAX_WAITING);
            let worker = Worker::new(self.matrix.clone(), self.host.clone(), room.clone(), self.stop.clone());
            self.tasks.spawn(worker.work(receiver));
            sender
        });
        if sender.send(work).await.is_err() {
            // The worker stopped, because everything is stopping.
            self.workers.remove(id);
        }
    }

    /// Ends the worker of a room that the bot left.
    pub(crate) fn drop_room(&mut self, room: &OwnedRoomId) {
        self.workers.remove(room);
    }

    /// Waits for the workers, which start nothing new after the token is cancelled.
    pub(crate) async fn stop(mut self) {
        self.workers.clear();
        self.tasks.close();
        self.tasks.wait().await;
    }
}
