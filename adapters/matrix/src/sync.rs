//! The sync with the homeserver: what comes is shared out among the rooms' workers.

use std::sync::Arc;
use std::time::Duration;

use azera_adapter::Host;
use matrix_sdk::config::SyncSettings;
use matrix_sdk::sync::SyncResponse;
use matrix_sdk::{Room, RoomState};
use tokio_util::sync::CancellationToken;

use crate::rooms::{Rooms, Work};
use crate::{Error, Invites, Matrix, login};

/// Time the homeserver holds a sync open while nothing happens.
const HELD: Duration = Duration::from_secs(30);

/// The first wait after a sync that failed; it doubles each time.
const FIRST_WAIT: Duration = Duration::from_millis(250);

/// The longest. A homeserver that is back is noticed within it.
const LAST_WAIT: Duration = Duration::from_secs(10);

impl Matrix {
    /// Learns the present state of the rooms. To be done before anything is delivered; waits for a homeserver that is away.
    pub async fn begin(&self) -> Result<(), Error> {
        let response = self.synced(Duration::ZERO).await?;
        if !self.ledger.has_begun().await? {
            // What stood there before the bot's first start was not said to it.
            for (room, update) in &response.rooms.joined {
                if let Some(last) = update.timeline.events.iter().rev().find_map(|event| event.event_id()) {
                    self.ledger.set_handled(room, &last).await?;
                }
            }
            self.ledger.begin().await?;
        }
        match self.client.account().get_display_name().await {
            Ok(Some(name)) => self.replies.set_own_name(name),
            Ok(None) => self.replies.set_own_name(self.own.localpart().to_owned()),
            Err(error) => tracing::warn!(%error, "the account's own name is not known"),
        }
        Ok(())
    }

    /// Listens until `stop` is cancelled, or the session ends.
    pub async fn listen(self: &Arc<Self>, host: Arc<dyn Host>, stop: CancellationToken) -> Result<(), Error> {
        let mut rooms = Rooms::new(self.clone(), host, stop.clone());
        for room in self.client.joined_rooms() {
            rooms.give(&room, Work::CatchUp).await;
        }
        for room in self.client.invited_rooms() {
            self.invited(&room).await;
        }
        let keys = {
            let (client, folder) = (self.client.clone(), self.settings.folder.clone());
            tokio::spawn(async move {
                if let Err(error) = login::make_recoverable(&client, &folder).await {
                    tracing::warn!(%error, "the account's keys are not backed up");
                }
            })
        };
        let ended = loop {
            tokio::select! {
                response = self.synced(HELD) => match response {
                    Ok(response) => self.share_out(response, &mut rooms).await,
                    Err(error) => break Err(error),
                },
                () = stop.cancelled() => break Ok(()),
            }
        };
        stop.cancel();
        rooms.stop().await;
        keys.abort();
        ended
    }

    /// One sync. What may pass is waited for.
    async fn synced(&self, held: Duration) -> Result<SyncResponse, Error> {
        let mut wait = FIRST_WAIT;
        loop {
            match self.client.sync_once(SyncSettings::new().timeout(held)).await.map_err(Error::Sdk) {
                Ok(response) => return Ok(response),
                Err(error) if error.is_logged_out() => {
                    login::forget_session(&self.settings.folder)?;
                    return Err(Error::LoggedOut);
                }
                Err(error) if error.is_transient() => {
                    tracing::warn!(%error, "the homeserver cannot be reached; trying again");
                    tokio::time::sleep(wait).await;
                    wait = (wait * 2).min(LAST_WAIT);
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn share_out(&self, response: SyncResponse, rooms: &mut Rooms) {
        let keys = !response.to_device.is_empty();
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
                tracing::info!(room = %id, "everybody left: leaving too");
                if let Err(error) = room.leave().await {
                    tracing::warn!(room = %id, %error, "the room could not be left");
                }
                rooms.drop_room(&id);
                continue;
            }
            let known = self.ledger.handled(&id).await.is_ok_and(|handled| handled.is_some());
            let work =
                if update.timeline.limited || !known { Work::CatchUp } else { Work::Events(update.timeline.events) };
            rooms.give(&room, work).await;
        }
        if keys {
            for room in self.client.joined_rooms() {
                if self.ledger.late(room.room_id()).await.is_ok_and(|late| !late.is_empty()) {
                    rooms.give(&room, Work::Retry).await;
                }
            }
        }
    }

    /// Whether nobody is left in a room but the bot, and nobody is about to come.
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
                tracing::warn!(room = %room.room_id(), %error, "an invitation tells nobody's name");
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
            Ok(()) => tracing::info!(room = %room.room_id(), %inviter, welcome, "an invitation"),
            // It is there still after the next start.
            Err(error) => {
                tracing::warn!(room = %room.room_id(), %inviter, %error, "an invitation could not be answered")
            }
        }
    }
}
