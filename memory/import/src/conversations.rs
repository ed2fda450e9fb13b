//! Reads a list of conversations in JSON, one after another.

use std::io::BufRead;
use std::ops::ControlFlow;

use serde::de::DeserializeOwned;

use crate::elements::{Element, Elements};
use crate::{Found, ReadError, Take};

/// Passes on each conversation of the list with its number, until `pass` or `take` ends it. `take` gets a flaw in the
/// place of a conversation that cannot be read.
pub(crate) fn read_list<T: DeserializeOwned>(
    input: impl BufRead,
    take: &mut Take<'_>,
    pass: impl Fn(T, usize, &mut Take<'_>) -> ControlFlow<()>,
) -> Result<(), ReadError> {
    let mut list = Elements::of_list(input)?;
    let mut element = Vec::new();
    while let Some(read) = list.next(&mut element)? {
        let parsed = match read {
            Element::TooLong => Err(Found::flaw(list.number, "the conversation is too long")),
            Element::Whole => {
                serde_json::from_slice::<T>(&element).map_err(|error| Found::bad_json(list.number, &error))
            }
        };
        let flow = match parsed {
            Ok(conversation) => pass(conversation, list.number, take),
            Err(flaw) => take(flaw),
        };
        if flow.is_break() {
            return Ok(());
        }
    }
    Ok(())
}
