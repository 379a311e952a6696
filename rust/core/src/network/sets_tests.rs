//! Rules with guards against the sets written out.

use super::{Network, NetworkOptions, NetworkPart};
use crate::budget::{Budget, Interrupt};
use crate::error::{Position, Result};
use crate::grammar::{ByteAutomaton, Expr, Grammar, GrammarBuilder, Guard, Rule, RuleOptions};
use crate::ids::{ExprId, RuleId};
use crate::limits::Limits;
use crate::recognizer::Recognizer;
use proptest::prelude::*;
use std::collections::BTreeSet;

/// A word of few members: `(` first, members between commas, `)` at the end.
///
/// Member `m` is the letter `a + m`; in each phase it stays or leads to the other phase. Only members of
/// `moving` lead on, so that which phase it is follows from what was read.
#[derive(Clone, Debug)]
struct Words {
    members: u32,
    required: BTreeSet<u32>,
    moving: BTreeSet<u32>,
    /// Whether a letter that is no member may stand anywhere, any number of times.
    has_others: bool,
    /// Members that are there in the second phase only.
    late: BTreeSet<u32>,
}

const START: usize = 0;
const END: usize = 1;

impl Words {
    /// The state before a member of a phase, and the one behind.
    fn states(phase: u32) -> (u32, u32) {
        (2 + 2 * phase, 3 + 2 * phase)
    }

    /// Members, by letter, that a phase has: the phase that each leads to.
    fn edges(&self, phase: u32) -> impl Iterator<Item = (u32, u32)> + '_ {
        let there = (0..self.members).filter(move |m| phase == 1 || !self.late.contains(m));
        there.map(move |m| (m, if self.moving.contains(&m) { 1 } else { phase }))
    }

    /// Whether a first member can be read, and late ones that are required: something leads to the second
    /// phase.
    fn is_sound(&self) -> bool {
        let begins = self.has_others || self.edges(0).next().is_some();
        let leads_on = self.moving.iter().any(|m| *m < self.members && !self.late.contains(m));
        let asks_late = self.required.iter().any(|m| self.late.contains(m));
        begins && (leads_on || !asks_late)
    }

    fn grammar(&self) -> Grammar {
        let here = Position::default();
        let mut builder = GrammarBuilder::new();
        let mut rules: Vec<(ExprId, String)> = Vec::new();
        let root = builder.add(Expr::Rule(RuleId::new(1)), here);
        rules.push((root, "root".into()));
        rules.push((root, "words".into()));
        let mut call = |builder: &mut GrammarBuilder, text: &str| {
            let body = builder.add(Expr::Literal(text.as_bytes().into()), here);
            let rule = RuleId::new(rules.len());
            rules.push((body, format!("r{}", rules.len())));
            (rule, builder.add(Expr::Rule(rule), here))
        };
        let mut parts = Vec::new();
        let mut guards = Vec::new();
        let open = call(&mut builder, "(").1;
        let comma = call(&mut builder, ",").1;
        let other = call(&mut builder, "z").1;
        let close = call(&mut builder, ")");
        guards.push((close.0, Guard::Needs(self.required.iter().copied().collect())));
        let letters: Vec<(RuleId, ExprId)> = (0..self.members)
            .map(|m| call(&mut builder, &char::from(b'a' + m as u8).to_string()))
            .collect();
        guards.extend(letters.iter().zip(0..).map(|(letter, m)| (letter.0, Guard::Adds(m))));
        parts.push((START as u32, open, Self::states(0).0));
        for phase in 0..2 {
            let (before, behind) = Self::states(phase);
            parts.push((behind, comma, before));
            parts.push((behind, close.1, END as u32));
            if self.has_others {
                parts.push((before, other, behind));
            }
            for (member, to) in self.edges(phase) {
                parts.push((before, letters[member as usize].1, Self::states(to).1));
            }
        }
        parts.sort_unstable_by_key(|&(from, part, to)| (part, from, to));
        let mut finals = [false; 6];
        finals[END] = true;
        let automaton = ByteAutomaton {
            start: START as u32,
            finals: finals.into(),
            parts: parts.into(),
            guards: guards.into(),
            ..ByteAutomaton::default()
        };
        let words = builder.add(Expr::Automaton(automaton), here);
        rules[1].0 = words;
        let rule = |(body, name): (ExprId, String)| Rule {
            name,
            options: RuleOptions::default(),
            body,
            lookahead: None,
            is_common: false,
            position: here,
        };
        builder.finish(rules.into_iter().map(rule).collect(), RuleId::new(0))
    }

    /// All words of at most so many members, the obvious way.
    fn all(&self, most: usize) -> BTreeSet<String> {
        let mut out = BTreeSet::new();
        let mut work = vec![(String::from("("), 0, 0, BTreeSet::new())];
        while let Some((text, phase, count, read)) = work.pop() {
            if count == most {
                continue;
            }
            let text = if count == 0 { text } else { text + "," };
            let mut next = |letter: char, phase: u32, read: BTreeSet<u32>| {
                let text = format!("{text}{letter}");
                if self.required.is_subset(&read) {
                    out.insert(format!("{text})"));
                }
                work.push((text, phase, count + 1, read));
            };
            if self.has_others {
                next('z', phase, read.clone());
            }
            for (member, to) in self.edges(phase).filter(|edge| !read.contains(&edge.0)) {
                let mut read = read.clone();
                read.insert(member);
                next(char::from(b'a' + member as u8), to, read);
            }
        }
        out
    }
}

/// The network of a grammar as a part that is linked.
fn linked(grammar: &Grammar, options: &NetworkOptions) -> Result<Network> {
    let work = Budget::new(&options.limits, &Interrupt::default());
    NetworkPart::of_frame(grammar, &[], options, &work)?.link(&options.limits, &work)
}

fn words() -> impl Strategy<Value = Words> {
    let subset = || proptest::collection::btree_set(0u32..4, 0..4);
    let parts = (1u32..5, subset(), subset(), any::<bool>(), subset());
    parts.prop_map(|(members, required, moving, has_others, late)| {
        let within = |set: BTreeSet<u32>| set.into_iter().filter(|m| *m < members).collect();
        let (required, moving, late) = (within(required), within(moving), within(late));
        Words { members, required, moving, has_others, late }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn a_rule_with_guards_has_the_words_whose_members_come_once(words in words()) {
        prop_assume!(words.is_sound());
        let most = 5;
        let all = words.all(most);
        let limits = Limits::default();
        let grammar = words.grammar();
        for (simplify, is_linked) in [(false, false), (true, false), (true, true)] {
            let options = NetworkOptions { simplify, counters: true, ..NetworkOptions::default() };
            let network = match is_linked {
                false => Network::new(&grammar, &options),
                true => linked(&grammar, &options),
            };
            let network = network.expect("within bounds");
            // Every text of these letters, as far as it can be read.
            let mut texts = vec![String::new()];
            let mut read = 0;
            while let Some(text) = texts.pop() {
                let interrupt = Interrupt::default();
                let mut recognizer =
                    Recognizer::new(&network, &limits, &interrupt).expect("within bounds");
                let mut is_read = true;
                for byte in text.bytes() {
                    is_read &= recognizer.advance(byte).expect("within bounds");
                }
                let members = text.bytes().filter(|b| b.is_ascii_lowercase()).count();
                if members < most {
                    // A beginning of a word, which has few members more.
                    let goes_on = all.iter().any(|word| word.starts_with(&text));
                    prop_assert!(is_read || !goes_on, "{text} is a beginning");
                    prop_assert_eq!(is_read && recognizer.is_accepting(), all.contains(&text));
                    let may_be_longer = words.has_others || words.members as usize > most;
                    prop_assert!(!is_read || goes_on || may_be_longer, "{text} leads nowhere");
                }
                if is_read && members < most {
                    read += 1;
                    texts.extend("(),abcdz".chars().map(|letter| format!("{text}{letter}")));
                }
            }
            prop_assert!(read > 1);
        }
    }
}

#[test]
fn what_has_no_room_is_an_error_and_nothing_is_remembered() {
    let words = Words {
        members: 4,
        required: BTreeSet::new(),
        moving: BTreeSet::new(),
        has_others: true,
        late: BTreeSet::new(),
    };
    let limits = Limits { max_set_bytes: 600, ..Limits::default() };
    let options = NetworkOptions { limits: limits.clone(), ..NetworkOptions::default() };
    let network = Network::new(&words.grammar(), &options).expect("within bounds");
    let interrupt = Interrupt::default();
    let mut recognizer = Recognizer::new(&network, &limits, &interrupt).expect("a start");
    let text = "(a,b,c,d,z,z)";
    let read = text.bytes().map(|byte| recognizer.advance(byte));
    let error = read.filter_map(Result::err).next().expect("too little room");
    assert!(error.to_string().contains("max_set_bytes"), "{error}");
    // With room the text is read.
    let options = NetworkOptions::default();
    let network = Network::new(&words.grammar(), &options).expect("within bounds");
    let mut recognizer = Recognizer::new(&network, &limits, &interrupt).expect("a start");
    assert!(text.bytes().all(|byte| recognizer.advance(byte).expect("room")));
    assert!(recognizer.is_accepting());
}
