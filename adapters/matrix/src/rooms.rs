//! One worker a room: what happens there is handed to the core in order, each thing once.

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

/// Pieces of work that wait for one room's worker. When there are more the sync waits.
const MAX_WAITING: usize = 256;

/// Something for a room's worker.
pub(crate) enum Work {
    /// The sync brought these, and there is no gap before them.
    Events(Vec<TimelineEvent>),
    /// There is a gap, or there may be: everything since the last event handled is to be looked for.
    CatchUp,
    /// Keys may have come.
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

    /// Gives a room's worker something to do; waits while it has too much.
    pub(crate) async fn give(&mut self, room: &Room, work: Work) {
        let id = room.room_id();
        let sender = self.workers.entry(id.to_owned()).or_insert_with(|| {
            let (sender, receiver) = mpsc::channel(MAX_WAITING);
            let worker = Worker::new(self.matrix.clone(), self.host.clone(), room.clone(), self.stop.clone());
            self.tasks.spawn(worker.work(receiver));
            sender
        });
        if sender.send(work).await.is_err() {
            // It stopped, as everything does.
            self.workers.remove(id);
        }
    }

    /// The bot is no longer in a room.
    pub(crate) fn drop_room(&mut self, room: &OwnedRoomId) {
        self.workers.remove(room);
    }

    /// Waits for the workers, who do not begin anything new once the token is cancelled.
    pub(crate) async fn stop(mut self) {
        self.workers.clear();
        self.tasks.close();
        self.tasks.wait().await;
    }
}
