//! Commands and buttons: what people do with them, and the bot's answers.

use serde_json::{Map, Value, json};

use crate::rest::{Call, File, Reply, id_of, unknown};
use crate::world::{APPLICATION, World};

/// An interaction that a person starts.
#[derive(Debug, Clone)]
pub enum Invoked {
    /// A command with its options, in the gateway's format.
    Command {
        /// Its name.
        name: String,
        /// `1` is a slash command, `2` one on a user, `3` one on a message.
        kind: u8,
        /// The options, with subcommands.
        options: Value,
        /// The message it is run on.
        target: Option<u64>,
    },
    /// Typing in an option.
    Autocomplete {
        /// The command's name.
        name: String,
        /// The options; the one being typed is focused.
        options: Value,
    },
    /// A button below a message.
    Button {
        /// The message.
        message: u64,
        /// The button's id.
        custom_id: String,
    },
    /// A submitted form.
    Form {
        /// The form's id.
        custom_id: String,
        /// The fields and their texts.
        fields: Vec<(String, String)>,
    },
}

/// The bot's answer.
#[derive(Debug, Clone, Default)]
pub struct Answer {
    /// Kind of the first response; 5 is "thinking".
    pub kind: Option<u64>,
    /// True if only the person sees it.
    pub ephemeral: bool,
    /// The final message.
    pub message: Option<Value>,
    /// The first response.
    pub first: Option<Value>,
    /// Followup messages.
    pub followups: Vec<Value>,
    /// Files of the final message.
    pub files: Vec<Answered>,
}

/// A file in an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answered {
    /// Its name.
    pub name: String,
    /// Its description for people who cannot see it.
    pub description: String,
    /// Its contents.
    pub bytes: Vec<u8>,
}

/// An interaction.
#[derive(Debug, Clone)]
pub struct Interaction {
    /// Its id.
    pub id: u64,
    token: String,
    channel: u64,
    /// The bot's answer.
    pub answer: Answer,
    begun: std::time::Instant,
    /// Time until the first response.
    pub acknowledged: Option<std::time::Duration>,
}

impl World {
    /// Stores the bot's declared commands.
    pub(crate) fn declare(&mut self, call: &Call) -> Reply {
        let declared = call.body.as_ref().and_then(Value::as_array).cloned().unwrap_or_default();
        self.commands = declared
            .into_iter()
            .map(|mut command| {
                let id = self.id();
                command["id"] = json!(id.to_string());
                command["application_id"] = json!(APPLICATION.to_string());
                command["version"] = json!(id.to_string());
                if command["description"].is_null() {
                    command["description"] = json!("");
                }
                command
            })
            .collect();
        Reply::new(200, json!(self.commands))
    }

    /// Starts an interaction of a person in a channel; returns its id.
    pub fn invoke(&mut self, channel: u64, user: u64, what: Invoked) -> u64 {
        self.invoke_in(channel, user, what, false)
    }

    /// Starts an interaction of a person who installed the bot for themselves, in a server without the bot; `channel`
    /// only provides the data.
    pub fn invoke_by_user_install(&mut self, channel: u64, user: u64, what: Invoked) -> u64 {
        self.invoke_in(channel, user, what, true)
    }

    fn invoke_in(&mut self, channel: u64, user: u64, what: Invoked, by_user_install: bool) -> u64 {
        let id = self.id();
        let token = format!("interaction-secret-{id}");
        let guild = self.channels[&channel].guild;
        let (kind, data, message) = self.data_of(channel, what);
        let mut event = json!({"id": id.to_string(), "application_id": APPLICATION.to_string(), "type": kind,
            "data": data, "channel_id": channel.to_string(), "channel": self.channel_json(channel), "token": token,
            "version": 1, "locale": "en-US", "guild_locale": "en-US", "entitlements": [],
            "authorizing_integration_owners": {"0": guild.map_or("0".to_owned(), |id| id.to_string())},
            "app_permissions": self.granted(channel, crate::world::BOT).0.to_string(),
            "context": u8::from(guild.is_none()), "attachment_size_limit": 10_485_760});
        if let Some(message) = message {
            event["message"] = message;
        }
        match guild {
            Some(guild) => {
                let mut member = self.member_json(guild, user);
                member["permissions"] = json!(self.granted(channel, user).0.to_string());
                event["member"] = member;
                event["guild_id"] = json!(guild.to_string());
            }
            None => event["user"] = self.user_json(user),
        }
        if by_user_install {
            let (server, place) = (self.id().to_string(), self.id().to_string());
            event["authorizing_integration_owners"] = json!({"1": user.to_string()});
            event["guild_id"] = json!(server);
            event["channel_id"] = json!(place);
            event["channel"]["id"] = json!(place);
            event["channel"]["guild_id"] = json!(server);
        }
        let begun = std::time::Instant::now();
        self.interactions.push(Interaction {
            id,
            token,
            channel,
            answer: Answer::default(),
            begun,
            acknowledged: None,
        });
        self.emit("INTERACTION_CREATE", event);
        id
    }

    /// Stores a file that a person chooses for a command; returns its id, which is the option's value.
    pub fn hand_in(&mut self, name: &str, bytes: &[u8]) -> String {
        let id = self.id();
        let stored = self.keep(id, &[File { name: name.to_owned(), bytes: bytes.to_vec() }]);
        stored[0]["id"].as_str().unwrap_or_default().to_owned()
    }

    fn data_of(&self, channel: u64, what: Invoked) -> (u8, Value, Option<Value>) {
        let declared = |name: &str| {
            let command = self.commands.iter().find(|command| command["name"] == *name);
            command.map_or(json!("0"), |command| command["id"].clone())
        };
        match what {
            Invoked::Command { name, kind, options, target } => {
                let mut data = json!({"id": declared(&name), "name": name, "type": kind, "options": options});
                let forms = data["options"].as_array().into_iter().flatten();
                let given =
                    forms.clone().chain(forms.flat_map(|form| form["options"].as_array().into_iter().flatten()));
                let files = given.filter(|option| option["type"] == 11).filter_map(|option| option["value"].as_str());
                let files: Map<String, Value> =
                    files.filter_map(|id| Some((id.to_owned(), self.attached.get(id)?.clone()))).collect();
                data["resolved"] = json!({"attachments": files});
                if let Some(target) = target {
                    let message = self.channels[&channel].messages[&target].clone();
                    data["target_id"] = json!(target.to_string());
                    data["resolved"] = json!({"messages": {target.to_string(): message}});
                }
                (2, data, None)
            }
            Invoked::Autocomplete { name, options } => {
                (4, json!({"id": declared(&name), "name": name, "type": 1, "options": options}), None)
            }
            Invoked::Button { message, custom_id } => {
                let shown = self.channels[&channel].messages.get(&message);
                // An ephemeral message is in no channel.
                let answers = self.interactions.iter().filter_map(|one| one.answer.message.as_ref());
                let message = shown.into_iter().chain(answers).find(|shown| id_of(shown) == message);
                let message = message.cloned().expect("a message that somebody sees");
                (3, json!({"custom_id": custom_id, "component_type": 2}), Some(message))
            }
            Invoked::Form { custom_id, fields } => {
                let row = |(name, value): (String, String)| json!({"type": 1, "components": [{"type": 4, "custom_id": name, "value": value}]});
                let rows: Vec<Value> = fields.into_iter().map(row).collect();
                (5, json!({"custom_id": custom_id, "components": rows}), None)
            }
        }
    }

    /// Returns the last answer that was shown.
    pub fn last_answer(&self) -> Option<Value> {
        self.interactions.iter().rev().find_map(|one| one.answer.message.clone())
    }

    /// Returns an interaction.
    pub fn interaction(&self, id: u64) -> &Interaction {
        self.interactions.iter().find(|one| one.id == id).expect("an interaction of this peer's")
    }

    pub(crate) fn callback(&mut self, id: u64, token: &str, call: &Call) -> Reply {
        let body = call.body.clone().unwrap_or(Value::Null);
        let Some(found) = self.interactions.iter_mut().find(|one| one.id == id && one.token == token) else {
            return unknown(10_062, "interaction");
        };
        if found.answer.kind.is_some() {
            return Reply::failure(400, 40_060, "Interaction has already been acknowledged.");
        }
        found.acknowledged = Some(found.begun.elapsed());
        found.answer.kind = body["type"].as_u64();
        found.answer.ephemeral = body["data"]["flags"].as_u64().unwrap_or(0) & 64 != 0;
        found.answer.first = Some(body["data"].clone());
        if body["type"] == 4 {
            found.answer.message = Some(body["data"].clone());
        }
        Reply::done()
    }

    pub(crate) fn by_interaction(&mut self, token: &str, rest: &[&str], call: &Call) -> Reply {
        let Some(at) = self.interactions.iter().position(|one| one.token == token) else {
            return unknown(10_015, "Webhook");
        };
        if self.interactions[at].answer.kind.is_none() {
            return unknown(10_015, "Webhook");
        }
        let channel = self.interactions[at].channel;
        let body = call.body.clone().unwrap_or(Value::Null);
        let id = self.id();
        let mut message = self.message(channel, id, crate::world::BOT, body["content"].as_str().unwrap_or_default());
        if message["content"].as_str().is_some_and(|content| content.chars().count() > 2_000) {
            return Reply::failure(400, 50_035, "content: Must be 2000 or fewer in length.");
        }
        message["components"] = body["components"].as_array().map_or(json!([]), |rows| json!(rows));
        message["embeds"] = body["embeds"].as_array().map_or(json!([]), |embeds| json!(embeds));
        let names: Vec<&str> = call.files.iter().map(|file| file.name.as_str()).collect();
        message["files"] = json!(names);
        if let Some(file) = call.files.first() {
            message["file_text"] = json!(String::from_utf8_lossy(&file.bytes));
        }
        let described = |number: usize| {
            let as_text = number.to_string();
            let mut about = body["attachments"].as_array().into_iter().flatten();
            let meant = about.find(|one| one["id"] == number || one["id"] == as_text);
            meant.and_then(|one| one["description"].as_str()).unwrap_or_default().to_owned()
        };
        let files = call.files.iter().enumerate().map(|(number, file)| Answered {
            name: file.name.clone(),
            description: described(number),
            bytes: file.bytes.clone(),
        });
        let files: Vec<Answered> = files.collect();
        let answer = &mut self.interactions[at].answer;
        if call.method == "PATCH" {
            answer.files = files;
        }
        match (call.method.as_str(), rest) {
            ("PATCH", ["messages", "@original"]) => answer.message = Some(message.clone()),
            ("POST", []) => answer.followups.push(message.clone()),
            ("DELETE", ["messages", "@original"]) => {
                answer.message = None;
                return Reply::done();
            }
            _ => return unknown(0, "Route"),
        }
        if let Some(fields) = message.as_object_mut() {
            fields.remove("files");
            fields.remove("file_text");
        }
        Reply::new(200, message)
    }
}
