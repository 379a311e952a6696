//! One text on its way through a grammar of terminals and rules.

use super::super::letters::NewlineColumn;
use super::super::parser::StackLetter;
use super::super::stack::Stack;
use super::super::step::Stepped;
use super::columns::columns;
use super::decoder::{Decoder, only_asks};
use super::interpretation::Interpretation;
use super::layout::Layout;
use hashbrown::HashSet;
use std::sync::Arc;
use tokfold_core::error::{Error, Result};
use tokfold_core::vocabulary::Vocabulary;

#[derive(Clone, Debug)]
struct TextStep {
    places: Arc<[Interpretation]>,
    /// The length of the text behind the step.
    length: usize,
    is_end: bool,
}

/// The steps of one text; see [`TextMatcher::accept`].
#[derive(Clone, Debug)]
pub struct TextMatcher {
    first: TextStep,
    steps: Vec<TextStep>,
    bytes: Vec<u8>,
    /// Tokens that end the text, ascending.
    stops: Arc<[u32]>,
    /// Tokens of the vocabulary that are never text.
    silent: Arc<[u32]>,
}

impl TextMatcher {
    /// The start of a text; `silent` are the tokens that are no text besides `stops`.
    pub fn new(decoder: &Decoder, stops: Arc<[u32]>, silent: Arc<[u32]>) -> Self {
        let start = decoder.parser.table.start();
        let place = Interpretation {
            stack: Stack::new(start),
            state: decoder.start(),
            scanner: decoder.scanner(start),
            layout: Layout::start(),
        };
        let first = TextStep { places: Arc::from([place]), length: 0, is_end: false };
        Self { first, steps: Vec::new(), bytes: Vec::new(), stops, silent }
    }

    fn last(&self) -> &TextStep {
        self.steps.last().unwrap_or(&self.first)
    }

    fn now(&self) -> Result<Arc<[Interpretation]>> {
        let step = self.last();
        if step.is_end {
            return Err(Error::State(
                "the text has ended: roll back or reset before going on".into(),
            ));
        }
        Ok(step.places.clone())
    }

    /// The ways in which the text so far may be meant.
    pub fn places(&self) -> &[Interpretation] {
        &self.last().places
    }

    /// Whether the text has ended by a stop token.
    pub fn is_ended(&self) -> bool {
        self.last().is_end
    }

    /// Everything read since the start.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Steps accepted.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether no step was accepted yet.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The stop tokens in force, ascending.
    pub fn stops(&self) -> &[u32] {
        &self.stops
    }

    /// Takes back the last steps.
    ///
    /// # Errors
    /// [`Error::State`] where there are fewer; nothing has changed.
    pub fn rollback(&mut self, count: usize) -> Result<()> {
        let steps = self.steps.len();
        let Some(left) = steps.checked_sub(count) else {
            return Err(Error::State(format!(
                "{count} steps cannot be taken back: {steps} were accepted"
            )));
        };
        self.steps.truncate(left);
        let length = self.last().length;
        self.bytes.truncate(length);
        Ok(())
    }

    /// Writes which tokens may come next into the row of a bitmask.
    ///
    /// # Errors
    /// [`Error::State`] where the text has ended; [`Error::Limit`] at a bound of the parser's side.
    pub fn fill(&self, decoder: &mut Decoder, row: &mut [i32]) -> Result<()> {
        let places = self.now()?;
        let mut may_end = false;
        for (i, place) in places.iter().enumerate() {
            let (allowed, _) = decoder.allowed(place)?;
            decoder.unions.tokens.add_to_row(allowed, row, i == 0);
            may_end |= decoder.unions.tokens.has_end(allowed);
        }
        for &stop in &*self.stops {
            let word = &mut row[stop as usize / 32];
            let bit = 1 << (stop % 32);
            *word = if may_end { *word | bit } else { *word & !bit };
        }
        Ok(())
    }

    /// How many states of the stack, the top included, decide the mask of each place.
    ///
    /// # Errors
    /// As [`TextMatcher::fill`].
    pub fn depths(&self, decoder: &mut Decoder) -> Result<Vec<usize>> {
        let places = self.now()?;
        places.iter().map(|place| Ok(decoder.allowed(place)?.1 + 1)).collect()
    }

    /// Reads a token of a vocabulary; false where it cannot follow, and nothing has changed.
    ///
    /// # Errors
    /// [`Error::State`] where the text has ended; [`Error::Limit`] at a bound of the parser's side.
    pub fn accept(
        &mut self,
        decoder: &mut Decoder,
        vocabulary: &Vocabulary,
        token: u32,
    ) -> Result<bool> {
        let places = self.now()?;
        if self.stops.binary_search(&token).is_ok() {
            let may_end = self.may_end(decoder)?;
            if may_end {
                self.steps.push(TextStep { places, length: self.bytes.len(), is_end: true });
            }
            return Ok(may_end);
        }
        if self.silent.binary_search(&token).is_ok() {
            return Ok(false);
        }
        let data = vocabulary.bytes(token);
        if data.is_empty() {
            return Ok(false);
        }
        let places = advanced(decoder, &places, data)?;
        Ok(self.step(places, data))
    }

    /// Reads the bytes of some tokens as one step; as [`TextMatcher::accept`].
    ///
    /// # Errors
    /// As [`TextMatcher::accept`].
    pub fn accept_pieces(&mut self, decoder: &mut Decoder, pieces: &[&[u8]]) -> Result<bool> {
        let mut places = self.now()?;
        for piece in pieces {
            places = advanced(decoder, &places, piece)?.into();
            if places.is_empty() {
                return Ok(false);
            }
        }
        Ok(self.step(places, &pieces.concat()))
    }

    fn step(&mut self, places: impl Into<Arc<[Interpretation]>>, data: &[u8]) -> bool {
        let places = places.into();
        let is_taken = !places.is_empty();
        if is_taken {
            self.bytes.extend_from_slice(data);
            self.steps.push(TextStep { places, length: self.bytes.len(), is_end: false });
        }
        is_taken
    }

    /// Whether the text may end here.
    ///
    /// # Errors
    /// [`Error::Limit`] at a bound of the parser's side.
    pub fn may_end(&self, decoder: &mut Decoder) -> Result<bool> {
        if self.is_ended() {
            return Ok(false);
        }
        for place in self.last().places.iter() {
            let letters = decoder.end_letters(place.state, place.scanner, &place.layout);
            let Some(letters) = letters else { continue };
            if decoder.parser.read(&place.stack, &letters)?.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Where a text leads from some places; none where it cannot follow.
fn advanced(
    decoder: &mut Decoder,
    places: &[Interpretation],
    data: &[u8],
) -> Result<Vec<Interpretation>> {
    let mut found = Vec::new();
    let mut seen: HashSet<Interpretation> = HashSet::new();
    for place in places {
        let ways = decoder.ways(place.state, data);
        for way in ways.iter() {
            for after in after(decoder, place, way, data)? {
                if seen.insert(after.clone()) {
                    found.push(after);
                }
            }
        }
    }
    Ok(found)
}

/// Where a way leads: no place if the parser does not read its letters.
fn after(
    decoder: &mut Decoder,
    place: &Interpretation,
    way: &Stepped,
    data: &[u8],
) -> Result<Vec<Interpretation>> {
    if !decoder.is_in(place.scanner, way.scanners) {
        return Ok(Vec::new());
    }
    let Some(state) = way.state else { return Ok(Vec::new()) };
    let Decoder { newlines, parser, .. } = decoder;
    let Some((letters, layout)) = newlines.read(&way.letters, &place.layout, parser) else {
        return Ok(Vec::new());
    };
    let is_newline = decoder.is_newline_state(state);
    let kept = match letters.last() {
        // The newline in progress is tried, but not kept.
        Some(last) if is_newline && decoder.newlines.is_newline(last.terminal) => letters.len() - 1,
        _ => letters.len(),
    };
    let Some((stack, last_scanner)) = read(decoder, &place.stack, &letters, kept)? else {
        return Ok(Vec::new());
    };
    if is_newline {
        let is_open = |column: NewlineColumn| matches!(column, NewlineColumn::Open(_));
        let begun = way.letters.last().is_some_and(|last| is_open(last.column));
        let columns = columns(decoder, place, way, data, begun);
        let scanner = decoder.scanner(stack.top());
        let placed = columns.into_iter().map(|column| Interpretation {
            stack: stack.clone(),
            state,
            scanner,
            layout: Layout { column, ..layout.clone() },
        });
        return Ok(placed.collect());
    }
    let is_ignored = decoder.terminal(state).is_some_and(|t| decoder.newlines.is_ignored(t));
    let scanner = if is_ignored {
        decoder.scanner(stack.top())
    } else if way.letters.is_empty() {
        place.scanner
    } else {
        last_scanner
    };
    Ok(vec![Interpretation { stack, state, scanner, layout }])
}

/// Reads letters, of which those behind the first `kept` are tried but not kept.
///
/// Returns the stack, and the scanner before the last letter; `None` if the parser refuses one.
fn read(
    decoder: &Decoder,
    stack: &Stack,
    letters: &[StackLetter],
    kept: usize,
) -> Result<Option<(Stack, u32)>> {
    let mut stack = stack.clone();
    let mut scanner = decoder.scanner(stack.top());
    for (i, letter) in letters.iter().enumerate() {
        if !only_asks(letter) {
            scanner = decoder.scanner(stack.top());
        }
        let Some(after) = decoder.parser.read(&stack, std::slice::from_ref(letter))? else {
            return Ok(None);
        };
        if i < kept {
            stack = after;
        }
    }
    Ok(Some((stack, scanner)))
}
