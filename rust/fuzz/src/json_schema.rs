//! JSON Schemas: random ones, whose grammars have what a slow validator takes, and text of any kind,
//! which is converted or refused by a typed error.

use crate::doors::{Texts, check_limit, door_limits, walks};
use crate::engines::none;
use crate::input::Input;
use crate::json::{Json, Layout, PATTERNS, Validator};
use std::cell::RefCell;
use tokfold_core::budget::Budget;
use tokfold_core::error::{Error, Result, SchemaFault};
use tokfold_core::json_schema::{
    Beginning, Escapes, KeyOrder, Markers, SchemaOptions, SchemaSource, Style, Whitespace, convert,
};
use tokfold_core::limits::Limits;

/// Names of members.
const NAMES: [&str; 4] = ["a", "b", "ab", "é\""];

/// Strings of values.
const STRINGS: [&str; 6] = ["", "a", "b", "ab", "aé\"\n", "😀"];

/// Numbers of values, in halves.
const HALVES: [i64; 8] = [0, 2, 4, -2, 3, -1, 6, 20];

const TYPES: [&str; 7] = ["object", "array", "string", "integer", "number", "boolean", "null"];

/// Schemas within one schema, at most.
const MOST_SCHEMAS: usize = 14;

/// Bytes that lead texts on within values.
const LETTERS: &[u8] = b"\"{}[],:-0125.tfnab\\u\n ";

/// Orders of members of one value, at most.
const MOST_ORDERS: usize = 24;

/// The text that the resource of raw schemas has.
const RESOURCE: (&str, &str) = (
    "https://example.com/x",
    "{\"$anchor\":\"y\",\"type\":[\"integer\",\"null\"],\"$defs\":{\"z\":{\"$ref\":\"#\"}}}",
);

/// A byte says whether text or choices follow; some say the options.
pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let is_text = input.one_in(3);
    let options = options(&mut input, is_text);
    if is_text {
        return raw(&String::from_utf8_lossy(input.rest()), &options);
    }
    let mut builder = Builder { input: &mut input, left: MOST_SCHEMAS };
    let schema = builder.document();
    Case { schema: &schema, text: schema.compact(), options }.run(&mut input);
}

fn options(input: &mut Input<'_>, is_text: bool) -> SchemaOptions {
    let more = input.byte();
    let whitespace = match input.below(6) {
        0 => Whitespace::Any(Some(2)),
        1 => Whitespace::Any(None),
        2 | 3 => Whitespace::Separators(",".into(), ":".into()),
        4 => Whitespace::Separators(", ".into(), ": ".into()),
        _ => Whitespace::Indented(1, ",".into(), ": ".into()),
    };
    let styles = [
        Style::Qwen,
        Style::MiniMax,
        Style::MiniMaxM3,
        Style::DeepSeek,
        Style::DeepSeekV41,
        Style::Glm,
        Style::Cohere,
        Style::KimiK3,
    ];
    let is_styled = is_text && more & 192 == 192;
    let style = if is_styled { input.pick(&styles) } else { Style::Json };
    SchemaOptions {
        dialect: None,
        style,
        markers: Markers::default(),
        excludes: match is_styled && input.one_in(2) {
            true => vec!["</".into(), "ab".into()],
            false => Vec::new(),
        },
        key_order: if more & 1 == 1 { KeyOrder::Any } else { KeyOrder::Schema },
        whitespace: if is_styled { Whitespace::Any(Some(2)) } else { whitespace },
        integers_with_fraction: more & 2 == 2,
        escapes: [Escapes::Standard, Escapes::Any, Escapes::Plain, Escapes::Standard]
            [usize::from(more >> 2 & 3)],
        assert_formats: more & 16 == 0,
        formats: Vec::new(),
        open_objects: !is_text || more & 32 == 0,
        one_of_as_any: false,
        lossy_unique_items: is_text && more & 64 == 64,
        max_alternatives: 256,
        max_digits: None,
        max_depth: None,
        max_indented_levels: 8,
    }
}

/// What a conversion says: its answer, or that it was refused, and how.
fn checked<T>(
    result: Result<T>,
    text: &str,
    limits: &Limits,
) -> std::result::Result<T, Option<SchemaFault>> {
    let error = match result {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    assert!(!error.to_string().is_empty(), "an error of {text:?} says something");
    match error {
        Error::Schema { kind, pointer, message, .. } => {
            assert!(!message.is_empty(), "an error of {text:?} says something");
            let is_place = pointer.contains('#') || pointer.is_empty();
            assert!(is_place, "{pointer:?} is a place in {text:?}: {message}");
            Err(Some(kind))
        }
        Error::Limit { limit, value, message }
        | Error::LimitInSchema { limit, value, message, .. } => {
            // An option, which is no field of the limits.
            if limit != "max_indented_levels" {
                check_limit(limit, value, &message, limits);
            }
            Err(None)
        }
        other => panic!("{text:?} says {other:?}"),
    }
}

struct Case<'s> {
    schema: &'s Json,
    text: String,
    options: SchemaOptions,
}

impl Case<'_> {
    fn name(&self) -> String {
        format!("{} with {:?}", self.text, self.options)
    }

    fn run(&self, input: &mut Input<'_>) {
        let limits = door_limits();
        let budget = Budget::new(&limits, &none());
        let converted = convert(&self.text, &[], &self.options, &limits, &budget);
        let converted = match checked(converted, &self.text, &limits) {
            Ok(converted) => converted,
            Err(Some(SchemaFault::Unsatisfiable)) => {
                let validator = Validator(self.schema);
                for value in values().iter() {
                    assert!(
                        !validator.takes(value),
                        "{} is valid under {}",
                        value.compact(),
                        self.name()
                    );
                }
                return;
            }
            Err(Some(SchemaFault::Invalid)) => panic!("{} is a schema", self.name()),
            Err(Some(SchemaFault::Unsupported) | None) => return,
        };
        assert!(converted.not_enforced.is_empty(), "all of {} is enforced", self.name());
        check_origins(&self.text, &self.options, converted.grammar.rules().len());
        let Some(texts) = Texts::new(&converted.grammar, &limits) else { return };
        assert!(!texts.is_empty(), "{} is satisfied by some value", self.name());
        self.check_values(&texts);
        walks(&texts, LETTERS, input, |text| self.check_text(text));
    }

    fn layout(&self) -> Layout<'_> {
        match &self.options.whitespace {
            Whitespace::Any(_) => Layout::Separators(",", ": "),
            Whitespace::Separators(comma, colon) => Layout::Separators(comma, colon),
            Whitespace::Indented(width, comma, colon) => {
                Layout::Indented(*width as usize, comma, colon)
            }
        }
    }

    /// Each value is valid where one of its texts is known; in any order of members, where all are.
    fn check_values(&self, texts: &Texts) {
        let validator = Validator(self.schema);
        let mut explained = 0;
        for value in values().iter() {
            let expected = validator.takes(value);
            let all = value.texts(self.layout(), MOST_ORDERS);
            let is_any = self.options.key_order == KeyOrder::Any;
            let mut known = false;
            for text in &all {
                let Some((read, is_whole)) = texts.read(text) else { return };
                let is_known = is_whole && read == text.len();
                known |= is_known;
                let is_right = if is_any { is_known == expected } else { expected || !is_known };
                assert!(is_right, "{text} is known: {is_known}, under {}", self.name());
                if !is_known && explained < 6 {
                    explained += 1;
                    self.check_explanation(text, read, !expected);
                }
            }
            assert_eq!(known, expected, "{} under {}", value.compact(), self.name());
        }
    }

    /// A text that leaves the grammar leaves it at a place, for reasons.
    fn check_explanation(&self, text: &str, read: usize, is_wrong: bool) {
        let limits = door_limits();
        for is_whole in [true, false] {
            let budget = Budget::new(&limits, &none());
            let source = SchemaSource {
                text: &self.text,
                resources: &[],
                options: &self.options,
                limits: &limits,
                budget: &budget,
            };
            let beginning = Beginning { text: text.as_bytes(), read, is_whole };
            let Ok(explained) = checked(source.explain(beginning), &self.text, &limits) else {
                return;
            };
            let explained = explained.unwrap_or_else(|| panic!("{text} is JSON"));
            let is_pointer = explained.pointer.is_empty() || explained.pointer.starts_with('/');
            assert!(is_pointer, "{explained:?} of {text} under {}", self.name());
            let has_reasons = !explained.reasons.is_empty() || !is_whole || !is_wrong;
            assert!(has_reasons, "{text} at {read} under {}", self.name());
            for reason in &explained.reasons {
                assert!(!reason.message.is_empty(), "{explained:?}");
                assert!(
                    reason.pointers.iter().all(|pointer| pointer.starts_with('#')),
                    "{explained:?}"
                );
            }
        }
    }

    /// A text of the grammar is JSON, and its value is valid.
    fn check_text(&self, text: &str) {
        let Some(value) = Json::read(text) else {
            panic!("{text:?} is no JSON, but a text of {}", self.name())
        };
        let is_bare = text.trim_matches([' ', '\t', '\n', '\r']).len() == text.len();
        assert!(is_bare, "blanks around {text:?}, a text of {}", self.name());
        if let Some(value) = value {
            assert!(Validator(self.schema).takes(&value), "{text:?} is a text of {}", self.name());
        }
    }
}

/// The rules of a conversion come from somewhere, each.
fn check_origins(text: &str, options: &SchemaOptions, rules: usize) {
    let limits = door_limits();
    let budget = Budget::new(&limits, &none());
    let resources = [(RESOURCE.0.to_owned(), RESOURCE.1.to_owned())];
    let source =
        SchemaSource { text, resources: &resources, options, limits: &limits, budget: &budget };
    if let Ok(origins) = checked(source.rule_origins(), text, &limits) {
        assert_eq!(origins.len(), rules, "origins of the rules of {text:?}");
    }
}

/// Any text as a schema.
fn raw(text: &str, options: &SchemaOptions) {
    let limits = door_limits();
    let budget = Budget::new(&limits, &none());
    let resources = [(RESOURCE.0.to_owned(), RESOURCE.1.to_owned())];
    let converted = convert(text, &resources, options, &limits, &budget);
    let Ok(converted) = checked(converted, text, &limits) else { return };
    let again = convert(text, &resources, options, &limits, &Budget::new(&limits, &none()));
    let again = again.expect("what is converted is converted again");
    let grammar = format!("{:?}", converted.grammar);
    assert_eq!(grammar, format!("{:?}", again.grammar), "{text:?} becomes one grammar");
    let budget = Budget::new(&limits, &none());
    let source =
        SchemaSource { text, resources: &resources, options, limits: &limits, budget: &budget };
    for note in source.notes().expect("what is converted is converted again") {
        assert!(note.pointer.contains('#') && !note.message.is_empty(), "{note:?} of {text:?}");
    }
    check_origins(text, options, converted.grammar.rules().len());
    let Some(texts) = Texts::new(&converted.grammar, &limits) else { return };
    assert!(!texts.is_empty(), "{text:?} is satisfied by some value");
    if options.style != Style::Json {
        return;
    }
    // The same bytes lead the walks.
    let mut input = Input::new(text.as_bytes());
    walks(&texts, LETTERS, &mut input, |found| {
        assert!(Json::read(found).is_some(), "{found:?} is no JSON, but a text of {text}");
    });
    check_negation(text, options, &texts);
}

/// What a schema takes, its negation does not, and the other way round.
fn check_negation(text: &str, options: &SchemaOptions, texts: &Texts) {
    // References would lead elsewhere, and closed objects are closed at the root alone.
    if text.contains('$') || text.contains("\"id\"") || text.contains('\\') || !options.open_objects
    {
        return;
    }
    let limits = door_limits();
    let budget = Budget::new(&limits, &none());
    let negated = format!("{{\"not\":{text}}}");
    let converted = convert(&negated, &[], options, &limits, &budget);
    let negation = match checked(converted, &negated, &limits) {
        Ok(converted) if converted.not_enforced.is_empty() => converted.grammar,
        _ => return,
    };
    let Some(negation) = Texts::new(&negation, &limits) else { return };
    let layout = match &options.whitespace {
        Whitespace::Any(_) => Layout::Separators(",", ":"),
        Whitespace::Separators(comma, colon) => Layout::Separators(comma, colon),
        Whitespace::Indented(width, comma, colon) => {
            Layout::Indented(*width as usize, comma, colon)
        }
    };
    for value in values().iter() {
        let all = value.texts(layout, MOST_ORDERS);
        let holds = |texts: &Texts| {
            all.iter().map(|text| texts.holds(text)).try_fold(false, |any, one| Some(any | one?))
        };
        let (Some(one), Some(other)) = (holds(texts), holds(&negation)) else { return };
        assert!(one != other, "{} under {text} and its negation, {options:?}", value.compact());
    }
}

/// Values that are tried with every schema.
fn values() -> std::rc::Rc<[Json]> {
    thread_local! {
        static VALUES: RefCell<Option<std::rc::Rc<[Json]>>> = const { RefCell::new(None) };
    }
    VALUES.with_borrow_mut(|known| known.get_or_insert_with(|| all_values().into()).clone())
}

fn all_values() -> Vec<Json> {
    let mut out = vec![Json::Null, Json::Boolean(true), Json::Boolean(false)];
    out.extend(HALVES.map(Json::Halves));
    out.extend(STRINGS.map(Json::text));
    let scalars =
        [Json::integer(1), Json::integer(2), Json::text("a"), Json::text("b"), Json::Boolean(true)];
    let object = |members: &[(usize, Json)]| {
        let named = members.iter().map(|(name, value)| (NAMES[*name].to_owned(), value.clone()));
        Json::Object(named.collect())
    };
    out.extend([Json::Array(Vec::new()), object(&[])]);
    for one in &scalars {
        out.push(Json::Array(vec![one.clone()]));
        for two in &scalars[..3] {
            out.push(Json::Array(vec![one.clone(), two.clone()]));
        }
        for name in 0..NAMES.len() {
            out.push(object(&[(name, one.clone())]));
        }
    }
    let [one, two, a, b, yes] = scalars;
    out.extend([
        Json::Array(vec![one.clone(), a.clone(), one.clone()]),
        Json::Array(vec![one.clone(), two.clone(), a.clone(), yes.clone()]),
        Json::Array(vec![Json::Array(vec![one.clone()])]),
        Json::Array(vec![Json::Array(Vec::new()), object(&[])]),
        Json::Array(vec![object(&[(0, one.clone())]), object(&[(0, one.clone())])]),
        object(&[(0, one.clone()), (1, two.clone())]),
        object(&[(0, a.clone()), (1, one.clone())]),
        object(&[(1, one.clone()), (2, b.clone())]),
        object(&[(0, one.clone()), (3, yes.clone())]),
        object(&[(0, one.clone()), (1, a.clone()), (2, two.clone())]),
        object(&[(0, b), (2, yes.clone()), (3, one.clone())]),
        object(&[(0, object(&[]))]),
        object(&[(0, object(&[(0, one.clone())]))]),
        object(&[(0, object(&[(1, two), (0, a.clone())])), (1, yes)]),
        object(&[(1, Json::Array(vec![one, a]))]),
    ]);
    out
}

/// Makes schemas out of the input.
struct Builder<'b, 'i> {
    input: &'b mut Input<'i>,
    left: usize,
}

type Members = Vec<(String, Json)>;

impl Builder<'_, '_> {
    /// A schema with what its references lead to.
    fn document(&mut self) -> Json {
        let has_definitions = self.input.one_in(2);
        let mut root = match self.schema(4, true) {
            Json::Object(members) => members,
            other => vec![("allOf".into(), Json::Array(vec![other]))],
        };
        if has_definitions || Json::Object(root.clone()).compact().contains("\"#/$defs/") {
            let definitions = ["x", "y"].map(|name| (name.to_owned(), self.schema(2, true)));
            root.insert(0, ("$defs".into(), Json::Object(definitions.into())));
        }
        Json::Object(root)
    }

    /// A schema; in its own place, references would lead in a circle.
    fn schema(&mut self, depth: usize, in_place: bool) -> Json {
        self.left = self.left.saturating_sub(1);
        if depth == 0 || self.left == 0 || self.input.is_empty() {
            return self.leaf();
        }
        let mut out: Members = Vec::new();
        for _ in 0..1 + self.input.below(3) {
            self.group(depth - 1, in_place, &mut out);
        }
        let mut unique: Members = Vec::new();
        for (name, value) in out {
            if unique.iter().all(|known| known.0 != name) {
                unique.push((name, value));
            }
        }
        Json::Object(unique)
    }

    fn leaf(&mut self) -> Json {
        let member = |name: &str, value| Json::Object(vec![(name.to_owned(), value)]);
        match self.input.below(5) {
            0 => Json::Boolean(true),
            1 => Json::Boolean(false),
            2 => member("type", Json::text(self.input.pick(&TYPES))),
            3 => member("const", self.value()),
            _ => member("enum", Json::Array(vec![self.value(), self.value()])),
        }
    }

    fn value(&mut self) -> Json {
        let all = values();
        all[self.input.below(all.len())].clone()
    }

    fn count(&mut self) -> Json {
        Json::integer(self.input.below(4) as i64)
    }

    fn half(&mut self) -> Json {
        Json::Halves(self.input.pick(&HALVES))
    }

    fn name(&mut self) -> String {
        self.input.pick(&NAMES).to_owned()
    }

    fn names(&mut self) -> Json {
        let mut names: Vec<&str> = Vec::new();
        for _ in 0..self.input.below(3) {
            let name = self.input.pick(&NAMES);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        Json::Array(names.into_iter().map(Json::text).collect())
    }

    fn pattern(&mut self) -> String {
        PATTERNS[self.input.below(PATTERNS.len())].0.to_owned()
    }

    fn many(&mut self, depth: usize, in_place: bool) -> Json {
        let count = 1 + self.input.below(3);
        Json::Array((0..count).map(|_| self.schema(depth, in_place)).collect())
    }

    fn by_name(&mut self, mut one: impl FnMut(&mut Self) -> (String, Json)) -> Json {
        let mut members: Members = Vec::new();
        for _ in 0..1 + self.input.below(3) {
            let (name, value) = one(self);
            if members.iter().all(|known| known.0 != name) {
                members.push((name, value));
            }
        }
        Json::Object(members)
    }

    /// Keywords that belong together.
    fn group(&mut self, depth: usize, in_place: bool, out: &mut Members) {
        let kind = self.input.below(30);
        let mut add = |name: &str, value| out.push((name.to_owned(), value));
        match kind {
            0 => add("type", Json::text(self.input.pick(&TYPES))),
            1 => {
                let (one, more) = (self.input.below(6), self.input.below(5));
                let two = if more < one { more } else { more + 1 };
                add("type", Json::Array([one, two].map(|at| Json::text(TYPES[at])).into()));
            }
            2 | 3 => {
                add("properties", self.by_name(|this| (this.name(), this.schema(depth, false))))
            }
            4 => add("required", self.names()),
            5 => add("additionalProperties", self.schema(depth, false)),
            6 => add(
                "patternProperties",
                self.by_name(|this| (this.pattern(), this.schema(depth, false))),
            ),
            7 => add("propertyNames", self.schema(depth, in_place)),
            8 => add("minProperties", self.count()),
            9 => add("maxProperties", self.count()),
            10 => add("dependentRequired", self.by_name(|this| (this.name(), this.names()))),
            11 => add(
                "dependentSchemas",
                self.by_name(|this| (this.name(), this.schema(depth, in_place))),
            ),
            12 => add("unevaluatedProperties", self.schema(depth, false)),
            13 => add("items", self.schema(depth, false)),
            14 => add("prefixItems", self.many(depth, false)),
            15 => {
                add("contains", self.schema(depth, false));
                if self.input.one_in(3) {
                    add("minContains", self.count());
                }
                if self.input.one_in(3) {
                    add("maxContains", self.count());
                }
            }
            16 => add(self.input.pick(&["minItems", "maxItems"]), self.count()),
            17 => add("uniqueItems", Json::Boolean(!self.input.one_in(4))),
            18 => add("unevaluatedItems", self.schema(depth, false)),
            19 => add("allOf", self.many(depth, in_place)),
            20 => add("anyOf", self.many(depth, in_place)),
            21 => add("oneOf", self.many(depth, in_place)),
            22 => add("not", self.schema(depth, in_place)),
            23 => {
                add("if", self.schema(depth, in_place));
                if !self.input.one_in(4) {
                    add("then", self.schema(depth, in_place));
                }
                if !self.input.one_in(3) {
                    add("else", self.schema(depth, in_place));
                }
            }
            24 => {
                let kinds = ["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"];
                add(self.input.pick(&kinds), self.half());
            }
            25 => add("multipleOf", Json::Halves(self.input.pick(&[2, 1, 3, 4, 6]))),
            26 => add(self.input.pick(&["minLength", "maxLength"]), self.count()),
            27 => add("pattern", Json::Text(self.pattern())),
            28 if !in_place => {
                add("$ref", Json::text(self.input.pick(&["#", "#/$defs/x", "#/$defs/y"])));
            }
            _ => add(
                "enum",
                Json::Array((0..2 + self.input.below(2)).map(|_| self.value()).collect()),
            ),
        }
    }
}
