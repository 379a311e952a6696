//! Where the tokens of a vocabulary lead in the displacement automaton: one depth-first walk of their trie.
//!
//! Most of a vocabulary is read by a loop: letters by that of a string, a name or a comment. Where all bytes below a
//! node lead from a state back to it, all tokens below are of one class, and the walk does not look at them
//! ([`Folding::stays`]).

use super::canonical::Canonical;
use super::displacement::{AutomatonSize, DEAD, DisplacementAutomaton, DisplacementId};
use crate::budget::{Halt, Interrupt};
use crate::limits::Limits;
use crate::network::{ClassSet, Network, insert, members};
use crate::vocabulary::{
    BROKEN, Groups, NUM_GROUPS, TEXT, Trie, Vocabulary, group, reads_characters,
};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// Steps between two reports of progress.
const REPORT_EVERY: u32 = 512;
/// Work units between two reports of progress.
const REPORT_WORK: u64 = 500_000;
/// A state is asked whether it reads all that is below a node if these are so many tokens.
const FEW_TOKENS: usize = 4;

/// Where a token's bytes lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TokenTarget {
    State(DisplacementId),
    /// Its budget was spent at the node of the trie that this token was the first to reach.
    OverBudget,
}

/// Tokens that stand side by side and lead to one target.
#[derive(Clone, Debug)]
pub(super) struct Run {
    /// The entries of the trie, or the places among ids.
    pub(super) entries: Range<u32>,
    pub(super) end: TokenTarget,
}

impl Run {
    /// The entries, to index a slice with.
    pub(super) fn places(&self) -> Range<usize> {
        self.entries.start as usize..self.entries.end as usize
    }
}

/// A vocabulary being folded.
pub(super) struct Folding<'a> {
    network: &'a Network,
    automaton: DisplacementAutomaton<'a>,
    /// Tokens of more bytes are classes of their own.
    longest: usize,
    /// If members come in any order, sets of bytes ([`crate::grammar::Grammar::bytes_of_members`]), and their groups:
    /// tokens with all bytes of one are classes of their own.
    of_members: Vec<(Groups, Vec<u8>)>,
    /// Work units of one token, and of all.
    token_work: u64,
    total_work: u64,
    /// The classes of bytes in each group.
    classes: [ClassSet; NUM_GROUPS],
    /// For each state the groups of bytes that lead back to it, and those of which that is known.
    stays: FxHashMap<DisplacementId, (Groups, Groups)>,
}

/// A node of the way to where the walk is.
struct OnPath {
    end: u32,
    state: DisplacementId,
    /// The groups of the bytes up to there.
    groups: Groups,
}

impl<'a> Folding<'a> {
    /// With an automaton of a network. Tokens longer than `longest_view` are not looked at if bounds of the network
    /// are cut.
    pub(super) fn new(
        network: &'a Network,
        automaton: DisplacementAutomaton<'a>,
        longest_view: usize,
        of_members: Vec<Vec<u8>>,
        limits: &Limits,
    ) -> Self {
        let groups = |bytes: &[u8]| bytes.iter().fold(0, |groups, &byte| groups | group(byte));
        let with_groups = |bytes: Vec<u8>| (groups(&bytes), bytes);
        let mut classes: [ClassSet; NUM_GROUPS] = [[0; 4]; NUM_GROUPS];
        for byte in 0..0x80 {
            let of_group = &mut classes[group(byte).trailing_zeros() as usize];
            insert(of_group, network.alphabet().class(byte));
        }
        Self {
            network,
            automaton,
            longest: if network.has_cuts() { longest_view } else { usize::MAX },
            of_members: of_members.into_iter().map(with_groups).collect(),
            token_work: limits.token_work(network.len()),
            total_work: limits.total_work(network.len()),
            classes,
            stays: FxHashMap::default(),
        }
    }

    /// How large the automaton has become.
    pub(super) fn size(&self) -> AutomatonSize {
        self.automaton.size()
    }

    /// From here on one token may take its work.
    fn allow(&mut self) {
        self.automaton.allow(self.token_work, self.total_work);
    }

    /// Where the textual tokens lead.
    ///
    /// # Errors
    /// Those of the interrupt.
    pub(super) fn walk(
        &mut self,
        vocabulary: &Vocabulary,
        interrupt: &Interrupt,
    ) -> Result<Vec<Run>, Halt> {
        let trie = vocabulary.trie();
        let alphabet = self.network.alphabet();
        let total = vocabulary.order().len();
        let mut runs = Runs::default();
        let mut reported = (0, self.automaton.work());
        let root = OnPath { end: trie.end(0), state: self.automaton.start(), groups: 0 };
        let mut path = vec![root];
        let (mut node, mut steps, mut is_new_token) = (1, 0u32, true);
        while node < trie.end(0) {
            while path[path.len() - 1].end <= node {
                path.pop();
            }
            let OnPath { state, groups, .. } = path[path.len() - 1];
            steps += 1;
            if steps - reported.0 > REPORT_EVERY || self.automaton.work() > reported.1 + REPORT_WORK
            {
                reported = (steps, self.automaton.work());
                interrupt.progress(trie.entries_of(node..node + 1).start as usize, total)?;
            }
            if is_new_token {
                self.allow();
                is_new_token = false;
            }
            let past = trie.end(node);
            let end = target_of(self.automaton.next(state, alphabet.class(trie.byte(node))))?;
            let state = match end {
                TokenTarget::State(state) if state != DEAD => state,
                _ => {
                    runs.push(trie.entries_of(node..past), end);
                    (node, is_new_token) = (past, true);
                    continue;
                }
            };
            let groups = match self.of_members.is_empty() {
                true => 0,
                false => groups | group(trie.byte(node)),
            };
            let own = trie.entries_of(node..node + 1);
            let below = trie.entries_of(node + 1..past);
            is_new_token |= !own.is_empty();
            self.push(&mut runs, vocabulary, (own, end), groups);
            if path.len() == self.longest {
                // What follows is out of view.
                runs.push(below, TokenTarget::OverBudget);
                (node, is_new_token) = (past, true);
            } else if below.len() >= FEW_TOKENS && self.stays(state, trie, node)? {
                self.push(&mut runs, vocabulary, (below, end), groups | trie.groups_below(node));
                (node, is_new_token) = (past, true);
            } else {
                is_new_token |= below.len() >= FEW_TOKENS;
                path.push(OnPath { end: past, state, groups });
                node += 1;
            }
        }
        interrupt.progress(total, total)?;
        Ok(runs.0)
    }

    /// Adds tokens whose bytes are of some groups, but for those that may hold a whole member of an object whose
    /// members come in any order, or end one such object and begin another: of the members that were read then
    /// their stacks may say nothing.
    fn push(
        &self,
        runs: &mut Runs,
        vocabulary: &Vocabulary,
        (entries, end): (Range<u32>, TokenTarget),
        groups: Groups,
    ) {
        if self.of_members.iter().all(|(needed, _)| needed & !groups != 0) {
            return runs.push(entries, end);
        }
        for entry in entries {
            let token = vocabulary.bytes(vocabulary.order()[entry as usize]);
            let has_all = |bytes: &[u8]| bytes.iter().all(|byte| token.contains(byte));
            let is_apart = self.of_members.iter().any(|(_, bytes)| has_all(bytes));
            let end = if is_apart { TokenTarget::OverBudget } else { end };
            runs.push(entry..entry + 1, end);
        }
    }

    /// Whether all that is below a node leads from a state back to it, and none of it is out of view.
    fn stays(&mut self, state: DisplacementId, trie: &Trie, node: u32) -> Result<bool, Halt> {
        let below = trie.groups_below(node);
        let is_out_of_view = trie.longest_below(node) as usize > self.longest;
        let has_text = below & (TEXT | BROKEN) != 0;
        if is_out_of_view || has_text && !trie.has_characters_below(node) {
            return Ok(false);
        }
        let (mut stays, mut known) = self.stays.get(&state).copied().unwrap_or_default();
        let mut unknown = below & !known;
        if unknown == 0 {
            return Ok(below & !stays == 0);
        }
        self.allow();
        while unknown != 0 && below & known & !stays == 0 {
            let bit = unknown & unknown.wrapping_neg();
            let is_back = match bit & TEXT != 0 {
                true => self.reads_characters(state, bit)?,
                false => self.loops(state, bit)?,
            };
            known |= bit;
            stays |= if is_back { bit } else { 0 };
            unknown &= !bit;
        }
        self.stays.insert(state, (stays, known));
        Ok(below & !stays == 0)
    }

    /// Whether all bytes of a group lead from a state back to it.
    fn loops(&mut self, state: DisplacementId, bit: Groups) -> Result<bool, Halt> {
        let classes = self.classes[bit.trailing_zeros() as usize];
        for class in members(&classes) {
            if target_of(self.automaton.next(state, class))? != TokenTarget::State(state) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether all characters past ASCII of some groups lead from a state back to it.
    fn reads_characters(&mut self, state: DisplacementId, groups: Groups) -> Result<bool, Halt> {
        let alphabet = self.network.alphabet();
        let class = |byte| alphabet.class(byte);
        reads_characters((state, groups), class, |before, class, ends| {
            let end = target_of(self.automaton.next(before, class))?;
            Ok(match end {
                TokenTarget::State(after) if after != DEAD && (!ends || after == state) => {
                    Some(after)
                }
                _ => None,
            })
        })
    }

    /// Where the letter that is no byte and then these ids lead, which are sorted: their four bytes.
    ///
    /// # Errors
    /// Those of the interrupt.
    pub(super) fn walk_ids(
        &mut self,
        ids: &[u32],
        interrupt: &Interrupt,
    ) -> Result<Vec<Run>, Halt> {
        let mut runs = Runs::default();
        let Some(escape) = self.network.alphabet().escape() else { return Ok(runs.0) };
        self.allow();
        let start = target_of(self.automaton.next(self.automaton.start(), escape))?;
        // Ids with a beginning in common, how many of their bytes are read, and where these lead; the last come first.
        let mut work = vec![(0..ids.len(), 0, start)];
        let mut steps = 0u32;
        while let Some((places, read, target)) = work.pop() {
            let state = match target {
                TokenTarget::State(state) if state != DEAD && read < 4 => state,
                _ => {
                    runs.push(places.start as u32..places.end as u32, target);
                    continue;
                }
            };
            let byte_of = |id: u32| id.to_be_bytes()[read];
            let mut first = places.start;
            let from = work.len();
            for same in ids[places].chunk_by(|&a, &b| byte_of(a) == byte_of(b)) {
                steps += 1;
                if steps.is_multiple_of(REPORT_EVERY) {
                    interrupt.check()?;
                }
                self.allow();
                let class = self.network.alphabet().class(byte_of(same[0]));
                let next = target_of(self.automaton.next(state, class))?;
                work.push((first..first + same.len(), read + 1, next));
                first += same.len();
            }
            work[from..].reverse();
        }
        Ok(runs.0)
    }

    /// Replaces the states where tokens end by canonical ones. One that takes too much work stays as
    /// it is: its tokens then stay apart from others that do the same, which is sound.
    ///
    /// # Errors
    /// Those of the interrupt.
    pub(super) fn canonicalize(&mut self, runs: &mut [Run]) -> Result<(), Halt> {
        let mut canonical = Canonical::default();
        for run in runs {
            if let TokenTarget::State(state) = &mut run.end {
                self.allow();
                match canonical.of(&mut self.automaton, *state) {
                    Ok(same) => *state = same,
                    Err(halt) if halt.is_interrupt() => return Err(halt),
                    Err(_) => {}
                }
            }
        }
        Ok(())
    }
}

/// Runs in order, of which none is empty.
#[derive(Default)]
struct Runs(Vec<Run>);

impl Runs {
    fn push(&mut self, entries: Range<u32>, end: TokenTarget) {
        match self.0.last_mut() {
            _ if entries.is_empty() => {}
            Some(last) if last.end == end => last.entries.end = entries.end,
            _ => self.0.push(Run { entries, end }),
        }
    }
}

/// The target of a step: a state, or over budget; an interrupt is passed on.
fn target_of(next: Result<DisplacementId, Halt>) -> Result<TokenTarget, Halt> {
    match next {
        Ok(state) => Ok(TokenTarget::State(state)),
        Err(halt) if halt.is_interrupt() => Err(halt),
        Err(_) => Ok(TokenTarget::OverBudget),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::Budget;
    use crate::grammar::Grammar;
    use crate::network::{Adjacency, NetworkOptions};
    use crate::syntax::parse;
    use proptest::prelude::*;

    /// Grammars with loops over letters, over some of them, over characters past ASCII, and over bytes of these alone.
    const GRAMMARS: [&str; 8] = [
        r#"root ::= "\"" [^"\\\x00-\x1f]* "\"""#,
        r#"root ::= "\"" ([^"\\] | "\\" ["\\n])* "\"" | "<" root ">""#,
        r#"root ::= name ("," root)?
name ::= [a-c] [a-cé]* | "ab" "," name | "é" "b"+"#,
        r#"root ::= [a-f]+ | "ab" root "b""#,
        r#"root ::= ([^é] | "éa")+"#,
        r#"root ::= "a" [\u0080-\U0010FFFF]* root? | "b" [\u0000-\U0010FFFF]{2,60} "c""#,
        r#"root ::= ([^<é] | "<" [^a<é] | "<a" [^>]* ">")*"#,
        r#"root ::= "{" ("\"" [^"]* "\":" root)? "}" | "[" root* "]""#,
    ];
    /// What tokens are made of, whole characters and beginnings of some.
    const PARTS: [&[u8]; 14] = [
        b"a",
        b"b",
        b"c",
        b"f",
        b"\"",
        b"\\",
        b",",
        b"<",
        b">",
        b"{\"",
        b"\":",
        "é".as_bytes(),
        "語".as_bytes(),
        "é".as_bytes().split_at(1).0,
    ];

    /// Where the bytes of a token lead, step by step.
    fn target(folding: &mut Folding<'_>, token: &[u8]) -> TokenTarget {
        let mut state = folding.automaton.start();
        for (read, &byte) in token.iter().enumerate() {
            if read == folding.longest {
                return TokenTarget::OverBudget;
            }
            let class = folding.network.alphabet().class(byte);
            state = folding.automaton.next(state, class).expect("work enough");
            if state == DEAD {
                return TokenTarget::State(DEAD);
            }
        }
        TokenTarget::State(state)
    }

    proptest! {
        #[test]
        fn runs_say_where_each_token_leads(
            which in 0..GRAMMARS.len(),
            tokens in prop::collection::vec(prop::collection::vec(0..PARTS.len(), 1..5), 1..300),
            longest in prop_oneof![Just(usize::MAX), 1..6usize],
        ) {
            let tokens: Vec<Vec<u8>> =
                tokens.iter().map(|parts| parts.iter().flat_map(|&part| PARTS[part]).copied().collect()).collect();
            let (mut blob, mut offsets) = (Vec::new(), vec![0]);
            for token in &tokens {
                blob.extend_from_slice(token);
                offsets.push(blob.len() as u32);
            }
            let vocabulary = Vocabulary::new(blob, offsets, &[], &[]).expect("sound parts");
            let (limits, interrupt) = (Limits::default(), Interrupt::default());
            let grammar: Grammar = parse(GRAMMARS[which], "root", &limits).expect("well-formed");
            let work = Budget::new(&limits, &interrupt);
            let network = Network::make(&grammar, &NetworkOptions::default(), &work).expect("small");
            let adjacency = Adjacency::make(&network, usize::MAX, &work).expect("small");
            let automaton =
                DisplacementAutomaton::new(&network, &adjacency, false, &limits, &interrupt).expect("small");
            let mut folding = Folding::new(&network, automaton, usize::MAX, Vec::new(), &limits);
            folding.longest = longest;
            let runs = folding.walk(&vocabulary, &interrupt).expect("no interrupt");
            prop_assert_eq!(runs.first().map(|run| run.entries.start), Some(0));
            prop_assert!(runs.windows(2).all(|pair| pair[0].entries.end == pair[1].entries.start));
            prop_assert_eq!(runs.last().map(|run| run.entries.end), Some(tokens.len() as u32));
            folding.allow();
            for run in runs {
                for &id in &vocabulary.order()[run.places()] {
                    let token = vocabulary.bytes(id);
                    prop_assert_eq!(run.end, target(&mut folding, token), "{:?}", token);
                }
            }
        }
    }
}
