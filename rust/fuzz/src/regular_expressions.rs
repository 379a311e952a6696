//! Regular expressions: a pattern is refused at a place in its text, or its automaton obeys the laws
//! of languages, is found again by other spellings of the pattern, and is what a slow matcher says.

use crate::doors::{STATES, Texts, check_limit, door_limits};
use crate::engines::none;
use crate::input::Input;
use regex_automata::nfa::thompson::pikevm::PikeVM;
use regex_automata::nfa::thompson::{Compiler, Config};
use regex_syntax::hir::{Hir, Look};
use std::collections::BTreeSet;
use tokfold_core::budget::Budget;
use tokfold_core::error::{Error, Result};
use tokfold_core::grammar::{Described, Expr, Grammar, GrammarBuilder};
use tokfold_core::ids::ExprId;
use tokfold_core::limits::Limits;
use tokfold_core::regular::grammars::{Operation, grammar};
use tokfold_core::regular::pattern::{Pattern, PatternDialect, parse};
use tokfold_core::regular::{Bounds, Dfa, JsonEscapes, Spelling, encode};
use tokfold_core::syntax;

/// Characters of a pattern: longer ones find nothing that shorter ones do not.
const LONGEST: usize = 160;

/// Texts that are tried with every pattern.
const TEXTS: &[&str] = &[
    "",
    "a",
    "b",
    "A",
    "ab",
    "ba",
    "aab",
    "abc",
    "a b",
    "_",
    "-",
    "0",
    "12",
    "\n",
    "a\n",
    "\na",
    "a\nb",
    "\r\n",
    "\u{2028}",
    " ",
    "é",
    "É",
    "ß",
    "ſ",
    "K",
    "k",
    "😀",
    "α1",
    "{",
    "\\",
    "\"",
    "\u{0}",
    "/",
    "\u{7f}",
    "\u{a0}",
    "ǅ",
    "\u{10ffff}",
    "aaaaaaaaa",
    "x_y-z",
];

/// Two bytes say the dialect, whether a match within the text counts, and the flags; the rest is
/// the pattern.
pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let dialect = input.pick(&[PatternDialect::Ecma, PatternDialect::Python, PatternDialect::Rust]);
    let more = input.byte();
    let search = more & 1 == 1;
    let flags: String = [(2, 'i'), (4, 'm'), (8, 's'), (16, 'u')]
        .iter()
        .filter(|(bit, _)| more & bit != 0)
        .map(|flag| flag.1)
        .collect();
    let text: String = String::from_utf8_lossy(input.rest()).chars().take(LONGEST).collect();
    let case = Case { text, dialect, flags, search, limits: door_limits() };
    let Some(pattern) = case.read() else { return };
    let Some(language) = case.language(&pattern) else { return };
    case.check_laws(&language);
    case.check_spellings(&pattern, &language);
    let texts = case.texts(&language);
    case.check_grammar(&pattern, &language, &texts);
    case.check_bytes(&language, &texts);
    if dialect == PatternDialect::Rust {
        case.check_matcher(&language, &texts);
    }
}

struct Case {
    text: String,
    dialect: PatternDialect,
    flags: String,
    search: bool,
    limits: Limits,
}

/// The answer, or `None` where a limit is reached.
fn within<T>(result: Result<T>, limits: &Limits) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(Error::Limit { limit, value, message }) => {
            check_limit(limit, value, &message, limits);
            None
        }
        Err(error) => panic!("no operation on languages says {error:?}"),
    }
}

/// What laws are held against: operations on automata that fit fit too.
fn wide() -> Limits {
    Limits { max_automaton_states: 50 * STATES, max_network_work: 40_000_000, ..door_limits() }
}

impl Case {
    /// The case as findings name it.
    fn name(&self) -> String {
        let Self { text, dialect, flags, search, .. } = self;
        format!("{dialect:?} {text:?} with {flags:?}, search {search}")
    }

    /// The pattern; a text that is refused is refused at one of its columns.
    fn read(&self) -> Option<Pattern> {
        let error = match parse(&self.text, self.dialect, &self.flags) {
            Ok(pattern) => return Some(pattern),
            Err(error) => error,
        };
        let again = parse(&self.text, self.dialect, &self.flags).err();
        assert_eq!(again.as_ref(), Some(&error), "{}", self.name());
        let columns = self.text.chars().count() + 1;
        assert!((1..=columns).contains(&(error.column as usize)), "{error} of {}", self.name());
        assert!(!error.message.is_empty() && !error.construct.is_empty(), "{}", self.name());
        assert!(matches!(
            error.into_error(&self.text),
            Error::Syntax { .. } | Error::Unsupported { .. }
        ));
        None
    }

    fn language(&self, pattern: &Pattern) -> Option<Dfa> {
        self.automaton(pattern, self.search)
    }

    fn automaton(&self, pattern: &Pattern, search: bool) -> Option<Dfa> {
        let budget = Budget::new(&self.limits, &none());
        let bounds = Bounds { budget: &budget, max_states: STATES };
        within(pattern.to_dfa(search, &bounds), &self.limits)
    }

    /// The language of another pattern of the same dialect, if it is one and fits.
    fn other(&self, text: &str, search: bool) -> Option<Dfa> {
        let pattern = parse(text, self.dialect, &self.flags).ok()?;
        self.automaton(&pattern, search)
    }

    /// Laws of all languages.
    fn check_laws(&self, language: &Dfa) {
        let limits = wide();
        let budget = Budget::new(&limits, &none());
        let bounds = Bounds { budget: &budget, max_states: limits.max_automaton_states };
        let fits = "an operation on a small automaton fits";
        let complement = language.complement();
        assert_eq!(complement.complement(), *language, "twice the complement of {}", self.name());
        let both = language.intersection(&complement, &bounds).expect(fits);
        assert!(both.is_empty() && both == Dfa::nothing(), "{} and its complement", self.name());
        let either = language.union(&complement, &bounds).expect(fits);
        assert!(either.is_universal() && either == Dfa::anything(), "{} or not", self.name());
        assert!(language.is_disjoint_from(&complement, &bounds).expect(fits), "{}", self.name());
        assert!(language.is_subset_of(language, &bounds).expect(fits), "{}", self.name());
        let difference = language.difference(&complement, &bounds).expect(fits);
        assert_eq!(difference, *language, "{} without its complement", self.name());
        let shortest = language.shortest();
        assert_eq!(shortest.is_none(), language.is_empty(), "{}", self.name());
        assert!(shortest.is_none_or(|text| language.accepts(&text)), "{}", self.name());
        if let Some(texts) = language.strings(200) {
            assert_eq!(language.count(), Some(texts.len() as u64), "{}", self.name());
            assert!(texts.is_sorted_by(|a, b| a < b), "{}", self.name());
            let again = Dfa::texts(texts.iter().map(String::as_str), &bounds).expect(fits);
            assert_eq!(again, *language, "the texts of {}", self.name());
        }
    }

    /// Other ways to write the pattern, or its complement, have the same automaton.
    fn check_spellings(&self, pattern: &Pattern, language: &Dfa) {
        let text = &self.text;
        let same = |other: Option<Dfa>, expected: &Dfa, what: &str| {
            assert!(other.is_none_or(|other| other == *expected), "{what} of {}", self.name());
        };
        let again = self.other(text, self.search);
        assert_eq!(again.as_ref(), Some(language), "{} again", self.name());
        if let (true, Some(whole)) = (self.search, self.automaton(pattern, false)) {
            let limits = wide();
            let budget = Budget::new(&limits, &none());
            let bounds = Bounds { budget: &budget, max_states: limits.max_automaton_states };
            let is_within = within(whole.is_subset_of(language, &bounds), &limits);
            assert!(is_within != Some(false), "a text of {} holds a match", self.name());
        }
        if let Some(written) = self.written(pattern) {
            assert_eq!(written, *language, "the expression of {}", self.name());
        }
        if self.dialect == PatternDialect::Rust && text.contains('#') {
            return; // a comment of the flag `x` would take in what stands behind it
        }
        same(self.other(&format!("(?:{text})"), self.search), language, "a group");
        same(self.other(&format!("(?:{text})|(?:{text})"), self.search), language, "a choice");
        if self.dialect == PatternDialect::Rust || pattern.is_annex_b() || !self.search {
            return;
        }
        same(self.other(&format!("(?={text})"), true), language, "a lookahead");
        let (any, start, end) = match self.dialect {
            PatternDialect::Ecma => ("[^]", "(?<![^])", "(?![^])"),
            _ => ("[\\s\\S]", "\\A", "\\Z"),
        };
        let negated = self.other(&format!("{start}(?!{any}*(?:{text}))"), true);
        same(negated, &language.complement(), "a negated lookahead");
        if self.dialect == PatternDialect::Ecma {
            let behind = self.other(&format!("(?<=(?:{text}){any}*){end}"), true);
            same(behind, language, "a lookbehind");
        }
    }

    /// The language of the expression of the pattern, where there is one and it fits.
    fn written(&self, pattern: &Pattern) -> Option<Dfa> {
        let budget = Budget::new(&self.limits, &none());
        let bounds = Bounds { budget: &budget, max_states: STATES };
        let mut builder = GrammarBuilder::new();
        let mut character = |builder: &mut GrammarBuilder, set: &_| {
            builder.add(Expr::Class(Clone::clone(set)), Default::default())
        };
        let made = pattern.to_expr(&mut builder, &mut character, self.search, &bounds);
        let root = within(made, &self.limits)??;
        let mut languages: Vec<Dfa> = Vec::new();
        for index in 0..=root.index() {
            let of = |id: &ExprId| &languages[id.index()];
            let made = match builder.expr(ExprId::new(index)) {
                Expr::Class(set) => Ok(Dfa::character(set)),
                Expr::Sequence(parts) => {
                    parts.iter().try_fold(Dfa::empty_string(), |known, part| {
                        known.concatenation(of(part), &bounds)
                    })
                }
                Expr::Choice(parts) => parts
                    .iter()
                    .try_fold(Dfa::nothing(), |known, part| known.union(of(part), &bounds)),
                Expr::Repeat { body, min, max } => of(body).repetition(*min, *max, &bounds),
                Expr::Empty => Ok(Dfa::empty_string()),
                other => panic!("{} is written with {other:?}", self.name()),
            };
            languages.push(within(made, &self.limits)?);
        }
        languages.pop()
    }

    /// Texts that may tell languages apart: fixed ones, short ones of the pattern's letters, and
    /// those of the automaton itself.
    fn texts(&self, language: &Dfa) -> Vec<String> {
        let mut out: BTreeSet<String> = TEXTS.iter().map(|&text| text.to_owned()).collect();
        let mut letters: Vec<char> = Vec::new();
        for c in self.text.chars().filter(|c| !"()[]{}|*+?\\^$:=!<".contains(*c)).chain(['a', '\n'])
        {
            if letters.len() < 5 && !letters.contains(&c) {
                letters.push(c);
            }
        }
        let mut last = vec![String::new()];
        for _ in 0..3 {
            let longer = |text: &String| {
                letters.iter().map(|c| format!("{text}{c}")).collect::<Vec<String>>()
            };
            last = last.iter().flat_map(longer).collect();
            out.extend(last.iter().cloned());
        }
        out.insert(self.text.clone());
        let edge = [language.shortest(), language.complement().shortest()];
        for text in edge.into_iter().flatten() {
            out.insert(format!("{text}a"));
            out.insert(format!("a{text}"));
            out.insert(text);
        }
        out.into_iter().collect()
    }

    /// The grammar of the pattern, and what it prints as, have the same texts.
    fn check_grammar(&self, pattern: &Pattern, language: &Dfa, texts: &[String]) {
        let budget = Budget::new(&self.limits, &none());
        let bounds = Bounds { budget: &budget, max_states: STATES };
        let operations = [Operation::Pattern(pattern.clone(), self.search)];
        let Some(made) = within(grammar(&operations, &bounds), &self.limits) else { return };
        let again = self.printed(&made);
        for (grammar, what) in
            [Some(&made), again.as_ref()].into_iter().flatten().zip(["", " as printed"])
        {
            let Some(known) = Texts::new(grammar, &self.limits) else { continue };
            assert_eq!(known.is_empty(), language.is_empty(), "texts of {}{what}", self.name());
            for text in texts {
                let expected = language.accepts(text);
                let said = known.holds(text).unwrap_or(expected);
                assert_eq!(said, expected, "{text:?} of the grammar of {}{what}", self.name());
            }
        }
    }

    /// A grammar as it prints, read again; automata print as rules.
    fn printed(&self, made: &Grammar) -> Option<Grammar> {
        let plain = made.has_automata().then(|| made.without_automata());
        let plain = plain.map(|plain| plain.expect("automata over characters are rules"));
        let made = plain.as_ref().unwrap_or(made);
        let printed = syntax::print(made);
        let longer = Limits { max_grammar_bytes: usize::MAX, ..wide() };
        let again = syntax::parse(&printed, "root", &longer);
        let again = match again {
            Err(Error::Limit { limit, value, message }) => {
                check_limit(limit, value, &message, &longer);
                return None;
            }
            again => again.unwrap_or_else(|error| {
                panic!("{} prints as {printed:?}: {error}", self.name());
            }),
        };
        assert!(syntax::structurally_equal(made, &again), "{} prints as {printed:?}", self.name());
        Some(again)
    }

    /// Automata over bytes have what the automaton has, in UTF-8 and within JSON strings.
    fn check_bytes(&self, language: &Dfa, texts: &[String]) {
        for spelling in
            [Spelling::Utf8, Spelling::Json(JsonEscapes::Plain), Spelling::Json(JsonEscapes::Any)]
        {
            let limits = wide();
            let budget = Budget::new(&limits, &none());
            let bounds = Bounds { budget: &budget, max_states: limits.max_automaton_states };
            let Some(made) = within(encode(language, spelling, &bounds), &limits) else { continue };
            for text in texts {
                let written: String = match spelling {
                    Spelling::Utf8 => text.clone(),
                    Spelling::Json(escapes) => {
                        text.chars().map(|c| escaped(c, escapes == JsonEscapes::Any)).collect()
                    }
                };
                let expected = language.accepts(text);
                let found = runs(&made, written.as_bytes());
                assert_eq!(found, expected, "{written:?} as {spelling:?} of {}", self.name());
            }
        }
    }

    /// What the matcher of the crate `regex` says.
    fn check_matcher(&self, language: &Dfa, texts: &[String]) {
        let has = |flag| self.flags.contains(flag);
        let parser = regex_syntax::ParserBuilder::new()
            .case_insensitive(has('i'))
            .multi_line(has('m'))
            .dot_matches_new_line(has('s'))
            .build()
            .parse(&self.text);
        // The parser's own limit on nesting.
        let Ok(hir) = parser else { return };
        let hir = match self.search {
            true => hir,
            false => Hir::concat(vec![Hir::look(Look::Start), hir, Hir::look(Look::End)]),
        };
        let config = Config::new().nfa_size_limit(Some(1 << 20));
        let Ok(nfa) = Compiler::new().configure(config).build_from_hir(&hir) else { return };
        let Ok(matcher) = PikeVM::new_from_nfa(nfa) else { return };
        let mut cache = matcher.create_cache();
        for text in texts {
            let expected = matcher.is_match(&mut cache, text.as_str());
            assert_eq!(language.accepts(text), expected, "{text:?} of {}", self.name());
        }
    }
}

/// A character in a JSON string: as it is where that may be, or as any escape of it.
fn escaped(c: char, any: bool) -> String {
    match c {
        '"' | '\\' => format!("\\{c}"),
        '\u{8}' => "\\b".into(),
        '\t' => "\\t".into(),
        '\n' => "\\n".into(),
        '\u{c}' => "\\f".into(),
        '\r' => "\\r".into(),
        '\u{0}'..='\u{1f}' => format!("\\u{:04x}", c as u32),
        _ if any => {
            let mut units = [0; 2];
            c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04X}")).collect()
        }
        _ => c.to_string(),
    }
}

/// Whether an automaton over bytes reads a text, with all its ways at once.
fn runs(automaton: &Described, text: &[u8]) -> bool {
    let mut states: BTreeSet<u32> = [automaton.start].into();
    for byte in text {
        let edges = automaton.bytes.iter();
        let edges =
            edges.filter(|edge| states.contains(&edge.0) && (edge.1..=edge.2).contains(byte));
        states = edges.map(|edge| edge.3).collect();
        if states.is_empty() {
            return false;
        }
    }
    automaton.finals.iter().any(|state| states.contains(state))
}
