use azera_model_api::Role;
use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, ErrorKind, Value, context};

const THINK_OPEN: &str = "<think>";

/// What ends a thinking block: in the template that holds it, else as the first.
const THINK_ENDS: [&str; 5] = ["</think>", "[/THINK]", "</seed:think>", "<|END_THINKING|>", "<channel|>"];

const NAME: &str = "chat";

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
    end_of_thinking: String,
}

impl ChatTemplate {
    pub(crate) fn new(source: String, bos: String, eos: String) -> Result<Self, String> {
        let thinks = source.contains(THINK_OPEN);
        let end = THINK_ENDS.iter().find(|end| source.contains(**end)).unwrap_or(&THINK_ENDS[0]);
        let end_of_thinking = format!("\n{end}\n\n");
        let mut environment = Environment::new();
        // Chat templates are written for these settings.
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
        environment.set_syntax(syntax.map_err(|error| error.to_string())?);
        environment.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        environment.add_function("raise_exception", |message: String| -> Result<String, minijinja::Error> {
            Err(minijinja::Error::new(ErrorKind::InvalidOperation, message))
        });
        environment.add_template_owned(NAME, source).map_err(|error| error.to_string())?;
        Ok(Self { environment, bos, eos, thinks, end_of_thinking })
    }

    /// Returns the text that ends a thinking block from outside.
    pub(crate) fn end_of_thinking(&self) -> &str {
        &self.end_of_thinking
    }

    /// Renders the prompt for messages with these roles, open for the assistant's answer. If `thinking` is false, a
    /// block that the template opens is closed at once. If `must_think` is true, a block is opened if the model uses
    /// them.
    pub(crate) fn render(&self, roles: &[Role], thinking: bool, must_think: bool) -> Result<Rendered, String> {
        let messages: Vec<Value> =
            roles.iter().enumerate().map(|(i, role)| context! { role => role.as_str(), content => mark(i) }).collect();
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

    #[track_caller]
    fn check(source: &str, roles: &[Role], thinking: bool, must_think: bool, expected: Result<&str, &str>) {
        let template = ChatTemplate::new(source.into(), "<s>".into(), "</s>".into()).unwrap();
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
        check("{{ raise_exception('only users') }}", &[System], false, false, Err("only users"));
    }

    #[test]
    fn a_broken_template_is_rejected() {
        assert!(ChatTemplate::new("{% for m in messages %}".into(), String::new(), String::new()).is_err());
    }
}
