//! From the letters of a token to terminals for the parser: what the post-lexer makes of newlines.
//!
//! As `lark.indenter.Indenter` does it: inside of parentheses a newline is dropped, outside it is
//! followed by indents and dedents, as its column compares with those of the lines that the text
//! stands in.

use super::super::letters::{LexerLetter, NewlineColumn};
use super::super::parser::{ANY_TOP, NOTHING_READ, StackLanguages, StackLetter, Tops};
use super::super::sets::{EMPTY, ScannerSetId};
use std::sync::Arc;

/// What the post-lexer remembers, and the newline terminal in progress.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Layout {
    /// Parentheses that are open.
    pub parens: u32,
    /// Columns of the lines that the text stands in, ascending.
    pub columns: Arc<[u32]>,
    /// That of the newline terminal in progress; `None` if it has no line feed yet, or if none is
    /// in progress.
    pub column: Option<u32>,
}

impl Layout {
    /// For rows that do not ask for the layout: never short of parentheses to close.
    pub(super) fn anywhere() -> Self {
        Self { parens: u32::MAX / 2, ..Self::start() }
    }

    /// The layout at the start of a text.
    pub fn start() -> Self {
        Self { parens: 0, columns: Arc::from([0]), column: None }
    }
}

/// What the post-lexer of a grammar does.
#[derive(Clone, Debug)]
pub struct Indentation {
    /// The newline terminal.
    pub newline: u32,
    /// The terminals of the indentation; `None` for one that no rule mentions.
    pub indent: Option<u32>,
    /// As `indent`.
    pub dedent: Option<u32>,
    /// Terminals that open parentheses.
    pub opens: Vec<u32>,
    /// Terminals that close them.
    pub closes: Vec<u32>,
    /// Columns of a tab.
    pub tab: u32,
    /// Whether each production alone closes what it opens, and nothing else.
    pub is_balanced: bool,
}

/// Letters of the lexer as letters for the parser, for one grammar.
#[derive(Clone, Debug)]
pub(super) struct NewlineRules {
    ignored: Vec<bool>,
    /// For each set of scanners the states of the parser that have one of them.
    tops: Vec<Tops>,
    nowhere: Tops,
    pub(super) indentation: Option<Indentation>,
}

/// What the parser reads, and the layout behind it (its column is not kept up).
pub(super) type LettersRead = (Vec<StackLetter>, Layout);

impl NewlineRules {
    pub(super) fn new(
        ignored: Vec<bool>,
        indentation: Option<Indentation>,
        parser: &mut StackLanguages,
    ) -> Self {
        // The parser refuses a terminal that no rule mentions.
        let nowhere = parser.tops(std::iter::empty());
        Self { ignored, tops: Vec::new(), nowhere, indentation }
    }

    /// Takes up sets of scanners, given as words of 64, that are not known yet.
    pub(super) fn learn(
        &mut self,
        sets: &[Box<[u64]>],
        scanner_of_state: &[u32],
        parser: &mut StackLanguages,
    ) {
        for set in &sets[self.tops.len()..] {
            let has = |scanner: u32| set[scanner as usize / 64] >> (scanner % 64) & 1 == 1;
            let tops = if scanner_of_state.iter().all(|&scanner| has(scanner)) {
                ANY_TOP
            } else {
                let states = scanner_of_state.iter().enumerate();
                parser.tops(states.filter(|&(_, &s)| has(s)).map(|(state, _)| state as u32))
            };
            self.tops.push(tops);
        }
    }

    pub(super) fn is_newline(&self, terminal: u32) -> bool {
        self.indentation.as_ref().is_some_and(|rules| rules.newline == terminal)
    }

    pub(super) fn is_balanced(&self) -> bool {
        self.indentation.as_ref().is_none_or(|rules| rules.is_balanced)
    }

    pub(super) fn is_ignored(&self, terminal: u32) -> bool {
        self.ignored[terminal as usize]
    }

    /// Whether what the letters are for the parser depends on the layout.
    ///
    /// A parenthesis that closes none is an error of the post-lexer, but where the rules keep
    /// parentheses in balance the parser has refused it before.
    pub(super) fn asks(&self, letters: &[LexerLetter]) -> bool {
        self.indentation.as_ref().is_some_and(|rules| {
            letters.iter().any(|letter| {
                letter.terminal == rules.newline
                    || !rules.is_balanced && rules.closes.contains(&letter.terminal)
            })
        })
    }

    /// How many parentheses the letters close.
    pub(super) fn closes(&self, letters: &[LexerLetter]) -> u32 {
        self.indentation.as_ref().map_or(0, |rules| {
            letters.iter().filter(|letter| rules.closes.contains(&letter.terminal)).count() as u32
        })
    }

    /// What the parser reads; `None` where the post-lexer fails, whatever the parser says.
    ///
    /// A newline terminal that is still in progress counts as one for the parser outside of
    /// parentheses, and leaves the layout as it is.
    pub(super) fn read(
        &self,
        letters: &[LexerLetter],
        layout: &Layout,
        parser: &mut StackLanguages,
    ) -> Option<LettersRead> {
        let mut out = StackLetters { letters: Vec::with_capacity(letters.len()), parser };
        let mut parens = layout.parens;
        let mut columns: Option<Vec<u32>> = None;
        for letter in letters {
            // The empty set of scanners: the letter does not begin here.
            let tops = self.tops_of(letter.scanners);
            let terminal = letter.terminal;
            let Some(rules) = &self.indentation else {
                self.plain(terminal, tops, &mut out);
                continue;
            };
            if terminal == rules.newline {
                if parens > 0 {
                    out.check(tops);
                    continue;
                }
                let at = match letter.column {
                    NewlineColumn::Missing => return None,
                    NewlineColumn::None | NewlineColumn::Open(_) => {
                        out.push(StackLetter { terminal, tops });
                        continue;
                    }
                    NewlineColumn::At(at) => at,
                    NewlineColumn::After(by) => layout.column?.saturating_add(by),
                };
                out.push(StackLetter { terminal, tops });
                let columns = columns.get_or_insert_with(|| layout.columns.to_vec());
                if columns.last().is_none_or(|&last| at > last) {
                    columns.push(at);
                    out.push(self.tabulated(rules.indent));
                }
                while columns.last().is_some_and(|&last| at < last) {
                    columns.pop();
                    out.push(self.tabulated(rules.dedent));
                }
                if columns.last() != Some(&at) {
                    return None;
                }
                continue;
            }
            self.plain(terminal, tops, &mut out);
            if self.ignored[terminal as usize] {
                continue;
            }
            if rules.opens.contains(&terminal) {
                parens += 1;
            } else if rules.closes.contains(&terminal) {
                parens = parens.checked_sub(1)?;
            }
        }
        let columns = columns.map_or_else(|| layout.columns.clone(), Arc::from);
        Some((out.letters, Layout { parens, columns, column: None }))
    }

    fn plain(&self, terminal: u32, tops: Tops, out: &mut StackLetters<'_>) {
        match self.ignored[terminal as usize] {
            true => out.check(tops),
            false => out.push(StackLetter { terminal, tops }),
        }
    }

    fn tops_of(&self, scanners: ScannerSetId) -> Tops {
        match scanners {
            EMPTY => ANY_TOP,
            set => self.tops[set as usize],
        }
    }

    /// An indent or a dedent.
    fn tabulated(&self, terminal: Option<u32>) -> StackLetter {
        match terminal {
            Some(terminal) => StackLetter { terminal, tops: ANY_TOP },
            None => StackLetter { terminal: NOTHING_READ, tops: self.nowhere },
        }
    }

    /// What the post-lexer adds where the text ends.
    pub(super) fn end(&self, layout: &Layout) -> Vec<StackLetter> {
        match &self.indentation {
            None => Vec::new(),
            Some(rules) => vec![self.tabulated(rules.dedent); layout.columns.len() - 1],
        }
    }
}

/// Letters for the parser; what is only asked of a top stands with the letter behind it.
struct StackLetters<'a> {
    letters: Vec<StackLetter>,
    parser: &'a mut StackLanguages,
}

impl StackLetters<'_> {
    /// Asks for the top of the stack without reading.
    fn check(&mut self, tops: Tops) {
        if tops != ANY_TOP {
            self.push(StackLetter { terminal: NOTHING_READ, tops });
        }
    }

    /// A letter together with what was asked of the same top before it.
    fn push(&mut self, letter: StackLetter) {
        match self.letters.last_mut() {
            Some(last) if last.terminal == NOTHING_READ => {
                let tops = self.parser.common_tops(last.tops, letter.tops);
                *last = StackLetter { terminal: letter.terminal, tops };
            }
            _ => self.letters.push(letter),
        }
    }
}
