//! Lark texts: any text is read or refused at one of its places; random grammars have the texts of the
//! same grammar written as grammar text.

use crate::doors::{STATES, Texts, check_limit, door_limits, walks};
use crate::engines::none;
use crate::input::Input;
use tokfold_core::budget::Budget;
use tokfold_core::error::{Error, Position, Result};
use tokfold_core::grammar::Grammar;
use tokfold_core::json_schema::{SchemaOptions, convert};
use tokfold_core::lark::{LarkOptions, NamedGrammar, Subgrammars, TokenIds, read};
use tokfold_core::limits::Limits;
use tokfold_core::regular::Bounds;
use tokfold_core::regular::pattern::PatternDialect;
use tokfold_core::syntax;

/// Bytes that lead texts on.
const LETTERS: &[u8] = b"abc_()";

/// Characters of the texts that are tried with a random grammar, and how many at most.
const ALPHABET: [char; 4] = ['a', 'b', 'c', '_'];
const LONGEST: usize = 4;

/// Two bytes say the dialect and whether text or choices follow.
pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let dialect = input.pick(&[PatternDialect::Rust, PatternDialect::Python]);
    match input.one_in(4) {
        true => random(&mut input, dialect),
        false => raw(&String::from_utf8_lossy(input.rest()), dialect),
    }
}

/// What texts may name.
struct Others<'a> {
    limits: &'a Limits,
    budget: &'a Budget,
}

impl Subgrammars for Others<'_> {
    fn json_schema(&mut self, text: &str, _: Position) -> Result<Grammar> {
        let options = SchemaOptions::default();
        Ok(convert(text, &[], &options, self.limits, self.budget)?.grammar)
    }

    fn grammar(&mut self, name: &str) -> Result<Option<NamedGrammar>> {
        let lark = |text: &str| Ok(Some(NamedGrammar::Lark(text.into())));
        match name {
            "g" => lark("start: \"a\" @h\n%ignore \"_\""),
            "h" => Ok(Some(NamedGrammar::Grammar(syntax::parse(
                "root ::= \"b\" | \"c\"",
                "root",
                self.limits,
            )?))),
            "ring" => lark("start: \"a\" @g | @ring"),
            "wrong" => lark("start: x"),
            _ => Ok(None),
        }
    }

    fn tokens(&mut self, text: &str) -> TokenIds {
        match text {
            "<|end|>" => TokenIds::Ids(vec![7, 3, 7]),
            "<|none|>" => TokenIds::Ids(Vec::new()),
            _ => TokenIds::Unknown,
        }
    }
}

fn lark(text: &str, dialect: PatternDialect, limits: &Limits) -> Result<Grammar> {
    let budget = Budget::new(limits, &none());
    let options = LarkOptions { start: "start".into(), dialect, limits: limits.clone() };
    let mut others = Others { limits, budget: &budget };
    read(text, &options, &mut others, &Bounds { budget: &budget, max_states: STATES })
}

/// Any text.
fn raw(text: &str, dialect: PatternDialect) {
    let limits = door_limits();
    let grammar = match lark(text, dialect, &limits) {
        Ok(grammar) => grammar,
        Err(error) => {
            let again = lark(text, dialect, &limits).expect_err("a text is refused each time");
            assert_eq!(again, error, "{text:?}");
            return check_error(&error, text, &limits);
        }
    };
    let print = |grammar: &Grammar| syntax::print(grammar);
    // Comments and blank lines say nothing.
    let longer = format!("\n{text}\n// start: x\n\n");
    match lark(&longer, dialect, &limits) {
        Ok(again) => assert_eq!(print(&again), print(&grammar), "{text:?} with comments"),
        Err(Error::Limit { .. }) => {}
        Err(error) => panic!("{text:?} with comments: {error}"),
    }
    check_grammar(&grammar, text, &limits);
}

/// A grammar is one of the core: it has texts, and as it prints, the same.
fn check_grammar(grammar: &Grammar, text: &str, limits: &Limits) {
    let Some(texts) = Texts::new(grammar, limits) else { return };
    let again = printed(grammar, text).and_then(|again| Texts::new(&again, limits));
    if let Some(again) = &again {
        assert_eq!(again.is_empty(), texts.is_empty(), "whether {text:?} has texts");
    }
    // The same bytes lead the walks.
    let mut input = Input::new(text.as_bytes());
    walks(&texts, LETTERS, &mut input, |found| {
        let holds = again.as_ref().and_then(|again| again.holds(found));
        assert!(holds != Some(false), "{found:?} of {text:?} is no text of it as printed");
    });
    if let Some(again) = &again {
        walks(again, LETTERS, &mut Input::new(text.as_bytes()), |found| {
            let holds = texts.holds(found);
            assert!(holds != Some(false), "{found:?} of {text:?} as printed is no text of it");
        });
    }
}

/// The grammar as it prints, read again; `None` where text does not say it.
fn printed(grammar: &Grammar, text: &str) -> Option<Grammar> {
    let plain = match grammar.has_automata() {
        true => Some(grammar.without_automata()?),
        false => None,
    };
    let printed = syntax::print(plain.as_ref().unwrap_or(grammar));
    let longer = Limits { max_grammar_bytes: usize::MAX, max_rules: 10_000, ..door_limits() };
    let root = &grammar.rule(grammar.root()).name;
    match syntax::parse(&printed, root, &longer) {
        Ok(again) => Some(again),
        Err(Error::Limit { .. }) => None,
        Err(error) => panic!("{text:?} prints as {printed:?}: {error}"),
    }
}

/// An error says what, and where in the text.
fn check_error(error: &Error, text: &str, limits: &Limits) {
    assert!(!error.to_string().is_empty());
    match error {
        Error::Syntax { message, position } | Error::Unsupported { message, position, .. } => {
            assert!(!message.is_empty(), "an error of {text:?} says something");
            // A place in another text, which the message names.
            if message.contains("in the grammar `@") {
                return;
            }
            let line = text.split('\n').nth((position.line as usize).wrapping_sub(1));
            let column = position.column as usize;
            let is_in = line.is_some_and(|line| (1..=line.chars().count() + 1).contains(&column));
            assert!(is_in, "{position:?} is no place in {text:?}: {message}");
        }
        Error::Schema { message, .. } => assert!(!message.is_empty()),
        Error::Limit { limit, value, message }
        | Error::LimitInSchema { limit, value, message, .. } => {
            check_limit(limit, *value, message, limits);
        }
        other => panic!("{text:?} says {other:?}"),
    }
}

/// A random grammar, once as Lark text and once as grammar text.
fn random(input: &mut Input<'_>, dialect: PatternDialect) {
    let limits = door_limits();
    let mut writer = Writer { ignores: input.one_in(3), input, left: 24 };
    let (text, expected) = writer.grammar();
    let made = match lark(&text, dialect, &limits) {
        Ok(made) => made,
        Err(Error::Limit { limit, value, message }) => {
            return check_limit(limit, value, &message, &limits);
        }
        Err(error) => panic!("{text}\n{error}"),
    };
    let expected = match syntax::parse(&expected, "root", &limits) {
        Ok(expected) => expected,
        Err(Error::Limit { .. }) => return,
        Err(error) => panic!("{expected}\n{error}"),
    };
    let (Some(ours), Some(theirs)) = (Texts::new(&made, &limits), Texts::new(&expected, &limits))
    else {
        return;
    };
    assert_eq!(ours.is_empty(), theirs.is_empty(), "whether there are texts of\n{text}");
    let mut last = vec![String::new()];
    for length in 0..=LONGEST {
        for word in &last {
            let (Some(our), Some(their)) = (ours.holds(word), theirs.holds(word)) else { return };
            assert_eq!(our, their, "{word:?} of\n{text}");
        }
        if length < LONGEST {
            let longer = |word: &String| ALPHABET.map(|c| format!("{word}{c}"));
            last = last.iter().flat_map(longer).collect();
        }
    }
    walks(&ours, LETTERS, writer.input, |found| {
        assert!(theirs.holds(found) != Some(false), "{found:?} is a text of\n{text}");
    });
    walks(&theirs, LETTERS, writer.input, |found| {
        assert!(ours.holds(found) != Some(false), "{found:?} is no text of\n{text}");
    });
}

/// Writes a grammar in both languages.
struct Writer<'w, 'i> {
    input: &'w mut Input<'i>,
    ignores: bool,
    left: usize,
}

/// Rules and terminals; a terminal names those behind it.
const RULES: [&str; 3] = ["start", "x", "y"];
const TERMINALS: [&str; 3] = ["A", "B", "C"];

impl Writer<'_, '_> {
    fn grammar(&mut self) -> (String, String) {
        let (mut lark, mut plain) = (String::new(), String::new());
        for rule in RULES {
            let (ours, theirs) = self.choice(3, None);
            let sign = self.input.pick(&["", "", "?", "!"]);
            lark.push_str(&format!("{sign}{rule}: {ours}\n"));
            plain.push_str(&format!(
                "{} ::= {theirs}\n",
                if rule == "start" { "root" } else { rule }
            ));
        }
        for (number, terminal) in TERMINALS.iter().enumerate() {
            let (ours, theirs) = self.choice(2, Some(number));
            lark.push_str(&format!("{terminal}: {ours}\n"));
            plain.push_str(&format!("{terminal} ::= {theirs}\n"));
        }
        lark.push_str("pair{p, q}: \"(\" p q \")\"\n");
        if self.ignores {
            lark.push_str("%ignore \"_\"\n");
        }
        (lark, plain)
    }

    /// What is ignored behind a leaf of a rule.
    fn behind(&self, terminal: Option<usize>) -> &'static str {
        if self.ignores && terminal.is_none() { " \"_\"*" } else { "" }
    }

    fn choice(&mut self, depth: usize, terminal: Option<usize>) -> (String, String) {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..1 + self.input.below(3) {
            let (one, two) = self.sequence(depth, terminal);
            ours.push(one);
            theirs.push(two);
        }
        (ours.join(" | "), theirs.join(" | "))
    }

    fn sequence(&mut self, depth: usize, terminal: Option<usize>) -> (String, String) {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..1 + self.input.below(3) {
            let (one, two) = self.part(depth, terminal);
            ours.push(one);
            theirs.push(two);
        }
        (ours.join(" "), theirs.join(" "))
    }

    fn part(&mut self, depth: usize, terminal: Option<usize>) -> (String, String) {
        self.left = self.left.saturating_sub(1);
        let behind = self.behind(terminal);
        let leaf = |ours: &str, theirs: &str| (ours.to_owned(), format!("({theirs}{behind})"));
        let kinds = if depth == 0 || self.left == 0 || self.input.is_empty() { 8 } else { 16 };
        match self.input.below(kinds) {
            0 => leaf("\"a\"", "\"a\""),
            1 => leaf("\"bc\"", "\"bc\""),
            2 => leaf("\"a\"..\"c\"", "[a-c]"),
            3 => leaf("/[ab]+c?/", "[ab]+ \"c\"?"),
            4 => leaf("\"a_B\"i", "[aA] \"_\" [bB]"),
            5 => leaf("/a|b(?:c|)/", "(\"a\" | \"b\" \"c\"?)"),
            6 | 7 => match terminal {
                Some(number) if number + 1 < TERMINALS.len() => {
                    let name =
                        TERMINALS[number + 1 + self.input.below(TERMINALS.len() - number - 1)];
                    (name.into(), name.into())
                }
                Some(_) => leaf("\"c\"", "\"c\""),
                None if self.input.one_in(2) => {
                    let name = self.input.pick(&TERMINALS);
                    leaf(name, name)
                }
                None => {
                    let name = self.input.pick(&RULES);
                    (name.into(), if name == "start" { "root" } else { name }.into())
                }
            },
            8 => {
                let (ours, theirs) = self.choice(depth - 1, terminal);
                (format!("[{ours}]"), format!("({theirs})?"))
            }
            9 if terminal.is_none() => {
                let (one, also) = self.part(0, None);
                let (two, too) = self.part(0, None);
                let text = format!("((\"(\"{behind}) {also} {too} (\")\"{behind}))");
                (format!("pair{{{one}, {two}}}"), text)
            }
            _ => {
                let (ours, theirs) = self.choice(depth - 1, terminal);
                let (min, more) = (self.input.below(3), self.input.below(3));
                let max = min + more;
                let (one, two) = match self.input.below(8) {
                    0 => ("".into(), "".into()),
                    1 => ("?".into(), "?".into()),
                    2 => ("*".into(), "*".into()),
                    3 => ("+".into(), "+".into()),
                    4 => (format!("~{min}"), format!("{{{min}}}")),
                    5 => (format!("~{min}..{max}"), format!("{{{min},{max}}}")),
                    6 => (format!("{{{min},{max}}}"), format!("{{{min},{max}}}")),
                    _ => (format!("{{{min},}}"), format!("{{{min},}}")),
                };
                (format!("({ours}){one}"), format!("({theirs}){two}"))
            }
        }
    }
}
