//! What people and moderators change in voice channels besides who is there.

use crate::world::World;

impl World {
    /// Lets a person in a voice channel deafen themselves, or hear again.
    pub fn deafen(&mut self, user: u64, is_deaf: bool) {
        if is_deaf {
            self.voice.deaf.insert(user);
        } else {
            self.voice.deaf.remove(&user);
        }
        if let Some((guild, channel)) = self.voice.there.get(&user).copied() {
            self.tell_state(guild, user, Some(channel));
        }
    }
}
