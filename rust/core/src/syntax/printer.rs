//! A grammar as text.
//!
//! One rule a line, in the order of the grammar, in the part of the language that XGrammar reads
//! too; ASCII only. Parentheses stand only where a reader would otherwise build another tree.
//!
//! Four things have no text, and the parser makes none of them: a literal's byte that belongs to no
//! code point (it is written as `\u00HH`), a quote or backslash in a capture's name, a macro that
//! names a rule called `true`, `false` or like a number, and the automaton that stands in a macro's
//! place (it is written as `Automaton()`, which the parser refuses).
//!
//! Cost: linear in the text written. Nothing recurses.

use std::fmt::Write;

use crate::grammar::{CharSet, Expr, Grammar, Macro, MacroArgument, Rule};
use crate::ids::{ExprId, RuleId};

use super::escapes::first_code_point;
use super::macros::is_macro;

/// Around what an expression stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Around {
    /// A whole right-hand side.
    Nothing,
    /// One of several alternatives.
    Choice,
    /// One of several in a row.
    Sequence,
    /// What a repetition repeats.
    Repeat,
}

/// Whether an expression needs parentheses where it stands.
pub(super) fn needs_parentheses(around: Around, inner: &Expr) -> bool {
    match inner {
        Expr::Choice(_) => around != Around::Nothing,
        Expr::Sequence(_) => matches!(around, Around::Sequence | Around::Repeat),
        Expr::Repeat { .. } => around == Around::Repeat,
        _ => false,
    }
}

/// The text of a grammar. `parse` reads it back as an equal grammar.
pub fn print(grammar: &Grammar) -> String {
    let mut printer = Printer::new(grammar);
    for rule in grammar.rules() {
        printer.rule(rule);
    }
    printer.out
}

/// The text of a macro alone, in which the rule of number 7 is called `r7`.
pub fn print_macro(grammar: &Grammar, call: &Macro) -> String {
    let mut printer = Printer { numbered: true, ..Printer::new(grammar) };
    printer.call(call);
    printer.out
}

/// What is still to be written, last first.
enum PrintTask {
    Expr(ExprId, Around),
    Text(&'static str),
    Bounds(u32, Option<u32>),
}

struct Printer<'g> {
    grammar: &'g Grammar,
    out: String,
    work: Vec<PrintTask>,
    /// Whether macros name rules by their numbers.
    numbered: bool,
}

impl<'g> Printer<'g> {
    fn new(grammar: &'g Grammar) -> Self {
        Self { grammar, out: String::new(), work: Vec::new(), numbered: false }
    }

    fn rule(&mut self, rule: &Rule) {
        self.out.push_str(&rule.name);
        self.options(rule);
        self.out.push_str(" ::= ");
        self.expression(rule.body);
        if let Some(lookahead) = rule.lookahead {
            self.out.push_str(" (=");
            self.expression(lookahead);
            self.out.push(')');
        }
        self.out.push('\n');
    }

    fn options(&mut self, rule: &Rule) {
        let options = &rule.options;
        let mut parts: Vec<String> = Vec::new();
        if let Some(count) = options.max_tokens {
            parts.push(format!("max_tokens={count}"));
        }
        if let Some(count) = options.max_chars {
            parts.push(format!("max_chars={count}"));
        }
        if let Some(name) = &options.capture {
            parts.push(format!("capture=\"{name}\""));
        }
        for (name, value) in &options.other {
            parts.push(match value {
                MacroArgument::Text(text) => {
                    format!("{name}=\"{}\"", String::from_utf8_lossy(text))
                }
                MacroArgument::Integer(number) => format!("{name}={number}"),
                MacroArgument::Rule(rule) => format!("{name}={}", rule.index()),
                MacroArgument::Boolean(_) | MacroArgument::Tuple(_) => name.clone(),
            });
        }
        if options.lazy {
            parts.push("lazy".into());
        }
        if let Some(value) = options.temperature {
            parts.push(format!("temperature={value}"));
        }
        if !parts.is_empty() {
            self.out.push('[');
            self.out.push_str(&parts.join(", "));
            self.out.push(']');
        }
    }

    fn expression(&mut self, id: ExprId) {
        self.work.push(PrintTask::Expr(id, Around::Nothing));
        while let Some(work) = self.work.pop() {
            match work {
                PrintTask::Text(text) => self.out.push_str(text),
                PrintTask::Bounds(min, max) => self.bounds(min, max),
                PrintTask::Expr(id, around) => self.node(id, around),
            }
        }
    }

    fn node(&mut self, id: ExprId, around: Around) {
        let expr = self.grammar.expr(id);
        if needs_parentheses(around, expr) {
            self.out.push('(');
            self.work.push(PrintTask::Text(")"));
        }
        match expr {
            Expr::Empty => self.out.push_str("\"\""),
            Expr::Literal(bytes) => literal(&mut self.out, bytes),
            Expr::Class(set) => class(&mut self.out, set),
            Expr::Rule(rule) => self.reference(&self.grammar.rule(*rule).name),
            Expr::Sequence(items) => self.joined(items, " ", Around::Sequence),
            Expr::Choice(items) => self.joined(items, " | ", Around::Choice),
            Expr::Repeat { body, min, max } => {
                self.work.push(PrintTask::Bounds(*min, *max));
                self.work.push(PrintTask::Expr(*body, Around::Repeat));
            }
            Expr::Macro(call) => self.call(call),
            Expr::Automaton(_) => self.out.push_str("Automaton()"),
            Expr::Tokens(_) => self.out.push_str("Tokens()"),
        }
    }

    /// A rule's name; in parentheses where a `(` after it would make it a macro.
    fn reference(&mut self, name: &str) {
        if is_macro(name) {
            self.out.push('(');
            self.out.push_str(name);
            self.out.push(')');
        } else {
            self.out.push_str(name);
        }
    }

    fn joined(&mut self, items: &[ExprId], between: &'static str, around: Around) {
        for (index, item) in items.iter().enumerate().rev() {
            self.work.push(PrintTask::Expr(*item, around));
            if index > 0 {
                self.work.push(PrintTask::Text(between));
            }
        }
    }

    fn bounds(&mut self, min: u32, max: Option<u32>) {
        let written = match (min, max) {
            (0, None) => write!(self.out, "*"),
            (1, None) => write!(self.out, "+"),
            (0, Some(1)) => write!(self.out, "?"),
            (_, None) => write!(self.out, "{{{min},}}"),
            (_, Some(max)) if min == max => write!(self.out, "{{{min}}}"),
            (_, Some(max)) => write!(self.out, "{{{min},{max}}}"),
        };
        debug_assert!(written.is_ok(), "writing to a string does not fail");
    }

    fn call(&mut self, call: &Macro) {
        self.out.push_str(&call.name);
        self.out.push('(');
        let positional = call.positional.iter().map(|value| (None, value));
        let named = call.named.iter().map(|(name, value)| (Some(name), value));
        for (index, (name, value)) in positional.chain(named).enumerate() {
            if index > 0 {
                self.out.push_str(", ");
            }
            if let Some(name) = name {
                self.out.push_str(name);
                self.out.push('=');
            }
            self.argument(value);
        }
        self.out.push(')');
    }

    /// A tuple holds no tuple (the parser refuses it), so one level is all there is.
    fn argument(&mut self, value: &MacroArgument) {
        let MacroArgument::Tuple(parts) = value else { return self.atom(value) };
        self.out.push('(');
        for (index, part) in parts.iter().enumerate() {
            if index > 0 {
                self.out.push_str(", ");
            }
            self.atom(part);
        }
        self.out.push(')');
    }

    fn named(&mut self, rule: RuleId) {
        if self.numbered {
            self.out.push_str(&format!("r{}", rule.index()));
        } else {
            self.out.push_str(&self.grammar.rule(rule).name);
        }
    }

    fn atom(&mut self, value: &MacroArgument) {
        match value {
            MacroArgument::Text(text) => literal(&mut self.out, text),
            MacroArgument::Integer(number) => self.out.push_str(&number.to_string()),
            MacroArgument::Boolean(value) => {
                self.out.push_str(if *value { "true" } else { "false" })
            }
            MacroArgument::Rule(rule) => self.named(*rule),
            MacroArgument::Tuple(_) => self.out.push_str("()"),
        }
    }
}

/// A literal with its quotes.
pub(super) fn literal(out: &mut String, bytes: &[u8]) {
    out.push('"');
    let mut rest = bytes;
    while let Some((code, length)) = first_code_point(rest) {
        character(out, code, &['"', '\\']);
        rest = &rest[length..];
    }
    out.push('"');
}

/// A class with its brackets; as a complement where the last code point is in it, since nobody
/// writes such a class otherwise.
fn class(out: &mut String, set: &CharSet) {
    const SPECIAL: [char; 5] = ['\\', '[', ']', '^', '-'];
    let complement;
    let mut ranges = set.ranges();
    out.push('[');
    if ranges.last().is_some_and(|&(_, high)| high == 0x10_FFFF) {
        out.push('^');
        complement = set.complement();
        ranges = complement.ranges();
    }
    let mut before = 0;
    for &(low, high) in ranges {
        // Two halves of a surrogate pair side by side would be read as one character.
        match (before, low) {
            (0xD800..=0xDBFF, 0xDC00..=0xDFFF) => long_escape(out, low),
            _ => character(out, low, &SPECIAL),
        }
        before = high;
        if low + 1 < high {
            out.push('-');
        }
        match (low, high) {
            (0xDBFF, 0xDC00) => long_escape(out, high),
            _ if low < high => character(out, high, &SPECIAL),
            _ => {}
        }
    }
    out.push(']');
}

/// One code point by eight digits.
fn long_escape(out: &mut String, code: u32) {
    let written = write!(out, "\\U{code:08x}");
    debug_assert!(written.is_ok(), "writing to a string does not fail");
}

/// One code point, escaped unless it is printable ASCII. Never `\x`: its length is not fixed.
fn character(out: &mut String, code: u32, special: &[char]) {
    let written = match char::from_u32(code) {
        Some('\n') => write!(out, "\\n"),
        Some('\r') => write!(out, "\\r"),
        Some('\t') => write!(out, "\\t"),
        Some(c) if special.contains(&c) => write!(out, "\\{c}"),
        Some(c @ ' '..='~') => write!(out, "{c}"),
        _ if code <= 0xFFFF => write!(out, "\\u{code:04x}"),
        _ => write!(out, "\\U{code:08x}"),
    };
    debug_assert!(written.is_ok(), "writing to a string does not fail");
}
