//! An Earley recognizer over a parsed grammar: the truth against which the engine is held.
//!
//! The recognizer knows nothing of networks, stacks or charts. A column is a set of items; columns
//! form a tree, in which a text is a path, so a fork or a rollback is another place in the tree.

use rustc_hash::{FxHashMap, FxHashSet};
use tokfold_core::grammar::{CharSet, Expr, Grammar};
use tokfold_core::ids::ExprId;
use tokfold_core::vocabulary::Vocabulary;

/// A column of the tree.
pub type Place = u32;

/// The column before any text.
pub const START: Place = 0;

/// Items of one column past which a case is too ambiguous for this recognizer.
const MOST_ITEMS: usize = 600;

/// Items of a column that are not hashed.
const FEW_ITEMS: usize = 24;

/// Columns past which a case is too long for this recognizer.
const MOST_COLUMNS: usize = 60_000;

/// Symbols of all productions past which a grammar is too large for this recognizer.
const MOST_SYMBOLS: usize = 20_000;

/// The recognizer gives up on this text; nothing follows for the engine.
#[derive(Clone, Copy, Debug)]
pub struct TooMuch;

#[derive(Clone, Debug)]
enum Symbol {
    Bytes(u8, u8),
    Char(CharSet),
    Tokens(Box<[(u32, u32)]>),
    Nonterminal(u32),
}

#[derive(Debug)]
struct Production {
    left: u32,
    right: Vec<Symbol>,
}

/// A production with a dot, and the column where it began.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Item {
    production: u32,
    dot: u32,
    origin: Place,
    inside: Inside,
}

/// Where the dot stands within a character: after some of its bytes. `need` bytes are left of
/// `total`; 0 says that it stands before the character.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Inside {
    value: u32,
    need: u8,
    total: u8,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Edge {
    Byte(u8),
    Token(u32),
}

/// The recognizer of one grammar, with all columns that were asked for.
pub struct Earley {
    productions: Vec<Production>,
    /// For each nonterminal its productions.
    by_left: Vec<Vec<u32>>,
    nullable: Vec<bool>,
    columns: Vec<Vec<Item>>,
    known: FxHashMap<(Place, Edge), Option<Place>>,
}

impl Earley {
    /// The recognizer of a grammar without macros; `None` where a macro is left, the grammar is too
    /// large, or it has no string.
    pub fn new(grammar: &Grammar) -> Option<Self> {
        let mut productions = productions(grammar)?;
        let count = productions.iter().map(|p| p.left + 1).max()? as usize;
        let productive = least(&productions, count, |symbol| match symbol {
            Symbol::Bytes(..) => true,
            Symbol::Char(set) => !set.is_empty(),
            Symbol::Tokens(ids) => !ids.is_empty(),
            Symbol::Nonterminal(_) => false,
        });
        let can_end = |symbol: &Symbol| match symbol {
            Symbol::Nonterminal(n) => productive[*n as usize],
            Symbol::Char(set) => !set.is_empty(),
            Symbol::Tokens(ids) => !ids.is_empty(),
            Symbol::Bytes(..) => true,
        };
        productions.retain(|production| production.right.iter().all(can_end));
        let start = productions.iter().position(|p| p.left == count as u32 - 1)? as u32;
        let nullable = least(&productions, count, |_| false);
        let mut by_left = vec![Vec::new(); count];
        for (number, production) in productions.iter().enumerate() {
            by_left[production.left as usize].push(number as u32);
        }
        let mut out = Self {
            productions,
            by_left,
            nullable,
            columns: Vec::new(),
            known: FxHashMap::default(),
        };
        let first = Item { production: start, dot: 0, origin: START, inside: Inside::default() };
        out.close(vec![first]).ok()?;
        Some(out)
    }

    /// Whether the text of a place is a string of the grammar.
    pub fn accepts(&self, place: Place) -> bool {
        let start = self.by_left.len() as u32 - 1;
        self.columns[place as usize].iter().any(|item| {
            let production = &self.productions[item.production as usize];
            production.left == start && item.dot == 1
        })
    }

    /// Where a byte leads, if some string goes on with it.
    pub fn byte(&mut self, place: Place, byte: u8) -> Result<Option<Place>, TooMuch> {
        let key = (place, Edge::Byte(byte));
        if let Some(&known) = self.known.get(&key) {
            return Ok(known);
        }
        let items = &self.columns[place as usize];
        let moved = items.iter().filter_map(|item| self.after(item, byte)).collect();
        self.learn(key, moved)
    }

    /// Where some bytes lead.
    pub fn bytes(&mut self, place: Place, bytes: &[u8]) -> Result<Option<Place>, TooMuch> {
        let mut at = place;
        for &byte in bytes {
            match self.byte(at, byte)? {
                Some(next) => at = next,
                None => return Ok(None),
            }
        }
        Ok(Some(at))
    }

    /// Where a token leads that is no stop token: by its bytes where it is text, and whole.
    pub fn token(
        &mut self,
        vocabulary: &Vocabulary,
        place: Place,
        id: u32,
    ) -> Result<Option<Place>, TooMuch> {
        let by_bytes = match vocabulary.is_textual(id) {
            true => self.bytes(place, vocabulary.bytes(id))?,
            false => None,
        };
        if !vocabulary.is_whole(id) {
            return Ok(by_bytes);
        }
        let key = (place, Edge::Token(id));
        if let Some(&known) = self.known.get(&key) {
            return Ok(known);
        }
        let is_named = |ids: &[(u32, u32)]| ids.iter().any(|r| (r.0..=r.1).contains(&id));
        let mut moved: Vec<Item> = Vec::new();
        for item in &self.columns[place as usize] {
            if matches!(self.next(item), Some(Symbol::Tokens(ids)) if is_named(ids)) {
                moved.push(Item { dot: item.dot + 1, ..*item });
            }
        }
        if moved.is_empty() {
            self.known.insert(key, by_bytes);
            return Ok(by_bytes);
        }
        // Items keep the columns where they began, so the two columns are one.
        moved.extend(by_bytes.iter().flat_map(|&place| &self.columns[place as usize]));
        self.learn(key, moved)
    }

    /// Whether a token leads anywhere: [`Self::token`] without the last column.
    pub fn takes(
        &mut self,
        vocabulary: &Vocabulary,
        place: Place,
        id: u32,
    ) -> Result<bool, TooMuch> {
        let is_named = |ids: &[(u32, u32)]| ids.iter().any(|r| (r.0..=r.1).contains(&id));
        let is_whole = |item| matches!(self.next(item), Some(Symbol::Tokens(ids)) if is_named(ids));
        if vocabulary.is_whole(id) && self.columns[place as usize].iter().any(is_whole) {
            return Ok(true);
        }
        let Some((&last, before)) = vocabulary.bytes(id).split_last() else { return Ok(false) };
        if !vocabulary.is_textual(id) {
            return Ok(false);
        }
        let Some(place) = self.bytes(place, before)? else { return Ok(false) };
        Ok(self.columns[place as usize].iter().any(|item| self.after(item, last).is_some()))
    }

    /// An item after a byte, if it reads it.
    fn after(&self, item: &Item, byte: u8) -> Option<Item> {
        let inside = match self.next(item)? {
            Symbol::Bytes(first, last) => (*first..=*last).contains(&byte).then(Inside::default)?,
            Symbol::Char(set) => char_step(set, item.inside, byte)?,
            Symbol::Tokens(_) | Symbol::Nonterminal(_) => return None,
        };
        Some(Item { dot: item.dot + u32::from(inside.need == 0), inside, ..*item })
    }

    /// For each byte whether some string goes on with it.
    pub fn next_bytes(&self, place: Place) -> [bool; 256] {
        let mut out = [false; 256];
        for item in &self.columns[place as usize] {
            match self.next(item) {
                Some(Symbol::Bytes(first, last)) => {
                    (*first..=*last).for_each(|byte| out[byte as usize] = true);
                }
                Some(Symbol::Char(set)) => {
                    for byte in 0..=255u8 {
                        out[byte as usize] |= char_step(set, item.inside, byte).is_some();
                    }
                }
                _ => {}
            }
        }
        out
    }

    /// Whether a token may be taken whole next.
    pub fn takes_token(&self, place: Place) -> bool {
        let items = &self.columns[place as usize];
        items.iter().any(|item| matches!(self.next(item), Some(Symbol::Tokens(_))))
    }

    /// The number of columns.
    pub fn len(&self) -> usize {
        self.columns.len()
    }

    /// Never: there is a first column.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Forgets all columns but the first.
    pub fn forget(&mut self) {
        self.columns.truncate(1);
        self.known.clear();
    }

    fn next(&self, item: &Item) -> Option<&Symbol> {
        self.productions[item.production as usize].right.get(item.dot as usize)
    }

    fn learn(&mut self, key: (Place, Edge), moved: Vec<Item>) -> Result<Option<Place>, TooMuch> {
        let next = match moved.is_empty() {
            true => None,
            false => Some(self.close(moved)?),
        };
        self.known.insert(key, next);
        Ok(next)
    }

    /// Adds a column: the items with all that they predict and complete.
    fn close(&mut self, kernel: Vec<Item>) -> Result<Place, TooMuch> {
        let here = self.columns.len() as Place;
        if self.columns.len() >= MOST_COLUMNS {
            return Err(TooMuch);
        }
        let mut seen = FxHashSet::default();
        let mut items: Vec<Item> = Vec::with_capacity(16);
        let mut add = |items: &mut Vec<Item>, item: Item| {
            // A few are looked through faster than hashed.
            let is_new = match items.len() {
                0..=FEW_ITEMS => !items.contains(&item),
                _ => {
                    if seen.is_empty() {
                        seen.extend(items.iter().copied());
                    }
                    seen.insert(item)
                }
            };
            if is_new {
                items.push(item);
            }
        };
        kernel.into_iter().for_each(|item| add(&mut items, item));
        let mut done = 0;
        while let Some(&item) = items.get(done) {
            done += 1;
            if items.len() > MOST_ITEMS {
                return Err(TooMuch);
            }
            match self.next(&item) {
                Some(&Symbol::Nonterminal(n)) => {
                    for &production in &self.by_left[n as usize] {
                        let inside = Inside::default();
                        add(&mut items, Item { production, dot: 0, origin: here, inside });
                    }
                    if self.nullable[n as usize] {
                        add(&mut items, Item { dot: item.dot + 1, ..item });
                    }
                }
                // What is empty was passed over when it was predicted.
                None if item.origin != here => {
                    let left = self.productions[item.production as usize].left;
                    for &caller in &self.columns[item.origin as usize] {
                        if matches!(self.next(&caller), Some(Symbol::Nonterminal(n)) if *n == left)
                        {
                            add(&mut items, Item { dot: caller.dot + 1, ..caller });
                        }
                    }
                }
                _ => {}
            }
        }
        self.columns.push(items);
        Ok(here)
    }
}

/// The nonterminals of which some production has symbols that all hold, or hold in turn.
fn least(productions: &[Production], count: usize, holds: impl Fn(&Symbol) -> bool) -> Vec<bool> {
    let mut out = vec![false; count];
    loop {
        let mut changed = false;
        for production in productions {
            let all = production.right.iter().all(|symbol| match symbol {
                Symbol::Nonterminal(n) => out[*n as usize],
                other => holds(other),
            });
            changed |= all && !std::mem::replace(&mut out[production.left as usize], all);
        }
        if !changed {
            return out;
        }
    }
}

/// The productions of a grammar. Nonterminals are the expressions, then the rules, then those of
/// repetitions and automata; the last is the start.
fn productions(grammar: &Grammar) -> Option<Vec<Production>> {
    let exprs = grammar.exprs();
    let mut free = (exprs.len() + grammar.rules().len()) as u32;
    let mut symbols = 0;
    let mut out: Vec<Production> = Vec::new();
    let mut add = |left: u32, right: Vec<Symbol>| {
        symbols += right.len() + 1;
        if symbols > MOST_SYMBOLS {
            return None;
        }
        out.push(Production { left, right });
        Some(())
    };
    let mut fresh = |count: u32| {
        let first = free;
        free += count;
        first
    };
    let of_rule = |rule: usize| (exprs.len() + rule) as u32;
    let call = Symbol::Nonterminal;
    // What stands for each expression in a production: itself, where it has no choice.
    let mut written: Vec<Vec<Symbol>> = Vec::with_capacity(exprs.len());
    for (id, expr) in exprs.iter().enumerate() {
        let left = id as u32;
        let of = |part: ExprId| written[part.index()].clone();
        written.push(match expr {
            Expr::Empty => Vec::new(),
            Expr::Literal(bytes) => bytes.iter().map(|&b| Symbol::Bytes(b, b)).collect(),
            Expr::Class(set) => vec![Symbol::Char(set.clone())],
            Expr::Tokens(ids) => vec![Symbol::Tokens(ids.clone())],
            Expr::Rule(rule) => vec![call(of_rule(rule.index()))],
            Expr::Sequence(parts) => parts.iter().flat_map(|&part| of(part)).collect(),
            Expr::Choice(parts) => {
                for &part in parts {
                    add(left, of(part))?;
                }
                vec![call(left)]
            }
            &Expr::Repeat { body, min, max } => {
                let last = max.unwrap_or(min);
                if last as usize > MOST_SYMBOLS {
                    return None;
                }
                // After each number of passes a nonterminal of its own.
                let first = fresh(last + 1);
                let pass = |next: u32| [of(body), vec![call(next)]].concat();
                for passes in 0..=last {
                    if passes >= min {
                        add(first + passes, Vec::new())?;
                    }
                    if passes < last {
                        add(first + passes, pass(first + passes + 1))?;
                    } else if max.is_none() {
                        add(first + passes, pass(first + passes))?;
                    }
                }
                vec![call(first)]
            }
            Expr::Automaton(automaton) => {
                let first = fresh(automaton.finals.len() as u32);
                for state in automaton.ends() {
                    add(first + state, Vec::new())?;
                }
                for &(from, low, high, to) in automaton.bytes_in_full().iter() {
                    add(first + from, vec![Symbol::Bytes(low, high), call(first + to)])?;
                }
                for &(from, part, to) in &automaton.parts {
                    add(first + from, [of(part), vec![call(first + to)]].concat())?;
                }
                vec![call(first + automaton.start)]
            }
            Expr::Macro(_) => return None,
        });
        if written[id].len() > MOST_SYMBOLS {
            return None;
        }
    }
    for (number, rule) in grammar.rules().iter().enumerate() {
        if rule.lookahead.is_some() || rule.options.lazy {
            return None;
        }
        add(of_rule(number), written[rule.body.index()].clone())?;
    }
    let start = fresh(1);
    add(start, vec![call(of_rule(grammar.root().index()))])?;
    Some(out)
}

/// What a byte makes of a place within a character of a set, if some character goes on so.
fn char_step(set: &CharSet, inside: Inside, byte: u8) -> Option<Inside> {
    let next = match (inside.need, byte) {
        (0, 0..=0x7F) => Inside { value: u32::from(byte), need: 0, total: 1 },
        (0, 0xC0..=0xDF) => Inside { value: u32::from(byte & 0x1F), need: 1, total: 2 },
        (0, 0xE0..=0xEF) => Inside { value: u32::from(byte & 0x0F), need: 2, total: 3 },
        (0, 0xF0..=0xF7) => Inside { value: u32::from(byte & 0x07), need: 3, total: 4 },
        (1.., 0x80..=0xBF) => Inside {
            value: inside.value << 6 | u32::from(byte & 0x3F),
            need: inside.need - 1,
            ..inside
        },
        _ => return None,
    };
    // The code points that begin so, without those that fewer bytes encode.
    let least = [0, 0, 0x80, 0x800, 0x1_0000][next.total as usize];
    let low = (next.value << (6 * next.need)).max(least);
    let high = ((next.value + 1) << (6 * next.need)) - 1;
    let is_met = set.ranges().iter().any(|&(a, b)| a <= high && low <= b && low <= high);
    let done = Inside::default();
    is_met.then_some(if next.need == 0 { done } else { next })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokfold_core::syntax::parse;

    fn verdicts(text: &str, inputs: &[&str]) -> Vec<(bool, bool)> {
        let grammar = parse(text, "root", &Default::default()).expect("grammar text");
        let mut earley = Earley::new(&grammar).expect("a recognizer");
        let verdict = |input: &&str| match earley.bytes(START, input.as_bytes()).expect("small") {
            Some(place) => (true, earley.accepts(place)),
            None => (false, false),
        };
        inputs.iter().map(verdict).collect()
    }

    #[test]
    fn the_recognizer_knows_prefixes_and_strings() {
        let (no, prefix, string) = ((false, false), (true, false), (true, true));
        let nested = verdicts("root ::= \"(\" root \")\" root | \"\"", &["", "(", "(())()", ")"]);
        assert_eq!(nested, [string, prefix, string, no]);
        let left = verdicts("root ::= root \"+\" root | [a-c]", &["", "a+", "a+b+c", "+", "d"]);
        assert_eq!(left, [prefix, prefix, string, no, no]);
        let dead = verdicts("root ::= \"a\" x | \"b\"\nx ::= \"c\" x", &["a", "b"]);
        assert_eq!(dead, [no, string]);
        let counted = verdicts("root ::= (\"a\"? \"b\"){2,3}", &["b", "bab", "abbb", "bbbb"]);
        assert_eq!(counted, [prefix, string, string, no]);
        let unicode =
            verdicts("root ::= [^a-z]+ | \"x\"{2,}", &["é", "€A", "😀", "a", "x", "xxxx"]);
        assert_eq!(unicode, [string, string, string, no, prefix, string]);
    }

    #[test]
    fn characters_are_read_byte_by_byte() {
        let set = CharSet::new([(0x80, 0x10_FFFF)]);
        let reads = |bytes: &[u8]| {
            let mut inside = Inside::default();
            bytes.iter().all(|&byte| {
                let next = char_step(&set, inside, byte);
                inside = next.unwrap_or_default();
                next.is_some()
            })
        };
        for text in ["\u{80}", "\u{7FF}", "\u{800}", "\u{FFFF}", "\u{10000}", "\u{10FFFF}"] {
            assert!(reads(text.as_bytes()), "{text:?}");
        }
        assert!(reads(b"\xED\xA0\x80"), "surrogates are read");
        for bytes in [&b"a"[..], b"\xC0", b"\xC1", b"\xE0\x80", b"\xF0\x80", b"\xF4\x90", b"\xF5"] {
            assert!(!reads(bytes), "{bytes:?}");
        }
    }
}
