//! Groups, tags and settings that clients store for a person.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Accounts;
use crate::problem::Problem;

/// Most groups, and most tags, of one account.
const MAX_LABELS: usize = 200;

/// Longest name of a group or tag, in characters.
const MAX_LABEL_CHARS: usize = 60;

/// Largest settings of a client, in bytes of JSON.
const MAX_SETTINGS_BYTES: usize = 64 << 10;

/// Most levels of a client's settings. They are stored inside an account, and what is nested too deeply cannot be read again.
const MAX_SETTINGS_LEVELS: usize = 32;

/// A group of chats, or a tag.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct Label {
    /// Its id.
    pub(crate) id: String,
    /// Its name.
    pub(crate) name: String,
    /// A colour, such as `#aabbcc`.
    pub(crate) color: Option<String>,
    /// Whether clients show it collapsed. Only groups can be.
    #[serde(default)]
    pub(crate) collapsed: bool,
    /// Its place in the list. Only groups have one.
    #[serde(default)]
    pub(crate) order: i64,
}

/// A group or tag to make.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct NewLabel {
    /// Its name.
    name: String,
    /// A colour, such as `#aabbcc`.
    #[serde(default)]
    color: Option<String>,
}

/// Changes of a group or tag. What is left out stays.
#[derive(Deserialize, JsonSchema)]
pub(crate) struct LabelChanges {
    /// Its name.
    #[serde(default)]
    name: Option<String>,
    /// A colour, such as `#aabbcc`.
    #[serde(default)]
    color: Option<String>,
    /// Whether clients show it collapsed.
    #[serde(default)]
    collapsed: Option<bool>,
    /// Its place in the list.
    #[serde(default)]
    order: Option<i64>,
}

/// What clients store for a person. Nothing in Azera reads it but the ids of groups and tags.
#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Preferences {
    pub(crate) editor: Map<String, Value>,
    pub(crate) ui: Map<String, Value>,
    pub(crate) groups: Vec<Label>,
    pub(crate) tags: Vec<Label>,
}

/// Which labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LabelKind {
    Group,
    Tag,
}

impl LabelKind {
    fn word(self) -> &'static str {
        match self {
            Self::Group => "group",
            Self::Tag => "tag",
        }
    }
}

impl Preferences {
    fn labels(&self, kind: LabelKind) -> &Vec<Label> {
        match kind {
            LabelKind::Group => &self.groups,
            LabelKind::Tag => &self.tags,
        }
    }

    fn labels_mut(&mut self, kind: LabelKind) -> &mut Vec<Label> {
        match kind {
            LabelKind::Group => &mut self.groups,
            LabelKind::Tag => &mut self.tags,
        }
    }
}

fn checked(name: &str, color: Option<&str>) -> Result<String, Problem> {
    let name = name.trim();
    if name.is_empty() || name.chars().count() > MAX_LABEL_CHARS || name.chars().any(char::is_control) {
        return Err(Problem::invalid(format!("A name has 1 to {MAX_LABEL_CHARS} characters.")));
    }
    let is_color = |color: &str| {
        let digits = color.strip_prefix('#').unwrap_or(color);
        !digits.is_empty() && digits.len() <= 32 && digits.chars().all(|c| c.is_ascii_alphanumeric())
    };
    if !color.is_none_or(is_color) {
        return Err(Problem::invalid("A colour is a name such as `teal`, or digits such as `#aabbcc`."));
    }
    Ok(name.to_owned())
}

/// Returns how deeply a value is nested. The parser has bounded that.
fn levels(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(levels).max().unwrap_or(0),
        Value::Object(fields) => 1 + fields.values().map(levels).max().unwrap_or(0),
        _ => 0,
    }
}

impl Accounts {
    /// Returns the groups or tags of an account: groups by their place, tags newest first.
    pub(crate) fn labels(&self, account: &str, kind: LabelKind) -> Vec<Label> {
        let mut labels = self.with(account, |account| account.preferences.labels(kind).clone()).unwrap_or_default();
        labels.reverse();
        labels.sort_by_key(|label| label.order);
        labels
    }

    fn check_label(&self, account: &str, kind: LabelKind, id: &str) -> Result<(), Problem> {
        match self.labels(account, kind).iter().any(|label| label.id == id) {
            true => Ok(()),
            false => Err(Problem::not_found(kind.word())),
        }
    }

    /// Fails if the account has no group of this id.
    pub(crate) fn check_group(&self, account: &str, id: &str) -> Result<(), Problem> {
        self.check_label(account, LabelKind::Group, id)
    }

    /// Fails if the account has no tag of this id.
    pub(crate) fn check_tag(&self, account: &str, id: &str) -> Result<(), Problem> {
        self.check_label(account, LabelKind::Tag, id)
    }

    pub(crate) async fn add_label(&self, account: &str, kind: LabelKind, new: NewLabel) -> Result<Label, Problem> {
        let name = checked(&new.name, new.color.as_deref())?;
        let id = crate::secrets::id()?.to_string();
        let label = Label { id, name, color: new.color, collapsed: false, order: 0 };
        let added = label.clone();
        self.change(account, |account| {
            let labels = account.preferences.labels_mut(kind);
            if labels.len() >= MAX_LABELS {
                let detail = format!("There are {MAX_LABELS} already. Delete one first.");
                return Err(Problem::invalid(detail));
            }
            labels.push(added);
            Ok(())
        })
        .await?;
        Ok(label)
    }

    pub(crate) async fn change_label(
        &self,
        account: &str,
        kind: LabelKind,
        id: &str,
        changes: LabelChanges,
    ) -> Result<Label, Problem> {
        self.change(account, |account| {
            let labels = account.preferences.labels_mut(kind);
            let Some(label) = labels.iter_mut().find(|label| label.id == id) else {
                return Err(Problem::not_found(kind.word()));
            };
            let color = changes.color.or_else(|| label.color.take());
            label.name = checked(changes.name.as_deref().unwrap_or(&label.name), color.as_deref())?;
            label.color = color;
            label.collapsed = changes.collapsed.unwrap_or(label.collapsed);
            label.order = changes.order.unwrap_or(label.order);
            Ok(label.clone())
        })
        .await
    }

    pub(crate) async fn remove_label(&self, account: &str, kind: LabelKind, id: &str) -> Result<(), Problem> {
        self.change(account, |account| {
            let labels = account.preferences.labels_mut(kind);
            let before = labels.len();
            labels.retain(|label| label.id != id);
            if labels.len() == before { Err(Problem::not_found(kind.word())) } else { Ok(()) }
        })
        .await
    }

    /// Returns the settings of clients: of their editor, and of the rest.
    pub(crate) fn settings(&self, account: &str) -> (Map<String, Value>, Map<String, Value>) {
        let of = |account: &super::Account| (account.preferences.editor.clone(), account.preferences.ui.clone());
        self.with(account, of).unwrap_or_default()
    }

    /// Stores settings of clients: those of the editor with `of_editor`, or else the rest.
    pub(crate) async fn set_settings(
        &self,
        account: &str,
        of_editor: bool,
        settings: Map<String, Value>,
    ) -> Result<(), Problem> {
        let bytes = serde_json::to_vec(&settings).map_err(|error| Problem::internal(&error))?.len();
        if bytes > MAX_SETTINGS_BYTES {
            return Err(Problem::invalid(format!("Settings have at most {MAX_SETTINGS_BYTES} bytes.")));
        }
        if settings.values().any(|value| levels(value) >= MAX_SETTINGS_LEVELS) {
            return Err(Problem::invalid(format!("Settings are nested at most {MAX_SETTINGS_LEVELS} levels deep.")));
        }
        self.change(account, |account| {
            if of_editor {
                account.preferences.editor = settings;
            } else {
                account.preferences.ui = settings;
            }
            Ok(())
        })
        .await
    }
}
