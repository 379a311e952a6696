//! Names of members beside the known ones, in classes that a formula of objects does not tell apart.

use crate::error::{Error, Result};
use crate::json_schema::atoms::{Atom, LanguageId, NameId, SchemaId, SchemaKey, Type};
use crate::json_schema::automata::NameClass;
use crate::json_schema::converter::Converter;
use crate::json_schema::formula::{Formula, FormulaId};
use crate::json_schema::value::JsonNode;
use crate::regular::Dfa;
use rustc_hash::{FxHashMap, FxHashSet};
use std::rc::Rc;

/// Classes of other names.
const MOST_CLASSES: usize = 256;

impl Converter<'_> {
    /// The classes of names beside the known ones that a formula does not tell apart.
    pub(in crate::json_schema) fn name_classes(
        &mut self,
        formula: FormulaId,
        known: &[NameId],
    ) -> Result<Vec<Rc<NameClass>>> {
        let bounds = self.bounds;
        let (patterns, schemas) = self.asked_of_names(formula)?;
        let texts: Vec<Rc<str>> = known.iter().map(|&name| self.names.get(name).clone()).collect();
        let others = Dfa::all_but_texts(texts.iter().map(|text| &**text), &bounds)?;
        let class = NameClass {
            names: others,
            lengths: (0, None),
            expression: None,
            matches: FxHashMap::default(),
            satisfies: FxHashMap::default(),
        };
        let mut classes = vec![class];
        for pattern in patterns {
            let automaton = self.automaton(pattern)?;
            classes = self.divide(classes, (&automaton, (0, None)), |class, holds| {
                class.matches.insert(pattern, holds);
            })?;
        }
        let mut expressions = Vec::new();
        for schema in schemas {
            let formula = self.type_formula(schema, Type::String)?;
            if let Some(rest) = self.beside_expression(formula) {
                expressions.push((schema, rest));
                continue;
            }
            let (automaton, lengths) = self.counted_language(formula)?;
            classes = self.divide(classes, (&automaton, lengths), |class, holds| {
                class.satisfies.insert(schema, holds);
            })?;
        }
        if !expressions.is_empty() {
            classes = self.of_expressions(formula, classes, &expressions)?;
        }
        Ok(classes.into_iter().map(Rc::new).collect())
    }

    /// Those of the classes that are regular expressions, as schemas of `propertyNames` ask. Other names
    /// are in no class, so the formula must ask for these schemas in any case.
    fn of_expressions(
        &mut self,
        formula: FormulaId,
        classes: Vec<NameClass>,
        schemas: &[(SchemaId, FormulaId)],
    ) -> Result<Vec<NameClass>> {
        let mut language = Dfa::anything();
        for &(schema, rest) in schemas {
            let names = self.formulas.literal(Atom::Names(schema));
            if !self.formulas.conjuncts(formula).contains(&names) {
                return Err(self.expression_beside());
            }
            let rest = self.string_language(rest)?;
            language = language.intersection(&rest, &self.bounds)?;
        }
        let mut out = Vec::new();
        for mut class in classes {
            let (least, most) = class.lengths;
            let lengths = Dfa::lengths(least, most, &self.bounds)?;
            let names = class.names.intersection(&language, &self.bounds)?;
            let names = names.intersection(&lengths, &self.bounds)?;
            let within = self.expression_within(&names)?;
            if self.expressions[within as usize].1.is_empty() {
                continue;
            }
            class.expression = Some(within);
            class.satisfies.extend(schemas.iter().map(|&(schema, _)| (schema, true)));
            out.push(class);
        }
        Ok(out)
    }

    fn divide(
        &mut self,
        classes: Vec<NameClass>,
        (by, (least, most)): (&Dfa, (u32, Option<u32>)),
        mut note: impl FnMut(&mut NameClass, bool),
    ) -> Result<Vec<NameClass>> {
        let mut out = Vec::with_capacity(2 * classes.len());
        for class in classes {
            let within = class.names.intersection(by, &self.bounds)?;
            let without = class.names.difference(by, &self.bounds)?;
            // Of those within, some are too short and some too long.
            let mut parts =
                vec![(within.clone(), (least, most), true), (without, (0, None), false)];
            if least > 0 {
                parts.push((within.clone(), (0, Some(least - 1)), false));
            }
            parts.extend(most.map(|most| (within, (most.saturating_add(1), None), false)));
            for (names, (least, most), holds) in parts {
                let (from, to) = class.lengths;
                let to = [to, most].into_iter().flatten().min();
                let lengths = (from.max(least), to);
                if self.has_text_within(&names, lengths)? {
                    let mut class = NameClass { names, lengths, ..class.clone() };
                    note(&mut class, holds);
                    out.push(class);
                }
            }
            self.spend(1)?;
        }
        if out.len() > MOST_CLASSES {
            return Err(Error::Limit {
                limit: "max_name_classes",
                value: MOST_CLASSES as u64,
                message: "patternProperties and propertyNames of an object divide names into more \
                          classes; write fewer patterns that overlap"
                    .into(),
            });
        }
        Ok(out)
    }

    /// The patterns and the schemas that a formula of objects asks names for.
    pub(super) fn asked_of_names(
        &mut self,
        formula: FormulaId,
    ) -> Result<(Vec<LanguageId>, Vec<SchemaId>)> {
        let (mut patterns, mut schemas) = (Vec::new(), Vec::new());
        let mut seen: FxHashSet<FormulaId> = FxHashSet::default();
        let mut work = vec![formula];
        while let Some(formula) = work.pop() {
            if !seen.insert(formula) {
                continue;
            }
            for (atom, _) in self.formulas.atoms_of(formula) {
                match self.atom(atom).clone() {
                    Atom::Properties(schema) => patterns.extend(self.patterns_of(schema)?),
                    Atom::Names(schema) => schemas.push(schema),
                    Atom::UnevaluatedProperties(_, branches) => {
                        for &(condition, branch) in &branches {
                            patterns.extend(self.patterns_of(branch)?);
                            work.push(condition);
                        }
                    }
                    _ => {}
                }
            }
        }
        patterns.sort_unstable();
        patterns.dedup();
        schemas.sort_unstable();
        schemas.dedup();
        Ok((patterns, schemas))
    }

    fn patterns_of(&mut self, schema: SchemaId) -> Result<Vec<LanguageId>> {
        let SchemaKey::Schema(node, _) = self.key(schema) else {
            return Ok(Vec::new());
        };
        let Some(patterns) = self.object_of(node, "patternProperties") else {
            return Ok(Vec::new());
        };
        patterns
            .iter()
            .map(|(pattern, _)| self.pattern(node, "patternProperties", pattern))
            .collect()
    }

    /// Whether it is plain that an object has no names but those that its formula mentions.
    pub(in crate::json_schema) fn has_no_others(&self, formula: FormulaId) -> Result<bool> {
        let names_all = |schema: SchemaId| -> Result<bool> {
            let SchemaKey::Schema(node, _) = self.key(schema) else { return Ok(false) };
            Ok(self.object_of(node, "patternProperties").is_none()
                && self.schemas.subschema(node, "unevaluatedProperties")?.is_none()
                && !self.lists_values(node))
        };
        for part in self.formulas.conjuncts(formula) {
            let Formula::Literal(atom, true) = *self.formulas.get(part) else { continue };
            match self.atom(atom) {
                Atom::UnevaluatedProperties(owner, branches)
                    if self.key(*owner) == SchemaKey::Closed =>
                {
                    let mut all = true;
                    for &(_, branch) in branches {
                        let SchemaKey::Schema(node, _) = self.key(branch) else { return Ok(false) };
                        all &= names_all(branch)?
                            && self.schemas.subschema(node, "additionalProperties")?.is_none();
                    }
                    if all {
                        return Ok(true);
                    }
                }
                Atom::Properties(schema) => {
                    let SchemaKey::Schema(node, _) = self.key(*schema) else { continue };
                    let rest = self.schemas.subschema(node, "additionalProperties")?;
                    let none =
                        rest.is_some_and(|rest| *self.node(rest) == JsonNode::Boolean(false));
                    if none && self.object_of(node, "patternProperties").is_none() {
                        return Ok(true);
                    }
                }
                _ => {}
            }
        }
        Ok(false)
    }
}
