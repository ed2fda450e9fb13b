//! Gives a person their files themselves, part by part: an export as text has no room for all of them.

use std::collections::BTreeSet;

use azera_types::{BlobId, MessageId, Part, Scope};

use crate::files::blob_key;
use crate::pictures::PictureRow;
use crate::{DataSubject, Error, Memory, Table};

/// Some of the files of a person.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilesPart {
    /// The files, oldest first, each with its bytes.
    pub files: Vec<(Part, Vec<u8>)>,
    /// How many parts there are.
    pub parts: usize,
}

impl Memory {
    /// Returns a part, from 1, of the files that a person sent and of the pictures that they asked for, oldest first. A part
    /// has at most so many files and so many bytes, or one file that is larger.
    ///
    /// What a persona asked for, or what continues another picture in a shared place, may hold what others said and is no part
    /// of it, as in [`Memory::export`].
    pub fn export_files(
        &self,
        subject: &DataSubject,
        part: usize,
        (most, max_bytes): (usize, u64),
    ) -> Result<FilesPart, Error> {
        let mut given = FilesPart { files: Vec::new(), parts: 0 };
        let (mut count, mut bytes) = (0, 0_u64);
        for (message, file) in self.files_of(subject)? {
            let is_full = count == most || bytes.saturating_add(file.bytes) > max_bytes;
            if given.parts == 0 || count > 0 && is_full {
                (given.parts, count, bytes) = (given.parts + 1, 0, 0);
            }
            (count, bytes) = (count + 1, bytes.saturating_add(file.bytes));
            if given.parts != part {
                continue;
            }
            match self.files().bytes_of(&message, &file) {
                // One damaged file does not cost the rest.
                Err(Error::Damaged { .. }) | Ok(None) => {}
                Ok(Some(bytes)) => given.files.push((file, bytes)),
                Err(error) => return Err(error),
            }
        }
        Ok(given)
    }

    /// Returns the files of a person that are kept, oldest first.
    fn files_of(&self, DataSubject(person): &DataSubject) -> Result<Vec<(MessageId, Part)>, Error> {
        let mut messages = self.messages().messages_of(person, usize::MAX)?;
        let is_theirs = |row: &PictureRow| {
            let is_own_place = row.scope == Scope::Dm(person.clone()) && row.source_scopes.is_empty();
            row.drawn_at.is_some() && (row.sources.is_empty() || is_own_place)
        };
        let drawn = self.pictures().of_person(person)?.into_iter().filter(is_theirs);
        messages.extend(drawn.map(|row| row.message));
        let stored: BTreeSet<BlobId> = self.blobs.list()?.into_iter().map(|(blob, _)| blob).collect();
        let mut files = Vec::new();
        for id in messages {
            let Some(message) = self.messages().raw_message(&id)? else { continue };
            for part in message.parts {
                // A part names its bytes also after other files needed the room.
                let Some(blob) = part.blob.as_ref().filter(|blob| stored.contains(*blob)) else { continue };
                if self.store.get(Table::Blobs, &blob_key(blob, &id))?.is_some() {
                    files.push((message.seq, id.clone(), part));
                }
            }
        }
        files.sort_by_key(|(seq, ..)| *seq);
        Ok(files.into_iter().map(|(_, id, part)| (id, part)).collect())
    }
}
