//! Objects: braces, names and members, in the order of the schema or in any.

use super::automaton::DraftAutomaton;
use super::gaps::{Gaps, Spacing};
use super::strings::spelled;
use super::{Emitter, RuleKey};
use crate::error::{Error, Result, SchemaFault};
use crate::grammar::Expr;
use crate::ids::ExprId;
use crate::json_schema::atoms::{ObjectId, ValueId};
use crate::json_schema::automata::{MemberEdge, MemberName, ObjectState};
use crate::json_schema::options::KeyOrder;
use crate::regular::encode_all_but;
use rustc_hash::FxHashMap;
use std::rc::Rc;

impl Emitter<'_, '_> {
    pub(super) fn object(&mut self, id: ObjectId, level: u32) -> Result<ExprId> {
        if self.converter.objects[usize::from(id)].required.is_some() {
            return self.unordered(id, level);
        }
        let gaps = self.gaps(level);
        let mut out = ObjectWriter::new(self, id, level);
        let start = out.automaton.state();
        let open = out.automaton.text(start, b"{", None);
        let first = out.goes_on[0].then(|| out.name_of(0));
        let may_end = out.ends[0];
        out.braces(self, open, &gaps.open, first, may_end);
        while let Some(todo) = out.todo.pop() {
            self.converter.spend(1)?;
            match todo {
                Todo::Name(state) => out.names(self, &gaps, state)?,
                Todo::Behind(state) => {
                    let from = out.behind_of(state);
                    let next = out.goes_on[state].then(|| out.name_of(state));
                    let may_end = out.ends[state];
                    out.separator(self, from, &gaps, next, may_end);
                }
            }
        }
        let automaton = out.automaton;
        self.finish_automaton(automaton)
    }

    /// Reads the name of a member behind its first quotation mark, with the last, where names have them.
    pub(super) fn name(
        &mut self,
        out: &mut DraftAutomaton,
        from: u32,
        object: ObjectId,
        named: MemberName,
    ) -> Result<u32> {
        Ok(match named {
            MemberName::Known(place) => {
                let order = self.converter.objects[usize::from(object)].order;
                let name = self.converter.orders.get(order)[place as usize];
                let name = self.converter.names.get(name).clone();
                let quotes = self.quotes();
                if quotes.is_raw && !quotes.can_be_bare(&name) {
                    return Err(cannot_be_bare(&name));
                }
                let mut text = match quotes.is_raw {
                    true => name.as_bytes().to_vec(),
                    false => spelled(&name),
                };
                if self.is_excluded(&text) {
                    return Ok(out.state()); // where nothing leads
                }
                text.extend(quotes.name.as_bytes());
                out.text(from, &text, None)
            }
            MemberName::Other(class) => {
                let to = out.state();
                let names = self.call(RuleKey::Names(object, class));
                out.part(from, names, to);
                to
            }
        })
    }

    /// Reads what stands before a name; without a target, to a state of its own where that is not empty.
    pub(super) fn before_name(
        &mut self,
        out: &mut DraftAutomaton,
        from: u32,
        to: Option<u32>,
    ) -> u32 {
        match (self.quotes().name, to) {
            ("", Some(to)) => {
                out.part(from, self.empty, to);
                to
            }
            (quote, to) => out.text(from, quote.as_bytes(), to),
        }
    }

    /// Names of a class, with the quotation mark at their end.
    pub(super) fn names(&mut self, object: ObjectId, number: u32) -> Result<ExprId> {
        let class = self.converter.objects[usize::from(object)].classes[number as usize].clone();
        let is_free = class.names.is_universal();
        let (escapes, bounds) = (self.escapes(is_free), self.converter.bounds);
        if let Some(within) = class.expression {
            if !self.options().excludes.is_empty() {
                return Err(self.expression_without());
            }
            let body = self.call(RuleKey::Expression(within, None));
            let end = self.literal(b"\"");
            return Ok(self.sequence(vec![body, end]));
        }
        if class.lengths != (0, None) {
            let body = self.counted(
                RuleKey::CountedNames(object, number),
                &class.names,
                class.lengths,
                is_free,
            )?;
            let end = self.literal(b"\"");
            return Ok(self.sequence(vec![body, end]));
        }
        if self.options().excludes.is_empty()
            && let Some(automaton) = encode_all_but(&class.names, escapes, &bounds)?
        {
            return Ok(self.add(Expr::Automaton(automaton)));
        }
        let body = self.text_of(&class.names, is_free)?;
        let end = self.literal(b"\"");
        Ok(self.sequence(vec![body, end]))
    }

    pub(super) fn member(
        &mut self,
        object: ObjectId,
        named: MemberName,
        value: ValueId,
        level: u32,
    ) -> Result<ExprId> {
        let gaps = self.gaps(level);
        let mut out = DraftAutomaton::default();
        let start = out.state();
        let at = self.name(&mut out, start, object, named)?;
        let at = self.gap(&mut out, at, &gaps.before_colon);
        let at = out.text(at, b":", None);
        let at = self.gap(&mut out, at, &gaps.after_colon);
        let end = out.state();
        out.finals[end as usize] = true;
        let value = self.call_value(value, self.level_below(level));
        out.part(at, value, end);
        self.finish_automaton(out)
    }
}

fn cannot_be_bare(name: &str) -> Error {
    Error::Schema {
        kind: SchemaFault::Unsupported,
        pointer: String::new(), // that of the object, which the rule tells
        keyword: "properties".into(),
        message: format!(
            "the name {name:?} cannot be told from what stands around it in this style, which writes names without \
             quotation marks: a name is not empty, has no blanks at its ends, no end of a string, and none of \
             :,{{}}[]; rename the property, or write the arguments in another style"
        ),
    }
}

/// What is left to write of an object.
enum Todo {
    /// The names that may come in a state.
    Name(usize),
    /// What follows a value that leads to a state.
    Behind(usize),
}

/// An object that is being written.
struct ObjectWriter {
    id: ObjectId,
    level: u32,
    states: Rc<Vec<ObjectState>>,
    live: Vec<bool>,
    /// Whether the object may end in a state, and whether a member may come, with what is absent.
    ends: Vec<bool>,
    goes_on: Vec<bool>,
    automaton: DraftAutomaton,
    end: u32,
    names: Vec<Option<u32>>,
    behind: Vec<Option<u32>>,
    chains: FxHashMap<(MemberName, Vec<(ValueId, u32)>), u32>,
    todo: Vec<Todo>,
    is_unordered: bool,
}

impl ObjectWriter {
    fn new(emitter: &Emitter<'_, '_>, id: ObjectId, level: u32) -> Self {
        let states = emitter.converter.objects[usize::from(id)].states.clone();
        let live = emitter.values.object_states[&id].clone();
        let too_deep = emitter.is_too_deep(level);
        let is_live = |edge: &MemberEdge| {
            live[edge.to as usize] && emitter.values.productive.contains(&edge.value)
        };
        let mut ends: Vec<bool> = states.iter().map(|state| state.is_final).collect();
        let mut goes_on: Vec<bool> =
            states.iter().map(|state| !too_deep && state.members.iter().any(is_live)).collect();
        // What is absent stands later in the order of names.
        let mut order: Vec<usize> = (0..states.len()).collect();
        order.sort_unstable_by_key(|&state| std::cmp::Reverse(states[state].place));
        for state in order {
            for &absent in &states[state].absent {
                ends[state] |= ends[absent as usize];
                goes_on[state] |= goes_on[absent as usize];
            }
        }
        let count = states.len();
        Self {
            id,
            level,
            states,
            live,
            ends,
            goes_on,
            automaton: DraftAutomaton::default(),
            end: 0,
            names: vec![None; count],
            behind: vec![None; count],
            chains: FxHashMap::default(),
            todo: Vec::new(),
            is_unordered: emitter.options().key_order == KeyOrder::Any,
        }
    }

    /// The state of the automaton in which a name is read, behind its first quotation mark.
    fn name_of(&mut self, state: usize) -> u32 {
        *self.names[state].get_or_insert_with(|| {
            self.todo.push(Todo::Name(state));
            self.automaton.state()
        })
    }

    /// The state of the automaton behind a value.
    fn behind_of(&mut self, state: usize) -> u32 {
        *self.behind[state].get_or_insert_with(|| {
            self.todo.push(Todo::Behind(state));
            self.automaton.state()
        })
    }

    /// The state behind the closing bracket.
    fn end(&mut self) -> u32 {
        if self.end == 0 {
            self.end = self.automaton.state();
            self.automaton.finals[self.end as usize] = true;
        }
        self.end
    }

    /// Behind the opening brace: a first member, or the end.
    fn braces(
        &mut self,
        emitter: &mut Emitter<'_, '_>,
        open: u32,
        gap: &Spacing,
        first: Option<u32>,
        may_end: bool,
    ) {
        let mut at = open;
        if let Some(first) = first {
            let behind = emitter.gap(&mut self.automaton, open, gap);
            emitter.before_name(&mut self.automaton, behind, Some(first));
            if let Spacing::Free = gap {
                at = behind;
            }
        } else if let (Spacing::Free, true) = (gap, may_end) {
            at = emitter.gap(&mut self.automaton, open, gap);
        }
        if may_end {
            let end = self.end();
            self.automaton.text(at, b"}", Some(end));
        }
    }

    /// Behind a value: the next member, or the end.
    fn separator(
        &mut self,
        emitter: &mut Emitter<'_, '_>,
        from: u32,
        gaps: &Gaps,
        next: Option<u32>,
        may_end: bool,
    ) {
        let mut close = None;
        if let Some(next) = next {
            let at = emitter.gap(&mut self.automaton, from, &gaps.before_comma);
            if let Spacing::Free = gaps.before_comma {
                close = Some(at);
            }
            let at = self.automaton.text(at, b",", None);
            let at = emitter.gap(&mut self.automaton, at, &gaps.after_comma);
            emitter.before_name(&mut self.automaton, at, Some(next));
        }
        if may_end {
            let at = match close {
                Some(at) => at,
                None => emitter.gap(&mut self.automaton, from, &gaps.before_close),
            };
            let end = self.end();
            self.automaton.text(at, b"}", Some(end));
        }
    }

    /// The names that may come in a state, each with what may follow it.
    fn names(&mut self, emitter: &mut Emitter<'_, '_>, gaps: &Gaps, state: usize) -> Result<()> {
        let from = self.name_of(state);
        let states = self.states.clone();
        for &absent in &states[state].absent {
            if self.goes_on[absent as usize] {
                let target = self.name_of(absent as usize);
                self.automaton.part(from, emitter.empty, target);
            }
        }
        let mut groups: Vec<(MemberName, Vec<(ValueId, u32)>)> = Vec::new();
        for edge in &self.states[state].members {
            if !self.live[edge.to as usize] || !emitter.values.productive.contains(&edge.value) {
                continue;
            }
            match groups.last_mut() {
                Some((known, edges)) if *known == edge.name => edges.push((edge.value, edge.to)),
                _ => groups.push((edge.name, vec![(edge.value, edge.to)])),
            }
        }
        for (named, edges) in groups {
            if self.is_unordered {
                for (value, to) in edges {
                    let member = emitter.call(RuleKey::Member(self.id, named, value, self.level));
                    let target = self.behind_of(to as usize);
                    self.automaton.part(from, member, target);
                }
                continue;
            }
            let key = (named, edges);
            let chain = match self.chains.get(&key) {
                Some(&known) => known,
                None => {
                    let chain = self.automaton.state();
                    let out = &mut self.automaton;
                    let at = emitter.name(out, chain, self.id, named)?;
                    let at = emitter.gap(out, at, &gaps.before_colon);
                    let at = out.text(at, b":", None);
                    let at = emitter.gap(out, at, &gaps.after_colon);
                    let below = emitter.level_below(self.level);
                    for &(value, to) in &key.1 {
                        let value = emitter.call_value(value, below);
                        let target = self.behind_of(to as usize);
                        self.automaton.part(at, value, target);
                    }
                    self.chains.insert(key, chain);
                    chain
                }
            };
            self.automaton.part(from, emitter.empty, chain);
            emitter.converter.spend(1)?;
        }
        Ok(())
    }
}
