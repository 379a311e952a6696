//! From schemas to formulas: one for each type of value.
//!
//! Applicators that speak of the value itself (`$ref`, `allOf`, `anyOf`, `oneOf`, `not`, `if`,
//! `dependentSchemas`) vanish here: what they apply is part of the formula. Those that speak of members
//! and items become atoms.

use super::atoms::{Atom, SchemaId, SchemaKey, ScopeId, Type};
use super::choice::{Applied, Choice};
use super::converter::{Applications, Converter, Doing};
use super::formula::FormulaId;
use super::keywords::{Dependency, NamedType, Shape, Types};
use super::value::{JsonNode, JsonNodeId};
use crate::error::{Result, SchemaFault};
use crate::limits::MOST_TEXT_BYTES;

/// Whether types leave values of a type, and whether of numbers only integers.
fn allowed(types: Types, kind: Type) -> (bool, bool) {
    match kind {
        Type::Null => (types.names(NamedType::Null), false),
        Type::Boolean => (types.names(NamedType::Boolean), false),
        Type::Number => {
            let any = types.names(NamedType::Number);
            (any || types.names(NamedType::Integer), !any)
        }
        Type::String => (types.names(NamedType::String), false),
        Type::Array => (types.names(NamedType::Array), false),
        Type::Object => (types.names(NamedType::Object), false),
    }
}

enum FormulaStep {
    Enter(SchemaId),
    Leave(SchemaId),
}

impl Converter<'_> {
    /// The formula of a schema for values of a type.
    pub(super) fn type_formula(&mut self, schema: SchemaId, kind: Type) -> Result<FormulaId> {
        match self.type_formula_unless_open(schema, kind)? {
            Some(formula) => Ok(formula),
            None => Err(self.endless(schema)),
        }
    }

    /// The formula of a schema for values of a type; `None` where it needs one that is being made.
    pub(super) fn type_formula_unless_open(
        &mut self,
        schema: SchemaId,
        kind: Type,
    ) -> Result<Option<FormulaId>> {
        if let Some(&known) = self.type_formulas.get(schema, kind) {
            return Ok(Some(known));
        }
        let mut opened: Vec<SchemaId> = Vec::new();
        let before = self.doing;
        let formula = self.make_type_formula(schema, kind, &mut opened);
        for schema in opened {
            self.open.remove(&(schema, kind));
        }
        if formula.is_ok() {
            self.doing = before; // an error is of what was being done
        }
        formula
    }

    fn make_type_formula(
        &mut self,
        schema: SchemaId,
        kind: Type,
        opened: &mut Vec<SchemaId>,
    ) -> Result<Option<FormulaId>> {
        let mut work = vec![FormulaStep::Enter(schema)];
        while let Some(step) = work.pop() {
            self.spend(1)?;
            match step {
                FormulaStep::Enter(schema) => {
                    if !self.type_formulas.has_any(schema) {
                        self.rule_out_types(schema)?;
                    }
                    if self.type_formulas.get(schema, kind).is_some() {
                        continue;
                    }
                    self.doing = Doing::Schema(schema);
                    let applied = self.applied(schema, kind)?;
                    if applied.is_empty() {
                        work.push(FormulaStep::Leave(schema));
                        continue;
                    }
                    if !self.open.insert((schema, kind)) {
                        return Ok(None);
                    }
                    opened.push(schema);
                    work.push(FormulaStep::Leave(schema));
                    work.extend(applied.iter().rev().map(|&(child, _)| FormulaStep::Enter(child)));
                }
                FormulaStep::Leave(schema) => {
                    self.doing = Doing::Schema(schema);
                    let formula = self.build(schema, kind, &Choice::default())?;
                    self.type_formulas.set(schema, kind, formula);
                    if !opened.is_empty() {
                        self.open.remove(&(schema, kind));
                    }
                }
            }
        }
        Ok(self.type_formulas.get(schema, kind).copied())
    }

    fn endless(&self, schema: SchemaId) -> crate::error::Error {
        self.unsupported(
            self.place(schema),
            "",
            "the schema applies itself to the same value without end; put the reference behind a \
             keyword for members or items, or remove it"
                .into(),
        )
    }

    /// The scope of a schema that is applied by another.
    pub(super) fn scope_of(&mut self, child: JsonNodeId, scope: ScopeId) -> ScopeId {
        if !self.has_dynamic {
            return scope;
        }
        let anchors = self.schemas.dynamic_anchors(self.schemas.resource(child));
        let known = self.scopes.get(scope);
        let fresh = |name: &str| known.iter().all(|(other, _)| **other != *name);
        let mut all = known.to_vec();
        all.extend(anchors.iter().filter(|(name, _)| fresh(name)).map(|(n, id)| (n.clone(), *id)));
        if all.len() == known.len() {
            return scope;
        }
        all.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        self.scopes.intern(all.into())
    }

    /// A schema that another applies, to the same value or to a part of it; where it only refers to one,
    /// that one. So all who refer to a schema ask for the same condition.
    pub(super) fn child(&mut self, node: JsonNodeId, scope: ScopeId) -> SchemaId {
        let scope = self.scope_of(node, scope);
        let schema = self.schema(node, scope);
        // A dynamic reference may mean something else behind each reference on the way.
        if self.has_dynamic || self.schemas.arena().get(node, "$ref").is_none() {
            return schema;
        }
        if let Some(&known) = self.referred.get(&schema) {
            return known;
        }
        // What is wrong with a reference is said where its formula is made.
        let target = match (self.schemas.shape(node), self.saying(schema)) {
            (Ok(_), Ok(Some(target))) => self.schema(target, scope),
            _ => schema,
        };
        self.referred.insert(schema, target);
        target
    }

    /// Whether the types that a schema names, its enum or its constant leave values of a type; whether
    /// only integers.
    pub(super) fn allows(&self, node: JsonNodeId, kind: Type) -> Result<(bool, bool)> {
        Ok(self.schemas.types(node)?.map_or((true, false), |types| allowed(types, kind)))
    }

    /// Notes that a schema has no values of the types that it does not name, whatever else it says.
    fn rule_out_types(&mut self, schema: SchemaId) -> Result<()> {
        let SchemaKey::Schema(node, _) = self.key(schema) else { return Ok(()) };
        if !matches!(self.schemas.shape(node)?, Shape::Keywords(_)) || self.hides_siblings(node) {
            return Ok(());
        }
        let Some(types) = self.schemas.types(node)? else { return Ok(()) };
        for kind in Type::ALL {
            if !allowed(types, kind).0 {
                self.type_formulas.set(schema, kind, FormulaId::FALSE);
            }
        }
        Ok(())
    }

    /// The type of the value at a place.
    pub(super) fn type_at(&self, node: JsonNodeId) -> Type {
        match self.node(node) {
            JsonNode::Null => Type::Null,
            JsonNode::Boolean(_) => Type::Boolean,
            JsonNode::Number(_) => Type::Number,
            JsonNode::String(_) => Type::String,
            JsonNode::Array(_) => Type::Array,
            JsonNode::Object(_) => Type::Object,
        }
    }

    /// The values of a type to which `enum` and `const` restrict a schema.
    fn listed(&self, node: JsonNodeId, kind: Type) -> Result<Option<Vec<JsonNodeId>>> {
        let values = self.schemas.values(node, "enum")?;
        let constant = self.schemas.value(node, "const");
        let arena = self.schemas.arena();
        let of_type = |list: &[JsonNodeId]| -> Vec<JsonNodeId> {
            list.iter().copied().filter(|&value| self.type_at(value) == kind).collect()
        };
        Ok(match (values, constant) {
            (None, None) => None,
            (Some(values), None) => Some(of_type(values)),
            (None, Some(constant)) => Some(of_type(&[constant])),
            (Some(values), Some(constant)) => {
                let both =
                    of_type(values).into_iter().filter(|&value| arena.equal(value, constant));
                Some(both.collect())
            }
        })
    }

    /// The schemas that a schema applies to the same value, where it is of a type; in the order of
    /// the document.
    pub(super) fn applied(&mut self, schema: SchemaId, kind: Type) -> Result<Applications> {
        if let Some(known) = self.applied.get(schema, kind) {
            return Ok(known.clone());
        }
        let applied: Applications = self.find_applied(schema, kind)?.into();
        self.applied.set(schema, kind, applied.clone());
        Ok(applied)
    }

    /// Where the `$dynamicRef` or `$recursiveRef` of a schema leads in a scope, if it has one.
    fn dynamic_target(
        &self,
        node: JsonNodeId,
        keyword: &str,
        scope: ScopeId,
    ) -> Result<Option<JsonNodeId>> {
        let Some(dynamic) = self.schemas.dynamic(node)? else { return Ok(None) };
        let of_name = |entry: &&(Box<str>, JsonNodeId)| dynamic.name.as_ref() == Some(&entry.0);
        let mut bound = self.scopes.get(scope).iter().filter(of_name).map(|entry| entry.1);
        let (first, second) = (bound.next(), bound.next());
        if let (Some(first), Some(second)) = (first, second) {
            let [first, second] = [first, second].map(|at| self.schemas.arena().pointer(at));
            let message = format!(
                "it stands for two schemas, {first} and {second}; rename the anchor of one"
            );
            return Err(self.fault(SchemaFault::Invalid, node, keyword, message));
        }
        Ok(Some(first.unwrap_or(dynamic.target)))
    }

    fn find_applied(&mut self, schema: SchemaId, kind: Type) -> Result<Vec<(SchemaId, Applied)>> {
        let SchemaKey::Schema(node, scope) = self.key(schema) else { return Ok(Vec::new()) };
        let JsonNode::Object(object) = self.node(node) else { return Ok(Vec::new()) };
        let hides = self.hides_siblings(node);
        if !hides {
            if !self.allows(node, kind)?.0 {
                return Ok(Vec::new());
            }
            if self.listed(node, kind)?.is_some_and(|values| values.is_empty()) {
                return Ok(Vec::new());
            }
        }
        let schemas = self.schemas;
        let mut out = Vec::new();
        for (keyword, _) in object.iter() {
            match keyword {
                "$ref" => {
                    if let Some(target) = schemas.reference(node)? {
                        out.push((self.child(target, scope), Applied::Always));
                    }
                }
                _ if hides => {}
                "$dynamicRef" | "$recursiveRef" => {
                    if let Some(target) = self.dynamic_target(node, keyword, scope)? {
                        out.push((self.child(target, scope), Applied::Always));
                    }
                }
                "allOf" | "anyOf" | "oneOf" => {
                    let how = match keyword {
                        "allOf" => Applied::Always,
                        "anyOf" => Applied::Any,
                        _ => Applied::One,
                    };
                    for &child in schemas.subschemas(node, keyword)?.unwrap_or_default() {
                        out.push((self.child(child, scope), how));
                    }
                }
                "not" => {
                    if let Some(child) = schemas.subschema(node, "not")? {
                        out.push((self.child(child, scope), Applied::Not));
                    }
                }
                "if" | "then" | "else" => {
                    // Without the condition the others say nothing, and without them it does not.
                    let condition = schemas.subschema(node, "if")?;
                    let uses = schemas.subschema(node, "then")?.is_some()
                        || schemas.subschema(node, "else")?.is_some()
                        || self.has_unevaluated;
                    if let (Some(child), true, true) =
                        (schemas.subschema(node, keyword)?, condition.is_some(), uses)
                    {
                        let how = match keyword {
                            "if" => Applied::If,
                            "then" => Applied::Then,
                            _ => Applied::Else,
                        };
                        out.push((self.child(child, scope), how));
                    }
                }
                "dependentSchemas" | "dependencies" if kind == Type::Object => {
                    for (name, dependency, of) in schemas.dependencies(node)? {
                        if let (Dependency::Schema(child), true) = (dependency, of == keyword) {
                            let name = self.name(name);
                            out.push((self.child(child, scope), Applied::Dependent(name)));
                        }
                    }
                }
                _ => {}
            }
            self.spend(1)?;
        }
        Ok(out)
    }

    /// Whether a `$ref` hides what stands beside it.
    pub(super) fn hides_siblings(&self, node: JsonNodeId) -> bool {
        self.schemas.dialect(node).reference_hides_siblings()
            && self.schemas.arena().get(node, "$ref").is_some()
    }

    /// The formula of a schema, where the formulas of what it applies are known, and some branches of it
    /// are taken.
    pub(super) fn build(
        &mut self,
        schema: SchemaId,
        kind: Type,
        choice: &Choice,
    ) -> Result<FormulaId> {
        let (node, scope) = match self.key(schema) {
            SchemaKey::Constant(node) => return self.build_constant(schema, node, kind),
            SchemaKey::Truth(truth) if kind == Type::Boolean => {
                let literal = self.formulas.literal(Atom::True);
                return Ok(if truth { literal } else { self.formulas.not(literal) });
            }
            SchemaKey::Truth(_) | SchemaKey::Closed => return Ok(FormulaId::FALSE),
            SchemaKey::Schema(node, scope) => (node, scope),
        };
        match self.schemas.shape(node)? {
            Shape::Always => return Ok(FormulaId::TRUE),
            Shape::Never => return Ok(FormulaId::FALSE),
            Shape::Keywords(_) => {}
        }
        let hides = self.hides_siblings(node);
        let mut parts: Vec<FormulaId> = Vec::new();
        if !hides {
            let (allowed, integers) = self.allows(node, kind)?;
            if !allowed {
                return Ok(FormulaId::FALSE);
            }
            if integers {
                parts.push(self.formulas.literal(Atom::Integer));
            }
            if let Some(values) = self.listed(node, kind)? {
                let one = self.one_of_values(&values, kind)?;
                if one == FormulaId::FALSE {
                    return Ok(one);
                }
                parts.push(one);
            }
        }
        self.push_applied(schema, node, kind, choice, &mut parts)?;
        if !hides {
            match kind {
                Type::Object => self.object_atoms(schema, node, scope, choice, &mut parts)?,
                Type::Array => self.array_atoms(schema, node, scope, &mut parts)?,
                Type::String => self.string_atoms(node, &mut parts)?,
                Type::Number => self.number_atoms(node, &mut parts)?,
                Type::Null | Type::Boolean => {}
            }
        }
        let formula = self.formulas.and(parts);
        self.spend(1)?;
        Ok(formula)
    }

    /// Adds what a schema applies to the value itself, where some branches of it are taken.
    fn push_applied(
        &mut self,
        schema: SchemaId,
        node: JsonNodeId,
        kind: Type,
        choice: &Choice,
        parts: &mut Vec<FormulaId>,
    ) -> Result<()> {
        let applied = self.applied(schema, kind)?;
        let mut any: Vec<FormulaId> = Vec::new();
        let mut one: Vec<(SchemaId, FormulaId)> = Vec::new();
        let (mut condition, mut consequence, mut alternative) = (None, None, None);
        for &(child, how) in applied.iter() {
            let taken = choice.taken(schema, how);
            if taken.is_some_and(|taken| taken != child) {
                continue;
            }
            let formula = match how {
                Applied::Always | Applied::Any | Applied::One | Applied::Then | Applied::Else
                    if (how == Applied::Always || taken.is_some()) && choice.touches(child) =>
                {
                    self.chosen_formula(child, choice)?
                }
                _ => self.type_formula(child, kind)?,
            };
            match how {
                Applied::Always => parts.push(formula),
                Applied::Any => any.push(formula),
                Applied::One => one.push((child, formula)),
                Applied::Not => {
                    let negated = self.formulas.not(formula);
                    parts.push(negated);
                }
                Applied::If => condition = Some(formula),
                Applied::Then => consequence = Some(formula),
                Applied::Else => alternative = Some(formula),
                Applied::Dependent(name) => {
                    let present = self.formulas.literal(Atom::Required(name));
                    let absent = self.formulas.not(present);
                    parts.push(self.formulas.or([absent, formula]));
                }
            }
            self.spend(1)?;
        }
        if self.schemas.value(node, "anyOf").is_some() {
            parts.push(self.formulas.or(any));
        }
        if self.schemas.value(node, "oneOf").is_some() {
            parts.push(self.exactly_one(schema, node, &one, kind, choice.touches(schema))?);
        }
        if let Some(condition) = condition {
            let is_taken = choice.taken(schema, Applied::Then).is_some();
            self.push_conditional(condition, consequence, alternative, is_taken, parts);
        }
        Ok(())
    }

    /// Adds what `if`, `then` and `else` say; `is_taken` where the branch of one of the two is.
    fn push_conditional(
        &mut self,
        condition: FormulaId,
        consequence: Option<FormulaId>,
        alternative: Option<FormulaId>,
        is_taken: bool,
        parts: &mut Vec<FormulaId>,
    ) {
        let unmet = self.formulas.not(condition);
        if is_taken {
            // One of the two is taken, and the other was passed over.
            parts.push(if consequence.is_some() { condition } else { unmet });
        }
        if let Some(consequence) = consequence {
            parts.push(self.formulas.or([unmet, consequence]));
        }
        if let Some(alternative) = alternative {
            parts.push(self.formulas.or([condition, alternative]));
        }
    }

    /// An atom that counts; at least none is no condition.
    pub(super) fn at_least(&mut self, atom: impl Fn(u32) -> Atom, count: u32) -> FormulaId {
        if count == 0 { FormulaId::TRUE } else { self.formulas.literal(atom(count)) }
    }

    /// That a count is at most a bound.
    pub(super) fn at_most(&mut self, atom: impl Fn(u32) -> Atom, count: u32) -> FormulaId {
        // No text is as long, whatever is counted.
        if count >= MOST_TEXT_BYTES {
            return FormulaId::TRUE;
        }
        let more = count + 1;
        let more = self.at_least(atom, more);
        self.formulas.not(more)
    }
}
