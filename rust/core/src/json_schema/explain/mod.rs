//! Why a text leaves the language of a schema: where in the document, and what which schema says there.
//!
//! Design: docs/design/json-schema.md, "Explanations".
//!
//! - here: what is due at the place, and how that is said
//! - [`scan`]: the beginning of the text, as JSON
//! - [`walk`]: what the schemas ask of the place
//! - [`value`]: a value that is due
//! - [`members`]: names that may not come, members that are missing
//! - [`describe`]: conditions in words

mod describe;
mod members;
mod scan;
mod value;
mod walk;

pub(super) use describe::listed;

use super::atoms::{SchemaId, Type, ValueId};
use super::converter::Converter;
use super::value::{Arena, push_index, push_plain_token};
use super::values::ReachedValues;
use crate::budget::Budget;
use crate::error::Result;
use rustc_hash::FxHashMap;
use scan::{Inside, MemberSpan, Scan, Spot, end_of_scalar, is_blank, is_negative_zero, is_numeric};
use std::rc::Rc;
use walk::{OpenArray, OpenObject, Possible, SchemaWalk};

/// What stands in the way, and of which schemas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// The JSON pointers of the schemas, as fragments of URIs; none where it is the form of the text.
    pub pointers: Vec<String>,
    /// What is expected there.
    pub message: String,
}

/// What the schemas say of a place in a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explained {
    /// The JSON pointer of the value in the text.
    pub pointer: String,
    /// What is expected, and of which schemas.
    pub reasons: Vec<Reason>,
}

/// What lets an object have members that its schema does not name.
pub(super) const OPENED: &str =
    "; objects that do not say otherwise are closed, and additional_properties=True opens them";

/// Why `oneOf` may leave no value, and what to write.
pub(super) const OVERLAPPING: &str = "branches of oneOf overlap, and it refuses a value that two of them take; write \
                                      anyOf, or give each branch a required member with a const of its own";

impl Explained {
    /// Whether a name stands where no member of that name may.
    pub(super) fn has_unknown_member(&self) -> bool {
        self.reasons.iter().any(|reason| reason.message.starts_with(members::NO_MEMBER))
    }

    /// Says that it may where objects are open.
    pub(super) fn say_what_opens(&mut self) {
        self.add(members::NO_MEMBER, OPENED);
    }

    /// Whether nothing can stand behind a value that its own schemas allow.
    pub(super) fn has_dead_end(&self) -> bool {
        self.reasons.iter().any(|reason| reason.message == value::DEAD_END)
    }

    /// Says that branches of `oneOf` may be why.
    pub(super) fn say_what_overlaps(&mut self) {
        self.add(value::DEAD_END, &format!(", perhaps because {OVERLAPPING}"));
    }

    /// Adds words to the reasons that begin with others.
    fn add(&mut self, beginning: &str, words: &str) {
        let reasons = self.reasons.iter_mut();
        let meant = reasons.filter(|reason| reason.message.starts_with(beginning));
        meant.for_each(|reason| reason.message.push_str(words));
    }
}

/// The text whose place is to be explained.
#[derive(Clone, Copy, Debug)]
pub struct Beginning<'t> {
    /// All that is there of it.
    pub text: &'t [u8],
    /// How many bytes of it the grammar reads.
    pub read: usize,
    /// Whether the text is whole; otherwise it may go on in any way.
    pub is_whole: bool,
}

/// Reasons that are told.
const MOST_REASONS: usize = 8;

const BLANKS: &str = "white space does not stand here in the form that the options choose";

/// What the schemas say of the place where a text stops; `None` where its beginning is no JSON.
pub(super) fn explain(
    converter: &mut Converter<'_>,
    root: (SchemaId, ValueId),
    values: ReachedValues,
    beginning: Beginning<'_>,
    budget: &Budget,
) -> Result<Option<Explained>> {
    let Beginning { text, read, is_whole } = beginning;
    let read = read.min(text.len());
    let Some(scan) = Scan::of(&text[..read]) else { return Ok(None) };
    let met = FxHashMap::default();
    let walk = SchemaWalk { converter, values, text, arena: Arena::new(), budget, met };
    let mut this = Explainer {
        walk,
        read,
        is_whole,
        pointer: String::new(),
        names: Vec::new(),
        reasons: Vec::new(),
    };
    let possible = vec![Possible { value: root.1, schemas: Rc::from([root.0]) }];
    this.explain(scan, possible)?;
    Ok(Some(Explained { pointer: this.pointer, reasons: this.reasons }))
}

struct Explainer<'w, 'a> {
    walk: SchemaWalk<'w, 'a>,
    read: usize,
    is_whole: bool,
    pointer: String,
    /// The names that the innermost object has.
    names: Vec<String>,
    reasons: Vec<Reason>,
}

impl Explainer<'_, '_> {
    /// The byte at which the text stops.
    fn found(&self) -> Option<u8> {
        self.walk.text.get(self.read).copied()
    }

    fn say(&mut self, schemas: &[SchemaId], message: String) -> Result<()> {
        let pointers = self.walk.converter.pointers(schemas.iter().copied())?;
        self.push(pointers, message);
        Ok(())
    }

    fn push(&mut self, pointers: Vec<String>, message: String) {
        let is_full = self.reasons.len() >= MOST_REASONS;
        match self.reasons.iter_mut().find(|reason| reason.message == message) {
            Some(known) => {
                let new = pointers.into_iter().filter(|one| !known.pointers.contains(one));
                let new: Vec<String> = new.collect();
                known.pointers.extend(new);
            }
            None if is_full => {}
            None => self.reasons.push(Reason { pointers, message }),
        }
    }

    fn explain(&mut self, scan: Scan, root: Vec<Possible>) -> Result<()> {
        let mut possible = root;
        let last = scan.levels.len();
        for (number, level) in (1..).zip(&scan.levels) {
            let is_last = number == last;
            let inside = match &level.inside {
                Inside::Object(members, name) => {
                    self.inside_object(&possible, members, name.as_ref(), scan.spot, is_last)?
                }
                Inside::Array(items) => self.inside_array(&possible, items, scan.spot, is_last)?,
            };
            match inside {
                Some(inside) => possible = inside,
                None => return Ok(()),
            }
        }
        let is_complete = last == 0 && self.end_of_number(scan.spot, &possible)?.is_some();
        match scan.spot {
            Spot::Value { start, .. } if !is_complete => self.at_value(&possible, start)?,
            Spot::Colon => self.push(Vec::new(), "expected a colon behind the name".into()),
            _ => self.behind_all(),
        }
        Ok(())
    }

    /// What the value of the last member of an open object may be, whose name is put behind the pointer;
    /// `None` where the place is in this object, which is explained.
    fn inside_object(
        &mut self,
        possible: &[Possible],
        members: &[MemberSpan],
        name: Option<&std::ops::Range<usize>>,
        spot: Spot,
        is_last: bool,
    ) -> Result<Option<Vec<Possible>>> {
        let mut open = self.walk.objects(possible);
        self.names.clear();
        for member in members {
            open = self.behind_member(open, member.name.clone(), member.value.clone())?;
        }
        let name = match name {
            Some(range) => self.walk.name(range.clone())?,
            None => None,
        };
        let Some(name) = name else {
            self.at_member(open, spot)?;
            return Ok(None);
        };
        push_plain_token(&mut self.pointer, &name);
        let mut inside = Vec::new();
        let mut behind = Vec::new();
        for object in &open {
            for (one, next) in self.walk.member(object, &name)?.unwrap_or_default() {
                if !inside.contains(&one) {
                    inside.push(one.clone());
                }
                behind.push((one, next));
            }
        }
        if is_last && let Some(end) = self.end_of_number(spot, &inside)? {
            let open = self.walk.narrowed(behind, end.0..end.1)?;
            self.pop();
            self.at_member(open, Spot::Behind)?;
            return Ok(None);
        }
        Ok(Some(inside))
    }

    /// What the item behind those of an open array may be, whose number is put behind the pointer; `None`
    /// where the place is in this array, which is explained.
    fn inside_array(
        &mut self,
        possible: &[Possible],
        items: &[std::ops::Range<usize>],
        spot: Spot,
        is_last: bool,
    ) -> Result<Option<Vec<Possible>>> {
        let mut open = self.walk.arrays(possible);
        for item in items {
            let mut ways = Vec::new();
            for array in &open {
                ways.extend(self.walk.item(array)?);
            }
            open = self.walk.narrowed(ways, item.clone())?;
        }
        if is_last && spot == Spot::Behind {
            self.at_item(&open)?;
            return Ok(None);
        }
        let mut inside = Vec::new();
        let mut behind = Vec::new();
        for array in &open {
            for (one, next) in self.walk.item(array)? {
                if !inside.contains(&one) {
                    inside.push(one.clone());
                }
                behind.push((one, next));
            }
        }
        if is_last && self.explains_item(&open, items, &inside, spot)? {
            return Ok(None);
        }
        if is_last && let Some(end) = self.end_of_number(spot, &inside)? {
            let open = self.walk.narrowed(behind, end.0..end.1)?;
            self.at_item(&open)?;
            return Ok(None);
        }
        push_index(&mut self.pointer, items.len());
        Ok(Some(inside))
    }

    /// Whether it is the array that excludes an item at its end: where none may stand, and where it is
    /// equal to one before; says so.
    fn explains_item(
        &mut self,
        open: &[OpenArray],
        items: &[std::ops::Range<usize>],
        inside: &[Possible],
        spot: Spot,
    ) -> Result<bool> {
        let is_due = matches!(spot,
            Spot::Value { start, is_first: true } if start == self.read);
        if is_due && self.found() == Some(b']') {
            self.at_item(open)?;
            return Ok(true);
        }
        if is_due && inside.is_empty() {
            self.at_empty_array(open)?;
            return Ok(true);
        }
        if let Spot::Value { start, .. } = spot
            && self.is_repeated(open, items, start)?
        {
            push_index(&mut self.pointer, items.len());
            return Ok(true);
        }
        Ok(false)
    }

    /// The value is complete, and the text goes on.
    fn behind_all(&mut self) {
        match self.found() {
            Some(byte) if is_blank(byte) => self.push(
                Vec::new(),
                "expected the end of the text: white space around the value is no part of it"
                    .into(),
            ),
            Some(_) => {
                self.push(Vec::new(), "expected the end of the text: the value is complete".into());
            }
            None => {}
        }
    }

    /// Whether the scalar at a place is equal to an item before, where items are unique; says so.
    fn is_repeated(
        &mut self,
        open: &[OpenArray],
        items: &[std::ops::Range<usize>],
        start: usize,
    ) -> Result<bool> {
        let mut schemas: Vec<SchemaId> = Vec::new();
        for array in open {
            schemas.extend(self.walk.unique_schema(array)?);
        }
        let text = self.walk.text;
        let length = text[start..].iter().take_while(|&&byte| is_numeric(byte)).count();
        let end = match end_of_scalar(text, start) {
            Some(end) => end,
            None if length > 0 => start + length,
            None => return Ok(false),
        };
        if schemas.is_empty() || end < self.read {
            return Ok(false);
        }
        let Some(value) = self.walk.read(start..end)? else { return Ok(false) };
        for (place, item) in items.iter().enumerate() {
            let Some(item) = self.walk.read(item.clone())? else { continue };
            self.walk.budget.spend(1)?;
            if self.walk.arena.equal(item, value) {
                let message = format!("expected an item that is not equal to item {place}");
                self.say(&schemas, message)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn pop(&mut self) {
        let end = self.pointer.rfind('/').unwrap_or(0);
        self.pointer.truncate(end);
    }

    fn behind_member(
        &mut self,
        open: Vec<OpenObject>,
        name: std::ops::Range<usize>,
        value: std::ops::Range<usize>,
    ) -> Result<Vec<OpenObject>> {
        let Some(name) = self.walk.name(name)? else { return Ok(open) };
        let mut ways = Vec::new();
        for object in &open {
            ways.extend(self.walk.member(object, &name)?.unwrap_or_default());
        }
        self.names.push(name);
        self.walk.narrowed(ways, value)
    }

    /// Where the number ends that is the last thing read, if it is complete and as it should be: then it
    /// is what follows that is not.
    fn end_of_number(
        &mut self,
        spot: Spot,
        possible: &[Possible],
    ) -> Result<Option<(usize, usize)>> {
        let Spot::Value { start, .. } = spot else { return Ok(None) };
        let is_number = start < self.read && is_numeric(self.walk.text[start]);
        let goes_on = self.found().map_or(!self.is_whole, is_numeric);
        if !is_number || goes_on || is_negative_zero(&self.walk.text[start..self.read]) {
            return Ok(None);
        }
        let fits = self.fits(possible, start..self.read)?;
        Ok(fits.then_some((start, self.read)))
    }

    /// Whether the value at a place meets one of some conditions.
    fn fits(&mut self, possible: &[Possible], range: std::ops::Range<usize>) -> Result<bool> {
        let Some(node) = self.walk.read(range)? else { return Ok(false) };
        for one in possible {
            if self.walk.satisfies(one.value, node, 0)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Where the first item of an array would stand, which has none.
    fn at_empty_array(&mut self, open: &[OpenArray]) -> Result<()> {
        for array in open {
            let message = match self.found() {
                Some(byte) if is_blank(byte) => {
                    self.push(Vec::new(), BLANKS.into());
                    continue;
                }
                Some(_) => "no item is allowed",
                None => "expected the end of the array",
            };
            self.say(&array.of.schemas, message.into())?;
        }
        Ok(())
    }

    /// In an open array, behind an item or where the first may come.
    fn at_item(&mut self, open: &[OpenArray]) -> Result<()> {
        for array in open {
            let what = self.walk.converter.describe(
                array.of.value,
                &self.walk.values,
                Some(Type::Array),
            )?;
            let message = match self.found() {
                Some(b']') if what == "an array" => {
                    "the array is not complete: a condition asks for further items".into()
                }
                Some(b']') => format!("expected another item: {what}"),
                Some(b',') if what == "an array" => "no further item is allowed".into(),
                Some(b',') => format!("no further item is allowed: {what}"),
                Some(byte) if is_blank(byte) => {
                    self.push(Vec::new(), BLANKS.into());
                    continue;
                }
                _ => {
                    let goes_on = !self.walk.item(array)?.is_empty();
                    let ends = self.walk.may_end_array(array);
                    behind_part("array", goes_on, ends)
                }
            };
            self.say(&array.of.schemas, message)?;
        }
        Ok(())
    }
}

/// What is due behind a member or an item.
fn behind_part(whole: &str, goes_on: bool, ends: bool) -> String {
    match (goes_on, ends) {
        (true, false) => "expected a comma".into(),
        (false, true) => format!("expected the end of the {whole}"),
        _ => format!("expected a comma or the end of the {whole}"),
    }
}
