//! The context-free language of patterns beside a parser of the syntax of ECMA-262, flag `u`.

use super::random::{Random, Sampler};
use crate::grammar::{Expr, GrammarBuilder};
use crate::ids::{ExprId, RuleId};
use crate::json_schema::formats::regex::body;
use crate::regular::Dfa;

/// The grammar as it is added: its expressions, the automata of its leaves, its right-hand side.
struct Patterns {
    builder: GrammarBuilder,
    leaves: Vec<(ExprId, Dfa)>,
    root: ExprId,
}

const RULE: RuleId = RuleId(7);

fn patterns() -> Patterns {
    let mut builder = GrammarBuilder::new();
    let mut leaves = Vec::new();
    let mut leaf = |builder: &mut GrammarBuilder, dfa: &Dfa| {
        let id = builder.add(Expr::Empty, crate::error::Position::default());
        leaves.push((id, dfa.clone()));
        Ok(id)
    };
    let root = body(&mut builder, RULE, &mut leaf).expect("within bounds");
    Patterns { builder, leaves, root }
}

/// A text of an expression, with at most `depth` levels of calls of the rule.
fn draw(
    patterns: &Patterns,
    samplers: &[(ExprId, Sampler)],
    random: &mut Random,
    depth: u32,
) -> String {
    let mut out = String::new();
    let mut stack = vec![(patterns.root, depth)];
    while let Some((id, depth)) = stack.pop() {
        match patterns.builder.expr(id) {
            Expr::Sequence(parts) => stack.extend(parts.iter().rev().map(|&part| (part, depth))),
            Expr::Choice(parts) => stack.push((*random.one(parts), depth)),
            Expr::Repeat { body, .. } if depth > 0 => {
                stack.extend((0..random.below(4)).map(|_| (*body, depth)));
            }
            Expr::Rule(RULE) => stack.push((patterns.root, depth - 1)),
            Expr::Repeat { .. } => {}
            _ => {
                let known = samplers.iter().find(|leaf| leaf.0 == id).expect("a leaf");
                out.push_str(&known.1.draw(random));
            }
        }
    }
    out
}

/// A parser of patterns without names, back references and flags of groups.
struct Parser {
    text: Vec<char>,
    place: usize,
}

impl Parser {
    fn is_pattern(text: &str) -> bool {
        let mut parser = Self { text: text.chars().collect(), place: 0 };
        parser.disjunction().is_some() && parser.place == parser.text.len()
    }

    fn eat(&mut self, text: &str) -> bool {
        let is_next =
            text.chars().enumerate().all(|(i, c)| self.text.get(self.place + i) == Some(&c));
        self.place += if is_next { text.chars().count() } else { 0 };
        is_next
    }

    fn next(&mut self) -> Option<char> {
        let one = self.text.get(self.place).copied()?;
        self.place += 1;
        Some(one)
    }

    fn disjunction(&mut self) -> Option<()> {
        loop {
            match self.text.get(self.place) {
                None | Some(')') => return Some(()),
                Some('|') => self.place += 1,
                _ => self.term()?,
            }
        }
    }

    fn term(&mut self) -> Option<()> {
        let is_assertion = ["^", "$", "\\b", "\\B"].iter().any(|text| self.eat(text));
        if is_assertion {
            return Some(());
        }
        if ["(?=", "(?!", "(?<=", "(?<!"].iter().any(|text| self.eat(text)) {
            self.disjunction()?;
            return self.eat(")").then_some(());
        }
        match self.next()? {
            '(' => {
                self.eat("?:");
                self.disjunction()?;
                self.eat(")").then_some(())?;
            }
            '[' => self.class()?,
            '\\' => drop(self.escape(false)?),
            c if "*+?{}])|".contains(c) => return None,
            _ => {}
        }
        self.quantifier()
    }

    fn quantifier(&mut self) -> Option<()> {
        if self.eat("{") {
            let least = self.number()?;
            if self.eat(",") && self.text.get(self.place) != Some(&'}') {
                (least <= self.number()?).then_some(())?;
            }
            self.eat("}").then_some(())?;
        } else if !["*", "+", "?"].iter().any(|text| self.eat(text)) {
            return Some(());
        }
        self.eat("?");
        Some(())
    }

    fn number(&mut self) -> Option<u32> {
        let start = self.place;
        while self.text.get(self.place).is_some_and(char::is_ascii_digit) {
            self.place += 1;
        }
        self.text[start..self.place].iter().collect::<String>().parse().ok()
    }

    fn hex(&mut self, count: usize) -> Option<u32> {
        (0..count).try_fold(0, |value, _| Some(16 * value + self.next()?.to_digit(16)?))
    }

    /// The code point of an escape; `None` within for a class.
    fn escape(&mut self, in_class: bool) -> Option<Option<u32>> {
        let one = self.next()?;
        Some(Some(match one {
            'd' | 'D' | 's' | 'S' | 'w' | 'W' => return Some(None),
            'p' | 'P' => {
                self.eat("{").then_some(())?;
                let end = self.text[self.place..].iter().position(|&c| c == '}')?;
                let name: String = self.text[self.place..self.place + end].iter().collect();
                self.place += end + 1;
                let pattern = format!("\\p{{{name}}}");
                regex_syntax::Parser::new().parse(&pattern).ok()?;
                return Some(None);
            }
            'f' => 0xC,
            'n' => 0xA,
            'r' => 0xD,
            't' => 0x9,
            'v' => 0xB,
            'c' => self.next().filter(char::is_ascii_alphabetic)? as u32 % 32,
            'x' => self.hex(2)?,
            'u' if self.eat("{") => {
                let mut value = self.hex(1)?;
                while !self.eat("}") {
                    value = 16 * value + self.hex(1)?;
                    (value <= 0x10_FFFF).then_some(())?;
                }
                value
            }
            'u' => {
                let first = self.hex(4)?;
                let behind = self.place;
                let is_high = (0xD800..0xDC00).contains(&first) && self.eat("\\u");
                match is_high.then(|| self.hex(4)).flatten() {
                    Some(low) if (0xDC00..0xE000).contains(&low) => {
                        0x1_0000 + ((first - 0xD800) << 10) + low - 0xDC00
                    }
                    _ => {
                        self.place = behind;
                        first
                    }
                }
            }
            'b' if in_class => 8,
            '-' if in_class => 0x2D,
            c if "^$\\.*+?()[]{}|/".contains(c) => c as u32,
            _ => return None,
        }))
    }

    fn class(&mut self) -> Option<()> {
        self.eat("^");
        while !self.eat("]") {
            let first = self.class_atom()?;
            if self.text.get(self.place) != Some(&'-')
                || self.text.get(self.place + 1) == Some(&']')
            {
                continue;
            }
            self.place += 1;
            let last = self.class_atom()?;
            (first? <= last?).then_some(())?;
        }
        Some(())
    }

    fn class_atom(&mut self) -> Option<Option<u32>> {
        match self.next()? {
            '\\' => self.escape(true),
            c => Some(Some(c as u32)),
        }
    }
}

#[test]
fn the_parser_knows_patterns() {
    let valid = [
        "",
        "a|",
        "(a(?:b)+)*?",
        "[]",
        "[^]",
        "[-a-z-]",
        "[\\d-]",
        "\\u{10FFFF}",
        "a{2,10}",
        "(?<!a)b",
        "[\\uD83D\\uDE00-\\u{1F601}]",
    ];
    let invalid = [
        "(",
        ")",
        "*",
        "a**",
        "^*",
        "(?=a)*",
        "{",
        "}",
        "]",
        "[b-a]",
        "[\\d-a]",
        "\\-",
        "\\_",
        "\\u{110000}",
        "\\x1",
        "a{2,1}",
        "[",
        "\\p{Nothing}",
        "\\cé",
    ];
    valid.iter().for_each(|text| assert!(Parser::is_pattern(text), "{text}"));
    invalid.iter().for_each(|text| assert!(!Parser::is_pattern(text), "{text}"));
}

#[test]
fn random_patterns_are_valid() {
    let patterns = patterns();
    let samplers: Vec<_> =
        patterns.leaves.iter().map(|(id, dfa)| (*id, Sampler::new(dfa))).collect();
    let mut random = Random(5);
    let mut nested = 0;
    for _ in 0..20_000 {
        let depth = random.below(4) as u32;
        let text = draw(&patterns, &samplers, &mut random, depth);
        assert!(Parser::is_pattern(&text), "{text:?}");
        nested += usize::from(text.contains("(?:"));
    }
    assert!(nested > 1_000, "{nested}");
}

#[test]
fn patterns_without_groups_are_taken_but_for_what_is_narrowed() {
    let item = &patterns().leaves[0].1;
    let flat =
        super::with_bounds(|bounds| item.repetition(0, None, bounds)).expect("within bounds");
    let valid = [
        "",
        "^[a-zA-Z_][a-zA-Z0-9_-]*$",
        "^\\d{4}-\\d{2}-\\d{2}$",
        "a{0}b{1,}c{1,1}d{9,10}e{13,16}f{99,100}?|g",
        "[^\\x00-\\x1F\\u0000-\\u001f\\u4e00-\\u9fa5]+?",
        "[ -~][!-\u{FF}][А-я][À-ÿ][一-龥]\\p{Script=Greek}\\P{Lu}",
        "[]|[^]|[-]|[-+]|[\\]\\[\\-]|\\/|/",
        "\\u{1F600}\\cA\\x7f\\b.\\B",
    ];
    let invalid = [
        "[b-a]",
        "[z-a]",
        "[~- ]",
        "a{2,1}",
        "a{20,19}",
        "a{10,9}",
        "a{300,299}",
        "*",
        "a**",
        "^?",
        "]",
        "}",
        "\\",
        "\\-",
        "\\1",
        "\\0",
        "[\\u9fa5-\\u4e00]",
        "\\p{X}",
        "[",
        "a{1000}",
        "(",
        ")",
    ];
    valid.iter().for_each(|text| assert!(flat.accepts(text) && Parser::is_pattern(text), "{text}"));
    invalid.iter().for_each(|text| assert!(!flat.accepts(text), "{text}"));
    for least in 0..130 {
        for most in 0..130 {
            let text = format!("a{{{least},{most}}}");
            let is_narrowed = least >= 100 && most >= 100;
            assert_eq!(flat.accepts(&text), least <= most && !is_narrowed, "{text}");
        }
    }
    for first in (' '..='~').filter(|&first| first != '\\') {
        for last in (' '..='~').filter(|last| !"-[]\\".contains(*last)) {
            let text = format!("[a{first}-{last}]");
            let is_plain = !"-[]\\".contains(first);
            let expected = is_plain && first <= last;
            assert_eq!(flat.accepts(&text), expected, "{text}");
        }
    }
}
