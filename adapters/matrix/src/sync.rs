//! The sync with the homeserver: passes its events to the rooms' workers.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use azera_adapter::{Host, Trouble};
use azera_types::{Clock, SystemClock};
use futures::StreamExt;
use futures::stream::BoxStream;
use matrix_sdk::config::SyncSettings;
use matrix_sdk::sync::SyncResponse;
use matrix_sdk::{Room, RoomState};
use tokio_util::sync::CancellationToken;

use crate::events::said_at;
use crate::rooms::{Rooms, Work};
use crate::{Error, Invites, Matrix, login};

/// How long the homeserver holds a sync open while nothing happens.
const HELD: Duration = Duration::from_secs(30);

/// First wait after a failed sync; it doubles each time.
const FIRST_WAIT: Duration = Duration::from_millis(250);

/// Longest wait, within which a recovered homeserver is noticed.
const LAST_WAIT: Duration = Duration::from_secs(10);

impl Matrix {
    pub(crate) async fn begin_now(&self) -> Result<(), Error> {
        let response = self.synced(Duration::ZERO).await?;
        if !self.sync_state.has_begun().await? {
            let lost = login::was_lost(&self.settings.folder)?;
            self.lost.store(lost, Ordering::Relaxed);
            for (room, update) in &response.rooms.joined {
                let Some(last) = update.timeline.events.last() else { continue };
                match last.event_id() {
                    // Messages may be known or not; commands are not run again.
                    _ if lost => self.sync_state.set_lost(room, said_at(last)).await?,
                    // Messages from before the bot's first start were not for it.
                    Some(last) => self.sync_state.set_handled(room, &last).await?,
                    None => {}
                }
            }
            self.sync_state.begin().await?;
        }
        login::found_again(&self.settings.folder)?;
        self.look_at_keys().await;
        self.tell_health().await;
        match self.gallery.dress(&self.own).await {
            Ok(name) => self.replies.set_own_name(name),
            Err(error) => tracing::warn!(%error, "cannot read the account's own name"),
        }
        Ok(())
    }

    pub(crate) async fn listen_until(
        self: &Arc<Self>,
        host: Arc<dyn Host>,
        stop: CancellationToken,
    ) -> Result<(), Error> {
        let mut rooms = Rooms::new(self.clone(), host, stop.clone());
        if self.lost.swap(false, Ordering::Relaxed) {
            tokio::select! {
                () = self.bring_keys_back() => {}
                () = stop.cancelled() => return Ok(()),
            }
        }
        for room in self.client.joined_rooms() {
            rooms.give(&room, Work::CatchUp).await;
        }
        for room in self.client.invited_rooms() {
            self.invited(&room).await;
        }
        let keys = {
            let matrix = self.clone();
            tokio::spawn(async move { matrix.make_recoverable().await })
        };
        let mut readable = self.readable().await;
        let ended = 'listening: loop {
            // A running sync is awaited, because its events come only once.
            let mut sync = std::pin::pin!(self.synced(HELD));
            let response = loop {
                tokio::select! {
                    response = &mut sync => break response,
                    Some(()) = readable.next() => self.retry_late(&mut rooms).await,
                    () = stop.cancelled() => break 'listening Ok(()),
                }
            };
            match response {
                Ok(response) => self.share_out(response, &mut rooms).await,
                Err(error) => break Err(error),
            }
        };
        stop.cancel();
        rooms.stop().await;
        keys.abort();
        ended
    }

    /// Makes the account's keys recoverable, or recovers them.
    async fn make_recoverable(&self) {
        if let Err(error) = login::make_recoverable(&self.client, &self.settings.folder).await {
            tracing::warn!(%error, "cannot back up the account's keys");
        }
        self.look_at_keys().await;
        self.tell_health().await;
    }

    /// Restores the account's and the rooms' keys after the store was lost.
    async fn bring_keys_back(&self) {
        self.make_recoverable().await;
        for room in self.client.joined_rooms() {
            let keys = self.client.encryption().backups().download_room_keys_for_room(room.room_id()).await;
            if let Err(error) = keys {
                tracing::warn!(room = %room.room_id(), %error, "cannot restore the keys of a room");
            }
        }
    }

    /// Yields whenever an unreadable message may be readable: keys arrived, or a device was verified.
    async fn readable(&self) -> BoxStream<'static, ()> {
        let encryption = self.client.encryption();
        let keys = encryption.room_keys_received_stream().await.map(|keys| keys.map(drop).boxed());
        let devices = match encryption.devices_stream().await {
            Ok(devices) if self.settings.strict => Some(devices.map(drop).boxed()),
            _ => None,
        };
        futures::stream::select(
            keys.unwrap_or_else(|| futures::stream::pending().boxed()),
            devices.unwrap_or_else(|| futures::stream::pending().boxed()),
        )
        .boxed()
    }

    async fn retry_late(&self, rooms: &mut Rooms) {
        for room in self.vitals.late() {
            if let Some(room) = self.client.get_room(&room).filter(|room| room.state() == RoomState::Joined) {
                rooms.give(&room, Work::Retry).await;
            }
        }
    }

    /// Runs one sync; retries transient errors.
    async fn synced(&self, held: Duration) -> Result<SyncResponse, Error> {
        let mut wait = FIRST_WAIT;
        loop {
            match self.client.sync_once(SyncSettings::new().timeout(held)).await.map_err(Error::Sdk) {
                Ok(response) => {
                    self.vitals.connection.up(SystemClock.now());
                    return Ok(response);
                }
                Err(error) if error.is_logged_out() => {
                    self.vitals.connection.down(Trouble::Refused, SystemClock.now());
                    login::forget_session(&self.settings.folder)?;
                    return Err(Error::LoggedOut);
                }
                Err(error) if error.is_transient() => {
                    self.vitals.connection.down(Trouble::Unreachable, SystemClock.now());
                    tracing::warn!(%error, "the homeserver cannot be reached; trying again");
                    tokio::time::sleep(wait).await;
                    wait = (wait * 2).min(LAST_WAIT);
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn share_out(&self, response: SyncResponse, rooms: &mut Rooms) {
        for id in response.rooms.left.keys() {
            rooms.drop_room(id);
        }
        for id in response.rooms.invited.keys() {
            if let Some(room) = self.client.get_room(id) {
                self.invited(&room).await;
            }
        }
        for (id, update) in response.rooms.joined {
            let Some(room) = self.client.get_room(&id).filter(|room| room.state() == RoomState::Joined) else {
                continue;
            };
            if self.is_deserted(&room).await {
                tracing::info!(room = %id, "everybody left the room; leaving, too");
                if let Err(error) = room.leave().await {
                    tracing::warn!(room = %id, %error, "cannot leave the room");
                }
                rooms.drop_room(&id);
                continue;
            }
            let known = self.sync_state.handled(&id).await.is_ok_and(|handled| handled.is_some());
            let work =
                if update.timeline.limited || !known { Work::CatchUp } else { Work::Events(update.timeline.events) };
            rooms.give(&room, work).await;
        }
        self.tell_health().await;
    }

    /// Returns true if the bot is alone in a room and nobody is invited.
    async fn is_deserted(&self, room: &Room) -> bool {
        if room.joined_members_count() > 1 || room.is_space() {
            return false;
        }
        matches!(self.audience.people(room).await, Ok((people, 0)) if people.is_empty())
    }

    async fn invited(&self, room: &Room) {
        let inviter = match room.invite_details().await {
            Ok(invite) => invite.inviter_id,
            Err(error) => {
                tracing::warn!(room = %room.room_id(), %error, "cannot read who sent an invitation");
                return;
            }
        };
        let welcome = match &self.settings.invites {
            Invites::Anyone => true,
            Invites::Servers(servers) if servers.is_empty() => inviter.server_name() == self.own.server_name(),
            Invites::Servers(servers) => servers.iter().any(|server| server == inviter.server_name().as_str()),
            Invites::Users(users) => users.iter().any(|user| user == inviter.as_str()),
        };
        let done = if welcome { room.join().await } else { room.leave().await };
        match done {
            Ok(()) => tracing::info!(room = %room.room_id(), %inviter, welcome, "answered an invitation"),
            // It is still there after the next start.
            Err(error) => {
                tracing::warn!(room = %room.room_id(), %inviter, %error, "cannot answer an invitation")
            }
        }
    }
}
