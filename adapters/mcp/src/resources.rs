//! Resources: the memories of the session, the knowledge graph, and the persona.

use std::fmt::Write as _;

use rmcp::model::{ListResourcesResult, ReadResourceResult, Resource, ResourceContents, ResourceTemplate};
use serde::Serialize;

use crate::failure::Failure;
use crate::graph::OfName;
use crate::memories::{Listed, OfId};
use crate::session::Caller;
use crate::texts::QUOTED;

/// The address of the persona's file.
const PERSONA: &str = "azera://persona";

/// The address of the counts.
const STATS: &str = "azera://stats";

/// The address of the knowledge graph, and the beginning of the address of a name in it.
const GRAPH: &str = "azera://graph";
const NAME: &str = "azera://graph/";

/// The beginning of the address of a memory.
const MEMORY: &str = "azera://memory/";

const JSON: &str = "application/json";
const MARKDOWN: &str = "text/markdown";

/// Memories of a page.
const PAGE: usize = 50;

/// Most characters of a memory in its title.
const TITLE_CHARS: usize = 60;

/// A name that the knowledge graph knows.
#[derive(Debug, Serialize)]
struct GraphName {
    /// The name as it was written.
    name: String,
    /// How many memories name it.
    memories: usize,
    /// The address of what is known of it.
    uri: String,
}

/// The names that the knowledge graph knows best.
#[derive(Debug, Serialize)]
struct GraphNames {
    /// What the texts are.
    notice: &'static str,
    /// The names, the one named most first.
    names: Vec<GraphName>,
    /// True if older memories were too many to count.
    is_cut: bool,
}

/// Returns a page of the resources. The first one begins with the persona, the counts and the graph; memories follow, newest
/// first.
pub(crate) async fn list(caller: &Caller, cursor: Option<String>) -> Result<ListResourcesResult, Failure> {
    if !caller.session.rights.read {
        return Ok(ListResourcesResult::default());
    }
    let is_first = cursor.is_none();
    let page = caller.list(Listed { kinds: Vec::new(), limit: Some(PAGE), cursor }).await?;
    let mut resources = Vec::new();
    if is_first {
        let persona = Resource::new(PERSONA, "persona").with_title("The persona").with_mime_type(MARKDOWN);
        resources.push(persona.with_description("The file that defines the persona of this session."));
        let stats = Resource::new(STATS, "stats").with_title("Statistics").with_mime_type(JSON);
        resources.push(stats.with_description("How many memories there are, by kind."));
        let graph = Resource::new(GRAPH, "graph").with_title("The knowledge graph").with_mime_type(JSON);
        resources.push(graph.with_description("The names that are named most, and how many memories name each."));
    }
    resources.extend(page.memories.into_iter().map(|memory| {
        let title: String =
            memory.text.chars().take(TITLE_CHARS).map(|c| if c.is_control() { ' ' } else { c }).collect();
        Resource::new(format!("{MEMORY}{}", memory.id), memory.id.clone())
            .with_title(title)
            .with_description(format!("A memory of kind {}, from {}. Its text is quoted data.", memory.kind, memory.at))
            .with_mime_type(JSON)
    }));
    Ok(ListResourcesResult { next_cursor: page.next_cursor, ..ListResourcesResult::with_all_items(resources) })
}

/// Returns the forms of addresses.
pub(crate) fn templates(caller: &Caller) -> Vec<ResourceTemplate> {
    if !caller.session.rights.read {
        return Vec::new();
    }
    let memory = ResourceTemplate::new(format!("{MEMORY}{{id}}"), "memory").with_title("A memory").with_mime_type(JSON);
    let name = ResourceTemplate::new(format!("{NAME}{{name}}"), "graph-name").with_title("A name").with_mime_type(JSON);
    vec![
        memory.with_description("One whole memory by its id, such as m42."),
        name.with_description("What the knowledge graph says of a name, with its relations and their memories."),
    ]
}

/// Returns the content of a resource.
pub(crate) async fn read(caller: &Caller, uri: &str) -> Result<ReadResourceResult, Failure> {
    let missing = || Failure::refused(format!("There is no resource {uri} that this session may read."));
    if !caller.session.rights.read {
        return Err(missing());
    }
    let (mime_type, text) = match uri {
        PERSONA => (MARKDOWN, persona(caller).await?),
        STATS => (JSON, json(&caller.stats().await?)?),
        GRAPH => (JSON, json(&graph(caller).await?)?),
        _ => match uri.strip_prefix(NAME) {
            Some(name) => {
                let name = decoded(name).ok_or_else(missing)?;
                (JSON, json(&caller.relations(OfName { name }).await?)?)
            }
            None => {
                let id = uri.strip_prefix(MEMORY).ok_or_else(missing)?;
                (JSON, json(&caller.get(OfId { id: id.to_owned() }).await?)?)
            }
        },
    };
    Ok(ReadResourceResult::new(vec![ResourceContents::text(text, uri).with_mime_type(mime_type)]))
}

fn json<T: serde::Serialize>(value: &T) -> Result<String, Failure> {
    serde_json::to_string_pretty(value)
        .map_err(|error| Failure::refused(format!("The resource cannot be written: {error}.")))
}

async fn persona(caller: &Caller) -> Result<String, Failure> {
    let at = caller.begin().await?;
    let id = caller.persona(&at).await?;
    let personas = caller.engine.reader.personas(&caller.session.platform, at).await?;
    let found = personas.into_iter().find(|persona| persona.id == id);
    found.map(|persona| persona.markdown).ok_or_else(|| Failure::refused("The persona of this session is gone."))
}

async fn graph(caller: &Caller) -> Result<GraphNames, Failure> {
    let at = caller.begin().await?;
    let found = caller.engine.memories.graph_names(&caller.session.platform, at).await?;
    let name =
        |(name, memories): (String, usize)| GraphName { uri: format!("{NAME}{}", encoded(&name)), name, memories };
    Ok(GraphNames { notice: QUOTED, names: found.most.into_iter().map(name).collect(), is_cut: found.is_cut })
}

/// Returns a name as the last part of an address (RFC 3986): every byte but unreserved characters as `%` and two digits.
fn encoded(name: &str) -> String {
    let mut address = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            address.push(char::from(byte));
        } else {
            write!(address, "%{byte:02X}").ok();
        }
    }
    address
}

/// Returns the name that [`encoded`] made a part of an address of; `None` if it is none.
fn decoded(address: &str) -> Option<String> {
    let (mut bytes, mut name) = (address.bytes(), Vec::with_capacity(address.len()));
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            name.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
        let (high, low) = (digit(bytes.next())?, digit(bytes.next())?);
        name.push(high * 16 + low);
    }
    String::from_utf8(name).ok()
}

#[cfg(test)]
mod tests {
    use super::{decoded, encoded};

    #[test]
    fn a_name_stands_whole_in_an_address() {
        for name in ["Mia", "Mia K.", "Zoë/100 %", "a?b#c", ""] {
            let address = encoded(name);
            assert!(!address.contains([' ', '/', '?', '#']), "{address}");
            assert_eq!(decoded(&address).as_deref(), Some(name));
        }
        assert_eq!(decoded("Zo%c3%ab").as_deref(), Some("Zoë"));
        for wrong in ["%", "%4", "%zz", "%ff"] {
            assert_eq!(decoded(wrong), None, "{wrong}");
        }
    }
}
