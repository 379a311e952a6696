//! One place of the text, and how the next follows.

use super::Columns;
use super::tables::Tables;
use crate::network::{ClassSet, Network, contains};
use crate::stacks::OverBudget;
use rustc_hash::FxHashMap;
use std::ops::Deref;

/// Where rules began: the words of a bit set that are not zero.
#[derive(Clone, Copy, Debug, Default)]
struct Span {
    /// Their place among the words of the column.
    at: u32,
    /// The place in the bit set of the first.
    first: u32,
    count: u32,
}

/// What is known after so many letters.
#[derive(Debug)]
pub(crate) struct Column {
    /// The number of letters read.
    place: u32,
    /// The states of the tables that are there, as the words of a bit set that are not zero, with
    /// the place of each and how many states are before it.
    there: Box<[(u32, u32, u64)]>,
    /// For each state that is there where its rule began, in the order of the states; then of
    /// those that count.
    spans: Box<[Span]>,
    words: Box<[u64]>,
    /// States that count, ascending.
    counting: Box<[u32]>,
    /// The rules that may begin here, as a bit set.
    begun: Box<[u64]>,
    /// What may be read next.
    next: ClassSet,
    /// Whether the text may end here.
    pub(crate) accepts: bool,
}

impl Column {
    /// Before the first letter.
    pub(crate) fn start<N: Deref<Target = Network>>(tables: &Tables<N>) -> Self {
        let network = &tables.network;
        let mut scratch = Scratch::new(tables);
        let start = network.start();
        scratch.begin(1);
        scratch.set(start, 0);
        scratch.column(tables, 0, network.accepts_empty())
    }

    /// Bytes held.
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>()
            + self.there.len() * size_of::<(u32, u32, u64)>()
            + self.spans.len() * size_of::<Span>()
            + (self.words.len() + self.begun.len()) * 8
            + self.counting.len() * 4
    }

    /// The number of letters read.
    pub(crate) fn place(&self) -> u32 {
        self.place
    }

    /// The classes of letters that may be read next.
    pub(crate) fn next(&self) -> &ClassSet {
        &self.next
    }

    /// The number of states that are there.
    pub(crate) fn len(&self) -> usize {
        self.spans.len()
    }

    /// The states that are there, and where their rules began: the words of a bit set and the place
    /// of the first.
    pub(crate) fn states(&self) -> impl Iterator<Item = (u32, usize, &[u64])> {
        let listed = self.there.iter();
        let listed = listed.flat_map(|&(at, _, word)| Bits(word).map(move |bit| at << 6 | bit));
        let all = listed.chain(self.counting.iter().copied());
        all.zip(&*self.spans).map(|(state, &span)| {
            let (first, words) = self.row(span);
            (state, first, words)
        })
    }

    fn row(&self, span: Span) -> (usize, &[u64]) {
        let words = &self.words[span.at as usize..span.at as usize + span.count as usize];
        (span.first as usize, words)
    }

    /// Where the rules began whose states are among these words; with each its state.
    fn among(&self, callers: &[(u32, u64)], mut each: impl FnMut(u32, usize, &[u64])) {
        let mut there = self.there.iter().peekable();
        for &(at, mask) in callers {
            while there.next_if(|found| found.0 < at).is_some() {}
            let Some(&&(_, before, word)) = there.peek().filter(|found| found.0 == at) else {
                continue;
            };
            for bit in Bits(word & mask) {
                let rank = before + (word & ((1 << bit) - 1)).count_ones();
                let (first, words) = self.row(self.spans[rank as usize]);
                each(at << 6 | bit, first, words);
            }
        }
    }

    /// Calls `each` for all who called `rule` here: where the call returns to, and where the rule of
    /// the caller began.
    pub(crate) fn callers<N: Deref<Target = Network>>(
        &self,
        tables: &Tables<N>,
        rule: u32,
        mut each: impl FnMut(u32, usize, &[u64]),
    ) {
        self.among(tables.callers(rule), |state, first, words| {
            tables.returns(state, rule).for_each(|to| each(to, first, words));
        });
        let here = [1 << (self.place & 63)];
        for &(at, mask) in tables.start_callers(rule) {
            for bit in Bits(self.begun[at as usize] & mask) {
                for to in tables.start_returns(at << 6 | bit, rule) {
                    each(to, self.place as usize >> 6, &here);
                }
            }
        }
        let counted = &self.spans[self.spans.len() - self.counting.len()..];
        for (&state, &span) in self.counting.iter().zip(counted) {
            for call in tables.network.calls(state).iter() {
                if tables.network.rule_of(call.start) == rule {
                    let (first, words) = self.row(span);
                    each(call.to, first, words);
                }
            }
        }
    }
}

/// The bits of a word that are set, from the lowest.
struct Bits(u64);

impl Iterator for Bits {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        if self.0 == 0 {
            return None;
        }
        let bit = self.0.trailing_zeros();
        self.0 &= self.0 - 1;
        Some(bit)
    }
}

const NO_ROW: u32 = u32::MAX;

/// Room in which the next column is made.
pub(crate) struct Scratch {
    /// For each state of the tables its row, or none.
    row_of: Vec<u32>,
    counting: FxHashMap<u32, u32>,
    /// The states with rows, in the order of the rows.
    states: Vec<u32>,
    rows: Vec<u64>,
    /// Words of a row.
    stride: usize,
    /// For each rule that is complete the places where it began, and those that were looked at.
    complete: Vec<u64>,
    done: Vec<u64>,
    row_of_rule: Vec<u32>,
    rules: Vec<u32>,
    /// The places where any complete rule began.
    places: Vec<u64>,
    /// Words written so far.
    pub(crate) work: u64,
    /// `work` may not pass this.
    pub(crate) allowance: u64,
}

impl Scratch {
    pub(crate) fn new<N: Deref<Target = Network>>(tables: &Tables<N>) -> Self {
        Self {
            row_of: vec![NO_ROW; tables.network.len()],
            counting: FxHashMap::default(),
            states: Vec::new(),
            rows: Vec::new(),
            stride: 0,
            complete: Vec::new(),
            done: Vec::new(),
            row_of_rule: vec![NO_ROW; tables.network.num_rules()],
            rules: Vec::new(),
            places: Vec::new(),
            work: 0,
            allowance: u64::MAX,
        }
    }

    fn begin(&mut self, stride: usize) {
        for &state in &self.states {
            match self.row_of.get_mut(state as usize) {
                Some(row) => *row = NO_ROW,
                None => self.counting.clear(),
            }
        }
        self.rules.iter().for_each(|&rule| self.row_of_rule[rule as usize] = NO_ROW);
        self.states.clear();
        self.rows.clear();
        self.complete.clear();
        self.done.clear();
        self.rules.clear();
        self.places.clear();
        self.places.resize(stride, 0);
        self.stride = stride;
    }

    /// The place of a state's row.
    #[inline]
    fn row(&mut self, state: u32) -> usize {
        let new = self.states.len() as u32;
        let row = match self.row_of.get_mut(state as usize) {
            Some(row) => row,
            None => self.counting.entry(state).or_insert(NO_ROW),
        };
        if *row == NO_ROW {
            *row = new;
            self.states.push(state);
            self.rows.resize(self.rows.len() + self.stride, 0);
        }
        *row as usize * self.stride
    }

    fn set(&mut self, state: u32, bit: u32) {
        let row = self.row(state);
        self.rows[row + (bit as usize >> 6)] |= 1 << (bit & 63);
    }

    /// A state was reached whose rule began at these places.
    #[inline]
    fn reach(&mut self, network: &Network, state: u32, first: usize, words: &[u64]) {
        self.work += 1 + words.len() as u64;
        if network.stays(state) {
            let row = self.row(state) + first;
            let row = &mut self.rows[row..row + words.len()];
            row.iter_mut().zip(words).for_each(|(a, b)| *a |= b);
        }
        if network.is_final(state) {
            let rule = network.rule_of(state);
            let new = self.rules.len() as u32;
            let row = &mut self.row_of_rule[rule as usize];
            if *row == NO_ROW {
                *row = new;
                self.rules.push(rule);
                self.complete.resize(self.complete.len() + self.stride, 0);
                self.done.resize(self.complete.len(), 0);
            }
            let row = *row as usize * self.stride + first;
            let row = &mut self.complete[row..row + words.len()];
            row.iter_mut().zip(words).for_each(|(a, b)| *a |= b);
            let places = &mut self.places[first..first + words.len()];
            places.iter_mut().zip(words).for_each(|(a, b)| *a |= b);
        }
    }

    /// The column after one more letter, or none where no string of the grammar goes on so.
    ///
    /// The letter is read at the last of the columns.
    pub(crate) fn step<N: Deref<Target = Network>>(
        &mut self,
        tables: &Tables<N>,
        columns: Columns<'_>,
        class: u8,
    ) -> Result<Option<Column>, OverBudget> {
        let tip = columns.tip();
        if !contains(&tip.next, class) {
            return Ok(None);
        }
        let network: &Network = &tables.network;
        self.begin((tip.place as usize >> 6) + 1);
        for (state, first, words) in tip.states() {
            let edges = network.edges(state);
            let from = edges.partition_point(|e| e.0 < class);
            for &(_, to) in edges[from..].iter().take_while(|e| e.0 == class) {
                self.reach(network, to, first, words);
            }
        }
        let here = [1 << (tip.place & 63)];
        for &(rule, to) in tables.readers(class) {
            if tip.begun[rule as usize >> 6] >> (rule & 63) & 1 == 1 {
                self.reach(network, to, tip.place as usize >> 6, &here);
            }
        }
        let accepts = self.complete_rules(tables, columns)?;
        if self.states.is_empty() && !accepts {
            return Ok(None);
        }
        Ok(Some(self.column(tables, tip.place + 1, accepts)))
    }

    /// Goes on with those who called the rules that are complete, from the latest places on. Says
    /// whether the whole text is complete.
    fn complete_rules<N: Deref<Target = Network>>(
        &mut self,
        tables: &Tables<N>,
        columns: Columns<'_>,
    ) -> Result<bool, OverBudget> {
        let network: &Network = &tables.network;
        let top = network.rule_of(network.start());
        let mut accepts = false;
        let mut at = self.stride;
        while at > 0 {
            at -= 1;
            while self.places[at] != 0 {
                let bit = 63 - self.places[at].leading_zeros();
                let mask = 1 << bit;
                let column = columns.at((at << 6) as u32 | bit);
                // A rule may be complete there by way of another that began there as well: again
                // until no more is found.
                self.places[at] &= !mask;
                let mut index = 0;
                while index < self.rules.len() {
                    let word = index * self.stride + at;
                    if self.complete[word] & !self.done[word] & mask == 0 {
                        index += 1;
                        continue;
                    }
                    self.done[word] |= mask;
                    let rule = self.rules[index];
                    accepts |= rule == top;
                    column.callers(tables, rule, |to, first, words| {
                        self.reach(network, to, first, words);
                    });
                    if self.work > self.allowance {
                        return Err(OverBudget);
                    }
                    // Another that is complete here may stand before this one.
                    index = if self.places[at] & mask != 0 { 0 } else { index + 1 };
                    self.places[at] &= !mask;
                }
            }
        }
        Ok(accepts)
    }

    /// What was reached, as a column.
    fn column<N: Deref<Target = Network>>(
        &mut self,
        tables: &Tables<N>,
        place: u32,
        accepts: bool,
    ) -> Column {
        let network: &Network = &tables.network;
        let (mut listed, mut counting) = (Vec::new(), Vec::new());
        for &state in &self.states {
            let is_listed = (state as usize) < self.row_of.len();
            if is_listed { &mut listed } else { &mut counting }.push(state);
        }
        listed.sort_unstable();
        counting.sort_unstable();
        let mut there: Vec<(u32, u32, u64)> = Vec::new();
        for (before, &state) in listed.iter().enumerate() {
            let mask = 1 << (state & 63);
            match there.last_mut() {
                Some((at, _, word)) if *at == state >> 6 => *word |= mask,
                _ => there.push((state >> 6, before as u32, mask)),
            }
        }
        let mut spans = Vec::with_capacity(self.states.len());
        let mut words = Vec::new();
        let mut begun = vec![0; network.num_rules().div_ceil(64)];
        let mut next: ClassSet = [0; 4];
        for &state in listed.iter().chain(&counting) {
            let row = match self.row_of.get(state as usize) {
                Some(&row) => row,
                None => self.counting[&state],
            };
            let row = &self.rows[row as usize * self.stride..][..self.stride];
            let first = row.iter().position(|&word| word != 0).unwrap_or(0);
            let last = row.iter().rposition(|&word| word != 0).map_or(first, |last| last + 1);
            spans.push(Span {
                at: words.len() as u32,
                first: first as u32,
                count: (last - first) as u32,
            });
            words.extend_from_slice(&row[first..last]);
            tables.begin(state, &mut begun);
            next.iter_mut().zip(network.first(state)).for_each(|(a, b)| *a |= b);
        }
        Column {
            place,
            there: there.into(),
            spans: spans.into(),
            words: words.into(),
            counting: counting.into(),
            begun: begun.into(),
            next,
            accepts,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Tree;
    use super::*;
    use crate::limits::Limits;
    use crate::network::NetworkOptions;
    use crate::recognizer::Recognizer;
    use crate::syntax::parse;

    /// Walks all texts over a few bytes up to a length: chart and stacks say the same.
    fn compare(text: &str, options: &NetworkOptions, bytes: &[u8], length: usize) -> usize {
        let grammar = parse(text, "root", &Limits::default()).expect("grammar text");
        let network = Network::new(&grammar, options).expect("network");
        let tables = Tables::new(&network);
        let mut scratch = Scratch::new(&tables);
        let mut compared = 0;
        let mut tree = Tree::default();
        let mut work = vec![(Vec::new(), tree.root(Column::start(&tables)))];
        while let Some((read, at)) = work.pop() {
            let limits = Limits::default();
            let mut stacks = Recognizer::new(&network, &limits).expect("a start");
            for &byte in &read {
                assert!(stacks.advance(byte).expect("no limit"), "{text} {read:?}");
            }
            let tip = tree.column(at);
            let next = (0..=255).filter(|&b| contains(tip.next(), network.alphabet().class(b)));
            assert_eq!(next.collect::<Vec<u8>>(), stacks.expected(), "{text} {read:?}");
            assert_eq!(tip.accepts, stacks.is_accepting(), "{text} {read:?}");
            compared += 1;
            if read.len() == length {
                continue;
            }
            for &byte in bytes {
                let class = network.alphabet().class(byte);
                let next = scratch.step(&tables, tree.columns(at), class).expect("no limit");
                assert_eq!(next.is_some(), stacks.expected().contains(&byte), "{text} {read:?}");
                if let Some(next) = next {
                    let read = [&read[..], &[byte]].concat();
                    work.push((read, tree.push(at, next)));
                }
            }
        }
        compared
    }

    #[test]
    fn a_chart_says_what_stacks_say() {
        let texts = [
            "root ::= root root | \"a\" | \"b\"",
            "root ::= root root root | root root | \"a\"",
            "root ::= \"a\" root \"a\" | \"b\" root \"b\" | \"\"",
            "root ::= x y | y x \"a\"\nx ::= \"a\" x \"b\"? | \"a\"\ny ::= x \"b\" | \"a\" y",
            "root ::= x{2,5} root?\nx ::= \"a\" | \"b\" x? \"a\"",
            "root ::= s\ns ::= n v | s p n\nn ::= \"a\" | \"b\" n | n p n\nv ::= \"a\" n? | v p n\n\
             p ::= \"b\"",
            "root ::= a a a\na ::= \"a\"* b?\nb ::= \"b\" a | \"\"",
        ];
        for text in texts {
            for (simplify, counters, inline_budget) in
                [(true, false, 20), (false, true, 0), (true, true, 0)]
            {
                let options = NetworkOptions {
                    simplify,
                    counters,
                    inline_budget,
                    ..NetworkOptions::default()
                };
                assert!(compare(text, &options, b"ab", 9) > 9);
            }
        }
    }
}
