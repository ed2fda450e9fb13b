use std::fmt;
use std::marker::PhantomData;
use std::sync::LazyLock;

use schemars::generate::SchemaSettings;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value as Json;

use crate::Config;
use crate::value::Kind;

/// A section of the configuration.
pub(crate) struct Section {
    pub(crate) name: String,
    pub(crate) doc: String,
    pub(crate) keys: Vec<Key>,
}

/// A key of a section.
pub(crate) struct Key {
    pub(crate) name: String,
    pub(crate) doc: String,
    pub(crate) kind: Kind,
    /// The default; `None` for an optional key.
    pub(crate) default: Option<Json>,
    /// The value to show in the example if there is no default.
    pub(crate) example: Option<Json>,
    /// True if the value must never be shown.
    pub(crate) secret: bool,
}

/// The sections, in the order of their declaration.
static SECTIONS: LazyLock<Vec<Section>> = LazyLock::new(read_schema);

/// Returns the sections, in the order of their declaration.
pub(crate) fn sections() -> &'static [Section] {
    &SECTIONS
}

/// Returns the section with this name.
pub(crate) fn section(name: &str) -> Option<&'static Section> {
    sections().iter().find(|section| section.name == name)
}

impl Section {
    /// Returns the key with this name.
    pub(crate) fn key(&self, name: &str) -> Option<&Key> {
        self.keys.iter().find(|key| key.name == name)
    }
}

fn read_schema() -> Vec<Section> {
    let schema = SchemaSettings::draft2020_12()
        .with(|settings| settings.inline_subschemas = true)
        .into_generator()
        .into_root_schema_for::<Config>();
    let schema = schema.as_value();
    // A JSON object loses the order of its keys. The text of the serialized defaults has it.
    let defaults: Ordered<Ordered<Json>> = serde_json::to_string(&Config::default())
        .and_then(|text| serde_json::from_str(&text))
        .expect("the defaults are numbers, texts and lists, which JSON can hold");
    let doc = |schema: &Json| schema["description"].as_str().unwrap_or_default().to_owned();
    let section = |(name, defaults): (String, Ordered<Json>)| {
        let schema = &schema["properties"][&name];
        let key = |(name, default): (String, Json)| {
            let schema = &schema["properties"][&name];
            Key {
                doc: doc(schema),
                kind: Kind::of(schema).expect("every key has a type that is read; a test loads them all"),
                default: Some(default).filter(|default| !default.is_null()),
                example: schema["examples"].get(0).cloned(),
                secret: schema["writeOnly"] == true,
                name,
            }
        };
        Section { doc: doc(schema), keys: defaults.0.into_iter().map(key).collect(), name }
    };
    defaults.0.into_iter().map(section).collect()
}

/// The entries of a map, in the order in which they were written.
struct Ordered<T>(Vec<(String, T)>);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Ordered<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Entries<T>(PhantomData<T>);

        impl<'de, T: Deserialize<'de>> Visitor<'de> for Entries<T> {
            type Value = Ordered<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a map")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut entries = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    entries.push(entry);
                }
                Ok(Ordered(entries))
            }
        }

        deserializer.deserialize_map(Entries(PhantomData))
    }
}
