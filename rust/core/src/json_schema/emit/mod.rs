//! From automata over members and items to a grammar, written straight into the arena.
//!
//! Design: docs/design/json-schema.md, "Emission".
//!
//! - here: the rules, each written when it is first called; values by type
//! - [`automaton`]: automata that are being written
//! - [`gaps`]: white space, separators, lines
//! - [`objects`], [`unordered`], [`arrays`], [`strings`]: the right-hand sides of their rules
//! - [`counted_strings`]: strings whose characters are counted beside a language, excluded texts or XML; a length alone is
//!   a repetition, in [`strings`], which the network counts (`network/counters.rs`)
//! - [`excluded`]: strings and names in which some texts do not occur
//! - [`styles`]: the marks of styles; [`xml`]: values in styles that write elements, strings and names as they are,
//!   and [`elements`]: objects and arrays in elements
//! - [`origins`]: what each rule says of which schemas

mod arrays;
mod automaton;
mod counted_strings;
mod elements;
mod excluded;
mod gaps;
mod objects;
mod origins;
mod strings;
mod styles;
mod unordered;
mod xml;

pub use styles::marks_of;

use super::atoms::{ArrayId, ObjectId, ValueId};
use super::automata::{ArrayAutomaton, MemberName};
use super::converter::Converter;
use super::formats;
use super::formula::FormulaId;
use super::options::{SchemaOptions, Style, Whitespace};
use super::scalars::StringForm;
use super::values::ReachedValues;
use crate::error::{Position, Result};
use crate::grammar::{CharSet, Expr, Grammar, GrammarBuilder, Rule, RuleOptions};
use crate::ids::{ExprId, RuleId};
use crate::regular::{Bounds, Dfa, ScalarNfa, Spelling, encode, encode_character};
use arrays::ArrayDelimiter;
use automaton::DraftAutomaton;
use counted_strings::{CharacterSpelling, SearchSteps};
use rustc_hash::FxHashMap;

const HERE: Position = Position::NOWHERE;

/// What a rule says, with the level at which it stands where that counts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum RuleKey {
    Value(ValueId, u32),
    Object(ObjectId, u32),
    Array(ArrayId, u32),
    String(FormulaId),
    /// What stands in a string whose characters are counted.
    Counted(FormulaId),
    /// What stands in an element that is such a string.
    RawCounted(FormulaId),
    /// What stands in the name of a member whose characters are counted, for a class of an object.
    CountedNames(ObjectId, u32),
    Number(FormulaId),
    /// The names of a class of an object, with the quotation mark at their end.
    Names(ObjectId, u32),
    /// A member of an object: name, colon, value.
    Member(ObjectId, MemberName, ValueId, u32),
    /// The opening brace with what comes before a first member; with the closing brace.
    Open(u32),
    Empty(u32),
    /// A comma with what is around it, to the quotation mark of the next name.
    Comma(u32),
    /// The closing brace of an object whose states do not say which names were read, and which of its
    /// states it ends.
    Close(ObjectId, u32, u32),
    /// An item of an array in which it stands at most once, and what stands around such items.
    Only(ArrayId, ValueId, u32),
    Around(ArrayDelimiter, u32),
    /// An array up to its closing bracket.
    Unclosed(ArrayId, u32),
    /// What follows a name: colon, value.
    Entry(ValueId, u32),
    /// One character of a string: of any, or of those of a set by its number.
    Character(u32, bool),
    /// The spellings of such a character that move the search for excluded texts from one state to another.
    Step(u32, CharacterSpelling, (u32, u32)),
    Whitespace,
    RegularExpression,
    /// The regular expressions within an automaton: all, or between two states; a part of one between two
    /// states; a leaf of these parts.
    Expression(u32, Option<(u32, u32)>),
    ExpressionItem(u32, (u32, u32)),
    ExpressionLeaf(u32, u32),
    /// In elements: the object that is the root, or a value that is no object.
    Root(ValueId),
    /// What stands behind the name of an element, or the beginning of an item, to its end.
    Element(ValueId),
    /// An object, and one of its members.
    Members(ObjectId),
    NamedElement(ObjectId, MemberName, ValueId),
    /// An array, and one of its items.
    Items(ArrayId),
    Item(ValueId),
    /// A string without quotation marks.
    Raw(FormulaId),
    /// The names of a class of an object.
    RawNames(ObjectId, u32),
    /// A mark of the style in which special tokens stand.
    Mark(Box<str>),
}

struct Emitter<'c, 'a> {
    converter: &'c mut Converter<'a>,
    values: ReachedValues,
    builder: GrammarBuilder,
    keys: FxHashMap<RuleKey, RuleId>,
    order: Vec<RuleKey>,
    bodies: Vec<Option<ExprId>>,
    sets: Vec<CharSet>,
    set_numbers: FxHashMap<CharSet, u32>,
    /// How characters of these sets move the search for excluded texts, from each of its states.
    steps: SearchSteps,
    empty: ExprId,
    /// Whether arrays are written without their closing brackets.
    leaves_open: bool,
}

impl<'a> Converter<'a> {
    /// The grammar of the texts of a value.
    pub(super) fn emit(&mut self, root: ValueId, values: ReachedValues) -> Result<Grammar> {
        let emitter = self.written(root, values)?;
        let options = emitter.options();
        let has_unwritable = options.style != Style::Json
            || !options.excludes.is_empty()
            || options.max_depth.is_some();
        let grammar = emitter.finish();
        if has_unwritable {
            self.check_has_text(&grammar)?;
        }
        Ok(grammar)
    }

    /// All rules that the root leads to.
    fn written(&mut self, root: ValueId, values: ReachedValues) -> Result<Emitter<'_, 'a>> {
        let mut builder = GrammarBuilder::new();
        let empty = builder.add(Expr::Empty, HERE);
        let mut emitter = Emitter {
            converter: self,
            values,
            builder,
            keys: FxHashMap::default(),
            order: Vec::new(),
            bodies: Vec::new(),
            sets: Vec::new(),
            set_numbers: FxHashMap::default(),
            steps: SearchSteps::default(),
            empty,
            leaves_open: false,
        };
        emitter.rule(match emitter.marks() {
            None => RuleKey::Value(root, 0),
            Some(_) => RuleKey::Root(root),
        });
        let mut next = 0;
        while next < emitter.order.len() {
            let key = emitter.order[next].clone();
            let body = emitter.body(&key, RuleId::new(next));
            let body = body.inspect_err(|error| emitter.blame(&key, error))?;
            emitter.bodies[next] = Some(body);
            next += 1;
            emitter.converter.spend(1)?;
        }
        Ok(emitter)
    }
}

impl Emitter<'_, '_> {
    fn finish(self) -> Grammar {
        let empty = self.empty;
        let rules =
            self.order.iter().zip(&self.bodies).enumerate().map(|(number, (key, body))| Rule {
                name: if number == 0 { "root".into() } else { format!("{}_{number}", key.kind()) },
                options: RuleOptions::default(),
                body: body.unwrap_or(empty),
                lookahead: None,
                position: HERE,
                is_common: self.is_common(key),
            });
        let rules = rules.collect();
        self.builder.finish(rules, RuleId::new(0))
    }

    /// Whether a rule is the same in many grammars: any value, any string, a format.
    fn is_common(&self, key: &RuleKey) -> bool {
        if self.options().style != Style::Json || !self.options().excludes.is_empty() {
            return false;
        }
        match *key {
            RuleKey::Value(value, _) => {
                let is_bounded =
                    self.options().max_digits.is_some() || self.options().max_depth.is_some();
                !is_bounded && self.converter.is_any(value)
            }
            RuleKey::String(formula) => match &self.values.texts[&formula] {
                StringForm::Characters(0, None) | StringForm::RegularExpression => true,
                StringForm::Automaton(automaton) => self.converter.is_format(automaton),
                _ => false,
            },
            _ => false,
        }
    }

    fn options(&self) -> &SchemaOptions {
        self.converter.options
    }

    fn add(&mut self, expr: Expr) -> ExprId {
        self.builder.add(expr, HERE)
    }

    fn literal(&mut self, text: &[u8]) -> ExprId {
        match text {
            [] => self.empty,
            _ => self.add(Expr::Literal(text.into())),
        }
    }

    fn sequence(&mut self, parts: Vec<ExprId>) -> ExprId {
        match parts.as_slice() {
            [only] => *only,
            _ => self.add(Expr::Sequence(parts.into())),
        }
    }

    fn choice(&mut self, parts: Vec<ExprId>) -> ExprId {
        match parts.as_slice() {
            [only] => *only,
            _ => self.add(Expr::Choice(parts.into())),
        }
    }

    /// The rule of a key, to be written later where it is new.
    fn rule(&mut self, key: RuleKey) -> RuleId {
        if let Some(&known) = self.keys.get(&key) {
            return known;
        }
        let id = RuleId::new(self.order.len());
        self.keys.insert(key.clone(), id);
        self.order.push(key);
        self.bodies.push(None);
        id
    }

    fn call(&mut self, key: RuleKey) -> ExprId {
        let rule = self.rule(key);
        self.add(Expr::Rule(rule))
    }

    fn body(&mut self, key: &RuleKey, rule: RuleId) -> Result<ExprId> {
        match *key {
            RuleKey::Value(value, level) => self.value(value, level),
            RuleKey::Object(object, level) => self.object(object, level),
            RuleKey::Array(array, level) => self.array(array, level),
            RuleKey::String(formula) => self.string(formula),
            RuleKey::Counted(formula) => match self.values.texts[&formula].clone() {
                StringForm::Counted(language, min, max) => {
                    self.counting(&language, (min, max), CharacterSpelling::Json(false))
                }
                StringForm::Characters(min, max) => {
                    self.counting(&Dfa::anything(), (min, max), CharacterSpelling::Json(true))
                }
                _ => Ok(self.empty),
            },
            RuleKey::RawCounted(formula) => match self.values.texts[&formula].clone() {
                StringForm::Counted(language, min, max) => {
                    self.counting(&language, (min, max), CharacterSpelling::Raw)
                }
                StringForm::Characters(min, max) => {
                    self.counting(&Dfa::anything(), (min, max), CharacterSpelling::Raw)
                }
                _ => Ok(self.empty),
            },
            RuleKey::Step(set, spelling, step) => Ok(self.step(set, spelling, step)),
            RuleKey::CountedNames(object, class) => {
                let classes = &self.converter.objects[usize::from(object)].classes;
                let class = classes[class as usize].clone();
                let spelling = CharacterSpelling::Json(class.names.is_universal());
                self.counting(&class.names, class.lengths, spelling)
            }
            RuleKey::Number(formula) => {
                let mut automaton = self.values.numbers[&formula].clone();
                if self.options().style == Style::Gemma {
                    let bounds = self.converter.bounds;
                    let points = exponents_behind_points(&bounds)?;
                    automaton = automaton.intersection(&points, &bounds)?;
                }
                self.encoded(&automaton, Spelling::Utf8)
            }
            RuleKey::Root(value) => self.root(value),
            RuleKey::Element(value) => self.element(value),
            RuleKey::Members(object) => self.members(object),
            RuleKey::NamedElement(object, name, value) => self.named_element(object, name, value),
            RuleKey::Items(array) => self.items(array),
            RuleKey::Item(value) => self.item(value),
            RuleKey::Raw(formula) => self.raw(formula),
            RuleKey::RawNames(object, class) => self.raw_names(object, class),
            RuleKey::Names(object, class) => match self.quotes().is_raw {
                true => self.bare_names(object, class),
                false => self.names(object, class),
            },
            RuleKey::Mark(ref text) => Ok(self.marked(text)),
            RuleKey::Member(object, name, value, level) => self.member(object, name, value, level),
            RuleKey::Open(level) => self.open(level),
            RuleKey::Empty(level) => self.empty_object(level),
            RuleKey::Comma(level) => self.comma_of_members(level),
            RuleKey::Close(_, _, level) => self.close(level),
            RuleKey::Entry(value, level) => self.entry(value, level),
            RuleKey::Only(_, value, level) => Ok(self.call_value(value, self.level_below(level))),
            RuleKey::Around(what, level) => self.around_items(what, level),
            RuleKey::Unclosed(id, level) => {
                let ArrayAutomaton::Unique { inner, .. } = self.converter.arrays[usize::from(id)]
                else {
                    return Ok(self.empty);
                };
                self.leaves_open = true;
                let body = self.array(inner, level);
                self.leaves_open = false;
                body
            }
            RuleKey::Character(set, is_free) => {
                let set = self.sets[set as usize].clone();
                let spelling = Spelling::Json(self.escapes(is_free));
                Ok(self.described(encode_character(&set, spelling)))
            }
            RuleKey::Whitespace => {
                // Parsers of Gemma's calls take a carriage return for a part of what it stands beside.
                let set = match self.options().style {
                    Style::Gemma => CharSet::new([(9, 10), (32, 32)]),
                    _ => CharSet::new([(9, 10), (13, 13), (32, 32)]),
                };
                let body = self.add(Expr::Class(set));
                let max = match self.options().whitespace {
                    Whitespace::Any(max) => max,
                    _ => Some(0),
                };
                Ok(self.add(Expr::Repeat { body, min: 0, max }))
            }
            RuleKey::Expression(within, between) => self.expression(within, between),
            RuleKey::ExpressionItem(within, pair) => self.expression_item(within, pair),
            RuleKey::ExpressionLeaf(within, leaf) => {
                let within = self.converter.expressions[within as usize].1.clone();
                self.encoded(&within.leaves[leaf as usize], Spelling::Json(self.escapes(false)))
            }
            RuleKey::RegularExpression => {
                let bounds = self.converter.bounds;
                let escapes = self.escapes(false);
                let mut leaf = |builder: &mut GrammarBuilder, automaton: &Dfa| {
                    let described = encode(automaton, Spelling::Json(escapes), &bounds)?;
                    Ok(builder.add(Expr::Automaton(described.into()), HERE))
                };
                formats::regex::body(&mut self.builder, rule, &mut leaf)
            }
        }
    }

    /// One of the types that a value may have.
    fn value(&mut self, id: ValueId, level: u32) -> Result<ExprId> {
        let value = self.values.all[&id];
        let mut parts = Vec::new();
        if value.null {
            parts.push(self.literal(b"null"));
        }
        for (text, may_be) in [(&b"true"[..], value.booleans[0]), (b"false", value.booleans[1])] {
            if may_be {
                parts.push(self.literal(text));
            }
        }
        if let Some(formula) = value.number {
            parts.push(self.call(RuleKey::Number(formula)));
        }
        if let Some(formula) = value.string {
            parts.push(self.call(RuleKey::String(formula)));
        }
        if let Some(array) = value.array {
            parts.push(self.call(RuleKey::Array(array, level)));
        }
        if let Some(object) = value.object {
            parts.push(self.call(RuleKey::Object(object, level)));
        }
        Ok(self.choice(parts))
    }

    /// A call of the rule of a value; of the rule of its only type where it has one.
    fn call_value(&mut self, id: ValueId, level: u32) -> ExprId {
        let value = self.values.all[&id];
        let is_plain = value.null || value.booleans != [false, false];
        let key = match (is_plain, value.number, value.string, value.array, value.object) {
            (false, Some(formula), None, None, None) => RuleKey::Number(formula),
            (false, None, Some(formula), None, None) => RuleKey::String(formula),
            (false, None, None, Some(array), None) => RuleKey::Array(array, level),
            (false, None, None, None, Some(object)) => RuleKey::Object(object, level),
            _ => RuleKey::Value(id, level),
        };
        self.call(key)
    }

    fn finish_automaton(&mut self, automaton: DraftAutomaton) -> Result<ExprId> {
        let size = automaton.finals.len() + automaton.bytes.len() + automaton.parts.len();
        self.converter.spend(size)?;
        Ok(self.add(automaton.finish()))
    }
}

impl RuleKey {
    /// The word with which the names of such rules begin.
    fn kind(&self) -> &'static str {
        match self {
            RuleKey::Value(..) => "value",
            RuleKey::Object(..) => "object",
            RuleKey::Array(..) => "array",
            RuleKey::String(_) => "string",
            RuleKey::Counted(_) | RuleKey::RawCounted(_) | RuleKey::CountedNames(..) => "text",
            RuleKey::Number(_) => "number",
            RuleKey::Names(..) => "name",
            RuleKey::Member(..) | RuleKey::Entry(..) => "member",
            RuleKey::Open(_) => "open",
            RuleKey::Empty(_) => "empty",
            RuleKey::Comma(_) => "comma",
            RuleKey::Close(..) => "close",
            RuleKey::Character(..) | RuleKey::Step(..) => "character",
            RuleKey::Whitespace => "space",
            RuleKey::RegularExpression
            | RuleKey::Expression(..)
            | RuleKey::ExpressionItem(..)
            | RuleKey::ExpressionLeaf(..) => "pattern",
            RuleKey::Root(_) => "root",
            RuleKey::Element(_) | RuleKey::NamedElement(..) => "element",
            RuleKey::Members(_) => "object",
            RuleKey::Items(_) => "array",
            RuleKey::Item(_) | RuleKey::Only(..) => "item",
            RuleKey::Around(..) => "bracket",
            RuleKey::Unclosed(..) => "items",
            RuleKey::Raw(_) => "string",
            RuleKey::RawNames(..) => "name",
            RuleKey::Mark(_) => "mark",
        }
    }
}

/// Texts in which an `e` stands behind a point alone: parsers of Gemma's calls take `1e5` for a string.
fn exponents_behind_points(bounds: &Bounds<'_>) -> Result<Dfa> {
    let set = |letters: &[char]| CharSet::new(letters.iter().map(|&one| (one as u32, one as u32)));
    let all = CharSet::scalar_values();
    let mut nfa = ScalarNfa::new();
    let (before, behind) = (nfa.add_state(), nfa.add_state());
    nfa.add_start(before);
    nfa.set_final(before);
    nfa.set_final(behind);
    nfa.add_edge(before, &all.difference(&set(&['.', 'e', 'E'])), before);
    nfa.add_edge(before, &set(&['.']), behind);
    nfa.add_edge(behind, &all, behind);
    Dfa::from_nfa(&nfa, bounds)
}

#[cfg(test)]
mod tests {
    use crate::budget::{Budget, Interrupt};
    use crate::json_schema::{SchemaOptions, convert};
    use crate::limits::Limits;

    /// A condition that holds of all texts of a format leaves the rule of the format, which processes
    /// keep the network of.
    #[test]
    fn a_format_beside_what_holds_of_all_its_texts_is_common() {
        let common = |schema: &str| {
            let limits = Limits::default();
            let interrupt = Interrupt::default();
            let budget = Budget::new(&limits, &interrupt);
            let options = SchemaOptions::default();
            let converted = convert(schema, &[], &options, &limits, &budget).expect("a schema");
            converted.grammar.rules().iter().filter(|rule| rule.is_common).count()
        };
        let beside = [
            ("", 1),
            (r#", "maxLength": 254"#, 1),
            (r#", "minLength": 3"#, 1),
            (r#", "pattern": "@""#, 1),
            (r#", "maxLength": 20"#, 0),
            (r#", "pattern": "^a""#, 0),
        ];
        for (beside, count) in beside {
            let schema = format!(r#"{{"type": "string", "format": "email"{beside}}}"#);
            assert_eq!(common(&schema), count, "{schema}");
        }
    }
}
