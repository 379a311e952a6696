//! Objects whose known names come in an order: the automaton of some alternatives, each in the order of
//! its own names.

use super::Spent;
use super::tails::{Tail, Tails};
use crate::error::Result;
use crate::json_schema::atoms::{Alternative, LanguageId, NameId, OrderId, ValueId};
use crate::json_schema::automata::{
    MemberEdge, MemberName, NameClass, ObjectAutomaton, ObjectState,
};
use crate::json_schema::converter::Converter;
use crate::json_schema::formula::FormulaId;
use crate::json_schema::step::Member;
use rustc_hash::{FxHashMap, FxHashSet};
use std::ops::Range;
use std::rc::Rc;

/// An alternative on the way.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Thread {
    /// Where no condition joins the members that are left: the number of the tail.
    Tail(u32),
    /// The number of the alternative, how many of its names are done, and what is left of it.
    Joined(u32, u32, FormulaId),
    /// Behind the names in order, where others are listed: the number of the alternative, which of them were read, and
    /// what is left of it.
    Listed(u32, u32, FormulaId),
}

/// What threads have in common that go on together: the name that is due, what is asked of other names, or the
/// alternative whose listed names come.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum ThreadGroup {
    Due(NameId),
    Others(Option<u32>),
    Listed(u32),
}

/// What is asked of other names: the known ones, patterns of names, and the formula where it says more.
type AskedOfOthers = (Box<[NameId]>, Box<[LanguageId]>, Option<FormulaId>);

/// Names that tails behind a name may have: for each known name, and in all.
const TAIL_NAMES: usize = 64;
const MOST_TAIL_NAMES: usize = 1 << 16;

/// The classes of other names that a formula does not tell apart.
struct OtherNames {
    formula: FormulaId,
    known: Rc<[NameId]>,
    /// Where they stand among all, once they are made.
    place: Option<Range<usize>>,
}

/// How many states an automaton may have: in all, and where as many names are done.
#[derive(Clone, Copy)]
pub(super) struct StateLimits {
    pub(super) states: usize,
    pub(super) at_a_place: usize,
}

impl StateLimits {
    pub(super) const ANY: Self = Self { states: usize::MAX, at_a_place: usize::MAX };

    pub(super) fn of_states(states: usize) -> Self {
        Self { states, ..Self::ANY }
    }
}

/// The automaton of the alternatives of an object, in the orders of their names, while it is made.
pub(super) struct Ordered {
    alternatives: Vec<Alternative>,
    /// The known names of each alternative that keep to their order, those that come behind them in any, and which of
    /// the former some atoms speak of alone, where that matters.
    names: Vec<Rc<[NameId]>>,
    pub(super) listed: Vec<Rc<[NameId]>>,
    spent: Vec<Option<Spent>>,
    /// The number of what each alternative asks of other names, once a thread of it may have some.
    asked_by: Vec<Option<u32>>,
    tails: Tails,
    /// How many names tails that begin behind a name may still have: a tail for each state would take quadratic time.
    to_spare: usize,
    /// The threads of each alternative, number of names that are done, and formula that is left.
    known: FxHashMap<(u32, u32, FormulaId), Rc<[Thread]>>,
    /// What formulas ask of other names.
    asked: FxHashMap<AskedOfOthers, u32>,
    others: Vec<OtherNames>,
    classes: Vec<Rc<NameClass>>,
    /// The place of each known name in the order of all.
    pub(super) places: FxHashMap<NameId, u32>,
    /// Threads at the same name, or threads that go apart.
    threads: Vec<Rc<[Thread]>>,
    numbers: FxHashMap<Rc<[Thread]>, u32>,
}

impl Ordered {
    /// What is due in a thread.
    fn group(&self, thread: &Thread) -> ThreadGroup {
        match *thread {
            Thread::Tail(tail) => match self.tails.get(tail) {
                Tail::Name(due) => ThreadGroup::Due(due.name),
                Tail::Others(asked, _) => ThreadGroup::Others(Some(asked)),
                Tail::End(_) => ThreadGroup::Others(None),
            },
            Thread::Joined(number, done, _) => {
                let number = number as usize;
                let due = self.names[number].get(done as usize);
                let others = ThreadGroup::Others(self.asked_by[number]);
                due.map_or(others, |&name| ThreadGroup::Due(name))
            }
            Thread::Listed(number, ..) => ThreadGroup::Listed(number),
        }
    }

    fn is_together(&self, threads: &[Thread]) -> bool {
        threads.windows(2).all(|pair| self.group(&pair[0]) == self.group(&pair[1]))
    }

    /// How many of the known names are left in a thread.
    fn left(&self, thread: &Thread) -> usize {
        match *thread {
            Thread::Tail(tail) => match self.tails.get(tail) {
                Tail::Name(due) => due.left as usize,
                Tail::Others(..) | Tail::End(_) => 0,
            },
            Thread::Joined(number, done, _) => self.names[number as usize].len() - done as usize,
            Thread::Listed(..) => 0,
        }
    }

    /// What is left of an object in a thread without names that are due; none where it has no other names either.
    fn left_at_end(&self, thread: Thread) -> Option<FormulaId> {
        match thread {
            Thread::Joined(_, _, formula) | Thread::Listed(_, _, formula) => Some(formula),
            Thread::Tail(tail) => match self.tails.get(tail) {
                Tail::Others(_, formula) => Some(formula),
                Tail::Name(_) | Tail::End(_) => None,
            },
        }
    }

    /// The state of some threads.
    pub(super) fn enter(&mut self, mut threads: Vec<Thread>) -> u32 {
        threads.sort_unstable();
        threads.dedup();
        let threads: Rc<[Thread]> = threads.into();
        let next = self.threads.len() as u32;
        *self.numbers.entry(threads.clone()).or_insert_with(|| {
            self.threads.push(threads);
            next
        })
    }

    /// The states of threads that go apart: for each of what may be due.
    fn parted(&mut self, threads: &[Thread]) -> Vec<u32> {
        let mut groups: Vec<Vec<Thread>> = Vec::new();
        let mut known: FxHashMap<ThreadGroup, usize> = FxHashMap::default();
        for thread in threads {
            let place = *known.entry(self.group(thread)).or_insert_with(|| {
                groups.push(Vec::new());
                groups.len() - 1
            });
            groups[place].push(*thread);
        }
        groups.into_iter().map(|threads| self.enter(threads)).collect()
    }
}

impl Converter<'_> {
    /// Alternatives with their own names in an order of all names together, where that is another one.
    pub(super) fn in_common_order(
        &mut self,
        own: &[Alternative],
        order: OrderId,
    ) -> Result<Vec<Alternative>> {
        let common = self.orders.get(order).clone();
        let mut out = Vec::new();
        for &Alternative { formula, order, .. } in own {
            self.spend(1 + common.len() / 8)?;
            let names = self.orders.get(order).clone();
            let known: FxHashSet<NameId> = names.iter().copied().collect();
            let sorted: Box<[NameId]> =
                common.iter().copied().filter(|name| known.contains(name)).collect();
            if *sorted != **names && sorted.len() == names.len() {
                let order = self.orders.intern(sorted);
                out.push(self.alternative(formula, order));
            }
        }
        Ok(out)
    }

    /// The automaton of alternatives, each in the order of its own names. Where the same name is due in
    /// several, these are one state, if they are shared; `None` where there is not the room for the states.
    pub(super) fn make_ordered(
        &mut self,
        alternatives: &[Alternative],
        is_shared: bool,
        room: StateLimits,
    ) -> Result<Option<ObjectAutomaton>> {
        let mut out = Ordered {
            alternatives: Vec::with_capacity(alternatives.len()),
            names: Vec::with_capacity(alternatives.len()),
            listed: Vec::with_capacity(alternatives.len()),
            spent: Vec::with_capacity(alternatives.len()),
            asked_by: vec![None; alternatives.len()],
            tails: Tails::default(),
            to_spare: 0,
            known: FxHashMap::default(),
            asked: FxHashMap::default(),
            others: Vec::new(),
            classes: Vec::new(),
            places: FxHashMap::default(),
            threads: Vec::new(),
            numbers: FxHashMap::default(),
        };
        let mut order: Vec<NameId> = Vec::new();
        let mut begun: Vec<Rc<[Thread]>> = Vec::new();
        for (number, &alternative) in (0..).zip(alternatives) {
            let alternative = self.with_listed(alternative, false)?;
            let names = self.orders.get(alternative.order).clone();
            self.spend(1 + names.len())?;
            for &name in names.iter() {
                out.places.entry(name).or_insert_with(|| {
                    order.push(name);
                    order.len() as u32 - 1
                });
            }
            out.to_spare += TAIL_NAMES * names.len();
            let (in_order, listed) = names.split_at(alternative.in_order as usize);
            out.names.push(in_order.into());
            out.listed.push(listed.into());
            out.alternatives.push(alternative);
            let threads = self.threads(&mut out, number, 0, alternative.formula)?;
            out.spent.push(match *threads {
                [Thread::Joined(..)] => Some(self.spent_with(alternative.formula, &names)?),
                _ => None,
            });
            begun.push(threads);
        }
        out.to_spare = out.to_spare.min(MOST_TAIL_NAMES);
        let most = out.names.iter().map(|names| names.len()).max().unwrap_or(0);
        let order = self.orders.intern(order.into());
        let before = self.num_states;
        out.enter(begun.concat());
        let mut states: Vec<ObjectState> = Vec::new();
        let (mut at_places, mut num_sets) = (vec![0; most + 1], 0);
        while states.len() < out.threads.len() {
            self.count_state()?;
            let threads = out.threads[states.len()].clone();
            let done = most - threads.iter().map(|thread| out.left(thread)).max().unwrap_or(0);
            let mut state = ObjectState { place: 2 * done as u64 + 1, ..ObjectState::default() };
            if states.is_empty() && !is_shared && begun.len() > 1 {
                state.place -= 1;
                state.absent = begun.iter().map(|threads| out.enter(threads.to_vec())).collect();
            } else if !out.is_together(&threads) {
                state.place -= 1;
                state.absent = out.parted(&threads);
            } else if let Some(first) = threads.first() {
                match out.group(first) {
                    ThreadGroup::Due(name) => self.read_known(&mut out, &threads, name, &mut state),
                    ThreadGroup::Others(of) => self.read_others(&mut out, &threads, of, &mut state),
                    ThreadGroup::Listed(of) => self.read_listed(&mut out, &threads, of, &mut state),
                }?;
            }
            self.spend(1 + state.members.len() + threads.len())?;
            states.push(state);
            // Sets of listed names are few; nothing that an alternative says makes them more.
            if let Some(Thread::Listed(..)) = threads.first() {
                num_sets += 1;
                continue;
            }
            at_places[done] += 1;
            if states.len() - num_sets > room.states || at_places[done] > room.at_a_place {
                self.num_states = before;
                return Ok(None);
            }
        }
        let (classes, states) = (out.classes, Rc::new(states));
        let alternatives = out.alternatives.into();
        Ok(Some(ObjectAutomaton { alternatives, order, states, classes, required: None }))
    }

    /// The members of a known name that may come in threads, and what is left where it is absent.
    fn read_known(
        &mut self,
        out: &mut Ordered,
        threads: &[Thread],
        name: NameId,
        state: &mut ObjectState,
    ) -> Result<()> {
        let mut behind: Vec<(ValueId, Vec<Thread>)> = Vec::new();
        let mut known: FxHashMap<ValueId, usize> = FxHashMap::default();
        let mut without: Vec<Thread> = Vec::new();
        for &thread in threads {
            let mut goes_on = |value: ValueId, threads: &[Thread]| {
                let place = *known.entry(value).or_insert_with(|| {
                    behind.push((value, Vec::new()));
                    behind.len() - 1
                });
                behind[place].1.extend_from_slice(threads);
            };
            let (number, at, formula) = match thread {
                Thread::Joined(number, done, formula) => (number, done, formula),
                Thread::Listed(..) => continue,
                Thread::Tail(tail) => {
                    let Tail::Name(due) = out.tails.get(tail) else { continue };
                    if let Some(value) = due.value {
                        goes_on(value, &[Thread::Tail(due.next)]);
                    }
                    if !due.is_required {
                        without.push(Thread::Tail(due.next));
                    }
                    continue;
                }
            };
            let next = at + 1;
            let spent = out.spent[number as usize].take().unwrap_or_default();
            let is_done = |place: usize| place < next as usize;
            let rest = self.present(formula, Member::Named(name), 0)?;
            for &(value, rest) in self.edges(rest)?.iter() {
                let rest = self.without_spent(rest, &spent, &is_done)?;
                goes_on(value, &self.threads(out, number, next, rest)?);
            }
            let rest = self.absent(formula, name, 0)?;
            let rest = self.without_spent(rest, &spent, &is_done)?;
            if rest != FormulaId::FALSE {
                without.extend_from_slice(&self.threads(out, number, next, rest)?);
            }
            out.spent[number as usize] = Some(spent);
        }
        let name = MemberName::Known(out.places[&name]);
        for (value, threads) in behind {
            state.members.push(MemberEdge { name, value, to: out.enter(threads) });
        }
        if !without.is_empty() {
            state.absent.push(out.enter(without));
        }
        Ok(())
    }

    /// The members of other names that may come in threads which ask the same of them, and whether it may end.
    fn read_others(
        &mut self,
        out: &mut Ordered,
        threads: &[Thread],
        asked: Option<u32>,
        state: &mut ObjectState,
    ) -> Result<()> {
        let classes = match asked {
            Some(asked) => self.other_names(out, asked)?,
            None => 0..0,
        };
        for class in classes {
            let of_class = out.classes[class].clone();
            let mut behind: Vec<(ValueId, Vec<Thread>)> = Vec::new();
            for &thread in threads {
                let Some(formula) = out.left_at_end(thread) else { continue };
                let rest = self.present(formula, Member::Other(&of_class), 0)?;
                for &(value, rest) in self.edges(rest)?.iter() {
                    let next = match thread {
                        Thread::Joined(number, done, _) => self.threads(out, number, done, rest)?,
                        Thread::Tail(_) | Thread::Listed(..) => {
                            let others = asked.map(|asked| Tail::Others(asked, rest));
                            others
                                .map(|others| Thread::Tail(out.tails.intern(others)))
                                .into_iter()
                                .collect()
                        }
                    };
                    match behind.iter_mut().find(|known| known.0 == value) {
                        Some(known) => known.1.extend_from_slice(&next),
                        None => behind.push((value, next.to_vec())),
                    }
                }
            }
            let name = MemberName::Other(class as u32);
            for (value, threads) in behind {
                state.members.push(MemberEdge { name, value, to: out.enter(threads) });
            }
        }
        state.is_final = threads.iter().any(|&thread| match thread {
            Thread::Tail(tail) if out.tails.get(tail) == Tail::End(true) => true,
            thread => out.left_at_end(thread).is_some_and(|formula| self.ends(formula)),
        });
        Ok(())
    }

    /// The threads of an alternative some of whose names are done: one for each branch of a union that a member tells
    /// apart, else one.
    fn threads(
        &mut self,
        out: &mut Ordered,
        number: u32,
        done: u32,
        formula: FormulaId,
    ) -> Result<Rc<[Thread]>> {
        let key = (number, done, formula);
        if let Some(known) = out.known.get(&key) {
            return Ok(known.clone());
        }
        let names = out.names[number as usize].clone();
        let due = names.len() - done as usize;
        let has_listed = !out.listed[number as usize].is_empty();
        let mut branches = Vec::new();
        if has_listed {
            // What is left of it is a formula up to its end.
        } else if (done == 0 || due <= out.to_spare)
            && let Some(object) = self.unjoined(formula, (&names, done as usize))?
        {
            out.to_spare -= if done == 0 { 0 } else { due };
            branches.push((formula, object));
        } else if done == 0 {
            branches = self.told_apart(formula, &names)?.unwrap_or_default();
        }
        let mut threads = Vec::with_capacity(branches.len().max(1));
        for (formula, object) in branches {
            #[cfg(test)]
            if done == 0 {
                super::unjoined::count_read_off();
            }
            let end = match self.asked_of_others(out, number, formula)? {
                Some(asked) => Tail::Others(asked, object.rest),
                None => Tail::End(self.ends(object.rest)),
            };
            threads.push(Thread::Tail(out.tails.of(&object, &names[done as usize..], end)));
        }
        if has_listed && due == 0 {
            threads.push(Thread::Listed(number, 0, formula));
        } else if threads.is_empty() {
            if done as usize == names.len() {
                let whole = out.alternatives[number as usize].formula;
                self.asked_of_others(out, number, whole)?;
            }
            threads.push(Thread::Joined(number, done, formula));
        }
        let threads: Rc<[Thread]> = threads.into();
        out.known.insert(key, threads.clone());
        Ok(threads)
    }

    /// The number of what an alternative asks of other names than the known ones; `None` where what is left of it has
    /// no others. Of all that is left of an alternative the classes are the same, and with them how names are spelled.
    fn asked_of_others(
        &mut self,
        out: &mut Ordered,
        number: u32,
        left: FormulaId,
    ) -> Result<Option<u32>> {
        if self.has_no_others(left)? {
            return Ok(None);
        }
        if let Some(known) = out.asked_by[number as usize] {
            return Ok(Some(known));
        }
        let formula = out.alternatives[number as usize].formula;
        let known = out.names[number as usize].clone();
        let mut names: Box<[NameId]> = (*known).into();
        names.sort_unstable();
        self.spend(names.len())?;
        let (patterns, schemas) = self.asked_of_names(formula)?;
        // What `propertyNames` says is divided as the whole formula asks.
        let whole = (!schemas.is_empty()).then_some(formula);
        let next = out.others.len() as u32;
        let asked = *out.asked.entry((names, patterns.into(), whole)).or_insert(next);
        if asked == next {
            out.others.push(OtherNames { formula, known, place: None });
        }
        out.asked_by[number as usize] = Some(asked);
        Ok(Some(asked))
    }

    /// Where the classes of other names stand among all.
    fn other_names(&mut self, out: &mut Ordered, asked: u32) -> Result<Range<usize>> {
        let others = &mut out.others[asked as usize];
        if let Some(place) = &others.place {
            return Ok(place.clone());
        }
        let classes = self.name_classes(others.formula, &others.known)?;
        let place = out.classes.len()..out.classes.len() + classes.len();
        out.classes.extend(classes);
        others.place = Some(place.clone());
        Ok(place)
    }
}
