//! The built-in personas, and the template for new ones.

use crate::hygiene::clean_name;
use crate::parse::parse;
use crate::persona::Persona;
use crate::render::scalar;
use crate::slug::PersonaSlug;

/// A built-in persona file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BuiltIn {
    /// Its id, the same as in the file.
    pub id: &'static str,
    /// The file.
    pub markdown: &'static str,
}

/// The built-in personas: the assistants Azera (the default) and Areza, and the user persona Protag.
pub const BUILT_INS: [BuiltIn; 3] = [
    BuiltIn { id: "azera", markdown: include_str!("../builtin/azera.md") },
    BuiltIn { id: "areza", markdown: include_str!("../builtin/areza.md") },
    BuiltIn { id: "protag", markdown: include_str!("../builtin/protag.md") },
];

const TEMPLATE: &str = include_str!("../builtin/template.md");
/// Name and id in the template before they are replaced.
const TEMPLATE_NAME: &str = "My Persona";
const TEMPLATE_ID: &str = "my-persona";

impl BuiltIn {
    /// Returns the parsed persona.
    pub fn persona(&self) -> Persona {
        parse(self.markdown).expect("a test parses every built-in file")
    }
}

/// Returns the built-in persona `id`.
pub fn built_in(id: &str) -> Option<Persona> {
    BUILT_INS.iter().find(|built_in| built_in.id == id).map(BuiltIn::persona)
}

/// Returns a persona file to start from, for a persona called `name`. It has every section and setting, filled in and
/// explained in comments, and no errors. A name that cannot be used is replaced.
pub fn template(name: &str) -> String {
    let name = clean_name(name);
    if name.is_empty() {
        return TEMPLATE.to_owned();
    }
    let id = PersonaSlug::from_name(&name).free(PersonaSlug::is_reserved);
    TEMPLATE
        .replace(&format!("id: {TEMPLATE_ID}"), &format!("id: {}", scalar(id.as_str())))
        .replace(&format!("name: {TEMPLATE_NAME}"), &format!("name: {}", scalar(&name)))
        .replace(&format!("# {TEMPLATE_NAME}"), &format!("# {name}"))
}
