//! What is left of a formula when a member or an item is read (JSON-SCHEMA by residuals: the derivative
//! of a formula by the next part of the value).

use super::atoms::{Atom, Branch, LanguageId, NameId, SchemaId, SchemaKey};
use super::automata::NameClass;
use super::converter::Converter;
use super::dialect::Dialect;
use super::formula::{Formula, FormulaId};
use super::value::JsonNode;
use crate::error::{Error, Result};

/// Levels of `unevaluated...` inside of conditions of each other.
const MOST_NESTED: usize = 64;

/// The member that is read.
#[derive(Clone, Copy)]
pub(super) enum Member<'c> {
    Named(NameId),
    Other(&'c NameClass),
}

/// Units of work for a part of a formula that is written anew.
const UNITS_OF_A_PART: usize = 4;

impl Converter<'_> {
    /// What is left of a formula of objects when a member is read. The value of the member is spoken of
    /// by atoms [`Atom::Value`].
    pub(super) fn present(
        &mut self,
        formula: FormulaId,
        member: Member<'_>,
        depth: usize,
    ) -> Result<FormulaId> {
        if let Member::Named(name) = member {
            let key = (formula, name);
            if let Some(&known) = self.present.get(&key) {
                self.spend(1)?;
                return Ok(known);
            }
            let rest = self.left_with(formula, member, depth)?;
            self.present.insert(key, rest);
            return Ok(rest);
        }
        self.left_with(formula, member, depth)
    }

    fn left_with(
        &mut self,
        formula: FormulaId,
        member: Member<'_>,
        depth: usize,
    ) -> Result<FormulaId> {
        self.check_depth(depth)?;
        self.derive(formula, &mut |this, number| {
            let itself = this.formulas.of_atom(number);
            Ok(match this.atom(number).clone() {
                Atom::Properties(schema) => {
                    let value = this.member(schema, member)?;
                    this.formulas.and([value, itself])
                }
                Atom::Required(name) => match member {
                    Member::Named(other) if other == name => FormulaId::TRUE,
                    _ => itself,
                },
                Atom::Names(schema) => match this.name_satisfies(schema, member)? {
                    true => itself,
                    false => FormulaId::FALSE,
                },
                Atom::AtLeastProperties(count) => this.at_least(Atom::AtLeastProperties, count - 1),
                Atom::UnevaluatedProperties(owner, branches) => {
                    let rest = this.unevaluated(owner, "unevaluatedProperties")?;
                    let mut ways = vec![this.value(rest)];
                    let mut left: Vec<Branch> = Vec::new();
                    for &(condition, branch) in &branches {
                        let condition = this.present(condition, member, depth + 1)?;
                        if condition == FormulaId::FALSE {
                            continue;
                        }
                        if this.covers(owner, branch, member)? {
                            ways.push(condition);
                        }
                        left.push((condition, branch));
                    }
                    let now = this.formulas.or(ways);
                    let later = this.unevaluated_atom(Atom::UnevaluatedProperties, owner, left);
                    this.formulas.and([now, later])
                }
                _ => itself,
            })
        })
    }

    /// What is left of a formula of objects when there is no member of a name.
    pub(super) fn absent(
        &mut self,
        formula: FormulaId,
        name: NameId,
        depth: usize,
    ) -> Result<FormulaId> {
        let key = (formula, name);
        if let Some(&known) = self.absent.get(&key) {
            self.spend(1)?;
            return Ok(known);
        }
        self.check_depth(depth)?;
        let rest = self.derive(formula, &mut |this, number| {
            Ok(match this.atom(number).clone() {
                Atom::Required(other) if other == name => FormulaId::FALSE,
                Atom::RequiredAll(schema) if this.required_names(schema)?.contains(&name) => {
                    FormulaId::FALSE
                }
                Atom::UnevaluatedProperties(owner, branches) => {
                    let mut left: Vec<Branch> = Vec::new();
                    for &(condition, branch) in &branches {
                        left.push((this.absent(condition, name, depth + 1)?, branch));
                    }
                    this.unevaluated_atom(Atom::UnevaluatedProperties, owner, left)
                }
                _ => this.formulas.of_atom(number),
            })
        })?;
        self.absent.insert(key, rest);
        Ok(rest)
    }

    /// What is left of a formula of arrays when an item is read.
    pub(super) fn item(
        &mut self,
        formula: FormulaId,
        index: usize,
        depth: usize,
    ) -> Result<FormulaId> {
        self.check_depth(depth)?;
        self.derive(formula, &mut |this, number| {
            let itself = this.formulas.of_atom(number);
            Ok(match this.atom(number).clone() {
                Atom::Items(schema) => {
                    let value = this.item_of(schema, index)?;
                    this.formulas.and([value, itself])
                }
                Atom::AtLeastItems(count) => this.at_least(Atom::AtLeastItems, count - 1),
                Atom::AtLeastContains(schema, count) => {
                    let value = this.value(schema);
                    let fewer =
                        this.at_least(|count| Atom::AtLeastContains(schema, count), count - 1);
                    let counted = this.formulas.and([value, fewer]);
                    this.formulas.or([counted, itself])
                }
                Atom::UnevaluatedItems(owner, branches) => {
                    let rest = this.unevaluated(owner, "unevaluatedItems")?;
                    let mut ways = vec![this.value(rest)];
                    let mut left: Vec<Branch> = Vec::new();
                    for &(condition, branch) in &branches {
                        let condition = this.item(condition, index, depth + 1)?;
                        if condition == FormulaId::FALSE {
                            continue;
                        }
                        let covered = this.covers_item(owner, branch, index)?;
                        ways.push(this.formulas.and([condition, covered]));
                        left.push((condition, branch));
                    }
                    let now = this.formulas.or(ways);
                    let later = this.unevaluated_atom(Atom::UnevaluatedItems, owner, left);
                    this.formulas.and([now, later])
                }
                Atom::Distinct(schema, used) => {
                    let values = this.distinct[&schema].clone();
                    let used = this.used.get(used).clone();
                    let mut ways = Vec::with_capacity(values.len());
                    this.spend(values.len() * (1 + used.len() / 4))?;
                    for (place, &value) in values.iter().enumerate() {
                        let (word, bit) = (place / 64, 1 << (place % 64));
                        if used[word] & bit == 0 {
                            let value = this.value(value);
                            let mut more = (*used).clone();
                            more[word] |= bit;
                            let rest = Atom::Distinct(schema, this.used.intern(more));
                            let rest = this.formulas.literal(rest);
                            ways.push(this.formulas.and([value, rest]));
                        }
                    }
                    this.formulas.or(ways)
                }
                _ => itself,
            })
        })
    }

    /// Whether a formula holds where nothing more comes.
    pub(super) fn ends(&self, formula: FormulaId) -> bool {
        self.formulas.evaluate(formula, &mut |_, atom| {
            !matches!(
                atom,
                Atom::Required(_)
                    | Atom::AtLeastProperties(_)
                    | Atom::AtLeastItems(_)
                    | Atom::AtLeastContains(..)
            )
        })
    }

    /// [`super::formula::Formulas::map`] with the whole conversion at hand.
    pub(super) fn derive(
        &mut self,
        formula: FormulaId,
        replace: &mut dyn FnMut(&mut Self, u32) -> Result<FormulaId>,
    ) -> Result<FormulaId> {
        let parts = self.formulas.parts(formula);
        self.spend(UNITS_OF_A_PART * parts.len())?;
        let mut new: Vec<FormulaId> = Vec::with_capacity(parts.len());
        for &part in &parts {
            let derived = match *self.formulas.get(part) {
                Formula::Literal(atom, sign) => {
                    if let (Atom::Distinct(schema, _) | Atom::Unique(schema), false) =
                        (self.atom(atom), sign)
                    {
                        return Err(self.repeated_items(*schema));
                    }
                    let replaced = replace(self, atom)?;
                    if sign { replaced } else { self.formulas.not(replaced) }
                }
                _ => self.formulas.rejoined(part, |operand| {
                    parts.binary_search(&operand).map_or(operand, |at| new[at])
                }),
            };
            new.push(derived);
        }
        // The formula itself stands last.
        Ok(new.last().copied().unwrap_or(formula))
    }

    /// That some item is repeated: only that none is can be said.
    pub(super) fn repeated_items(&self, schema: SchemaId) -> Error {
        self.unsupported(
            self.place(schema),
            "uniqueItems",
            "under `not`, `if` or an overlapping `oneOf` the keyword asks for a repeated item, which \
             no grammar can say; move it out of there"
                .into(),
        )
    }

    fn check_depth(&self, depth: usize) -> Result<()> {
        if depth > MOST_NESTED {
            return Err(Error::Limit {
                limit: "max_unevaluated_nesting",
                value: MOST_NESTED as u64,
                message: "unevaluatedProperties and unevaluatedItems stand inside of each other's \
                          conditions more often; write fewer of them"
                    .into(),
            });
        }
        Ok(())
    }

    pub(super) fn unevaluated_atom(
        &mut self,
        atom: impl Fn(SchemaId, Box<[Branch]>) -> Atom,
        owner: SchemaId,
        mut branches: Vec<Branch>,
    ) -> FormulaId {
        branches.retain(|branch| branch.0 != FormulaId::FALSE);
        branches.sort_unstable();
        branches.dedup();
        self.formulas.literal(atom(owner, branches.into()))
    }

    /// The schema of what is not evaluated.
    fn unevaluated(&mut self, owner: SchemaId, keyword: &str) -> Result<SchemaId> {
        let SchemaKey::Schema(node, scope) = self.key(owner) else { return Ok(owner) };
        match self.schemas.subschema(node, keyword)? {
            Some(rest) => Ok(self.child(rest, scope)),
            None => Ok(owner),
        }
    }

    /// What a schema says of the value of a member.
    pub(super) fn member(&mut self, schema: SchemaId, member: Member<'_>) -> Result<FormulaId> {
        let (node, scope) = match self.key(schema) {
            SchemaKey::Schema(node, scope) => (node, scope),
            SchemaKey::Truth(_) | SchemaKey::Closed => return Ok(FormulaId::TRUE),
            SchemaKey::Constant(node) => {
                let Member::Named(name) = member else { return Ok(FormulaId::FALSE) };
                let name = self.names.get(name).clone();
                return Ok(match self.schemas.arena().get(node, &name) {
                    Some(value) => {
                        let constant = self.constant(value);
                        self.value(constant)
                    }
                    None => FormulaId::FALSE,
                });
            }
        };
        let schemas = self.schemas;
        let mut parts = Vec::new();
        if let (Some(properties), Member::Named(name)) =
            (self.object_of(node, "properties"), member)
            && let Some(child) = properties.get(self.names.get(name))
        {
            let child = self.child(child, scope);
            parts.push(self.value(child));
        }
        let mut is_named = !parts.is_empty();
        if let Some(patterns) = self.object_of(node, "patternProperties") {
            for (pattern, child) in patterns.iter() {
                let language = self.pattern(node, "patternProperties", pattern)?;
                if self.matches(language, member)? {
                    is_named = true;
                    let child = self.child(child, scope);
                    parts.push(self.value(child));
                }
            }
        }
        if !is_named && let Some(rest) = schemas.subschema(node, "additionalProperties")? {
            let rest = self.child(rest, scope);
            parts.push(self.value(rest));
        }
        self.spend(1 + parts.len())?;
        Ok(self.formulas.and(parts))
    }

    /// Whether a schema evaluates a member, for `unevaluatedProperties` of another.
    pub(super) fn covers(
        &mut self,
        owner: SchemaId,
        branch: SchemaId,
        member: Member<'_>,
    ) -> Result<bool> {
        let SchemaKey::Schema(node, _) = self.key(branch) else { return Ok(false) };
        let schemas = self.schemas;
        if let (Some(properties), Member::Named(name)) =
            (self.object_of(node, "properties"), member)
            && properties.get(self.names.get(name)).is_some()
        {
            return Ok(true);
        }
        // An object that is closed because it does not say otherwise has the names that it asks for.
        if let (SchemaKey::Closed, Member::Named(name)) = (self.key(owner), member)
            && self.asked_names(branch)?.contains(&name)
        {
            return Ok(true);
        }
        // A value that is listed has the names that it has.
        if self.key(owner) == SchemaKey::Closed && self.lists_values(node) {
            return Ok(true);
        }
        if schemas.subschema(node, "additionalProperties")?.is_some()
            || branch != owner && schemas.subschema(node, "unevaluatedProperties")?.is_some()
        {
            return Ok(true);
        }
        if let Some(patterns) = self.object_of(node, "patternProperties") {
            for (pattern, _) in patterns.iter() {
                let language = self.pattern(node, "patternProperties", pattern)?;
                if self.matches(language, member)? {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    }

    /// Whether a pattern matches the name of a member.
    fn matches(&mut self, language: LanguageId, member: Member<'_>) -> Result<bool> {
        match member {
            Member::Named(name) => {
                let name = self.names.get(name).clone();
                Ok(self.automaton(language)?.accepts(&name))
            }
            Member::Other(class) => Ok(class.matches.get(&language) == Some(&true)),
        }
    }

    fn name_satisfies(&mut self, schema: SchemaId, member: Member<'_>) -> Result<bool> {
        match member {
            Member::Named(name) => {
                let formula = self.type_formula(schema, super::atoms::Type::String)?;
                let name = self.names.get(name).clone();
                self.string_satisfies(formula, &name)
            }
            Member::Other(class) => Ok(class.satisfies.get(&schema) == Some(&true)),
        }
    }

    /// What a schema says of the item at a place.
    fn item_of(&mut self, schema: SchemaId, index: usize) -> Result<FormulaId> {
        let (node, scope) = match self.key(schema) {
            SchemaKey::Schema(node, scope) => (node, scope),
            SchemaKey::Truth(_) | SchemaKey::Closed => return Ok(FormulaId::TRUE),
            SchemaKey::Constant(node) => {
                let item = match self.node(node) {
                    JsonNode::Array(items) => items.get(index).copied(),
                    _ => None,
                };
                return Ok(match item {
                    Some(item) => {
                        let item = self.constant(item);
                        self.value(item)
                    }
                    None => FormulaId::FALSE,
                });
            }
        };
        let schemas = self.schemas;
        let items = schemas.items(node)?;
        Ok(match items.first.get(index).copied().or(items.others) {
            Some(item) => {
                let item = self.child(item, scope);
                self.value(item)
            }
            None => FormulaId::TRUE,
        })
    }

    /// Under which condition on the item a schema evaluates it.
    fn covers_item(
        &mut self,
        owner: SchemaId,
        branch: SchemaId,
        index: usize,
    ) -> Result<FormulaId> {
        let SchemaKey::Schema(node, scope) = self.key(branch) else { return Ok(FormulaId::FALSE) };
        let schemas = self.schemas;
        let items = schemas.items(node)?;
        if index < items.first.len()
            || items.others.is_some()
            || branch != owner && schemas.subschema(node, "unevaluatedItems")?.is_some()
        {
            return Ok(FormulaId::TRUE);
        }
        if schemas.dialect(node) == Dialect::Draft2020
            && let Some(contained) = schemas.subschema(node, "contains")?
        {
            let contained = self.child(contained, scope);
            return Ok(self.value(contained));
        }
        Ok(FormulaId::FALSE)
    }

    /// How many items the formula tells apart by their place.
    pub(super) fn prefix_length(&self, formula: FormulaId) -> Result<usize> {
        let mut most = 0;
        let mut work = vec![formula];
        while let Some(formula) = work.pop() {
            for (atom, _) in self.formulas.atoms_of(formula) {
                let mut of = |schema: SchemaId| -> Result<()> {
                    let length = match self.key(schema) {
                        SchemaKey::Constant(node) => match self.node(node) {
                            JsonNode::Array(items) => items.len(),
                            _ => 0,
                        },
                        SchemaKey::Schema(node, _) => self.schemas.items(node)?.first.len(),
                        SchemaKey::Truth(_) | SchemaKey::Closed => 0,
                    };
                    most = most.max(length);
                    Ok(())
                };
                match self.atom(atom) {
                    Atom::Items(schema) => of(*schema)?,
                    Atom::UnevaluatedItems(owner, branches) => {
                        of(*owner)?;
                        for &(condition, branch) in branches {
                            of(branch)?;
                            work.push(condition);
                        }
                    }
                    _ => {}
                }
            }
        }
        Ok(most)
    }
}
