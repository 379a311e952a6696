//! Grammars and vocabularies for matchers: a fixed list of tricky ones, and random ones.

use crate::earley::{Earley, Place, TooMuch};
use crate::engines::{NETWORKS, network_options, none, small_limits};
use crate::input::Input;
use rustc_hash::FxHashMap;
use std::cell::OnceCell;
use std::rc::Rc;
use std::sync::Arc;
use tokfold_core::classes::{self, ClassOptions, TokenClasses};
use tokfold_core::engine::SharedVocabulary;
use tokfold_core::grammar::{Grammar, WholeTokens};
use tokfold_core::limits::Limits;
use tokfold_core::mask::words;
use tokfold_core::network::Network;
use tokfold_core::syntax::parse;
use tokfold_core::vocabulary::Vocabulary;

/// Grammars of the fixed settings, each tricky in a way of its own.
const GRAMMARS: &[&str] = &[
    // Nested, empty, ambiguous without end.
    "root ::= \"a\" root \"b\" | \"\"",
    "root ::= root root | \"a\" | \"b\" | \"\"",
    "root ::= \"a\" root \"a\" | \"b\" root \"b\" | [ab]?",
    // Left recursion: direct, hidden, mutual, with operators.
    "root ::= root \"+\" t | t\nt ::= t \"*\" f | f\nf ::= \"(\" root \")\" | [a-c]+",
    "root ::= x root \"a\" | \"b\"\nx ::= \"\" | \"c\"",
    "root ::= x \"a\" | \"b\"\nx ::= y \"c\" | root\ny ::= root \"a\" | x \"b\" | \"c\"",
    "root ::= root [+*] root | \"(\" root \")\" | [a-c]",
    // Counted repetitions: nested, of what may be empty, without an upper bound, large.
    "root ::= ([ab]{3,9} \"c\"){2,5} \"+\"",
    "root ::= (\"a\"? \"b\"*){2,30} \"c\"",
    "root ::= \"a\"{5,} (\"b\" root){0,12} \"c\"",
    "root ::= ([ab]{10,40} | \"aab\"{4,17} \"c\")* \"+\"",
    "root ::= x{2,11} \"+\" | x{3,40}\nx ::= \"a\" | \"ab\" | \"(\" x{1,3} \")\"",
    // Characters of several bytes.
    "root ::= [^a-z]* \"é\" | [à-ü€😀]+ \"a\"",
    "root ::= [^]* | \"x\"",
    "root ::= [^\"\\\\]{0,20} \"\\\"\" root?",
    // JSON and strings.
    "root ::= v\nv ::= \"\\\"\" s \"\\\"\" | \"{\" (m (\",\" m)*)? \"}\" | \"[\" (v (\",\" v)*)? \"]\" \
     | \"true\"\nm ::= \"\\\"\" s \"\\\":\" v\ns ::= ([^\"\\\\] | \"\\\\\" [\"\\\\])*",
    "root ::= \"\\\"\" [^\"]* \"\\\"\" root | \"(\" [^()]* root [^()]* \")\" | [a-c]",
    // Right recursion, unit cycles, dead branches, rules without use.
    "root ::= \"a\" root | \"b\" x\nx ::= x | y | \"c\"\ny ::= x | root",
    "root ::= \"a\" x | \"ab\" \"c\"?\nx ::= \"b\" x\nz ::= \"a\"",
    "root ::= (\"a\" | \"ab\" | \"abc\" | \"b\" | \"bc\" | \"c\")+ \"+\"",
    "root ::= x y | y x\nx ::= \"a\" x? | \"c\"\ny ::= \"b\" y? | \"\" | x",
    // Tokens that are taken whole.
    "root ::= (Token(3, 7) | \"a\" | ExcludeToken(3, 4, 5) \"b\")* \"c\"",
    "root ::= \"a\" (Token(14) | [ab]+)? root | \"c\"",
    "root ::= TokenTagDispatch((3, x), (4, y))\nx ::= \"a\" \"b\"?\ny ::= \"+\"",
    // Free text with tags.
    "root ::= TagDispatch((\"<a>\", x), (\"<ab>\", y))\nx ::= [a-c]{1,3} \">\"\ny ::= \"a\" | y \"b\"",
    "root ::= TagDispatch((\"aba\", x), loop_after_dispatch=false) \nx ::= \"c\" x? \"c\"",
    "root ::= \"\"",
    "root ::= \"abcabc\" | [a-b]{2} \"c\"? root?",
];

/// Tokens of the fixed settings. Ids 1 and 2 are stop tokens, 3 to 5 special.
const TOKENS: &[&[u8]] = &[
    b"",
    b"</s>",
    b"ab",
    b"<t>",
    b"a",
    b"<u>",
    b"a",
    b"b",
    b"c",
    b"ab",
    b"ba",
    b"aa",
    b"bb",
    b"abc",
    b"aab",
    b"bbbb",
    b"aaaaaaaaaaaa",
    b"ababababab",
    b"c+",
    b"+",
    b"*a",
    b"(",
    b")",
    b"((",
    b"a)",
    b"\"",
    b"\\",
    b"\"a",
    b"a\"",
    b"\",",
    b"{\"",
    b"\":",
    b"}",
    b"[",
    b"],[",
    b"true",
    b"tr",
    b"ue",
    b"<",
    b"<a",
    b"<a>",
    b">b",
    b"a>a<ab>",
    b"x",
    b"cc",
    b"bc",
    b"\xC3",
    b"\xA9",
    "é".as_bytes(),
    "aéb".as_bytes(),
    "€".as_bytes(),
    b"\xE2\x82",
    b"\xAC\"",
    "😀".as_bytes(),
    b"\xF0\x9F",
    b"\x98\x80",
    b"\xED\xA0\x80",
    b"\xFF",
    b"a\xFFb",
    b"\x80",
    b"\0",
];

/// Grammars under which all of [`plain_tokens`] may follow, or all but a few.
const PLAIN_GRAMMARS: &[&str] = &[
    "root ::= [a-c]*",
    "root ::= \"c\"{0,2} ([ab] \"c\"{0,2})*",
    "root ::= ([a-c]{0,4} \"a\"? | root root)*",
    "root ::= \"\" | root [a-c] | root \"cc\"",
];

/// A stop token, and all texts of up to three letters but for the first of three: 39 tokens of
/// which the last is `ccc`.
fn plain_tokens() -> Vec<Vec<u8>> {
    let mut tokens = vec![b"</s>".to_vec()];
    for length in 1..=3 {
        for number in 0..3usize.pow(length) {
            let letter = |place| b'a' + (number / 3usize.pow(place) % 3) as u8;
            tokens.push((0..length).rev().map(letter).collect());
        }
    }
    tokens.remove(13);
    tokens
}

/// Tokens of random settings. Id 0 is a stop token, 1 is special.
const FEW_TOKENS: &[&[u8]] = &[
    b"</s>",
    b"ab",
    b"a",
    b"b",
    b"c",
    b"d",
    b"aa",
    b"ab",
    b"bca",
    b"dd",
    b"abcd",
    b"aaaaaaaa",
    "é".as_bytes(),
    b"\xC3",
    b"\xA9",
    b"a\xC3",
    b"",
];

fn vocabulary<T: AsRef<[u8]>>(tokens: &[T], stops: &[u32], special: &[u32]) -> SharedVocabulary {
    let mut offsets = vec![0];
    let mut blob = Vec::new();
    for token in tokens {
        blob.extend_from_slice(token.as_ref());
        offsets.push(blob.len() as u32);
    }
    Vocabulary::new(blob, offsets, stops, special).expect("a sound vocabulary").into()
}

/// A row of token bits.
pub type Row = Rc<Vec<i32>>;

/// A grammar over a vocabulary, with all that engines of it share.
pub struct Setting {
    /// The grammar as text.
    pub text: String,
    /// The grammar as the engine and the recognizer read it, without macros.
    pub grammar: Grammar,
    /// The vocabulary.
    pub vocabulary: SharedVocabulary,
    /// The truth.
    pub earley: Earley,
    limits: Limits,
    /// As they are made: what a network remembers of its cases would make cases depend on others.
    networks: [OnceCell<Option<Network>>; NETWORKS],
    classes: OnceCell<Option<TokenClasses>>,
    masks: FxHashMap<Place, Row>,
}

impl Setting {
    /// A setting; `None` where a limit does not allow the grammar, it has no string, or the
    /// recognizer cannot read it.
    pub fn new(text: String, vocabulary: SharedVocabulary, limits: Limits) -> Option<Self> {
        let grammar = parse(&text, "root", &limits).ok()?;
        let whole = || WholeTokens { ranges: vocabulary.whole_ranges(), stops: &[] };
        let over_ids = grammar.with_tokens(whole, vocabulary.len()).ok()?;
        let grammar = over_ids.unwrap_or(grammar).with_dispatches(&limits).ok()?;
        let earley = Earley::new(&grammar)?;
        let (networks, classes, masks) = Default::default();
        Some(Self { text, grammar, vocabulary, earley, limits, networks, classes, masks })
    }

    /// A fresh network of a way; `None` where a limit does not allow it.
    pub fn network(&self, way: usize) -> Option<Arc<Network>> {
        let make = || {
            let options = network_options(way, self.limits.clone());
            match Network::new(&self.grammar, &options) {
                Ok(network) => Some(network),
                Err(tokfold_core::error::Error::Limit { .. }) => None,
                Err(error) => panic!("the grammar has strings, and is refused: {error}"),
            }
        };
        self.networks[way].get_or_init(make).clone().map(Arc::new)
    }

    /// The classes; `None` where a limit does not allow them.
    pub fn classes(&self) -> Option<&TokenClasses> {
        let make = || {
            let options = ClassOptions { limits: self.limits.clone(), ..Default::default() };
            classes::compile(&self.grammar, &self.vocabulary, &options, &none())
                .ok()
                .map(|made| made.0)
        };
        self.classes.get_or_init(make).as_ref()
    }

    /// Words of a row.
    pub fn words(&self) -> usize {
        words(self.vocabulary.len())
    }

    /// The tokens that may follow by their bytes or whole, without stop tokens.
    pub fn mask(&mut self, place: Place) -> Result<Row, TooMuch> {
        if let Some(known) = self.masks.get(&place) {
            return Ok(known.clone());
        }
        let mut row = vec![0; self.words()];
        for id in 0..self.vocabulary.len() as u32 {
            if self.earley.takes(&self.vocabulary, place, id)? {
                row[id as usize >> 5] |= 1 << (id & 31);
            }
        }
        let row = Rc::new(row);
        self.masks.insert(place, row.clone());
        Ok(row)
    }

    /// Forgets what was read, before that takes too much memory.
    pub fn tidy(&mut self, most: usize) {
        if self.earley.len() > most {
            self.earley.forget();
            self.masks.clear();
        }
    }
}

/// The fixed settings.
pub fn fixed() -> Vec<Setting> {
    let of = |vocabulary: SharedVocabulary, grammars: &[&str]| -> Vec<Setting> {
        let make = |text: &&str| {
            let limits = Limits { max_network_states: 20_000, ..Limits::default() };
            let made = Setting::new((*text).into(), vocabulary.clone(), limits);
            made.unwrap_or_else(|| panic!("a fixed setting: {text}"))
        };
        grammars.iter().map(make).collect()
    };
    let mut out = of(vocabulary(TOKENS, &[1, 2], &[3, 4, 5]), GRAMMARS);
    out.extend(of(vocabulary(&plain_tokens(), &[0], &[]), PLAIN_GRAMMARS));
    out
}

/// What random settings share.
pub struct Few {
    vocabulary: SharedVocabulary,
}

impl Default for Few {
    fn default() -> Self {
        Self { vocabulary: vocabulary(FEW_TOKENS, &[0], &[1]) }
    }
}

impl Few {
    /// A setting with a grammar out of the input, as [`Setting::new`].
    pub fn setting(&self, input: &mut Input<'_>) -> Option<Setting> {
        let text = grammar_text(input);
        Setting::new(text, self.vocabulary.clone(), small_limits())
    }
}

const NAMES: [&str; 4] = ["root", "x", "y", "z"];

/// A random grammar as text.
pub fn grammar_text(input: &mut Input<'_>) -> String {
    let count = 1 + input.below(NAMES.len());
    let mut out = String::new();
    for name in &NAMES[..count] {
        out.push_str(name);
        out.push_str(" ::= ");
        let mut budget = 12;
        body(input, &NAMES[..count], 3, &mut budget, &mut out);
        out.push('\n');
    }
    out
}

fn body(input: &mut Input<'_>, names: &[&str], depth: usize, budget: &mut u32, out: &mut String) {
    *budget = budget.saturating_sub(1);
    let kinds = if depth == 0 || *budget == 0 { 10 } else { 16 };
    match input.below(kinds) {
        0 => out.push_str("\"a\""),
        1 => out.push_str("\"b\""),
        2..=4 => out.push_str(input.pick(names)),
        5 => {
            out.push_str(input.pick(&["[a-c]", "[^a]", "[ab]", "[b-d]", "[^]", "[a-é]", "[^b-z]"]))
        }
        6 => out.push_str(input.pick(&["\"c\"", "\"d\"", "\"ab\"", "\"bca\"", "\"é\"", "\"dd\""])),
        7 => out.push_str("\"\""),
        8 | 9 => out.push_str(input.pick(&["\"a\"*", "[ab]+", "\"b\"?", "root{2,9}", "[a-c]{3,}"])),
        kind @ 10..=13 => {
            let between = if kind < 12 { " " } else { " | " };
            out.push('(');
            for part in 0..2 + input.below(2) {
                out.push_str(if part == 0 { "" } else { between });
                body(input, names, depth - 1, budget, out);
            }
            out.push(')');
        }
        _ => {
            out.push('(');
            body(input, names, depth - 1, budget, out);
            out.push(')');
            let min = input.below(12);
            match input.below(4) {
                0 => out.push('*'),
                1 => out.push_str(&format!("{{{min},}}")),
                2 => out.push_str(&format!("{{{min}}}")),
                _ => out.push_str(&format!("{{{min},{}}}", min + input.below(20))),
            }
        }
    }
}
