//! `uniqueItems` where no list bounds the items: an array as its other conditions say, whose matcher
//! remembers what was read ([`crate::grammar::UniqueItems`]).
//!
//! Design: docs/design/unique-items.md.
//!
//! What must be shown here is that an array which has read some items can always be completed: each
//! place has infinitely many values, or all places have the same, and there are at least as many as
//! `minItems` asks for.

use super::arrays::ArrayAutomaton;
use super::atoms::{ArrayId, Atom, SchemaId, Type, ValueId};
use super::converter::Converter;
use super::formula::{Formula, FormulaId};
use super::scalars::Text;
use super::sizes::Sizes;
use super::values::Values;
use crate::error::{Error, Result};
use crate::grammar::UniqueItems;
use crate::regular::Dfa;

/// Of so many listed items there is a state for each set of those that were read.
const FEW_LISTED: usize = 8;
/// The characters that there are, at least.
const CHARACTERS: u64 = 1_000_000;
/// Strings of more characters are not counted.
const LONGEST_COUNTED: u32 = 64;
/// Of an edge with more characters only so many are counted.
const MOST_COUNTED: u32 = 256;

impl Converter<'_> {
    /// The automaton of an array, of one whose items are unique that of the other conditions.
    pub(super) fn array_of(&self, id: ArrayId) -> &ArrayAutomaton {
        match &self.arrays[usize::from(id)] {
            ArrayAutomaton::Unique { inner, .. } => &self.arrays[usize::from(*inner)],
            other => other,
        }
    }

    /// The automaton of a formula that asks for unique items.
    pub(super) fn unique_array(&mut self, formula: FormulaId) -> Result<Option<ArrayAutomaton>> {
        let Some(schema) = self.asks_for_unique(formula) else {
            return self.unique_of_listed(formula);
        };
        let known = self.unique_of_any(formula, schema);
        if let Some(automaton) = self.unless_lossy(known, schema)? {
            return Ok(Some(automaton));
        }
        let all = self.derive(formula, &mut |this, atom| match this.atom(atom) {
            Atom::Unique(_) => Ok(FormulaId::TRUE),
            other => {
                let other = other.clone();
                Ok(this.formulas.literal(other))
            }
        })?;
        let plain = self.array(all)?;
        Ok(Some(self.arrays[usize::from(plain)].clone()))
    }

    /// The automaton of a formula that asks for unique items, which no list bounds.
    fn unique_of_any(&mut self, formula: FormulaId, schema: SchemaId) -> Result<ArrayAutomaton> {
        let mut atoms = self.formulas.atoms_of(formula).into_iter();
        if atoms.any(|(atom, sign)| !sign && matches!(self.atom(atom), Atom::Unique(_))) {
            return Err(self.repeated_items(schema));
        }
        let (mut others, mut asks) = (Vec::new(), false);
        for part in self.formulas.conjuncts(formula) {
            match *self.formulas.get(part) {
                Formula::Literal(number, true) if matches!(self.atom(number), Atom::Unique(_)) => {
                    asks = true;
                }
                _ => others.push(part),
            }
        }
        let others = self.formulas.and(others);
        if !asks || self.asks_for_unique(others).is_some() {
            return Err(self.refused(
                schema,
                "the keyword holds in some alternatives of the array and not in others, so that what \
                 was read decides whether an item may be repeated; write it beside them",
            ));
        }
        let inner = self.array(others)?;
        if let ArrayAutomaton::Plain { most: Some(0 | 1), .. } = self.arrays[usize::from(inner)] {
            return Ok(self.arrays[usize::from(inner)].clone());
        }
        Ok(match self.unique_of(inner, schema)? {
            Some(items) => ArrayAutomaton::Unique { schema, inner, items },
            // There are fewer values than items.
            None => {
                ArrayAutomaton::Plain { prefix: Vec::new(), rest: None, least: 1, most: Some(0) }
            }
        })
    }

    /// The same of a formula whose items are listed, if they are scalars and so many that the sets of those
    /// that were read are many.
    fn unique_of_listed(&mut self, formula: FormulaId) -> Result<Option<ArrayAutomaton>> {
        let (mut others, mut asks) = (Vec::new(), None);
        for part in self.formulas.conjuncts(formula) {
            match *self.formulas.get(part) {
                Formula::Literal(number, true) if asks.is_none() => match *self.atom(number) {
                    Atom::Distinct(schema, _) if self.distinct[&schema].len() > FEW_LISTED => {
                        asks = Some(schema);
                    }
                    _ => others.push(part),
                },
                _ => others.push(part),
            }
        }
        let others = self.formulas.and(others);
        let Some(schema) = asks.filter(|_| !self.has_distinct(others)) else { return Ok(None) };
        if self.prefix_length(others)? > 0 {
            return Ok(None);
        }
        let inner = self.array(others)?;
        if !matches!(self.arrays[usize::from(inner)], ArrayAutomaton::Plain { .. }) {
            return Ok(None);
        }
        match self.unique_of(inner, schema) {
            // Objects and arrays among them are kept as sets.
            Ok(Some(items)) if items.nested => Ok(None),
            Ok(Some(items)) => Ok(Some(ArrayAutomaton::Unique { schema, inner, items })),
            Ok(None) | Err(Error::Schema { .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn has_distinct(&self, formula: FormulaId) -> bool {
        let atoms = self.formulas.atoms_of(formula);
        atoms.into_iter().any(|(number, _)| matches!(self.atom(number), Atom::Distinct(..)))
    }

    /// A schema in a formula that asks for unique items, if there is one.
    fn asks_for_unique(&self, formula: FormulaId) -> Option<SchemaId> {
        let atoms = self.formulas.atoms_of(formula);
        atoms.into_iter().find_map(|(number, _)| match self.atom(number) {
            Atom::Unique(schema) => Some(*schema),
            _ => None,
        })
    }

    pub(super) fn refused(&self, schema: SchemaId, why: &str) -> Error {
        let message = format!("{why}, or pass lossy={{\"uniqueItems\"}} and check the result");
        self.unsupported(self.place(schema), "uniqueItems", message)
    }

    /// What is known of the items of an array; `None` where there are fewer than it must have.
    fn unique_of(&mut self, inner: ArrayId, schema: SchemaId) -> Result<Option<UniqueItems>> {
        let (values, least) = self.items_of_array(inner, schema)?;
        let mut out = UniqueItems::ENDLESS;
        let mut is_exact = true;
        for &value in &values {
            let (items, counts_all) = self.items_of_value(value)?;
            out = out.both(items);
            is_exact &= counts_all;
        }
        match self.suffices(&values, least, out, is_exact, schema)? {
            true => Ok(Some(out)),
            false => Ok(None),
        }
    }

    /// Whether arrays of such items can be completed whatever they have read; false where there are fewer
    /// values than an array must have.
    fn suffices(
        &self,
        values: &[ValueId],
        least: u32,
        items: UniqueItems,
        is_exact: bool,
        schema: SchemaId,
    ) -> Result<bool> {
        if values.len() > 1 && items.least < u32::MAX {
            return Err(self.refused(
                schema,
                "items at different places have conditions of their own, and those at some place have \
                 finitely many values, which others could take; give all items one schema",
            ));
        }
        if least > items.least.max(1) {
            if is_exact {
                return Ok(false);
            }
            let message = format!(
                "minItems asks for {least} different items, and it cannot be shown that there are so \
                 many; lower it"
            );
            return Err(self.refused(schema, &message));
        }
        Ok(true)
    }

    /// The values of the items of an array, and how many items it must have.
    fn items_of_array(&self, inner: ArrayId, schema: SchemaId) -> Result<(Vec<ValueId>, u32)> {
        let (mut values, least): (Vec<ValueId>, u32) = match &self.arrays[usize::from(inner)] {
            ArrayAutomaton::Plain { prefix, rest, least, .. } => {
                (prefix.iter().chain(rest).copied().collect(), *least)
            }
            ArrayAutomaton::States(states) => {
                let items = states.iter().flat_map(|state| &state.items).map(|item| item.0);
                (items.collect(), 0)
            }
            ArrayAutomaton::Unique { .. } | ArrayAutomaton::Distinct { .. } => {
                return Err(self.refused(schema, "the keyword stands beside itself; write it once"));
            }
        };
        values.sort_unstable();
        values.dedup();
        Ok((values, least))
    }

    /// A result, or `None` where it is a refusal and `lossy` leaves the keyword out instead.
    fn unless_lossy<T>(&mut self, known: Result<T>, schema: SchemaId) -> Result<Option<T>> {
        match known {
            Err(Error::Schema { .. }) if self.options.lossy_unique_items => {
                let pointer = self.schemas.arena().pointer(self.place(schema));
                if !self.not_enforced.contains(&pointer) {
                    self.not_enforced.push(pointer);
                }
                Ok(None)
            }
            known => known.map(Some),
        }
    }

    /// Completes what is known of arrays whose unique items may be arrays and objects, when all values are
    /// known.
    pub(super) fn settle_unique_items(&mut self, values: &Values) -> Result<()> {
        let mut arrays: Vec<ArrayId> =
            values.all.values().filter_map(|value| value.array).collect();
        arrays.sort_unstable();
        arrays.dedup();
        let is_nested = |array: &ArrayId| {
            let array = &self.arrays[usize::from(*array)];
            matches!(array, ArrayAutomaton::Unique { items, .. } if items.nested)
        };
        arrays.retain(is_nested);
        if arrays.is_empty() {
            return Ok(());
        }
        let sizes = Sizes::of(self, values)?;
        let whole_numbers = values.numbers.values().all(has_whole_numbers);
        for array in arrays {
            let ArrayAutomaton::Unique { schema, inner, items } = self.arrays[usize::from(array)]
            else {
                continue;
            };
            let (held, least) = self.items_of_array(inner, schema)?;
            let fewest = held.iter().map(|&value| sizes.of_value(value)).min().unwrap_or(0);
            let fewest = u32::try_from(fewest).unwrap_or(u32::MAX);
            let items = UniqueItems { least: fewest, whole_numbers, ..items };
            let known = self.suffices(&held, least, items, false, schema);
            self.arrays[usize::from(array)] = match self.unless_lossy(known, schema)? {
                Some(_) => ArrayAutomaton::Unique { schema, inner, items },
                None => self.arrays[usize::from(inner)].clone(),
            };
        }
        Ok(())
    }

    /// What is known of the values that an item may have, and whether they are no more than that says.
    fn items_of_value(&mut self, value: ValueId) -> Result<(UniqueItems, bool)> {
        let key = **self.values.get(value);
        let mut out = UniqueItems { least: 0, ..UniqueItems::ENDLESS };
        let (mut count, mut is_exact) = (0u64, true);
        if [Type::Object, Type::Array].iter().any(|&kind| key.of(kind) != FormulaId::FALSE) {
            // How many there are is seen when all values that they hold are known.
            out = UniqueItems { nested: true, whole_numbers: false, ..out };
            (count, is_exact) = (u64::from(u32::MAX), false);
        }
        let strings = key.of(Type::String);
        if strings != FormulaId::FALSE {
            let (is_endless, strings, counts_all) = self.strings_of(strings)?;
            is_exact &= counts_all;
            out.endless_strings = is_endless;
            out.strings = u32::try_from(strings).unwrap_or(u32::MAX);
            count += strings;
        }
        let numbers = key.of(Type::Number);
        if numbers != FormulaId::FALSE {
            let automaton = self.written_numbers(numbers)?;
            self.spend(automaton.num_states())?;
            out.endless_numbers = has_endless_numbers(&automaton);
            out.whole_numbers &= has_whole_numbers(&automaton);
            count += numbers_of(&automaton);
        }
        for truth in [true, false] {
            let booleans = key.of(Type::Boolean);
            count += u64::from(self.formulas.evaluate(booleans, &mut |_, _| truth));
        }
        count += u64::from(key.of(Type::Null) != FormulaId::FALSE);
        out.least = u32::try_from(count).unwrap_or(u32::MAX);
        Ok((out, is_exact))
    }

    /// Whether each beginning of a string of a formula is one of infinitely many, how many strings
    /// there are at least, and whether there are no more.
    pub(super) fn strings_of(&mut self, formula: FormulaId) -> Result<(bool, u64, bool)> {
        Ok(match self.text(formula)? {
            Text::Characters(_, None) | Text::RegularExpression => {
                (true, u64::from(u32::MAX), false)
            }
            Text::Characters(_, Some(most)) => (false, CHARACTERS.saturating_pow(most), most == 0),
            Text::Listed(texts) => (false, texts.len() as u64, true),
            // What is not looked into may be few.
            Text::Pattern(_) | Text::ExpressionWithin(_) => (false, 1, false),
            Text::Automaton(automaton) => {
                self.spend(automaton.num_states())?;
                let (count, is_exact) = self.words_within(&automaton, 0, None)?;
                (has_endless_strings(&automaton), count, is_exact)
            }
            Text::Counted(automaton, least, most) => {
                self.spend(automaton.num_states())?;
                let is_endless = most.is_none() && has_endless_strings(&automaton);
                let (count, is_exact) = self.words_within(&automaton, least, most)?;
                (is_endless, count, is_exact)
            }
        })
    }

    /// How many texts of such lengths an automaton has, at least, and whether it has no more.
    pub(super) fn words_within(
        &mut self,
        automaton: &Dfa,
        least: u32,
        most: Option<u32>,
    ) -> Result<(u64, bool)> {
        let all = Graph::of(automaton, |_| true);
        if (least, most) == (0, None) && all.live().zip(all.endless()).any(|(a, b)| a && b) {
            return Ok((u64::from(u32::MAX), false));
        }
        // Those that are long are not counted, which is less than there are.
        let last = most.unwrap_or(LONGEST_COUNTED).min(LONGEST_COUNTED.max(least.min(1 << 12)));
        let mut ways = vec![0u64; all.edges.len()];
        if let Some(start) = ways.first_mut() {
            *start = 1;
        }
        let (mut sum, mut is_whole) = (0u64, most == Some(last));
        for length in 0..=last {
            self.spend(all.edges.len())?;
            if length >= least {
                let ends = ways.iter().zip(&all.finals).filter(|(_, is_final)| **is_final);
                sum = ends.fold(sum, |sum, (&ways, _)| sum.saturating_add(ways));
            }
            let mut next = vec![0u64; ways.len()];
            for (edges, &ways) in all.edges.iter().zip(&ways).filter(|(_, ways)| **ways > 0) {
                for &(to, size) in edges {
                    let more = ways.saturating_mul(size);
                    next[to as usize] = next[to as usize].saturating_add(more);
                }
            }
            is_whole |= next.iter().all(|&ways| ways == 0);
            if sum >= u64::from(u32::MAX) || next.iter().all(|&ways| ways == 0) {
                break;
            }
            ways = next;
        }
        let sum = sum.min(u64::from(u32::MAX));
        Ok((sum, is_whole && !all.is_cut && sum < u64::from(u32::MAX)))
    }
}

/// The states of an automaton with the characters of some edges.
struct Graph {
    /// For each state where its edges lead, and how many characters they have.
    edges: Vec<Vec<(u32, u64)>>,
    finals: Vec<bool>,
    /// Whether some edge has more characters than are counted.
    is_cut: bool,
}

impl Graph {
    fn of(automaton: &Dfa, keeps: impl Fn(u32) -> bool) -> Self {
        let states = 0..automaton.num_states() as u32;
        let mut is_cut = false;
        let edges = states.clone().map(|state| {
            let ranges = automaton.ranges(state).into_iter();
            let kept = ranges.map(|(first, last, to)| {
                is_cut |= last - first >= MOST_COUNTED;
                let counted = first..=last.min(first + MOST_COUNTED - 1);
                (to, counted.filter(|&c| keeps(c)).count() as u64)
            });
            kept.filter(|edge| edge.1 > 0).collect()
        });
        let edges = edges.collect();
        Self { edges, finals: states.map(|q| automaton.is_final(q)).collect(), is_cut }
    }

    /// The states from which one of some can be reached.
    fn reaching(&self, mut found: Vec<bool>) -> Vec<bool> {
        let mut back: Vec<Vec<u32>> = vec![Vec::new(); self.edges.len()];
        for (from, edges) in (0..).zip(&self.edges) {
            edges.iter().for_each(|edge| back[edge.0 as usize].push(from));
        }
        let mut work: Vec<u32> = (0..).zip(&found).filter(|q| *q.1).map(|q| q.0).collect();
        while let Some(state) = work.pop() {
            for &from in &back[state as usize] {
                if !std::mem::replace(&mut found[from as usize], true) {
                    work.push(from);
                }
            }
        }
        found
    }

    /// For each state whether an end can be reached.
    fn live(&self) -> impl Iterator<Item = bool> {
        self.reaching(self.finals.clone()).into_iter()
    }

    /// For each state whether a loop can be reached from which there is an end; `closes` says of an edge
    /// that a loop must have one such.
    fn loops(&self, closes: impl Fn(u32, usize) -> bool) -> Vec<bool> {
        let live: Vec<bool> = self.live().collect();
        let component = components(&self.edges);
        let mut found = vec![false; self.edges.len()];
        for (from, edges) in self.edges.iter().enumerate() {
            for (place, edge) in edges.iter().enumerate() {
                let to = edge.0 as usize;
                if live[from] && component[from] == component[to] && closes(from as u32, place) {
                    found[from] = true;
                }
            }
        }
        self.reaching(found)
    }

    /// For each state whether infinitely many texts lead to an end.
    fn endless(&self) -> impl Iterator<Item = bool> {
        self.loops(|_, _| true).into_iter()
    }
}

/// For each state the number of its strongly connected component.
fn components(edges: &[Vec<(u32, u64)>]) -> Vec<usize> {
    let targets = |state: usize| edges[state].iter().map(|edge| edge.0 as usize).collect();
    let mut out = vec![0; edges.len()];
    let components = crate::graph::components(edges.len(), targets);
    for (number, component) in components.into_iter().enumerate() {
        component.into_iter().for_each(|state| out[state] = number);
    }
    out
}

/// Whether each beginning of a text is one of infinitely many.
fn has_endless_strings(automaton: &Dfa) -> bool {
    let graph = Graph::of(automaton, |_| true);
    graph.live().zip(graph.endless()).all(|(live, endless)| !live || endless)
}

/// Whether each beginning of a number that holds another digit than zero is one of infinitely many
/// values: a loop reads such a digit.
fn has_endless_numbers(automaton: &Dfa) -> bool {
    let is_digit = |c: u32| (u32::from('1')..=u32::from('9')).contains(&c);
    let graph = Graph::of(automaton, |_| true);
    let digits = Graph::of(automaton, is_digit);
    let reads = |from: u32, place: usize| {
        let to = graph.edges[from as usize][place].0;
        digits.edges[from as usize].iter().any(|edge| edge.0 == to)
    };
    let endless = graph.loops(reads);
    let live: Vec<bool> = graph.live().collect();
    // The states behind such a digit.
    let mut met = vec![false; live.len()];
    let mut work: Vec<u32> = digits.edges.iter().flatten().map(|edge| edge.0).collect();
    while let Some(state) = work.pop() {
        if !std::mem::replace(&mut met[state as usize], true) {
            work.extend(graph.edges[state as usize].iter().map(|edge| edge.0));
        }
    }
    (0..live.len()).all(|state| !met[state] || !live[state] || endless[state])
}

/// Whether each beginning of a number that ends in a digit is a number.
fn has_whole_numbers(automaton: &Dfa) -> bool {
    let is_digit = |c: u32| (u32::from('0')..=u32::from('9')).contains(&c);
    let digits = Graph::of(automaton, is_digit);
    let all = Graph::of(automaton, |_| true);
    let live: Vec<bool> = all.live().collect();
    let mut targets = digits.edges.iter().flatten().map(|edge| edge.0 as usize);
    targets.all(|to| !live[to] || automaton.is_final(to as u32))
}

/// How many values the numbers of an automaton have, which holds each value in all its spellings:
/// those of fractions that end in zeros are left out.
pub(super) fn numbers_of(automaton: &Dfa) -> u64 {
    let point = u32::from('.');
    let zero = u32::from('0');
    let whole = Graph::of(automaton, |c| c != point && c != zero);
    let zeros = Graph::of(automaton, |c| c == zero);
    let points = Graph::of(automaton, |c| c == point);
    // In the whole part; behind the point and zeros; behind another digit there.
    let states = automaton.num_states();
    let place = |state: u32, part: usize| (state as usize + part * states) as u32;
    let mut edges: Vec<Vec<(u32, u64)>> = vec![Vec::new(); 3 * states];
    for state in 0..states {
        for part in 0..3 {
            let from = place(state as u32, part) as usize;
            let after = |part: usize, is_zero: bool| match part {
                0 => 0,
                _ if is_zero => 1,
                _ => 2,
            };
            let digits = whole.edges[state].iter();
            edges[from].extend(digits.map(|&(to, size)| (place(to, after(part, false)), size)));
            let zeros = zeros.edges[state].iter();
            edges[from].extend(zeros.map(|&(to, size)| (place(to, after(part, true)), size)));
            if part == 0 {
                let points = points.edges[state].iter();
                edges[from].extend(points.map(|&(to, size)| (place(to, 1), size)));
            }
        }
    }
    let is_end = |state: usize| state / states != 1 && automaton.is_final((state % states) as u32);
    let finals = (0..3 * states).map(is_end).collect();
    let graph = Graph { edges, finals, is_cut: false };
    let live: Vec<bool> = graph.live().collect();
    if graph.endless().next() == Some(true) {
        return u64::from(u32::MAX);
    }
    // No loop is left: the longest way has fewer letters than there are states.
    let mut ways = vec![0u64; live.len()];
    if let Some(start) = ways.first_mut() {
        *start = 1;
    }
    let mut sum = 0u64;
    for _ in 0..=live.len() {
        let mut next = vec![0u64; ways.len()];
        for (state, &ways) in ways.iter().enumerate().filter(|(state, _)| live[*state]) {
            if graph.finals[state] {
                sum = sum.saturating_add(ways);
            }
            for &(to, size) in &graph.edges[state] {
                let more = ways.saturating_mul(size);
                next[to as usize] = next[to as usize].saturating_add(more);
            }
        }
        if sum >= u64::from(u32::MAX) || next.iter().all(|&ways| ways == 0) {
            break;
        }
        ways = next;
    }
    sum.min(u64::from(u32::MAX))
}
