//! Reads YAML with the position of every key and value, as far as front matter needs it: scalars, lists and mappings.
//!
//! Anchors, aliases and tags are refused, so nothing expands and nothing is constructed; the depth is limited.

use saphyr_parser::{Event, Parser, ScalarStyle, Span};

use crate::limits::MAX_FRONT_MATTER_DEPTH;
use crate::problem::Problems;

/// A value and its position.
#[derive(Debug)]
pub(crate) struct Node {
    /// Line in the file, from 1.
    pub(crate) line: usize,
    /// Number of the character in the line, from 1.
    pub(crate) column: usize,
    pub(crate) value: Value,
}

#[derive(Debug)]
pub(crate) enum Value {
    Scalar {
        text: String,
        /// True without quotes, so that `5` may be a number and an empty text null.
        plain: bool,
    },
    List(Vec<Node>),
    Map(Vec<(Key, Node)>),
}

#[derive(Debug, Clone)]
pub(crate) struct Key {
    pub(crate) line: usize,
    pub(crate) column: usize,
    pub(crate) text: String,
}

/// A collection that is not complete yet.
enum Open {
    List(Place, Vec<Node>),
    Map(Place, Vec<(Key, Node)>, Option<Key>),
}

#[derive(Clone, Copy)]
struct Place {
    line: usize,
    column: usize,
}

/// Reads one YAML document whose first line has the number `first`. `None` if it has no value, or a problem leaves
/// nothing to read.
pub(crate) fn read(text: &str, first: usize, problems: &mut Problems) -> Option<Node> {
    let mut parser = Parser::new_from_str(text);
    let mut open: Vec<Open> = Vec::new();
    let mut root = None;
    while let Some(event) = parser.next_event() {
        let (event, span) = match event {
            Ok(event) => event,
            Err(error) => {
                let message = format!("the front matter is not valid YAML: {}", error.info());
                problems.error_at(first + error.marker().line().saturating_sub(1), error.marker().col() + 1, message);
                return None;
            }
        };
        let place = place_of(&span, first);
        let complete = match event {
            Event::Scalar(text, style, anchor, tag) => {
                if anchor != 0 || tag.is_some() {
                    return refuse(place, problems);
                }
                let plain = matches!(style, ScalarStyle::Plain);
                let value = Value::Scalar { text: text.into_owned(), plain };
                Some(Node { line: place.line, column: place.column, value })
            }
            Event::SequenceStart(anchor, tag) => {
                if anchor != 0 || tag.is_some() {
                    return refuse(place, problems);
                }
                open.push(Open::List(place, Vec::new()));
                None
            }
            Event::MappingStart(anchor, tag) => {
                if anchor != 0 || tag.is_some() {
                    return refuse(place, problems);
                }
                open.push(Open::Map(place, Vec::new(), None));
                None
            }
            Event::SequenceEnd | Event::MappingEnd => open.pop().map(|closed| match closed {
                Open::List(place, items) => Node { line: place.line, column: place.column, value: Value::List(items) },
                Open::Map(place, entries, _) => {
                    Node { line: place.line, column: place.column, value: Value::Map(entries) }
                }
            }),
            Event::Alias(_) => return refuse(place, problems),
            Event::DocumentStart(_) if root.is_some() => {
                problems.error(place.line, "the front matter holds a second YAML document; keep one");
                return root;
            }
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentStart(_) | Event::DocumentEnd => {
                None
            }
        };
        if open.len() > MAX_FRONT_MATTER_DEPTH {
            let message = format!("the front matter nests deeper than {MAX_FRONT_MATTER_DEPTH} levels; flatten it");
            problems.error_at(place.line, place.column, message);
            return None;
        }
        if let Some(node) = complete {
            match open.last_mut() {
                Some(parent) => attach(parent, node, problems),
                None => root = Some(node),
            }
        }
    }
    root
}

fn place_of(span: &Span, first: usize) -> Place {
    Place { line: first + span.start.line().saturating_sub(1), column: span.start.col() + 1 }
}

fn refuse(place: Place, problems: &mut Problems) -> Option<Node> {
    let message = "anchors (&), aliases (*) and tags (!) are not used in persona files; write the value out, \
                   or put it in quotes if it begins with one of these characters";
    problems.error_at(place.line, place.column, message);
    None
}

fn attach(parent: &mut Open, node: Node, problems: &mut Problems) {
    match parent {
        Open::List(_, items) => items.push(node),
        Open::Map(_, entries, waiting) => match waiting.take() {
            Some(key) => entries.push((key, node)),
            None => match node.value {
                Value::Scalar { text, .. } => {
                    if let Some((earlier, _)) = entries.iter().find(|(key, _)| key.text == text) {
                        let message = format!("`{text}` is set twice, first in line {}; keep one", earlier.line);
                        problems.error_at(node.line, node.column, message);
                    }
                    *waiting = Some(Key { line: node.line, column: node.column, text });
                }
                Value::List(_) | Value::Map(_) => {
                    problems.error_at(node.line, node.column, "a setting's name must be a plain word");
                    *waiting = Some(Key { line: node.line, column: node.column, text: String::new() });
                }
            },
        },
    }
}
