use azera_model_api::Role;
use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, ErrorKind, Value, context};

use crate::config::Dates;

const THINK_OPEN: &str = "<think>";

/// What ends a thinking block, in the template that holds it.
const THINK_ENDS: [&str; 5] = ["</think>", "[/THINK]", "</seed:think>", "<|END_THINKING|>", "<channel|>"];

/// Begins a channel. In this format, thoughts are one.
const CHANNEL: &str = "<|channel|>";

const NAME: &str = "chat";

/// The person's turn before a reply that nobody asked for, in templates that want one.
const NOTHING: &str = "(...)";

/// Beginnings of conversations as Azera has them. A template must render each.
const TALKS: [&[Role]; 5] = [
    &[Role::System, Role::User],
    &[Role::System, Role::User, Role::Assistant, Role::User],
    &[Role::System, Role::User, Role::User],
    &[Role::System, Role::User, Role::Assistant, Role::Assistant, Role::User],
    &[Role::User, Role::Assistant, Role::User],
];

/// A part of a rendered prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Part {
    /// Text of the template, in which control tokens are recognized.
    Markup(String),
    /// The content of the message with this index, in which they are not.
    Content(usize),
}

/// A rendered prompt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rendered {
    pub(crate) parts: Vec<Part>,
    /// True if the prompt ends inside a thinking block.
    pub(crate) inside_thinking: bool,
}

/// A model's own chat template: Jinja text from its GGUF file. It is rendered with a mark instead of each content, so
/// that contents never pass through it and can be tokenized as plain text.
#[derive(Debug)]
pub(crate) struct ChatTemplate {
    environment: Environment<'static>,
    bos: String,
    eos: String,
    /// True if the model uses thinking blocks.
    thinks: bool,
    end_of_thinking: Option<String>,
    may_think: bool,
    /// True if the template takes no message of the system. Its text then begins the first turn.
    folds_system: bool,
    /// True if the template takes only turns that alternate. Neighbouring ones are then joined.
    joins_turns: bool,
}

impl ChatTemplate {
    /// Reads a template, and finds out which conversations it accepts. `dates` writes the day where it names one.
    pub(crate) fn new(source: String, bos: String, eos: String, dates: Dates) -> Result<Self, String> {
        let source = without_training_marks(&source);
        let thinks = source.contains(THINK_OPEN);
        let end =
            THINK_ENDS.iter().find(|end| source.contains(**end)).or_else(|| THINK_ENDS.first().filter(|_| thinks));
        let may_think = end.is_some() || source.contains(CHANNEL);
        let end_of_thinking = end.map(|end| format!("\n{end}\n\n"));
        let mut environment = Environment::new();
        // Chat templates are written for these settings.
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
        environment.set_syntax(syntax.map_err(|error| error.to_string())?);
        environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.add_function("raise_exception", |message: String| -> Result<String, minijinja::Error> {
            Err(minijinja::Error::new(ErrorKind::InvalidOperation, message))
        });
        environment.add_function("strftime_now", move |format: &str| dates.write(format));
        environment.add_template_owned(NAME, source).map_err(|error| error.to_string())?;
        let mut template =
            Self { environment, bos, eos, thinks, end_of_thinking, may_think, folds_system: false, joins_turns: false };
        template.probe()?;
        Ok(template)
    }

    /// Tries conversations on the template. It is wrong if it takes them in no form, and then every reply would fail.
    fn probe(&mut self) -> Result<(), String> {
        let mut reason = None;
        for (folds_system, joins_turns) in [(false, false), (false, true), (true, false), (true, true)] {
            (self.folds_system, self.joins_turns) = (folds_system, joins_turns);
            match TALKS.iter().try_for_each(|roles| self.try_talk(roles)) {
                Ok(()) => return Ok(()),
                Err(error) => reason.get_or_insert(error),
            };
        }
        Err(reason.unwrap_or_default())
    }

    fn try_talk(&self, roles: &[Role]) -> Result<(), String> {
        for thinking in [false, true] {
            let parts = self.render(roles, thinking, false)?.parts;
            let shown = |i: usize| parts.iter().filter(|part| **part == Part::Content(i)).count();
            if let Some((_, role)) = roles.iter().enumerate().find(|(i, _)| shown(*i) != 1) {
                return Err(format!("it leaves out or repeats a message of the {}", role.as_str()));
            }
        }
        Ok(())
    }

    /// Returns the text that ends a thinking block from outside; `None` if the template tells none. In another format
    /// that text would be a part of the thoughts, and what follows would look like the reply.
    pub(crate) fn end_of_thinking(&self) -> Option<&str> {
        self.end_of_thinking.as_deref()
    }

    /// Returns true if the template shows that the model can think.
    pub(crate) fn may_think(&self) -> bool {
        self.may_think
    }

    /// Returns the turns that the template gets for messages with these roles, with marks as contents.
    fn turns(&self, roles: &[Role]) -> Vec<(Role, String)> {
        let mut turns: Vec<(Role, String)> = Vec::with_capacity(roles.len());
        for (i, role) in roles.iter().enumerate() {
            let role = if self.folds_system && *role == Role::System { Role::User } else { *role };
            let joins = self.joins_turns || (self.folds_system && i == 1);
            match turns.last_mut() {
                Some((last, content)) if joins && *last == role => content.push_str(&format!("\n\n{}", mark(i))),
                last => {
                    let is_first = last.is_none_or(|(last, _)| *last == Role::System);
                    if self.joins_turns && is_first && role == Role::Assistant {
                        turns.push((Role::User, NOTHING.to_owned()));
                    }
                    turns.push((role, mark(i)));
                }
            }
        }
        turns
    }

    /// Renders the prompt for messages with these roles, open for the assistant's answer. If `thinking` is false, a
    /// block that the template opens is closed at once. If `must_think` is true, a block is opened if the model uses
    /// them.
    pub(crate) fn render(&self, roles: &[Role], thinking: bool, must_think: bool) -> Result<Rendered, String> {
        let turns = self.turns(roles);
        let messages: Vec<Value> =
            turns.iter().map(|(role, content)| context! { role => role.as_str(), content => content }).collect();
        let text = self
            .environment
            .get_template(NAME)
            .and_then(|template| {
                template.render(context! {
                    messages,
                    add_generation_prompt => true,
                    enable_thinking => thinking,
                    bos_token => self.bos.as_str(),
                    eos_token => self.eos.as_str(),
                })
            })
            .map_err(|error| error.detail().map_or_else(|| error.to_string(), str::to_owned))?;
        let mut inside_thinking = text.trim_end().ends_with(THINK_OPEN);
        let mut parts = split(&text);
        if inside_thinking && !thinking {
            parts.push(Part::Markup("\n</think>\n\n".into()));
            inside_thinking = false;
        } else if thinking && must_think && self.thinks && !inside_thinking {
            parts.push(Part::Markup("<think>\n".into()));
            inside_thinking = true;
        }
        Ok(Rendered { parts: join(parts), inside_thinking })
    }
}

/// Removes the tags around what a training program learns. They show nothing, and no engine knows them.
fn without_training_marks(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some((before, (tag, after))) =
        rest.split_once("{%").and_then(|(before, rest)| Some((before, rest.split_once("%}")?)))
    {
        out.push_str(before);
        match tag.trim_matches(|c: char| c == '-' || c == '+' || c.is_whitespace()) {
            "generation" => out.push_str(&format!("{{%{}%}}", tag.replace("generation", "if true"))),
            "endgeneration" => out.push_str(&format!("{{%{}%}}", tag.replace("endgeneration", "endif"))),
            _ => out.push_str(&format!("{{%{tag}%}}")),
        }
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Returns the mark that replaces the content of message `i` while the template is rendered. It has only letters and
/// digits, so that trimming and escaping filters do not change it.
fn mark(i: usize) -> String {
    format!("{MARK}{i}q")
}

const MARK: &str = "azeraContentMark7f3a1b";

fn split(text: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut pieces = text.split(MARK);
    parts.extend(pieces.next().map(|head| Part::Markup(head.to_owned())));
    for piece in pieces {
        match piece.split_once('q').and_then(|(i, rest)| Some((i.parse().ok()?, rest))) {
            Some((i, rest)) => parts.extend([Part::Content(i), Part::Markup(rest.to_owned())]),
            None => parts.push(Part::Markup(format!("{MARK}{piece}"))),
        }
    }
    parts
}

/// Joins neighbouring parts of markup and drops empty ones.
fn join(parts: Vec<Part>) -> Vec<Part> {
    let mut joined: Vec<Part> = Vec::with_capacity(parts.len());
    for part in parts {
        match (joined.last_mut(), part) {
            (_, Part::Markup(text)) if text.is_empty() => {}
            (Some(Part::Markup(last)), Part::Markup(text)) => last.push_str(&text),
            (_, part) => joined.push(part),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: &str = "{% for m in messages %}<{{ m['role'] }}>{{ m.content | trim }}</>\n{% endfor %}\
                         {% if add_generation_prompt %}<assistant>{% endif %}";
    /// Uses the features of reasoning models' templates: namespaces, reversed slices, string methods, a switch for
    /// thinking.
    const SWITCH: &str = "{%- set ns = namespace(seen=0) %}{%- for m in messages[::-1] %}{%- if m.role == 'user' and not \
        m.content.startswith('<tool>') %}{%- set ns.seen = loop.index0 %}{%- endif %}{%- endfor %}\
        {%- for m in messages %}{{- '<' + m.role + '>' + m.content.split('</think>')[-1].lstrip('\\n') }}{%- endfor %}\
        {{- '<assistant>' }}{%- if enable_thinking is defined and enable_thinking is false %}\
        {{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}";
    const ALWAYS: &str = "{% for m in messages %}{{ m.content }}{% endfor %}{{ '<assistant><think>\n' }}";

    fn read(source: &str) -> Result<ChatTemplate, String> {
        let dates = Dates::new(|format| format.replace("%d %b %Y", "28 Nov 2026").replace("%Y-%m-%d", "2026-11-28"));
        ChatTemplate::new(source.into(), "<s>".into(), "</s>".into(), dates)
    }

    #[track_caller]
    fn check(source: &str, roles: &[Role], thinking: bool, must_think: bool, expected: Result<&str, &str>) {
        let template = read(source).unwrap();
        let line = template.render(roles, thinking, must_think).map(|rendered| {
            let mut line: String = rendered
                .parts
                .iter()
                .map(|part| match part {
                    Part::Markup(text) => text.clone(),
                    Part::Content(i) => format!("({i})"),
                })
                .collect();
            if rendered.inside_thinking {
                line.push_str("...");
            }
            line
        });
        assert_eq!(line.as_deref().map_err(String::as_str), expected);
    }

    #[test]
    fn a_template_is_rendered_without_contents() {
        use Role::{Assistant, System, User};
        check(PLAIN, &[System, User], false, false, Ok("<system>(0)</>\n<user>(1)</>\n<assistant>"));
        check(PLAIN, &[], false, false, Ok("<assistant>"));
        check(PLAIN, &[User], true, true, Ok("<user>(0)</>\n<assistant>"));
        check(SWITCH, &[User, Assistant, User], true, false, Ok("<user>(0)<assistant>(1)<user>(2)<assistant>"));
        check(SWITCH, &[User], true, true, Ok("<user>(0)<assistant><think>\n..."));
        check(SWITCH, &[User], false, false, Ok("<user>(0)<assistant><think>\n\n</think>\n\n"));
        check(ALWAYS, &[User], true, false, Ok("(0)<assistant><think>\n..."));
        check(ALWAYS, &[User], false, false, Ok("(0)<assistant><think>\n\n</think>\n\n"));
    }

    /// Begins as templates of Mistral do: today's date, a message of the system of its own, turns that alternate.
    const DATED: &str = "{%- set today = strftime_now('%Y-%m-%d') %}{{- bos_token }}\
        {%- if messages[0]['role'] == 'system' %}{%- set system = messages[0]['content'] %}\
        {%- set loop_messages = messages[1:] %}\
        {%- else %}{%- set system = 'It is ' + today + '.' %}{%- set loop_messages = messages %}{%- endif %}\
        {{- '[SYS]' + system + '[/SYS]' }}{%- for m in loop_messages %}\
        {%- if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}\
        {{- raise_exception('roles must alternate') }}{%- endif %}\
        {%- if m['content'] is string %}{{- '[' + m['role'] + ']' + m['content'] }}{%- endif %}{%- endfor %}";
    /// Tells the day beside the message of the system, as templates of Llama 3 do.
    const TOLD_THE_DAY: &str = "{%- if not date_string is defined %}{%- if strftime_now is defined %}\
        {%- set date_string = strftime_now('%d %b %Y') %}{%- else %}{%- set date_string = '26 Jul 2024' %}\
        {%- endif %}{%- endif %}\
        {%- if messages[0]['role'] == 'system' %}{%- set system = messages[0]['content']|trim %}\
        {%- set messages = messages[1:] %}\
        {%- else %}{%- set system = '' %}{%- endif %}{{- bos_token + 'Today: ' + date_string + '\n' + system }}\
        {%- for m in messages %}{%- if not 'tool_calls' in m %}{{- '<' + m['role'] + '>' + m['content']|trim }}\
        {%- endif %}{%- endfor %}";
    /// Takes neither a message of the system nor two turns of one side, as templates of Gemma 2 do.
    const STRICT: &str = "{{ bos_token }}{% if messages[0]['role'] == 'system' %}\
        {{ raise_exception('no system') }}{% endif %}\
        {% for m in messages %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}\
        {{ raise_exception('alternate') }}{% endif %}\
        {% if (m['role'] == 'assistant') %}{% set role = 'model' %}{% else %}{% set role = m['role'] %}{% endif %}\
        {{ '<' + role + '>' + m['content'] | trim }}{% endfor %}";
    /// Shows no message of the system, without an error.
    const DEAF: &str = "{% for m in messages if m.role != 'system' %}<{{ m.role }}>{{ m.content }}{% endfor %}";

    #[test]
    fn a_template_gets_the_day_and_turns_that_it_accepts() {
        use Role::{Assistant, System, User};
        check(DATED, &[System, User], false, false, Ok("<s>[SYS](0)[/SYS][user](1)"));
        check(DATED, &[User], false, false, Ok("<s>[SYS]It is 2026-11-28.[/SYS][user](0)"));
        check(DATED, &[System, User, User], false, false, Ok("<s>[SYS](0)[/SYS][user](1)\n\n(2)"));
        check(
            DATED,
            &[System, Assistant, User],
            false,
            false,
            Ok("<s>[SYS](0)[/SYS][user](...)[assistant](1)[user](2)"),
        );
        check(TOLD_THE_DAY, &[System, User], false, false, Ok("<s>Today: 28 Nov 2026\n(0)<user>(1)"));
        check(TOLD_THE_DAY, &[System, User, User], true, false, Ok("<s>Today: 28 Nov 2026\n(0)<user>(1)<user>(2)"));
        check(STRICT, &[System, User], false, false, Ok("<s><user>(0)\n\n(1)"));
        check(STRICT, &[System, User, Assistant, User], false, false, Ok("<s><user>(0)\n\n(1)<model>(2)<user>(3)"));
        check(STRICT, &[System, User, User], false, false, Ok("<s><user>(0)\n\n(1)\n\n(2)"));
        check(DEAF, &[System, User, User], false, false, Ok("<user>(0)\n\n(1)<user>(2)"));
    }

    #[test]
    fn tags_around_what_is_learnt_show_nothing() {
        let marked = "{% for m in messages %}{% if m.role == 'assistant' %}{%- generation -%}<a>{{ m.content }}\
                      {%- endgeneration %}{% else %}<b>{{ m.content }}{% endif %}{% endfor %}";
        check(marked, &[Role::User, Role::Assistant], false, false, Ok("<b>(0)<a>(1)"));
    }

    #[test]
    fn a_template_that_takes_no_conversation_is_rejected_when_it_is_read() {
        assert_eq!(read("{{ raise_exception('only tools') }}").err().as_deref(), Some("only tools"));
        let unknown = read("{{ fetch_tools() }}{% for m in messages %}{{ m.content }}{% endfor %}").err();
        assert!(unknown.as_ref().is_some_and(|error| error.contains("fetch_tools")), "{unknown:?}");
        let silent = read("{% for m in messages if m.role == 'user' %}{{ m.content }}{% endfor %}").err();
        assert_eq!(silent.as_deref(), Some("it leaves out or repeats a message of the system"));
    }

    #[test]
    fn the_end_of_thinking_is_known_only_where_the_template_tells_it() {
        assert_eq!(read(SWITCH).unwrap().end_of_thinking(), Some("\n</think>\n\n"));
        assert_eq!(read(ALWAYS).unwrap().end_of_thinking(), Some("\n</think>\n\n"));
        let harmony = "{% for m in messages %}<|start|>{{ m.role }}{% if m.role == 'assistant' %}<|channel|>final\
                       {% endif %}<|message|>{{ m.content }}<|end|>{% endfor %}{{ '<|start|>assistant' }}";
        let harmony = read(harmony).unwrap();
        assert_eq!((harmony.end_of_thinking(), harmony.may_think()), (None, true));
        let plain = read(PLAIN).unwrap();
        assert_eq!((plain.end_of_thinking(), plain.may_think()), (None, false));
        assert!(read(SWITCH).unwrap().may_think());
    }

    #[test]
    fn a_broken_template_is_rejected() {
        assert!(read("{% for m in messages %}").is_err());
    }
}
