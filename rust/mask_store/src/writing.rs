//! From what the walk has found to the ways of all tokens: terminals that have ended stand before
//! what follows them.

use super::letters::{LexerLetter, NewlineColumn, SequenceId, Sequences};
use super::sets::{ALL, EMPTY};
use super::terminals::Scanners;
use super::walk::{
    AtOnce, Configuration, LexerState, LexerWalk, NodeRecord, Onward, Store, TokenWay,
};
use hashbrown::HashMap;
use rustc_hash::FxBuildHasher;
use tokfold_core::error::Result;

impl LexerWalk<'_> {
    pub(super) fn finish(mut self) -> Result<Store> {
        let mut writing = WayWriter::default();
        // A link leads from a node to one below it, or to the same node for what is in progress
        // at the root: deeper nodes have greater numbers.
        let mut order: Vec<u32> = (0..self.records.len() as u32).collect();
        order.sort_unstable_by_key(|&r| std::cmp::Reverse(self.records[r as usize].node));
        let mut ways: Vec<Vec<TokenWay>> = vec![Vec::new(); self.records.len()];
        for &id in &order {
            let record = std::mem::take(&mut self.records[id as usize]);
            ways[id as usize] = self.ways(&record, &ways, &mut writing)?;
        }
        let mut onward = Vec::with_capacity(self.tops.len());
        let mut at_once = Vec::with_capacity(self.tops.len());
        let mut part_ids: HashMap<u32, u32, FxBuildHasher> = HashMap::default();
        part_ids.insert(0, 0);
        let mut part_records = vec![0u32];
        for (record, links) in std::mem::take(&mut self.tops) {
            onward.push(self.onward(&record, &ways, &mut writing)?);
            let parts = links.iter().map(|link| AtOnce {
                terminal: link.terminal,
                scanners: link.scanners,
                part: *part_ids.entry(link.target).or_insert_with(|| {
                    part_records.push(link.target);
                    part_records.len() as u32 - 1
                }),
            });
            at_once.push(parts.collect());
        }
        let parts = part_records.iter().map(|&r| std::mem::take(&mut ways[r as usize])).collect();
        Ok(Store {
            joints: self.joints,
            sequences: writing.sequences,
            configurations: self.configurations,
            states: writing.states,
            parts,
            onward,
            at_once,
            work: self.work,
        })
    }

    fn ways(
        &mut self,
        record: &NodeRecord,
        known: &[Vec<TokenWay>],
        writing: &mut WayWriter,
    ) -> Result<Vec<TokenWay>> {
        let mut out = Vec::new();
        for token in &record.tokens {
            let column = match self.is_newline(token.terminal) {
                true => token.column.open(),
                false => NewlineColumn::None,
            };
            let letter =
                self.joints.scanners.letter(token.terminal, token.scanners, token.ignored, column);
            let sequence = letter.map_or(0, |l| writing.sequences.single(l));
            let state = writing.state(token.configuration, token.terminal);
            let numbers = self.trie.numbers(token.node);
            out.extend(numbers.iter().map(|&token| TokenWay { sequence, token, state }));
        }
        self.spend(out.len() as u64)?;
        for link in &record.links {
            let below = &known[link.target as usize];
            self.spend(below.len() as u64)?;
            let letter = self.joints.scanners.letter(
                link.terminal,
                link.scanners,
                link.ignored,
                link.column,
            );
            match letter {
                None => out.extend_from_slice(below),
                Some(letter) => {
                    for way in below {
                        let made = writing.joined(
                            &mut self.joints.scanners,
                            letter,
                            way.sequence,
                            link.ignored,
                        );
                        out.extend(made.map(|sequence| TokenWay { sequence, ..*way }));
                    }
                }
            }
        }
        out.sort_unstable();
        out.dedup();
        Ok(out)
    }

    fn onward(
        &mut self,
        record: &NodeRecord,
        known: &[Vec<TokenWay>],
        writing: &mut WayWriter,
    ) -> Result<Vec<Onward>> {
        let mut out = Vec::new();
        for token in &record.tokens {
            let state = writing.state(token.configuration, token.terminal);
            for &number in self.trie.numbers(token.node) {
                let way = TokenWay { sequence: 0, token: number, state };
                out.push(Onward { terminal: token.terminal, scanners: token.scanners, way });
            }
        }
        self.spend(out.len() as u64)?;
        for link in &record.links {
            let below = &known[link.target as usize];
            self.spend(below.len() as u64)?;
            // The column of what was in progress stands in a letter without scanners: it does not
            // begin here.
            let (terminal, column) = (link.terminal, link.column);
            let letter = LexerLetter { terminal, scanners: EMPTY, column };
            for way in below {
                let scanners = &mut self.joints.scanners;
                let made = match column {
                    NewlineColumn::None => {
                        writing.restricted(scanners, terminal, way.sequence, link.ignored)
                    }
                    _ => writing.joined(scanners, letter, way.sequence, link.ignored),
                };
                out.extend(made.map(|sequence| Onward {
                    terminal,
                    scanners: link.scanners,
                    way: TokenWay { sequence, ..*way },
                }));
            }
        }
        out.sort_unstable();
        out.dedup();
        Ok(out)
    }
}

/// Sequences and states as they are met.
#[derive(Default)]
struct WayWriter {
    sequences: Sequences,
    restricted: HashMap<(u32, SequenceId), Option<SequenceId>, FxBuildHasher>,
    states: Vec<(Configuration, u32)>,
    known: HashMap<(Configuration, u32), LexerState, FxBuildHasher>,
}

impl WayWriter {
    fn state(&mut self, configuration: Configuration, terminal: u32) -> LexerState {
        *self.known.entry((configuration, terminal)).or_insert_with(|| {
            self.states.push((configuration, terminal));
            self.states.len() as LexerState - 1
        })
    }

    /// A letter and what comes behind it; none where no parser can read both.
    fn joined(
        &mut self,
        scanners: &mut Scanners,
        letter: LexerLetter,
        behind: SequenceId,
        ignored: bool,
    ) -> Option<SequenceId> {
        let behind = self.restricted(scanners, letter.terminal, behind, ignored)?;
        let letter = self.sequences.letter(letter);
        Some(self.sequences.prefixed(letter, behind))
    }

    /// What comes behind a terminal: its first letter only in the scanners that the parser can be
    /// in then.
    fn restricted(
        &mut self,
        scanners: &mut Scanners,
        terminal: u32,
        behind: SequenceId,
        ignored: bool,
    ) -> Option<SequenceId> {
        let after = scanners.after[terminal as usize];
        // An ignored terminal leaves the parser where it was.
        let Some((letter, rest)) =
            self.sequences.first(behind).filter(|_| !ignored && after != ALL)
        else {
            return Some(behind);
        };
        if let Some(&known) = self.restricted.get(&(terminal, behind)) {
            return known;
        }
        let able = scanners.sets.and(after, scanners.having[letter.terminal as usize]);
        let found = scanners.sets.and(able, letter.scanners);
        let made = (found != EMPTY).then(|| {
            let set = if found == able { ALL } else { found };
            let letter = self.sequences.letter(LexerLetter { scanners: set, ..letter });
            self.sequences.prefixed(letter, rest)
        });
        self.restricted.insert((terminal, behind), made);
        made
    }
}
