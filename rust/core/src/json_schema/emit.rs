//! From automata over members and items to a grammar, written straight into the arena.

use super::arrays::ArrayAutomaton;
use super::atoms::{ArrayId, ObjectId, ValueId};
use super::converter::Converter;
use super::formats;
use super::formula::FormulaId;
use super::objects::{MemberEdge, Named, ObjectState};
use super::options::{Escapes, KeyOrder, SchemaOptions, Whitespace};
use super::scalars::Text;
use super::values::Values;
use crate::error::{Position, Result};
use crate::grammar::{
    ByteAutomaton, CharSet, Described, Expr, Grammar, GrammarBuilder, Rule, RuleOptions,
};
use crate::ids::{ExprId, RuleId};
use crate::regular::{self, Dfa, Spelling, encode, encode_character};
use rustc_hash::FxHashMap;

const HERE: Position = Position { line: 1, column: 1 };

/// What a rule says, with the level at which it stands where that counts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum RuleKey {
    Value(ValueId, u32),
    Object(ObjectId, u32),
    Array(ArrayId, u32),
    String(FormulaId),
    Number(FormulaId),
    /// The names of a class of an object, with the quotation mark at their end.
    Names(ObjectId, u32),
    /// A member of an object: name, colon, value.
    Member(ObjectId, Named, ValueId, u32),
    /// One character of a string: of any, or of those of a set by its number.
    Character(u32, bool),
    Whitespace,
    RegularExpression,
}

/// Edges of an automaton that is being written.
#[derive(Default)]
struct Automaton {
    finals: Vec<bool>,
    bytes: Vec<(u32, u8, u8, u32)>,
    parts: Vec<(u32, ExprId, u32)>,
}

impl Automaton {
    fn state(&mut self) -> u32 {
        self.finals.push(false);
        self.finals.len() as u32 - 1
    }

    /// Reads a text; without a target, to a state of its own.
    fn text(&mut self, from: u32, text: &[u8], to: Option<u32>) -> u32 {
        let mut at = from;
        for (place, &byte) in text.iter().enumerate() {
            let next = match to {
                Some(to) if place + 1 == text.len() => to,
                _ => self.state(),
            };
            self.bytes.push((at, byte, byte, next));
            at = next;
        }
        at
    }

    fn part(&mut self, from: u32, part: ExprId, to: u32) {
        self.parts.push((from, part, to));
    }

    fn finish(mut self) -> Expr {
        self.parts.sort_unstable_by_key(|&(from, part, to)| (part, from, to));
        self.parts.dedup();
        Expr::Automaton(ByteAutomaton {
            start: 0,
            finals: self.finals.into(),
            bytes: self.bytes.into(),
            parts: self.parts.into(),
            falls_back: Box::default(),
        })
    }
}

/// What stands between the parts of arrays and objects at one level.
struct Gaps {
    /// Behind the opening bracket, where something follows.
    open: Gap,
    /// Before a comma, and before the closing bracket behind something.
    before_comma: Gap,
    after_comma: Gap,
    before_close: Gap,
    before_colon: Gap,
    after_colon: Gap,
}

#[derive(Clone)]
enum Gap {
    /// White space as the options say.
    Free,
    /// This text.
    Text(Vec<u8>),
}

struct Emitter<'c, 'a> {
    converter: &'c mut Converter<'a>,
    values: Values,
    builder: GrammarBuilder,
    keys: FxHashMap<RuleKey, RuleId>,
    order: Vec<RuleKey>,
    bodies: Vec<Option<ExprId>>,
    sets: Vec<CharSet>,
    empty: ExprId,
}

impl<'a> Converter<'a> {
    /// The grammar of the texts of a value.
    pub(super) fn emit(&mut self, root: ValueId, values: Values) -> Result<Grammar> {
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
            empty,
        };
        emitter.rule(RuleKey::Value(root, 0));
        let mut next = 0;
        while next < emitter.order.len() {
            let key = emitter.order[next].clone();
            let body = emitter.body(&key, RuleId::new(next))?;
            emitter.bodies[next] = Some(body);
            next += 1;
            emitter.converter.spend(1)?;
        }
        Ok(emitter.finish())
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
            });
        let rules = rules.collect();
        self.builder.finish(rules, RuleId::new(0))
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
            RuleKey::Number(formula) => {
                let automaton = self.values.numbers[&formula].clone();
                self.encoded(&automaton, Spelling::Utf8)
            }
            RuleKey::Names(object, class) => self.names(object, class),
            RuleKey::Member(object, name, value, level) => self.member(object, name, value, level),
            RuleKey::Character(set, is_free) => {
                let set = self.sets[set as usize].clone();
                let spelling = Spelling::Json(self.escapes(is_free));
                Ok(self.described(encode_character(&set, spelling)))
            }
            RuleKey::Whitespace => {
                let set = CharSet::new([(9, 10), (13, 13), (32, 32)]);
                let body = self.add(Expr::Class(set));
                let max = match self.options().whitespace {
                    Whitespace::Any(max) => max,
                    _ => Some(0),
                };
                Ok(self.add(Expr::Repeat { body, min: 0, max }))
            }
            RuleKey::RegularExpression => {
                let bounds = self.converter.bounds;
                let escapes = self.escapes(false);
                let mut leaf = |builder: &mut GrammarBuilder, automaton: &Dfa| {
                    let described = encode(automaton, Spelling::Json(escapes), &bounds)?;
                    Ok(builder.add(automaton_of(described), HERE))
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

    fn level_below(&self, level: u32) -> u32 {
        match self.options().whitespace {
            Whitespace::Indented(..) => level + 1,
            _ => 0,
        }
    }

    /// Whether something may stand inside of a bracket at a level.
    fn is_too_deep(&self, level: u32) -> bool {
        matches!(self.options().whitespace, Whitespace::Indented(..))
            && level >= self.options().max_indented_levels
    }

    fn gaps(&self, level: u32) -> Gaps {
        let text = |text: &str| Gap::Text(text.as_bytes().to_vec());
        match &self.options().whitespace {
            Whitespace::Any(_) => Gaps {
                open: Gap::Free,
                before_comma: Gap::Free,
                after_comma: Gap::Free,
                before_close: Gap::Free,
                before_colon: Gap::Free,
                after_colon: Gap::Free,
            },
            Whitespace::Separators(item, name) => Gaps {
                open: text(""),
                before_comma: text(""),
                after_comma: text(item.strip_prefix(',').unwrap_or(item)),
                before_close: text(""),
                before_colon: text(""),
                after_colon: text(name.strip_prefix(':').unwrap_or(name)),
            },
            Whitespace::Indented(width, item, name) => {
                let line = |level: u32| {
                    let mut line = vec![b'\n'];
                    line.resize(1 + (width * level) as usize, b' ');
                    line
                };
                let mut after_comma = item.strip_prefix(',').unwrap_or(item).as_bytes().to_vec();
                after_comma.extend(line(level + 1));
                Gaps {
                    open: Gap::Text(line(level + 1)),
                    before_comma: text(""),
                    after_comma: Gap::Text(after_comma),
                    before_close: Gap::Text(line(level)),
                    before_colon: text(""),
                    after_colon: text(name.strip_prefix(':').unwrap_or(name)),
                }
            }
        }
    }

    /// Reads a gap; the state behind it.
    fn gap(&mut self, automaton: &mut Automaton, from: u32, gap: &Gap) -> u32 {
        match gap {
            Gap::Text(text) => automaton.text(from, text, None),
            Gap::Free => {
                let to = automaton.state();
                let space = self.call(RuleKey::Whitespace);
                automaton.part(from, space, to);
                to
            }
        }
    }

    fn object(&mut self, id: ObjectId, level: u32) -> Result<ExprId> {
        let gaps = self.gaps(level);
        let mut out = ObjectWriter::new(self, id, level);
        let start = out.automaton.state();
        let open = out.automaton.text(start, b"{", None);
        let first = out.goes_on[0].then(|| out.name_of(0));
        let may_end = out.ends[0];
        out.brackets(self, open, (&gaps.open, b"\""), first, may_end, b'}');
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

    fn finish_automaton(&mut self, automaton: Automaton) -> Result<ExprId> {
        let size = automaton.finals.len() + automaton.bytes.len() + automaton.parts.len();
        self.converter.spend(size)?;
        Ok(self.add(automaton.finish()))
    }

    /// Reads the name of a member behind its first quotation mark, with the last.
    fn name(&mut self, out: &mut Automaton, from: u32, object: ObjectId, named: Named) -> u32 {
        match named {
            Named::Known(place) => {
                let order = self.converter.objects[usize::from(object)].order;
                let name = self.converter.orders.get(order)[place as usize];
                let name = self.converter.names.get(name).clone();
                let mut text = spelled(&name);
                text.push(b'"');
                out.text(from, &text, None)
            }
            Named::Other(class) => {
                let to = out.state();
                let names = self.call(RuleKey::Names(object, class));
                out.part(from, names, to);
                to
            }
        }
    }

    /// Names of a class, with the quotation mark at their end.
    fn names(&mut self, object: ObjectId, class: u32) -> Result<ExprId> {
        let class = self.converter.objects[usize::from(object)].classes[class as usize].clone();
        let is_free = class.names.is_universal();
        let body = self.text_of(&class.names, is_free)?;
        let end = self.literal(b"\"");
        Ok(self.sequence(vec![body, end]))
    }

    fn member(
        &mut self,
        object: ObjectId,
        named: Named,
        value: ValueId,
        level: u32,
    ) -> Result<ExprId> {
        let gaps = self.gaps(level);
        let mut out = Automaton::default();
        let start = out.state();
        let at = self.name(&mut out, start, object, named);
        let at = self.gap(&mut out, at, &gaps.before_colon);
        let at = out.text(at, b":", None);
        let at = self.gap(&mut out, at, &gaps.after_colon);
        let end = out.state();
        out.finals[end as usize] = true;
        let value = self.call_value(value, self.level_below(level));
        out.part(at, value, end);
        self.finish_automaton(out)
    }

    fn array(&mut self, id: ArrayId, level: u32) -> Result<ExprId> {
        match self.converter.arrays[usize::from(id)].clone() {
            ArrayAutomaton::Plain { prefix, rest, least, most } => {
                self.plain_array(&prefix, rest, (least, most), level)
            }
            ArrayAutomaton::States(_) => self.array_states(id, level),
        }
    }

    /// First items of their own, then any number of others within bounds.
    fn plain_array(
        &mut self,
        prefix: &[ValueId],
        rest: Option<ValueId>,
        (least, most): (u32, Option<u32>),
        level: u32,
    ) -> Result<ExprId> {
        let gaps = self.gaps(level);
        let is_productive = |value: &ValueId| self.values.productive.contains(value);
        let rest = rest.filter(is_productive);
        let most = if self.is_too_deep(level) { Some(0) } else { most };
        // Behind an item that has no value there is none.
        let few = prefix.iter().take_while(|value| is_productive(value)).count() as u32;
        let (prefix, rest) = match (few as usize) < prefix.len() {
            true => (&prefix[..few as usize], None),
            false => (prefix, rest),
        };
        let most = match rest {
            Some(_) => most,
            None => Some(most.unwrap_or(u32::MAX).min(few)),
        };
        let mut out = Automaton::default();
        let start = out.state();
        let end = out.state();
        out.finals[end as usize] = true;
        let open = out.text(start, b"[", None);
        let below = self.level_below(level);
        // An empty array.
        let is_empty_last = most == Some(0);
        if least == 0 {
            let at = match gaps.open {
                Gap::Free => self.gap(&mut out, open, &Gap::Free),
                Gap::Text(_) => open,
            };
            out.text(at, b"]", Some(end));
        }
        if is_empty_last {
            return self.finish_automaton(out);
        }
        let first = self.gap(&mut out, open, &gaps.open);
        let mut at = first;
        let mut count = 0;
        let listed = (prefix.len() as u32).min(most.unwrap_or(u32::MAX));
        for &value in &prefix[..listed as usize] {
            if count > 0 {
                at = self.comma(&mut out, at, &gaps);
            }
            let to = out.state();
            let value = self.call_value(value, below);
            out.part(at, value, to);
            at = to;
            count += 1;
            if count >= least {
                let close = self.gap(&mut out, at, &gaps.before_close);
                out.text(close, b"]", Some(end));
            }
        }
        let Some(rest) = rest.filter(|_| most.is_none_or(|most| count < most)) else {
            return self.finish_automaton(out);
        };
        let value = self.call_value(rest, below);
        if count == 0 {
            let to = out.state();
            out.part(at, value, to);
            at = to;
            count = 1;
        }
        // The others, each behind a comma, are counted.
        let mut next = Automaton::default();
        let begin = next.state();
        let behind = self.comma(&mut next, begin, &gaps);
        let last = next.state();
        next.part(behind, value, last);
        next.finals[last as usize] = true;
        let body = self.finish_automaton(next)?;
        let min = least.saturating_sub(count);
        let max = most.map(|most| most - count);
        let to = if max == Some(0) {
            at
        } else {
            let repeat = self.add(Expr::Repeat { body, min, max });
            let to = out.state();
            out.part(at, repeat, to);
            to
        };
        let close = self.gap(&mut out, to, &gaps.before_close);
        out.text(close, b"]", Some(end));
        self.finish_automaton(out)
    }

    /// Reads a comma and what is around it.
    fn comma(&mut self, out: &mut Automaton, from: u32, gaps: &Gaps) -> u32 {
        let at = self.gap(out, from, &gaps.before_comma);
        let at = out.text(at, b",", None);
        self.gap(out, at, &gaps.after_comma)
    }

    fn array_states(&mut self, id: ArrayId, level: u32) -> Result<ExprId> {
        let gaps = self.gaps(level);
        let ArrayAutomaton::States(states) = self.converter.arrays[usize::from(id)].clone() else {
            return Ok(self.empty);
        };
        let live = self.values.array_states[&id].clone();
        let too_deep = self.is_too_deep(level);
        let below = self.level_below(level);
        let mut out = Automaton::default();
        let start = out.state();
        let end = out.state();
        out.finals[end as usize] = true;
        let mut before: Vec<Option<u32>> = vec![None; states.len()];
        let mut behind: Vec<Option<u32>> = vec![None; states.len()];
        let items = |state: usize, productive: &rustc_hash::FxHashSet<ValueId>| {
            let all = states[state].items.iter().copied();
            let kept = all.filter(|(value, to)| {
                !too_deep && live[*to as usize] && productive.contains(value)
            });
            kept.collect::<Vec<(ValueId, u32)>>()
        };
        let open = out.text(start, b"[", None);
        let has_items = !items(0, &self.values.productive).is_empty();
        let is_final = states[0].is_final;
        let mut todo: Vec<(bool, usize)> = Vec::new();
        if has_items {
            let at = self.gap(&mut out, open, &gaps.open);
            // Where a later item is read, behind a comma, the array does not end.
            let first = out.state();
            out.part(at, self.empty, first);
            before[0] = Some(first);
            todo.push((true, 0));
            if is_final && matches!(gaps.open, Gap::Free) {
                out.text(at, b"]", Some(end));
            }
        }
        if is_final && !(has_items && matches!(gaps.open, Gap::Free)) {
            let at = match gaps.open {
                Gap::Free => self.gap(&mut out, open, &Gap::Free),
                Gap::Text(_) => open,
            };
            out.text(at, b"]", Some(end));
        }
        while let Some((is_before, state)) = todo.pop() {
            self.converter.spend(1)?;
            if is_before {
                let Some(at) = before[state] else { continue };
                for (value, to) in items(state, &self.values.productive) {
                    let value = self.call_value(value, below);
                    let target = match behind[to as usize] {
                        Some(known) => known,
                        None => {
                            let fresh = out.state();
                            behind[to as usize] = Some(fresh);
                            todo.push((false, to as usize));
                            fresh
                        }
                    };
                    out.part(at, value, target);
                }
                continue;
            }
            let Some(from) = behind[state] else { continue };
            if !items(state, &self.values.productive).is_empty() {
                let at = self.comma(&mut out, from, &gaps);
                match before[state] {
                    Some(known) => out.part(at, self.empty, known),
                    None => {
                        before[state] = Some(at);
                        todo.push((true, state));
                    }
                }
            }
            if states[state].is_final {
                let at = self.gap(&mut out, from, &gaps.before_close);
                out.text(at, b"]", Some(end));
            }
        }
        self.finish_automaton(out)
    }

    fn escapes(&self, is_free: bool) -> regular::Escapes {
        match self.options().escapes {
            Escapes::Any => regular::Escapes::Any,
            Escapes::Standard if is_free => regular::Escapes::Any,
            Escapes::Standard | Escapes::Plain => regular::Escapes::Plain,
        }
    }

    /// A string of JSON, with its quotation marks.
    fn string(&mut self, formula: FormulaId) -> Result<ExprId> {
        let body = match self.values.texts[&formula].clone() {
            Text::Characters(0, None) => self.text_of(&Dfa::anything(), true)?,
            Text::Characters(min, max) => {
                let body = self.character(&CharSet::scalar_values(), true);
                self.add(Expr::Repeat { body, min, max })
            }
            // A control character without a letter of its own has two spellings.
            Text::Listed(texts)
                if self.options().escapes != Escapes::Any
                    && !texts.iter().any(|text| has_digits(text)) =>
            {
                let mut literals = Vec::with_capacity(texts.len());
                for text in texts {
                    self.converter.spend(1 + text.len() / 16)?;
                    let mut quoted = vec![b'"'];
                    quoted.extend(spelled(&text));
                    quoted.push(b'"');
                    literals.push(self.literal(&quoted));
                }
                return Ok(self.choice(literals));
            }
            Text::Listed(texts) => {
                let bounds = self.converter.bounds;
                let automaton = Dfa::texts(texts.iter().map(String::as_str), &bounds)?;
                self.encoded(&automaton, Spelling::Json(self.escapes(false)))?
            }
            Text::Automaton(automaton) => self.text_of(&automaton, false)?,
            Text::Pattern(language) => {
                let pattern = self.converter.languages[usize::from(language)].pattern.clone();
                let bounds = self.converter.bounds;
                let mut sets: Vec<CharSet> = Vec::new();
                let spelling = Spelling::Json(self.escapes(false));
                let mut character = |builder: &mut GrammarBuilder, set: &CharSet| {
                    sets.push(set.clone());
                    builder.add(automaton_of(encode_character(set, spelling)), HERE)
                };
                let written = match pattern {
                    Some(pattern) => {
                        pattern.to_expr(&mut self.builder, &mut character, true, &bounds)?
                    }
                    None => None,
                };
                match written {
                    Some(written) => written,
                    None => {
                        let automaton = self.converter.automaton(language)?;
                        self.text_of(&automaton, false)?
                    }
                }
            }
            Text::RegularExpression => self.call(RuleKey::RegularExpression),
        };
        let quote = self.literal(b"\"");
        Ok(self.sequence(vec![quote, body, quote]))
    }

    /// The inside of a string: characters that are counted, where all are of one set.
    fn text_of(&mut self, automaton: &Dfa, is_free: bool) -> Result<ExprId> {
        if let Some((set, min, max)) = automaton.uniform_lengths()
            && (min > 1 || max.is_some_and(|max| max > 1))
        {
            let body = self.character(&set, is_free);
            return Ok(self.add(Expr::Repeat { body, min, max }));
        }
        let spelling = Spelling::Json(self.escapes(is_free));
        self.encoded(automaton, spelling)
    }

    fn character(&mut self, set: &CharSet, is_free: bool) -> ExprId {
        let number = match self.sets.iter().position(|known| known == set) {
            Some(known) => known,
            None => {
                self.sets.push(set.clone());
                self.sets.len() - 1
            }
        };
        self.call(RuleKey::Character(number as u32, is_free))
    }

    fn encoded(&mut self, automaton: &Dfa, spelling: Spelling) -> Result<ExprId> {
        let bounds = self.converter.bounds;
        let described = encode(automaton, spelling, &bounds)?;
        Ok(self.described(described))
    }

    fn described(&mut self, described: Described) -> ExprId {
        self.add(automaton_of(described))
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
    states: Vec<ObjectState>,
    live: Vec<bool>,
    /// Whether the object may end in a state, and whether a member may come, with what is absent.
    ends: Vec<bool>,
    goes_on: Vec<bool>,
    automaton: Automaton,
    end: u32,
    names: Vec<Option<u32>>,
    behind: Vec<Option<u32>>,
    chains: FxHashMap<(Named, Vec<(ValueId, u32)>), u32>,
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
            if let Some(absent) = states[state].absent {
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
            automaton: Automaton::default(),
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

    /// Behind the opening bracket: a first member, or the end.
    fn brackets(
        &mut self,
        emitter: &mut Emitter<'_, '_>,
        open: u32,
        (gap, quote): (&Gap, &[u8]),
        first: Option<u32>,
        may_end: bool,
        bracket: u8,
    ) {
        let mut at = open;
        if let Some(first) = first {
            let behind = emitter.gap(&mut self.automaton, open, gap);
            self.automaton.text(behind, quote, Some(first));
            if let Gap::Free = gap {
                at = behind;
            }
        } else if let (Gap::Free, true) = (gap, may_end) {
            at = emitter.gap(&mut self.automaton, open, gap);
        }
        if may_end {
            let end = self.end();
            self.automaton.text(at, &[bracket], Some(end));
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
            if let Gap::Free = gaps.before_comma {
                close = Some(at);
            }
            let at = self.automaton.text(at, b",", None);
            let at = emitter.gap(&mut self.automaton, at, &gaps.after_comma);
            self.automaton.text(at, b"\"", Some(next));
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
        if let Some(absent) = self.states[state].absent
            && self.goes_on[absent as usize]
        {
            let target = self.name_of(absent as usize);
            self.automaton.part(from, emitter.empty, target);
        }
        let mut groups: Vec<(Named, Vec<(ValueId, u32)>)> = Vec::new();
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
                    let at = emitter.name(out, chain, self.id, named);
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

/// Whether a character is spelled by digits of either case.
fn has_digits(text: &str) -> bool {
    spelled(text).windows(2).any(|pair| pair == b"\\u")
}

/// An automaton over bytes as an expression.
fn automaton_of(described: Described) -> Expr {
    let mut finals = vec![false; described.states as usize];
    described.finals.iter().for_each(|&state| finals[state as usize] = true);
    Expr::Automaton(ByteAutomaton {
        start: described.start,
        finals: finals.into(),
        bytes: described.bytes.into(),
        parts: Box::default(),
        falls_back: Box::default(),
    })
}

/// A text inside of a string of JSON, in its canonical spelling.
pub(super) fn spelled(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for character in text.chars() {
        let short = match character {
            '"' => Some(b'"'),
            '\\' => Some(b'\\'),
            '\u{8}' => Some(b'b'),
            '\u{c}' => Some(b'f'),
            '\n' => Some(b'n'),
            '\r' => Some(b'r'),
            '\t' => Some(b't'),
            _ => None,
        };
        match short {
            Some(letter) => out.extend([b'\\', letter]),
            None if character < ' ' => {
                out.extend(format!("\\u{:04x}", u32::from(character)).into_bytes());
            }
            None => out.extend(character.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    out
}

impl RuleKey {
    /// The word with which the names of such rules begin.
    fn kind(&self) -> &'static str {
        match self {
            RuleKey::Value(..) => "value",
            RuleKey::Object(..) => "object",
            RuleKey::Array(..) => "array",
            RuleKey::String(_) => "string",
            RuleKey::Number(_) => "number",
            RuleKey::Names(..) => "name",
            RuleKey::Member(..) => "member",
            RuleKey::Character(..) => "character",
            RuleKey::Whitespace => "space",
            RuleKey::RegularExpression => "pattern",
        }
    }
}
