//! Values in elements, and strings and names as they are, without escapes.
//!
//! In elements the root is an object, the arguments of a call; where a schema allows no object, it is the
//! content of an element. What stands within values is JSON, but in styles that write arrays and
//! objects in elements everywhere.

use super::styles::{ENDS_OF_BARE_NAMES, MemberMarks, ValueKind};
use super::{Emitter, RuleKey};
use crate::error::Result;
use crate::grammar::CharSet;
use crate::ids::ExprId;
use crate::json_schema::atoms::{ObjectId, ValueId};
use crate::json_schema::formula::FormulaId;
use crate::json_schema::scalars::StringForm;
use crate::regular::{Bounds, Dfa, ScalarNfa, Spelling};

/// Characters that other names do not have where nothing is spelled otherwise: blanks and marks.
const NOT_IN_NAMES: [(u32, u32); 7] =
    [(0, 0x20), (0x22, 0x22), (0x26, 0x26), (0x3C, 0x3C), (0x3E, 0x3E), (0x7F, 0x7F), (0xA0, 0xA0)];

/// Characters that other names do not have in all styles.
const CONTROLS: [(u32, u32); 2] = [(0, 0x1F), (0x7F, 0x7F)];

impl Emitter<'_, '_> {
    /// The object that a value may be; else the value.
    pub(super) fn root(&mut self, id: ValueId) -> Result<ExprId> {
        let object = self.values.all[&id].object;
        match object.filter(|object| self.values.object_states[object].first() == Some(&true)) {
            Some(object) => Ok(self.call(RuleKey::Members(object))),
            None => self.content(id),
        }
    }

    /// A value as the content of an element, of whatever kind.
    pub(super) fn content(&mut self, id: ValueId) -> Result<ExprId> {
        let Some(marks) = self.marks() else { return Ok(self.empty) };
        let mut parts = Vec::new();
        let mut padded = Vec::new();
        for (kind, value) in self.kinds(id, marks) {
            match self.is_padded(kind, marks) {
                true => padded.push(value),
                false => parts.push(value),
            }
        }
        if !padded.is_empty() {
            let value = self.choice(padded);
            let padded = self.padded(value);
            parts.push(padded);
        }
        Ok(self.choice(parts))
    }

    /// What a value may be, by kind.
    fn kinds(&mut self, id: ValueId, marks: &MemberMarks) -> Vec<(ValueKind, ExprId)> {
        let value = self.values.all[&id];
        let mut out = Vec::new();
        if let Some(formula) = value.string {
            out.push((ValueKind::String, self.call(RuleKey::Raw(formula))));
        }
        if let Some(formula) = value.number {
            out.push((ValueKind::Number, self.call(RuleKey::Number(formula))));
        }
        for (text, may_be) in [(&b"true"[..], value.booleans[0]), (b"false", value.booleans[1])] {
            if may_be {
                out.push((ValueKind::Boolean, self.literal(text)));
            }
        }
        if value.null {
            out.push((ValueKind::Null, self.literal(b"null")));
        }
        if let Some(array) = value.array {
            let key = match marks.item {
                None => RuleKey::Array(array, 0),
                Some(_) => RuleKey::Items(array),
            };
            out.push((ValueKind::Array, self.call(key)));
        }
        if let Some(object) = value.object {
            let key = match marks.item {
                None => RuleKey::Object(object, 0),
                Some(_) => RuleKey::Members(object),
            };
            out.push((ValueKind::Object, self.call(key)));
        }
        out
    }

    /// Whether white space stands around values of a kind that do not have it themselves.
    fn is_padded(&self, kind: ValueKind, marks: &MemberMarks) -> bool {
        let has_its_own = match kind {
            ValueKind::String => true,
            ValueKind::Array | ValueKind::Object => marks.item.is_some(),
            ValueKind::Number | ValueKind::Boolean | ValueKind::Null => false,
        };
        marks.pads_values && !has_its_own
    }

    fn padded(&mut self, value: ExprId) -> ExprId {
        let space = self.call(RuleKey::Whitespace);
        self.sequence(vec![space, value, space])
    }

    /// What stands behind the name of an element: of what kind the value is, the value, the end.
    /// Where the name is repeated at the end, that is left to whoever wrote it.
    pub(super) fn element(&mut self, id: ValueId) -> Result<ExprId> {
        let Some(marks) = self.marks() else { return Ok(self.empty) };
        let mut parts = Vec::new();
        match marks.kinds {
            None => parts.push(self.content(id)?),
            Some((words, behind)) => {
                let mut groups: Vec<(&str, Vec<ExprId>)> = Vec::new();
                for (kind, value) in self.kinds(id, marks) {
                    let value = match self.is_padded(kind, marks) {
                        true => self.padded(value),
                        false => value,
                    };
                    let word = words[kind as usize];
                    match groups.iter_mut().find(|group| group.0 == word) {
                        Some(group) => group.1.push(value),
                        None => groups.push((word, vec![value])),
                    }
                }
                let mut choices = Vec::new();
                for (word, values) in groups {
                    let word = self.mark(&format!("{word}{behind}"));
                    let values = self.choice(values);
                    choices.push(self.sequence(vec![word, values]));
                }
                parts.push(self.choice(choices));
            }
        }
        if let Some(mark) = marks.before_value {
            let space = self.call(RuleKey::Whitespace);
            let mark = self.mark(mark);
            parts.splice(0..0, [space, mark]);
        }
        if !marks.closes_by_name {
            parts.push(self.mark(marks.close));
        }
        Ok(self.sequence(parts))
    }

    /// A string as its characters; what ends it does not occur in it.
    pub(super) fn raw(&mut self, formula: FormulaId) -> Result<ExprId> {
        let text = self.values.texts[&formula].clone();
        if let StringForm::Either(forms) = text {
            return Ok(self.either(&forms, RuleKey::Raw));
        }
        let is_all = matches!(text, StringForm::Characters(0, None));
        let key = RuleKey::RawCounted(formula);
        let body = match text {
            StringForm::Counted(automaton, min, max) => {
                self.counted(key, &automaton, (min, max), false)?
            }
            StringForm::Characters(min, max) if !is_all => {
                self.counted(key, &Dfa::anything(), (min, max), true)?
            }
            text => {
                let (automaton, _) = self.language(text)?;
                self.encoded_without(&automaton, Spelling::Utf8, &[self.end_of_raw_strings()])?
            }
        };
        // All strings have the white space around them, too.
        let is_padded = self.marks().is_some_and(|marks| marks.pads_strings) && !is_all;
        Ok(if is_padded { self.padded(body) } else { body })
    }

    /// Names of a class, as elements have them.
    pub(super) fn raw_names(&mut self, object: ObjectId, class: u32) -> Result<ExprId> {
        let Some(marks) = self.marks() else { return Ok(self.empty) };
        let others: &[(u32, u32)] = match marks.escapes {
            [] => &NOT_IN_NAMES,
            _ => &CONTROLS,
        };
        let names = self.names_without(object, class, &CharSet::new(others.iter().copied()))?;
        let bounds = self.converter.bounds;
        let names = escaped(&names, marks, &bounds)?;
        self.encoded_without(&names, Spelling::Utf8, &[])
    }

    /// Names of a class without quotation marks.
    pub(super) fn bare_names(&mut self, object: ObjectId, class: u32) -> Result<ExprId> {
        let ends = ENDS_OF_BARE_NAMES.iter().map(|&end| (end as u32, end as u32));
        let others = CharSet::new(NOT_IN_NAMES.iter().copied().chain(ends));
        let names = self.names_without(object, class, &others)?;
        self.encoded_without(&names, Spelling::Utf8, &[])
    }

    /// The names of a class that have a character, and none of some.
    fn names_without(&mut self, object: ObjectId, class: u32, others: &CharSet) -> Result<Dfa> {
        let class = self.converter.objects[usize::from(object)].classes[class as usize].clone();
        if class.expression.is_some() {
            return Err(self.expression_without());
        }
        let bounds = self.converter.bounds;
        let letters = CharSet::scalar_values().difference(others);
        let names = Dfa::character(&letters).repetition(1, None, &bounds)?;
        let mut names = names.intersection(&class.names, &bounds)?;
        if class.lengths != (0, None) {
            let (least, most) = class.lengths;
            names = names.intersection(&Dfa::lengths(least, most, &bounds)?, &bounds)?;
        }
        Ok(names)
    }
}

/// The names of an automaton, with the spellings of a style in place of some characters.
fn escaped(names: &Dfa, marks: &MemberMarks, bounds: &Bounds<'_>) -> Result<Dfa> {
    if marks.escapes.is_empty() {
        return Ok(names.clone());
    }
    let special = CharSet::new(marks.escapes.iter().map(|&(c, _)| (c as u32, c as u32)));
    let mut nfa = ScalarNfa::new();
    for state in 0..names.num_states() as u32 {
        nfa.add_state();
        if names.is_final(state) {
            nfa.set_final(state);
        }
    }
    nfa.add_start(0);
    for state in 0..names.num_states() as u32 {
        for (set, to) in names.edges(state) {
            nfa.add_edge(state, &set.difference(&special), to);
            for &(character, spelled) in marks.escapes {
                if !set.contains(character as u32) {
                    continue;
                }
                let mut at = state;
                let count = spelled.chars().count();
                for (place, letter) in spelled.chars().enumerate() {
                    let next = if place + 1 == count { to } else { nfa.add_state() };
                    nfa.add_edge(at, &CharSet::new([(letter as u32, letter as u32)]), next);
                    at = next;
                }
            }
        }
        bounds.budget.spend(1)?;
    }
    Dfa::from_nfa(&nfa, bounds)
}
