//! Resources: the memories of the session, and the persona.

use rmcp::model::{ListResourcesResult, ReadResourceResult, Resource, ResourceContents, ResourceTemplate};

use crate::failure::Failure;
use crate::memories::{Listed, OfId};
use crate::session::Caller;

/// The address of the persona's file.
const PERSONA: &str = "azera://persona";

/// The address of the counts.
const STATS: &str = "azera://stats";

/// The beginning of the address of a memory.
const MEMORY: &str = "azera://memory/";

const JSON: &str = "application/json";
const MARKDOWN: &str = "text/markdown";

/// Memories of a page.
const PAGE: usize = 50;

/// Most characters of a memory in its title.
const TITLE_CHARS: usize = 60;

/// Returns a page of the resources. The first one begins with the persona and the counts; memories follow, newest first.
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
    vec![memory.with_description("One whole memory by its id, such as m42.")]
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
        _ => {
            let id = uri.strip_prefix(MEMORY).ok_or_else(missing)?;
            (JSON, json(&caller.get(OfId { id: id.to_owned() }).await?)?)
        }
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
