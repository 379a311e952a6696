//! Masks made of answers that are there, for one matcher or many.

use crate::engine::history::View;
use crate::engine::mask::answers::Walker;
use crate::engine::mask::memo::{Answer, AnswerMemo};
use crate::engine::mask::stack_queries::Room;
use crate::engine::mask::walk_counters::WalkCounters;
use parking_lot::RwLockReadGuard;

/// Answers of a mask that is made while others wait for it.
const FEW: u64 = 16;
/// Answers of a mask that is made under one guard, in a millisecond or two where each is a row. One of
/// more lets others in between, and looks at the interrupt.
const SOME: u64 = 2_048;

/// Answers that are there. What masks cost is counted when it goes, so that threads do not meet at
/// the counters for each mask.
pub(crate) struct CachedAnswers<'a> {
    walker: &'a Walker,
    memo: RwLockReadGuard<'a, AnswerMemo>,
    counted: WalkCounters,
    room: Room,
    answers: Vec<Answer>,
    /// Answers that a mask may be made of.
    most: u64,
}

impl CachedAnswers<'_> {
    /// As [`Walker::mask`] where every answer is there, over whatever the bits were before, with what
    /// it cost; else `None`, and the bits are to be thrown away.
    pub(crate) fn mask(&mut self, view: View<'_>, bits: &mut [i32]) -> Option<WalkCounters> {
        let Self { walker, memo, room, most, answers, .. } = self;
        let mut counters = WalkCounters { masks: 1, ..WalkCounters::default() };
        let refused = view.refused_sets();
        // Where there are many, a few nodes are asked about instead: as many are asked before that is
        // done, and some of those beneath.
        let mut left = match view {
            View::Stacks(..) if walker.has_bounds() => walker.thresholds.cost * 2,
            _ => u64::MAX,
        };
        answers.clear();
        let walked: Result<(), ()> = view.walk(&walker.trie, room, |question, pending| {
            counters.visits += 1;
            let answer = memo.get(walker.like(question), pending).ok_or(())?;
            counters.hits += 1;
            left = left.checked_sub(memo.cost(answer)).ok_or(())?;
            if counters.hits > *most {
                return Err(());
            }
            answers.push(answer);
            Ok(answer.pending)
        });
        let is_whole = walked.is_ok() && view.refused_sets() == refused;
        if !is_whole {
            return None;
        }
        // A row that comes first is written over what was there: most masks are one row.
        match answers.split_first() {
            None => bits.fill(0),
            Some((&first, more)) => {
                memo.write(first, bits);
                more.iter().for_each(|&answer| memo.add(answer, bits));
            }
        }
        Some(counters)
    }

    /// Takes note of a mask that was used.
    pub(crate) fn count(&mut self, mask: &WalkCounters) {
        self.counted.masks += mask.masks;
        self.counted.visits += mask.visits;
        self.counted.hits += mask.hits;
    }
}

impl Drop for CachedAnswers<'_> {
    fn drop(&mut self) {
        self.walker.counts.add(&self.counted);
    }
}

impl Walker {
    /// The answers that are there, for one mask or many: meanwhile none is added.
    pub(crate) fn reading(&self) -> CachedAnswers<'_> {
        self.reading_of(self.memo.read(), SOME)
    }

    /// The same, for masks of few answers, and only while nobody adds one.
    pub(crate) fn reading_now(&self) -> Option<CachedAnswers<'_>> {
        Some(self.reading_of(self.memo.try_read()?, FEW))
    }

    fn reading_of<'a>(
        &'a self,
        memo: RwLockReadGuard<'a, AnswerMemo>,
        most: u64,
    ) -> CachedAnswers<'a> {
        let (counted, room) = (WalkCounters::default(), Room::default());
        CachedAnswers { walker: self, memo, counted, room, answers: Vec::new(), most }
    }
}

#[cfg(test)]
mod tests {
    use super::FEW;
    use crate::budget::Interrupt;
    use crate::compile::{CompileOptions, compile};
    use crate::engine::{Accept, Matcher, StopRule};
    use crate::limits::Limits;
    use crate::syntax;
    use crate::vocabulary::Vocabulary;

    /// A matcher after a letter with which so many rules may have begun, each a question of its own.
    fn matcher(rules: usize) -> Matcher {
        let names: Vec<String> = (0..rules).map(|rule| format!("r{rule}")).collect();
        // With a state that counts no bounds are made in the place of answers.
        let mut text = format!("root ::= {} | \"z\" [a-z]{{90,99}}\n", names.join(" | "));
        for name in &names {
            text += &format!("{name} ::= \"a\" {name}? \"{name}.\"\n");
        }
        let grammar = syntax::parse(&text, "root", &Limits::default()).expect("a grammar");
        let vocabulary = Vocabulary::new(b"ar1".to_vec(), vec![0, 1, 2, 3], &[], &[]);
        let vocabulary = vocabulary.expect("a vocabulary").into();
        let (options, none) = (CompileOptions::default(), Interrupt::default());
        let engine = compile(&grammar, &vocabulary, &options, &none).expect("an engine");
        let mut matcher = Matcher::new(engine, StopRule::default()).expect("a start");
        assert_eq!(matcher.accept_token(0, &Interrupt::default()), Ok(Accept::Taken));
        matcher
    }

    #[test]
    fn a_mask_of_many_answers_that_are_there_is_made_under_one_guard() {
        for rules in [3, 100, 500] {
            let matcher = matcher(rules);
            let mut first = [0];
            matcher.fill(&mut first, &Interrupt::default()).expect("a mask");
            let mut family = matcher.family.write();
            let stand = family.step(matcher.at).stand;
            let (mut again, walker) = ([-1], matcher.engine.plain());
            let made = walker.reading().mask(family.view(stand), &mut again);
            let made = made.expect("all answers are there, and not too many");
            assert_eq!(again, first, "the same mask");
            assert!(made.hits >= rules as u64, "{} answers of {rules}", made.hits);
            // Where others wait only few are read.
            let now = walker.reading_now().expect("nobody writes");
            let is_made = { now }.mask(family.view(stand), &mut again).is_some();
            assert_eq!(is_made, made.hits <= FEW);
        }
    }
}
