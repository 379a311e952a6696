//! Finite sets of texts: the minimal automaton of sorted texts, made in one pass.
//!
//! The states along the text read last may get more edges; all others are done, and equal ones are
//! one (Daciuk, Mihov, Watson and Watson, 2000).

use super::Bounds;
use super::alphabet::{LAST, REST, ScalarAlphabet};
use super::dfa::Dfa;
use super::table::{DEAD, DfaTable};
use crate::error::Result;
use crate::hash::hash_of;
use hashbrown::HashTable;
use rustc_hash::FxHashMap;

impl Dfa {
    /// Exactly these texts.
    ///
    /// # Errors
    /// [`crate::error::Error::Limit`] and what ends the work.
    pub fn texts<'a>(
        texts: impl IntoIterator<Item = &'a str>,
        bounds: &Bounds<'_>,
    ) -> Result<Self> {
        Self::listed(texts, true, bounds)
    }

    /// All texts but these.
    ///
    /// # Errors
    /// [`crate::error::Error::Limit`] and what ends the work.
    pub fn all_but_texts<'a>(
        texts: impl IntoIterator<Item = &'a str>,
        bounds: &Bounds<'_>,
    ) -> Result<Self> {
        Self::listed(texts, false, bounds)
    }

    /// Exactly these texts, or all but these.
    fn listed<'a>(
        texts: impl IntoIterator<Item = &'a str>,
        are_accepted: bool,
        bounds: &Bounds<'_>,
    ) -> Result<Self> {
        let mut list = Vec::new();
        for text in texts {
            bounds.budget.spend(1 + text.len() / 4)?;
            list.push(text);
        }
        if list.is_empty() {
            return Ok(if are_accepted { Self::nothing() } else { Self::anything() });
        }
        list.sort_unstable();
        list.dedup();
        let characters = Characters::of(&list);
        let mut trie = TextTrie::new();
        let mut previous: Vec<u32> = Vec::new();
        let mut current: Vec<u32> = Vec::new();
        for text in list {
            current.clear();
            current.extend(text.chars().map(|c| characters.class_of(c)));
            bounds.budget.spend(1 + current.len())?;
            let common = previous.iter().zip(&current).take_while(|(a, b)| a == b).count();
            trie.close_to(common, &previous);
            current[common..].iter().for_each(|_| trie.open());
            trie.end();
            bounds.check(trie.closed.len() + trie.open.len())?;
            std::mem::swap(&mut previous, &mut current);
        }
        trie.close_to(0, &previous);
        let start = trie.close();
        characters.table(&trie, start, are_accepted, bounds).map(DfaTable::canonical)
    }
}

/// The classes of the characters of some texts: one for each, in order, from 1 on.
struct Characters {
    list: Vec<u32>,
    ascii: [u32; 128],
    others: FxHashMap<char, u32>,
}

impl Characters {
    fn of(texts: &[&str]) -> Self {
        let mut ascii = [DEAD; 128];
        let mut others = FxHashMap::default();
        for c in texts.iter().flat_map(|text| text.chars()) {
            match ascii.get_mut(c as usize) {
                Some(class) => *class = REST,
                None => _ = others.insert(c, REST),
            }
        }
        let mut list: Vec<u32> = others.keys().map(|&c| c as u32).collect();
        list.extend((0..128).filter(|&c| ascii[c as usize] != DEAD));
        list.sort_unstable();
        for (class, &c) in (1..).zip(&list) {
            match ascii.get_mut(c as usize) {
                Some(known) => *known = class,
                None => _ = char::from_u32(c).map(|c| others.insert(c, class)),
            }
        }
        Self { list, ascii, others }
    }

    fn class_of(&self, c: char) -> u32 {
        match self.ascii.get(c as usize) {
            Some(&class) => class,
            None => self.others[&c],
        }
    }

    /// The states that `start` reaches, over an alphabet; behind them the one of all texts, where the texts of the trie
    /// are not accepted, and all others are.
    fn table(
        &self,
        trie: &TextTrie,
        start: u32,
        are_accepted: bool,
        bounds: &Bounds<'_>,
    ) -> Result<DfaTable> {
        let others = if are_accepted { DEAD } else { start + 1 };
        // Where U+10FFFF is one of the characters it is the rest, and what no text has is a class.
        let len = self.list.len() as u32;
        let has_last = self.list.last() == Some(&LAST);
        let unnamed = if has_last { len } else { REST };
        let mut cuts = vec![(0, unnamed)];
        for (class, &c) in (1..).zip(&self.list) {
            if cuts.last().is_some_and(|cut| cut.0 == c) {
                cuts.pop();
            }
            cuts.push((c, if c == LAST { REST } else { class }));
            let next = if c + 1 == 0xD800 { 0xE000 } else { c + 1 };
            if c < LAST {
                cuts.push((next, unnamed));
            }
        }
        let classes = len + 1;
        let mut table = DfaTable::new(ScalarAlphabet::new(cuts, classes));
        // The start comes first: states were closed from the ends on.
        let new_of = |q: u32| start - q;
        for q in (0..=start).rev() {
            let (is_final, edges) = trie.closed(q);
            let edges = edges.iter().map(|&(class, to)| (class, new_of(to)));
            match edges.clone().next_back() {
                Some((class, default)) if has_last && class == len => {
                    bounds.budget.spend(len as usize)?;
                    let mut row = vec![others; classes as usize];
                    edges.for_each(|(class, to)| row[class as usize] = to);
                    row[unnamed as usize] = others;
                    table.push_row(is_final == are_accepted, default, (0..).zip(row).skip(1));
                }
                _ => table.push_row(is_final == are_accepted, others, edges),
            }
        }
        if !are_accepted {
            table.push_row(true, others, []);
        }
        Ok(table)
    }
}

/// The states of sorted texts.
struct TextTrie {
    /// Final or not, and where the edges end; they begin where those of the state before end.
    closed: Vec<(bool, u32)>,
    edges: Vec<(u32, u32)>,
    numbers: HashTable<u32>,
    /// The states along the text read last: final or not, and where their edges begin in `pending`.
    open: Vec<(bool, u32)>,
    pending: Vec<(u32, u32)>,
}

impl TextTrie {
    fn new() -> Self {
        Self {
            closed: Vec::new(),
            edges: Vec::new(),
            numbers: HashTable::new(),
            open: vec![(false, 0)],
            pending: Vec::new(),
        }
    }

    fn open(&mut self) {
        self.open.push((false, self.pending.len() as u32));
    }

    fn end(&mut self) {
        if let Some(last) = self.open.last_mut() {
            last.0 = true;
        }
    }

    /// Closes the states behind the first `common` characters of the text.
    fn close_to(&mut self, common: usize, text: &[u32]) {
        for &class in text[common..].iter().rev() {
            let state = self.close();
            self.pending.push((class, state));
        }
    }

    fn closed(&self, q: u32) -> (bool, &[(u32, u32)]) {
        row(&self.closed, &self.edges, q)
    }

    /// Closes the last open state and returns its number.
    fn close(&mut self) -> u32 {
        let (is_final, first) = self.open.pop().unwrap_or_default();
        let pending = &self.pending[first as usize..];
        let (closed, edges) = (&mut self.closed, &mut self.edges);
        let hash = hash_of(&(is_final, pending));
        let known = self.numbers.find(hash, |&q| row(closed, edges, q) == (is_final, pending));
        if let Some(&state) = known {
            self.pending.truncate(first as usize);
            return state;
        }
        let state = closed.len() as u32;
        edges.extend_from_slice(pending);
        closed.push((is_final, edges.len() as u32));
        let (closed, edges) = (&self.closed, &self.edges);
        self.numbers.insert_unique(hash, state, |&q| hash_of(&row(closed, edges, q)));
        self.pending.truncate(first as usize);
        state
    }
}

/// A closed state.
fn row<'a>(closed: &[(bool, u32)], edges: &'a [(u32, u32)], q: u32) -> (bool, &'a [(u32, u32)]) {
    let (is_final, end) = closed[q as usize];
    let start = if q == 0 { 0 } else { closed[q as usize - 1].1 };
    (is_final, &edges[start as usize..end as usize])
}
