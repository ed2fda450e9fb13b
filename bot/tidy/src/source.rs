use std::str::FromStr;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// A token of a Rust file. Ordinary comments are dropped, doc comments stay, and groups are flattened.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Token {
    pub(crate) text: String,
    /// The line, counted from 1.
    pub(crate) line: usize,
    /// True if the token is compiled only for tests.
    pub(crate) test: bool,
}

/// Returns the tokens of a Rust file, or `None` if the text is not Rust.
pub(crate) fn tokens(text: &str) -> Option<Vec<Token>> {
    let mut tokens = Vec::new();
    flatten(TokenStream::from_str(text).ok()?, false, &mut tokens);
    Some(tokens)
}

/// Returns true if the tokens from `at` on match `pattern`.
pub(crate) fn reads(tokens: &[Token], at: usize, pattern: &[&str]) -> bool {
    tokens.get(at..at + pattern.len()).is_some_and(|found| found.iter().zip(pattern).all(|(t, p)| t.text == *p))
}

fn flatten(stream: TokenStream, mut test: bool, out: &mut Vec<Token>) {
    // True if the current item has an attribute that limits it to tests.
    let mut test_item = false;
    let mut attribute = Attribute::No;
    for tree in stream {
        let line = |span: proc_macro2::Span| span.start().line;
        let mut push = |text: String, span, test| out.push(Token { text, line: line(span), test });
        attribute = match (attribute, &tree) {
            (Attribute::No, TokenTree::Punct(p)) if p.as_char() == '#' => Attribute::Outer,
            (Attribute::Outer, TokenTree::Punct(p)) if p.as_char() == '!' => Attribute::Inner,
            (Attribute::Outer, TokenTree::Group(g)) if for_tests(g.stream()) => {
                test_item = true;
                Attribute::No
            }
            (Attribute::Inner, TokenTree::Group(g)) if for_tests(g.stream()) => {
                test = true;
                Attribute::No
            }
            _ => Attribute::No,
        };
        match tree {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                push(open.to_owned(), group.span_open(), test || test_item);
                flatten(group.stream(), test || test_item, out);
                out.push(Token { text: close.to_owned(), line: line(group.span_close()), test: test || test_item });
                // A body in braces ends the item.
                test_item &= group.delimiter() != Delimiter::Brace;
            }
            TokenTree::Punct(punct) => {
                push(punct.as_char().to_string(), punct.span(), test || test_item);
                test_item &= punct.as_char() != ';';
            }
            TokenTree::Ident(ident) => push(ident.to_string(), ident.span(), test || test_item),
            TokenTree::Literal(literal) => push(literal.to_string(), literal.span(), test || test_item),
        }
    }
}

/// How much of an attribute has been read.
#[derive(PartialEq)]
enum Attribute {
    No,
    /// `#`.
    Outer,
    /// `#!`.
    Inner,
}

/// Returns true if an attribute limits its item to tests: `cfg(test)`, or `test` by any path.
fn for_tests(attribute: TokenStream) -> bool {
    let mut words = Vec::new();
    flatten(attribute, false, &mut words);
    let words: Vec<_> = words.iter().map(|token| token.text.as_str()).collect();
    match words.as_slice() {
        ["cfg", rest @ ..] => rest.contains(&"test") && !rest.contains(&"not"),
        // `test`, `tokio::test(flavor = ...)`.
        path => path.iter().take_while(|word| **word != "(").last() == Some(&"test"),
    }
}
