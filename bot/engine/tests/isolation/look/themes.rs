//! Reads what is talked about most.

use std::sync::Arc;

use azera_adapter::{MemoryReader, Reading, ShownTheme};
use azera_memory::{Memory, ReadScope, Theme};
use azera_types::PlatformId;

use super::{Looking, MANY};

fn describe_shown(theme: &ShownTheme) -> String {
    let parts: String = theme.parts.iter().map(describe_shown).collect();
    let (typical, newest) = (theme.typical.text.as_str(), theme.newest.text.as_str());
    format!("{:?} {} {} [{typical}] [{newest}]\n{parts}", theme.words, theme.scope, theme.memories)
}

fn describe(theme: &Theme) -> String {
    let parts: String = theme.parts.iter().map(describe).collect();
    let (typical, newest) = (theme.typical.text.as_str(), theme.newest.text.as_str());
    format!("{:?} {} {} [{typical}] [{newest}]\n{parts}", theme.words, theme.scope, theme.memories)
}

impl Looking<'_> {
    pub(super) async fn read_shown_themes(&mut self, platform: &PlatformId, at: &Reading) {
        // It answers with a number, which depends on how fast memories are indexed.
        self.engine.azera.group_themes(platform, at.clone(), Arc::new(|_, _| {})).await.unwrap();
        self.saw("MemoryReader::group_themes", String::new());
        let found = self.engine.azera.themes(platform, at.clone(), 0, MANY).await.unwrap();
        self.saw("MemoryReader::themes", found.themes.iter().map(describe_shown).collect());
    }

    pub(super) fn read_themes(&mut self, read_scope: &ReadScope) {
        let memory: &Memory = &self.engine.memory;
        read!(self, memory.themes().changed(read_scope), |found| found.iter().map(|_| "").collect());
        read!(self, memory.themes().list(read_scope, 0, MANY), |found| found.themes.iter().map(describe).collect());
    }
}
