//! Objects and arrays as rows of elements, in styles other than JSON.
//!
//! White space stands before each element and behind the last.

use super::automaton::DraftAutomaton;
use super::styles::MemberMarks;
use super::{Emitter, RuleKey};
use crate::error::{Error, Result, SchemaFault};
use crate::grammar::Expr;
use crate::ids::ExprId;
use crate::json_schema::atoms::{ArrayId, ObjectId, ValueId};
use crate::json_schema::automata::{ArrayAutomaton, MemberEdge, MemberName, ObjectState};
use crate::json_schema::options::KeyOrder;
use rustc_hash::FxHashMap;
use std::rc::Rc;

impl Emitter<'_, '_> {
    /// The members of an object.
    pub(super) fn members(&mut self, id: ObjectId) -> Result<ExprId> {
        let Some(marks) = self.marks() else { return Ok(self.empty) };
        let mut out = ElementMembers::new(self, id, marks);
        let start = out.automaton.state();
        let first = out.place_of(0);
        let space = self.call(RuleKey::Whitespace);
        out.automaton.part(start, space, first);
        while let Some(state) = out.todo.pop() {
            self.converter.spend(1)?;
            out.elements(self, state)?;
        }
        let automaton = out.automaton;
        self.finish_automaton(automaton)
    }

    /// A member, from its name on.
    pub(super) fn named_element(
        &mut self,
        object: ObjectId,
        named: MemberName,
        value: ValueId,
    ) -> Result<ExprId> {
        let Some(marks) = self.marks() else { return Ok(self.empty) };
        let mut out = DraftAutomaton::default();
        let start = out.state();
        let end = out.state();
        out.finals[end as usize] = true;
        let at = self.element_name(&mut out, start, object, named, marks)?;
        self.value_of_element(&mut out, at, object, named, value, marks, end);
        self.finish_automaton(out)
    }

    /// Reads the name of a member, with what stands behind it.
    fn element_name(
        &mut self,
        out: &mut DraftAutomaton,
        from: u32,
        object: ObjectId,
        named: MemberName,
        marks: &MemberMarks,
    ) -> Result<u32> {
        let at = match named {
            MemberName::Known(_) => {
                let name = self.known_name(object, named, marks)?;
                if self.is_excluded(name.as_bytes()) {
                    return Ok(out.state()); // where nothing leads
                }
                out.text(from, name.as_bytes(), None)
            }
            MemberName::Other(class) => {
                let to = out.state();
                let names = self.call(RuleKey::RawNames(object, class));
                out.part(from, names, to);
                to
            }
        };
        Ok(self.read_mark(out, at, marks.named, None))
    }

    /// Reads the value of a member and its end.
    #[expect(clippy::too_many_arguments, reason = "the parts of one edge")]
    fn value_of_element(
        &mut self,
        out: &mut DraftAutomaton,
        from: u32,
        object: ObjectId,
        named: MemberName,
        value: ValueId,
        marks: &MemberMarks,
        to: u32,
    ) {
        let value = self.call(RuleKey::Element(value));
        match (marks.closes_by_name, self.known_name(object, named, marks)) {
            (true, Ok(name)) => {
                let at = out.state();
                out.part(from, value, at);
                let at = self.read_mark(out, at, marks.close, None);
                let at = out.text(at, name.as_bytes(), None);
                self.read_mark(out, at, marks.named, Some(to));
            }
            _ => out.part(from, value, to),
        }
    }

    fn known_name(
        &self,
        object: ObjectId,
        named: MemberName,
        marks: &MemberMarks,
    ) -> Result<String> {
        let MemberName::Known(place) = named else { return Ok(String::new()) };
        let order = self.converter.objects[usize::from(object)].order;
        let name = self.converter.orders.get(order)[place as usize];
        let name = self.converter.names.get(name);
        marks.name(name).ok_or_else(|| Error::Schema {
            kind: SchemaFault::Unsupported,
            pointer: String::new(), // that of the object, which the rule tells
            keyword: "properties".into(),
            message: format!(
                "the name {name:?} holds {:?}, which ends a name in this style; rename the \
                 property, or write the arguments in another style",
                marks.terminator
            ),
        })
    }

    /// The items of an array.
    pub(super) fn items(&mut self, id: ArrayId) -> Result<ExprId> {
        let automaton = self.converter.arrays[usize::from(id)].clone();
        if let ArrayAutomaton::Either(arrays) = &automaton {
            return Ok(self.one_of_arrays(arrays, RuleKey::Items));
        }
        let space = self.call(RuleKey::Whitespace);
        let mut out = DraftAutomaton::default();
        let start = out.state();
        let mut at = out.state();
        out.part(start, space, at);
        match automaton {
            ArrayAutomaton::Either(_) => {}
            ArrayAutomaton::Plain { prefix, rest, least, most } => {
                let listed = (prefix.len() as u32).min(most.unwrap_or(u32::MAX));
                for (count, &value) in (0..listed).zip(&prefix) {
                    out.finals[at as usize] |= count >= least;
                    at = self.spaced_item(&mut out, at, value, space);
                }
                out.finals[at as usize] |= listed >= least;
                if let Some(rest) = rest.filter(|_| most.is_none_or(|most| listed < most)) {
                    let bounds = (least.saturating_sub(listed), most.map(|most| most - listed));
                    self.spaced_items(&mut out, at, rest, bounds, space);
                }
            }
            ArrayAutomaton::Unique { schema, .. } => {
                return Err(self.no_unique_items(schema));
            }
            ArrayAutomaton::Distinct { schema, .. } => {
                return Err(self.converter.unsupported(
                    self.converter.place(schema),
                    "uniqueItems",
                    "this style of writing arguments cannot keep which of so many items were read; \
                     list 12 or fewer, or leave the keyword out and check the result"
                        .into(),
                ));
            }
            ArrayAutomaton::States(states) => {
                let mut places: Vec<Option<u32>> = vec![None; states.len()];
                places[0] = Some(at);
                let mut todo = vec![0];
                while let Some(state) = todo.pop() {
                    self.converter.spend(1)?;
                    let Some(from) = places[state] else { continue };
                    if let (Some((min, max)), Some(&(value, _))) =
                        (states[state].counted, states[state].items.first())
                    {
                        self.spaced_items(&mut out, from, value, (min, max), space);
                        continue;
                    }
                    out.finals[from as usize] = states[state].is_final;
                    for &(value, to) in &states[state].items {
                        let behind = self.spaced_item(&mut out, from, value, space);
                        match places[to as usize] {
                            Some(place) => out.part(behind, self.empty, place),
                            None => {
                                places[to as usize] = Some(behind);
                                todo.push(to as usize);
                            }
                        }
                    }
                }
            }
        }
        self.finish_automaton(out)
    }

    /// The items that are left, all of one kind, as many as bounds allow.
    fn spaced_items(
        &mut self,
        out: &mut DraftAutomaton,
        from: u32,
        value: ValueId,
        (min, max): (u32, Option<u32>),
        space: ExprId,
    ) {
        let item = self.call(RuleKey::Item(value));
        let body = self.sequence(vec![item, space]);
        let repeat = self.add(Expr::Repeat { body, min, max });
        let end = out.state();
        out.finals[end as usize] = true;
        out.part(from, repeat, end);
    }

    /// Reads an item and the white space behind it.
    fn spaced_item(
        &mut self,
        out: &mut DraftAutomaton,
        from: u32,
        value: ValueId,
        space: ExprId,
    ) -> u32 {
        let item = self.call(RuleKey::Item(value));
        let behind = out.state();
        out.part(from, item, behind);
        let next = out.state();
        out.part(behind, space, next);
        next
    }

    /// An item of an array.
    pub(super) fn item(&mut self, value: ValueId) -> Result<ExprId> {
        let Some(marks) = self.marks() else { return Ok(self.empty) };
        let open = self.mark(marks.item.unwrap_or_default());
        let element = self.call(RuleKey::Element(value));
        let mut parts = vec![open, element];
        if marks.closes_by_name {
            parts.push(self.mark(&marks.end_of_item()));
        }
        Ok(self.sequence(parts))
    }
}

/// The members of an object that are being written.
struct ElementMembers {
    id: ObjectId,
    marks: &'static MemberMarks,
    states: Rc<Vec<ObjectState>>,
    live: Vec<bool>,
    /// Whether the object may end in a state, with what is absent.
    ends: Vec<bool>,
    automaton: DraftAutomaton,
    /// The state of the automaton in which a member may come or the object end, by state.
    places: Vec<Option<u32>>,
    /// Names with what they lead to: the state before the name.
    chains: FxHashMap<(MemberName, Vec<(ValueId, u32)>), u32>,
    todo: Vec<usize>,
    is_unordered: bool,
}

impl ElementMembers {
    fn new(emitter: &Emitter<'_, '_>, id: ObjectId, marks: &'static MemberMarks) -> Self {
        let states = emitter.converter.objects[usize::from(id)].states.clone();
        let live = emitter.values.object_states[&id].clone();
        let mut ends: Vec<bool> = states.iter().map(|state| state.is_final).collect();
        // What is absent stands later in the order of names.
        let mut order: Vec<usize> = (0..states.len()).collect();
        order.sort_unstable_by_key(|&state| std::cmp::Reverse(states[state].place));
        for state in order {
            for &absent in &states[state].absent {
                ends[state] |= ends[absent as usize];
            }
        }
        let count = states.len();
        Self {
            id,
            marks,
            states,
            live,
            ends,
            automaton: DraftAutomaton::default(),
            places: vec![None; count],
            chains: FxHashMap::default(),
            todo: Vec::new(),
            is_unordered: emitter.options().key_order == KeyOrder::Any,
        }
    }

    fn place_of(&mut self, state: usize) -> u32 {
        if let Some(known) = self.places[state] {
            return known;
        }
        let place = self.automaton.state();
        self.automaton.finals[place as usize] = self.ends[state];
        self.places[state] = Some(place);
        self.todo.push(state);
        place
    }

    /// The members that may come in a state, by name.
    fn groups(
        &self,
        emitter: &Emitter<'_, '_>,
        state: usize,
    ) -> Vec<(MemberName, Vec<(ValueId, u32)>)> {
        let mut groups: Vec<(MemberName, Vec<(ValueId, u32)>)> = Vec::new();
        let is_live = |edge: &&MemberEdge| {
            self.live[edge.to as usize] && emitter.values.productive.contains(&edge.value)
        };
        for edge in self.states[state].members.iter().filter(is_live) {
            // The end of an element cannot repeat a name that is not known.
            if self.marks.closes_by_name && matches!(edge.name, MemberName::Other(_)) {
                continue;
            }
            match groups.last_mut() {
                Some((known, edges)) if *known == edge.name => edges.push((edge.value, edge.to)),
                _ => groups.push((edge.name, vec![(edge.value, edge.to)])),
            }
        }
        groups
    }

    /// The members that may come in a state, each with what may follow it.
    fn elements(&mut self, emitter: &mut Emitter<'_, '_>, state: usize) -> Result<()> {
        let from = self.place_of(state);
        let states = self.states.clone();
        for &absent in &states[state].absent {
            if self.live[absent as usize] {
                let target = self.place_of(absent as usize);
                self.automaton.part(from, emitter.empty, target);
            }
        }
        let groups = self.groups(emitter, state);
        if groups.is_empty() {
            return Ok(());
        }
        let opened = emitter.read_mark(&mut self.automaton, from, self.marks.open, None);
        for (named, edges) in groups {
            emitter.converter.spend(1)?;
            if self.is_unordered {
                for (value, to) in edges {
                    let element = emitter.call(RuleKey::NamedElement(self.id, named, value));
                    let behind = self.behind(emitter, to);
                    self.automaton.part(opened, element, behind);
                }
                continue;
            }
            let key = (named, edges);
            let chain = match self.chains.get(&key) {
                Some(&known) => known,
                None => {
                    let chain = self.automaton.state();
                    let (id, marks) = (self.id, self.marks);
                    let at = emitter.element_name(&mut self.automaton, chain, id, named, marks)?;
                    for &(value, to) in &key.1 {
                        let behind = self.behind(emitter, to);
                        let out = &mut self.automaton;
                        emitter.value_of_element(out, at, id, named, value, marks, behind);
                    }
                    self.chains.insert(key, chain);
                    chain
                }
            };
            self.automaton.part(opened, emitter.empty, chain);
        }
        Ok(())
    }

    /// A state of the automaton from which white space leads to where a state goes on.
    fn behind(&mut self, emitter: &mut Emitter<'_, '_>, state: u32) -> u32 {
        let place = self.place_of(state as usize);
        let behind = self.automaton.state();
        let space = emitter.call(RuleKey::Whitespace);
        self.automaton.part(behind, space, place);
        behind
    }
}
