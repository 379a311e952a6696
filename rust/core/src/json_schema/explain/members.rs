//! In an object: names that may not come, members that are missing.

use super::describe::quoted;
use super::scan::{Spot, end_of_scalar, is_blank};
use super::walk::{OpenObject, RefusedName};
use super::{BLANKS, Explainer, behind_part, listed};
use crate::error::Result;
use crate::json_schema::atoms::{NameId, SchemaId, SchemaKey, Type};
use crate::json_schema::choice::Applied;
use rustc_hash::FxHashSet;

/// Names that are shown.
const MOST_NAMES: usize = 8;

/// How the reason begins where a name may not come at all.
pub(super) const NO_MEMBER: &str = "no member ";

const ORDER: &str = "names stand in the order of the schema, and key_order=\"any\" takes any order";

impl Explainer<'_, '_> {
    /// In an open object, where a name is due or behind a member.
    pub(super) fn at_member(&mut self, open: Vec<OpenObject>, spot: Spot) -> Result<()> {
        let found = self.found();
        let (start, is_first) = match spot {
            Spot::Name { start, is_first } => (start, is_first),
            _ => (None, true),
        };
        let is_name = matches!(spot, Spot::Name { .. });
        if start.is_none() && found.is_some_and(is_blank) {
            self.push(Vec::new(), BLANKS.into());
            return Ok(());
        }
        if is_name && (start.is_some() || found == Some(b'"') || found.is_none()) {
            return self.at_name(&open, start.unwrap_or(self.read));
        }
        // The member that may not follow has a name, as a rule.
        if !is_name && found == Some(b',') {
            let rest = &self.walk.text[self.read + 1..];
            let blanks = rest.iter().take_while(|&&byte| is_blank(byte)).count();
            if rest.get(blanks) == Some(&b'"') {
                return self.at_name(&open, self.read + 1 + blanks);
            }
        }
        for object in &open {
            match found {
                Some(b'}') if is_first => self.at_end(object)?,
                Some(b',') if !is_name => {
                    let message = "no further member is allowed in the object";
                    self.say(&object.of.schemas, message.into())?;
                }
                _ if is_name => {
                    self.say(&[], "expected a name in double quotes".into())?;
                }
                _ => {
                    let (goes_on, ends) =
                        (self.walk.may_go_on(object)?, self.walk.may_end(object)?);
                    self.say(&[], behind_part("object", goes_on, ends))?;
                }
            }
        }
        Ok(())
    }

    /// The object may not end.
    fn at_end(&mut self, object: &OpenObject) -> Result<()> {
        let missing = self.walk.missing(object)?;
        if missing.is_empty() {
            let message = "the object is not complete: a condition asks for further members";
            return self.say(&object.of.schemas, message.into());
        }
        let names = self.walk.converter.names_of(&missing);
        let message = match names.as_slice() {
            [only] => format!("expected the member {only}, which is required"),
            names => format!("expected the members {}, which are required", listed(names, "and")),
        };
        let pointers = self.requiring(&object.of.schemas, &missing)?;
        if pointers.is_empty() {
            return self.say(&object.of.schemas, message);
        }
        self.push(pointers, message);
        Ok(())
    }

    /// The pointers of the `required` that name some members: of the schemas that apply whatever the
    /// value, or else of branches.
    fn requiring(&mut self, schemas: &[SchemaId], names: &[NameId]) -> Result<Vec<String>> {
        for with_branches in [false, true] {
            let mut out = Vec::new();
            let mut work: Vec<SchemaId> = schemas.to_vec();
            let mut seen = FxHashSet::default();
            while let Some(schema) = work.pop() {
                if !seen.insert(schema) {
                    continue;
                }
                let converter = &mut *self.walk.converter;
                converter.spend(1)?;
                let SchemaKey::Schema(node, _) = converter.key(schema) else { continue };
                let required = converter.required_names(schema)?;
                if names.iter().any(|name| required.contains(name)) {
                    let pointer = converter.schemas.arena().pointer(node);
                    out.push((node, format!("{pointer}/required")));
                }
                let applied = converter.applied(schema, Type::Object)?;
                let counts = |how: Applied| match how {
                    Applied::Always => true,
                    Applied::Not | Applied::If => false,
                    _ => with_branches,
                };
                work.extend(applied.iter().filter(|(_, how)| counts(*how)).map(|&(of, _)| of));
            }
            if !out.is_empty() {
                out.sort_unstable();
                out.dedup();
                return Ok(out.into_iter().map(|(_, pointer)| pointer).collect());
            }
        }
        Ok(Vec::new())
    }

    /// A name is due, or was read up to here.
    fn at_name(&mut self, open: &[OpenObject], start: usize) -> Result<()> {
        let end = end_of_scalar(self.walk.text, start);
        let name = match end {
            Some(end) => self.walk.name(start..end)?,
            None => None,
        };
        for object in open {
            let next = self.walk.next_names(object, MOST_NAMES)?;
            let expected = match self.walk.converter.names_of(&next).as_slice() {
                [] => String::new(),
                names => format!("; expected {}", listed(names, "or")),
            };
            let Some(name) = &name else {
                let message = match expected.strip_prefix("; expected ") {
                    Some(names) => format!("expected the name {names}"),
                    None => "expected a name that the object may have".into(),
                };
                self.say(&object.of.schemas, message)?;
                continue;
            };
            let shown = quoted(name);
            match self.walk.member(object, name)? {
                Ok(_) => {
                    let why = self.excluded(start..end.unwrap_or(start));
                    self.say(&object.of.schemas, why.into())?;
                }
                Err(_) if self.names.contains(name) => {
                    self.say(&object.of.schemas, format!("the name {shown} occurs twice"))?;
                }
                Err(RefusedName::Repeated | RefusedName::TooLate) => {
                    let message = format!("the name {shown} comes too late: {ORDER}{expected}");
                    self.say(&object.of.schemas, message)?;
                }
                Err(RefusedName::Missing(required)) => {
                    let before = quoted(self.walk.converter.names.get(required));
                    let pointers = self.requiring(&object.of.schemas, &[required])?;
                    let mut message =
                        format!("expected the member {before}, which is required, before {shown}");
                    // A name that the schema does not mention has no place in an order.
                    let names = &self.walk.converter.names;
                    if object.names.iter().any(|&known| **names.get(known) == *name) {
                        message = format!("{message}: {ORDER}");
                    }
                    match pointers.is_empty() {
                        true => self.say(&object.of.schemas, message)?,
                        false => self.push(pointers, message),
                    }
                }
                Err(RefusedName::Unknown) => {
                    let message = format!("{NO_MEMBER}{shown} is allowed{expected}");
                    self.say(&object.of.schemas, message)?;
                }
            }
        }
        Ok(())
    }
}
