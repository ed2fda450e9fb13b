//! Exports the data held about one person, for that person.

use std::collections::HashSet;

use azera_types::{Part, PersonId, Scope};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::ratings::RatingRow;
use crate::rows::{Kind, MemoryRow, MessageRow, WritingRow};
use crate::{Error, Memory, Table, codec, graph, keys};

/// A person who asks for their own data. The host makes one only for the person who asks, and shows the result to
/// nobody else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DataSubject(pub PersonId);

impl Memory {
    /// Returns everything the person said, the memories of it, and the replies to it, as JSON. The files that the person
    /// sent are part of it, in base64, newest first as long as they have at most `max_file_bytes` bytes together.
    pub fn export(&self, subject: &DataSubject, max_file_bytes: u64) -> Result<Value, Error> {
        let DataSubject(person) = subject;
        let mut messages = Vec::new();
        let mut memories = Vec::new();
        let mut exported = HashSet::new();
        let mut with_files = Vec::new();
        let mut ids = self.messages().messages_of(person, usize::MAX)?;
        ids.reverse();
        for id in ids {
            let Some(message) = self.messages().raw_message(&id)? else { continue };
            let own = Scope::Dm(person.clone());
            // Texts that were also built on other places, or on other people's messages, do not belong to this person
            // alone. A text built on several messages of this person is exported once.
            let theirs = self.turns().memories_of(&id)?.into_iter().filter(|memory| {
                let all_theirs =
                    memory.scope == own && memory.source_scopes.iter().all(|source_scope| source_scope.scope == own);
                memory.kind.is_said() || memory.kind.is_written() && all_theirs && exported.insert(memory.id)
            });
            for memory in theirs {
                memories.push(self.memory_json(memory)?);
            }
            let mut row = message_json(&message);
            let answers: Vec<azera_types::MessageId> =
                codec::rows(self.store.as_ref(), Table::Answers, &keys::prefix(&[id.as_str()]))?;
            let mut replies = Vec::new();
            for reply in answers {
                // A reply that was given or built in another place may be read only there, and only while the person
                // has access.
                replies.extend(
                    self.messages()
                        .raw_message(&reply)?
                        .filter(|reply| reply.scope == own && reply.source_scopes.is_empty()),
                );
            }
            row["answers"] = replies.iter().map(message_json).collect();
            messages.push(row);
            if !message.parts.is_empty() {
                with_files.push((messages.len() - 1, message));
            }
        }
        let mut room = max_file_bytes;
        for (index, message) in with_files.into_iter().rev() {
            messages[index]["files"] = self.files_json(&message, &mut room)?;
        }
        codec::walk(self.store.as_ref(), Table::Memories, b"", |_, value| {
            let memory: MemoryRow = codec::decode(Table::Memories, value)?;
            // Chunks of long files belong to a message that does not contain their text; so they are exported here.
            if (memory.sources.is_empty() || memory.kind == Kind::Fact) && memory.author.person() == Some(person) {
                memories.push(self.memory_json(memory)?);
            }
            Ok(true)
        })?;
        // Writings that the person imported.
        codec::walk(self.store.as_ref(), Table::Writings, b"", |_, value| {
            let writing: WritingRow = codec::decode(Table::Writings, value)?;
            if writing.imported_by.as_ref() == Some(person) && exported.insert(writing.memory) {
                let memory = self.memories().raw_memory(writing.memory)?;
                memories.extend(memory.map(|memory| self.memory_json(memory)).transpose()?);
            }
            Ok(true)
        })?;
        let pictures = self.pictures_json(person, &mut room)?;
        let feelings: Vec<Value> = self
            .minds()
            .bonds_of(person)?
            .into_iter()
            .map(|row| json!({"persona": row.persona, "scope": row.scope, "feelings": row.bond}))
            .collect();
        let ratings = self.ratings_exported(person)?;
        let (overrides, check_ins, keeping) = (
            self.places().overrides_of(person)?,
            self.places().check_ins_of(person)?,
            self.consent().retention(person)?,
        );
        Ok(json!({
            "person": person, "messages": messages, "memories": memories, "feelings": feelings, "customs": overrides,
            "check_ins": check_ins, "keeping": keeping, "linked": self.links().of(person)?,
            "learnt_from": self.consent().training(person)?, "pictures": pictures, "ratings": ratings,
        }))
    }

    /// Returns what a person thinks of memories.
    fn ratings_exported(&self, person: &PersonId) -> Result<Vec<Value>, Error> {
        let of = |row: RatingRow| {
            let (memory, helpful) = (row.memory.to_string(), row.opinion());
            json!({"memory": memory, "helpful": helpful, "thumbs": row.thumbs, "scope": row.scope, "at": row.at})
        };
        Ok(self.memories().ratings_of(person)?.into_iter().map(of).collect())
    }

    /// Returns the pictures that a person asked for. `room` is the number of bytes that may still be exported.
    fn pictures_json(&self, person: &PersonId, room: &mut u64) -> Result<Vec<Value>, Error> {
        let mut pictures = Vec::new();
        for row in self.pictures().of_person(person)? {
            // What a persona asked for, or what continues another picture, may hold what others said.
            let own = row.scope == Scope::Dm(person.clone()) && row.source_scopes.is_empty();
            if !row.sources.is_empty() && !own {
                continue;
            }
            let mut picture = json!({
                "prompt": row.prompt, "name": row.name, "settings": row.settings, "scope": row.scope,
                "asked_at": row.asked_at, "drawn_at": row.drawn_at, "persona": row.persona, "model": row.model,
            });
            match self.pictures().start_of(&row.message) {
                Ok(None) => {}
                Ok(Some(png)) => {
                    let is_small = png.len() as u64 <= *room;
                    *room -= if is_small { png.len() as u64 } else { 0 };
                    let content = is_small.then(|| STANDARD.encode(&png));
                    picture["starts_from"] = json!({"bytes": png.len(), "content": content, "left_out": !is_small});
                }
                // One damaged file does not cost the rest.
                Err(Error::Damaged { .. }) => picture["starts_from"] = json!({"content": null, "left_out": true}),
                Err(error) => return Err(error),
            }
            if let Some(message) = self.messages().raw_message(&row.message)? {
                picture["files"] = self.files_json(&message, room)?;
            }
            pictures.push(picture);
        }
        Ok(pictures)
    }

    /// Returns the files of a message. `room` is the number of bytes that may still be exported.
    fn files_json(&self, message: &MessageRow, room: &mut u64) -> Result<Value, Error> {
        let mut files = Vec::new();
        for part in &message.parts {
            let mut file = part_json(part);
            let bytes = match self.files().bytes_of(&message.id, part) {
                // One damaged file does not cost the rest.
                Err(Error::Damaged { .. }) => {
                    file["left_out"] = json!(true);
                    None
                }
                bytes => bytes?,
            };
            match bytes {
                None => {}
                Some(bytes) if bytes.len() as u64 > *room => file["left_out"] = json!(true),
                Some(bytes) => {
                    *room -= bytes.len() as u64;
                    file["content"] = json!(STANDARD.encode(bytes));
                }
            }
            files.push(file);
        }
        Ok(Value::Array(files))
    }
}

fn part_json(part: &Part) -> Value {
    let mut file = json!({"name": part.name, "kind": part.kind, "mime": part.mime, "bytes": part.bytes});
    if let Some(alt) = &part.alt {
        file["alt"] = json!(alt);
    }
    if let Some(blob) = &part.blob {
        file["sha256"] = json!(blob);
    }
    file
}

fn message_json(message: &MessageRow) -> Value {
    let mut row = json!({
        "id": message.id,
        "chat": message.chat,
        "scope": message.scope,
        "at": message.at,
        "author": message.author.name(),
        "persona": message.persona,
        "text": message.text,
    });
    if !message.ran.is_empty() {
        row["ran"] = json!(message.ran);
    }
    row
}

impl Memory {
    /// Returns a memory as the export shows it. What is gone, or stands elsewhere, is not named.
    fn memory_json(&self, memory: MemoryRow) -> Result<Value, Error> {
        let memory = &self.memories().as_kept_in_place(memory)?;
        let mut row = json!({
            "id": memory.id.to_string(),
            "kind": memory.kind,
            "provenance": memory.kind.evidence(),
            "scope": memory.scope,
            "at": memory.at,
            "persona": memory.persona,
            "sources": memory.sources,
            "text": memory.text,
        });
        let relations = graph::said(memory);
        if !relations.is_empty() {
            row["relations"] = json!(relations);
        }
        if let Some(salience) = &memory.salience {
            row["worth"] = json!(salience);
        }
        if let Some(replaced) = &memory.replaced {
            row["replaced"] = json!({"by": replaced.memory.to_string(), "at": replaced.at});
        }
        if let Some(surprise) = &memory.surprise {
            row["surprise"] = json!(surprise);
        }
        Ok(row)
    }
}
