//! JSON values, how they are written, and which of them a schema of 2020-12 takes: slow and obvious.

use std::collections::BTreeSet;

/// A JSON value. Numbers are counted in halves, so that sums and remainders are exact.
#[derive(Clone, Debug)]
pub enum Json {
    Null,
    Boolean(bool),
    Halves(i64),
    Text(String),
    Array(Vec<Json>),
    Object(Vec<(String, Json)>),
}

/// What stands between the parts of a text.
#[derive(Clone, Copy, Debug)]
pub enum Layout<'a> {
    /// These texts behind values and behind names.
    Separators(&'a str, &'a str),
    /// A line for each member, indented by so many blanks.
    Indented(usize, &'a str, &'a str),
}

impl Json {
    /// A text.
    pub fn text(text: &str) -> Self {
        Json::Text(text.to_owned())
    }

    /// An integer.
    pub fn integer(value: i64) -> Self {
        Json::Halves(2 * value)
    }

    /// The member of a name.
    pub fn get(&self, name: &str) -> Option<&Json> {
        match self {
            Json::Object(members) => members.iter().find(|one| one.0 == name).map(|one| &one.1),
            _ => None,
        }
    }

    /// Equal as values: the order of members is none.
    pub fn equals(&self, other: &Json) -> bool {
        match (self, other) {
            (Json::Null, Json::Null) => true,
            (Json::Boolean(a), Json::Boolean(b)) => a == b,
            (Json::Halves(a), Json::Halves(b)) => a == b,
            (Json::Text(a), Json::Text(b)) => a == b,
            (Json::Array(a), Json::Array(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.equals(b))
            }
            (Json::Object(a), Json::Object(b)) => {
                let is_in = |(name, value): &(String, Json)| {
                    other.get(name).is_some_and(|other| value.equals(other))
                };
                a.len() == b.len() && a.iter().all(is_in)
            }
            _ => false,
        }
    }

    /// The texts of the value, one for each order of members, but no more than `most`.
    pub fn texts(&self, layout: Layout<'_>, most: usize) -> Vec<String> {
        self.spelled(layout, most, 1)
    }

    /// The text of the value with its members in their order, and nothing between the parts.
    pub fn compact(&self) -> String {
        self.spelled(Layout::Separators(",", ":"), 1, 1).remove(0)
    }

    fn spelled(&self, layout: Layout<'_>, most: usize, level: usize) -> Vec<String> {
        let line = |level: usize| match layout {
            Layout::Indented(width, ..) => format!("\n{}", " ".repeat(width * level)),
            Layout::Separators(..) => String::new(),
        };
        let (Layout::Separators(comma, colon) | Layout::Indented(_, comma, colon)) = layout;
        let comma = format!("{comma}{}", line(level));
        let around = |open: char, inside: &str, close: char| match inside {
            "" => format!("{open}{close}"),
            _ => format!("{open}{}{inside}{}{close}", line(level), line(level - 1)),
        };
        match self {
            Json::Null => vec!["null".into()],
            Json::Boolean(value) => vec![value.to_string()],
            Json::Halves(value) if value % 2 == 0 => vec![(value / 2).to_string()],
            Json::Halves(value) => {
                let sign = if *value < 0 { "-" } else { "" };
                vec![format!("{sign}{}.5", value.abs() / 2)]
            }
            Json::Text(text) => vec![quoted(text)],
            Json::Array(items) => {
                let mut out = vec![String::new()];
                for (place, item) in items.iter().enumerate() {
                    let comma = if place == 0 { "" } else { &comma };
                    let items = item.spelled(layout, most, level + 1);
                    out = products(&out, &items, comma, most);
                }
                out.iter().map(|inside| around('[', inside, ']')).collect()
            }
            Json::Object(members) => {
                let mut out: Vec<String> = Vec::new();
                for order in orders(members.len(), most) {
                    let mut all = vec![String::new()];
                    for (place, number) in order.into_iter().enumerate() {
                        let (name, value) = &members[number];
                        let comma = if place == 0 { "" } else { &comma };
                        let before = format!("{comma}{}{colon}", quoted(name));
                        all =
                            products(&all, &value.spelled(layout, most, level + 1), &before, most);
                    }
                    out.extend(all.iter().map(|inside| around('{', inside, '}')));
                }
                out.truncate(most);
                out
            }
        }
    }

    /// Reads a text; `None` where it is no JSON. `Some(None)` where it is JSON that is no such
    /// value: a number that is no multiple of one half, or an object with a name twice.
    pub fn read(text: &str) -> Option<Option<Self>> {
        let mut reader = Reader { rest: text, is_exact: true };
        let value = reader.value()?;
        reader.blanks();
        reader.rest.is_empty().then(|| reader.is_exact.then_some(value))
    }
}

fn products(before: &[String], behind: &[String], between: &str, most: usize) -> Vec<String> {
    let pair = |one: &String| {
        behind.iter().map(|two| format!("{one}{between}{two}")).collect::<Vec<String>>()
    };
    before.iter().flat_map(pair).take(most).collect()
}

/// Orders of so many things, at most so many, the usual one first.
fn orders(count: usize, most: usize) -> Vec<Vec<usize>> {
    if most == 1 {
        return vec![(0..count).collect()];
    }
    let mut out = vec![Vec::new()];
    for number in 0..count {
        let longer = |order: &Vec<usize>| {
            let insert = |place: usize| {
                let mut longer = order.clone();
                longer.insert(place, number);
                longer
            };
            (0..=order.len()).rev().map(insert).collect::<Vec<Vec<usize>>>()
        };
        out = out.iter().flat_map(longer).take(most).collect();
    }
    out
}

/// A string as JSON, with the escapes that it must have.
pub fn quoted(text: &str) -> String {
    let escaped = |c: char| match c {
        '"' | '\\' => format!("\\{c}"),
        '\u{8}' => "\\b".into(),
        '\t' => "\\t".into(),
        '\n' => "\\n".into(),
        '\u{c}' => "\\f".into(),
        '\r' => "\\r".into(),
        '\u{0}'..='\u{1f}' => format!("\\u{:04x}", c as u32),
        _ => c.to_string(),
    };
    format!("\"{}\"", text.chars().map(escaped).collect::<String>())
}

struct Reader<'t> {
    rest: &'t str,
    is_exact: bool,
}

impl Reader<'_> {
    fn blanks(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
    }

    fn takes(&mut self, word: &str) -> bool {
        self.blanks();
        match self.rest.strip_prefix(word) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn value(&mut self) -> Option<Json> {
        for (word, value) in
            [("null", Json::Null), ("true", Json::Boolean(true)), ("false", Json::Boolean(false))]
        {
            if self.takes(word) {
                return Some(value);
            }
        }
        if self.takes("[") {
            let mut items = Vec::new();
            if self.takes("]") {
                return Some(Json::Array(items));
            }
            loop {
                items.push(self.value()?);
                if self.takes("]") {
                    return Some(Json::Array(items));
                }
                self.takes(",").then_some(())?;
            }
        }
        if self.takes("{") {
            let mut members: Vec<(String, Json)> = Vec::new();
            if self.takes("}") {
                return Some(Json::Object(members));
            }
            loop {
                self.takes("\"").then_some(())?;
                let name = self.string()?;
                self.takes(":").then_some(())?;
                let value = self.value()?;
                self.is_exact &= members.iter().all(|member| member.0 != name);
                members.push((name, value));
                if self.takes("}") {
                    return Some(Json::Object(members));
                }
                self.takes(",").then_some(())?;
            }
        }
        if self.takes("\"") {
            return self.string().map(Json::Text);
        }
        self.number()
    }

    fn string(&mut self) -> Option<String> {
        let mut units: Vec<u16> = Vec::new();
        loop {
            let c = self.rest.chars().next()?;
            self.rest = &self.rest[c.len_utf8()..];
            match c {
                '"' => return String::from_utf16(&units).ok(),
                '\u{0}'..='\u{1f}' => return None,
                '\\' => {
                    let escape = self.rest.chars().next().filter(char::is_ascii)?;
                    self.rest = &self.rest[1..];
                    units.push(match escape {
                        '"' | '\\' | '/' => escape as u16,
                        'b' => 8,
                        'f' => 12,
                        'n' => 10,
                        'r' => 13,
                        't' => 9,
                        'u' => {
                            let digits = self.rest.get(..4)?;
                            let is_digits = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
                            self.rest = &self.rest[4..];
                            u16::from_str_radix(digits, 16).ok().filter(|_| is_digits)?
                        }
                        _ => return None,
                    });
                }
                _ => units.extend(c.encode_utf16(&mut [0; 2]).iter()),
            }
        }
    }

    fn digits(&mut self) -> &str {
        let end = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
        let (digits, rest) = self.rest.split_at(end);
        self.rest = rest;
        digits
    }

    fn number(&mut self) -> Option<Json> {
        let is_negative = self.takes("-");
        let whole = self.digits().to_owned();
        if whole.is_empty() || (whole.len() > 1 && whole.starts_with('0')) {
            return None;
        }
        let mut halves = whole.parse::<i64>().ok().and_then(|whole| whole.checked_mul(2));
        if let Some(rest) = self.rest.strip_prefix('.') {
            self.rest = rest;
            let digits = self.digits();
            match (digits.is_empty(), digits.trim_end_matches('0')) {
                (true, _) => return None,
                (_, "") => {}
                (_, "5") => halves = halves.and_then(|halves| halves.checked_add(1)),
                _ => halves = None,
            }
        }
        if self.rest.starts_with(['e', 'E']) {
            self.rest = self.rest[1..].trim_start_matches(['+', '-']);
            if self.digits().is_empty() {
                return None;
            }
            halves = None;
        }
        self.is_exact &= halves.is_some();
        let halves = halves.unwrap_or(0);
        Some(Json::Halves(if is_negative { -halves } else { halves }))
    }
}

/// A pattern, and what it means.
pub type Meaning = (&'static str, fn(&str) -> bool);

/// Patterns that schemas may have.
pub const PATTERNS: [Meaning; 9] = [
    ("a", |text| text.contains('a')),
    ("^a", |text| text.starts_with('a')),
    ("b$", |text| text.ends_with('b')),
    ("^[ab]*$", |text| text.chars().all(|c| "ab".contains(c))),
    ("^ab?$", |text| ["a", "ab"].contains(&text)),
    ("[^a]", |text| text.chars().any(|c| c != 'a')),
    ("^(?!a)", |text| !text.starts_with('a')),
    ("^[^]$", |text| text.chars().count() == 1),
    ("^$", str::is_empty),
];

fn matches(pattern: &Json, text: &str) -> bool {
    let Json::Text(pattern) = pattern else { panic!("a pattern is a text") };
    let known = PATTERNS.iter().find(|known| known.0 == pattern);
    known.expect("a pattern of the list").1(text)
}

/// A validator of the values of one schema of 2020-12.
pub struct Validator<'s>(pub &'s Json);

/// Which members and items some schemas have looked at.
#[derive(Default)]
struct Seen {
    names: BTreeSet<usize>,
    items: BTreeSet<usize>,
}

impl Seen {
    fn add(&mut self, other: Seen) {
        self.names.extend(other.names);
        self.items.extend(other.items);
    }
}

/// References may nest so deep.
const DEEPEST: usize = 40;

impl Validator<'_> {
    /// Whether a value is valid.
    ///
    /// # Panics
    /// If a schema applies itself to the same value.
    pub fn takes(&self, value: &Json) -> bool {
        self.seen(self.0, value, 0).is_some()
    }

    fn is_valid(&self, schema: &Json, value: &Json, depth: usize) -> bool {
        self.seen(schema, value, depth + 1).is_some()
    }

    /// What a schema looks at in a value that it takes; `None` where it does not take it.
    fn seen(&self, schema: &Json, value: &Json, depth: usize) -> Option<Seen> {
        assert!(depth < DEEPEST, "a schema applies itself to the same value: {}", self.0.compact());
        let keywords = match schema {
            Json::Boolean(true) => return Some(Seen::default()),
            Json::Boolean(false) => return None,
            Json::Object(keywords) => keywords,
            other => panic!("{other:?} is no schema"),
        };
        let mut seen = Seen::default();
        for (keyword, argument) in keywords {
            let holds = match (keyword.as_str(), argument) {
                ("unevaluatedProperties" | "unevaluatedItems", _) => true,
                ("$ref", Json::Text(target)) => {
                    let found = self.seen(self.resolved(target), value, depth + 1);
                    found.map(|found| seen.add(found)).is_some()
                }
                ("type", Json::Text(name)) => is_of(value, name),
                ("type", Json::Array(names)) => {
                    names.iter().any(|name| matches!(name, Json::Text(name) if is_of(value, name)))
                }
                ("const", expected) => value.equals(expected),
                ("enum", Json::Array(values)) => values.iter().any(|known| value.equals(known)),
                ("allOf" | "anyOf" | "oneOf", Json::Array(parts)) => {
                    let all = parts.iter().map(|part| self.seen(part, value, depth + 1));
                    let valid: Vec<Seen> = all.flatten().collect();
                    let count = valid.len();
                    valid.into_iter().for_each(|found| seen.add(found));
                    match keyword.as_str() {
                        "allOf" => count == parts.len(),
                        "anyOf" => count > 0,
                        _ => count == 1,
                    }
                }
                ("not", part) => !self.is_valid(part, value, depth),
                ("if", part) => {
                    let found = self.seen(part, value, depth + 1);
                    let branch = if found.is_some() { "then" } else { "else" };
                    seen.add(found.unwrap_or_default());
                    schema.get(branch).is_none_or(|branch| {
                        let found = self.seen(branch, value, depth + 1);
                        found.map(|found| seen.add(found)).is_some()
                    })
                }
                _ => match value {
                    Json::Halves(number) => of_number(keyword, argument, *number),
                    Json::Text(text) => of_text(keyword, argument, text),
                    Json::Array(items) => self.of_array(schema, keyword, items, &mut seen, depth),
                    Json::Object(members) => {
                        self.of_object(schema, keyword, (value, members), &mut seen, depth)
                    }
                    _ => true,
                },
            };
            if !holds {
                return None;
            }
        }
        if let (Json::Object(members), Some(rest)) = (value, schema.get("unevaluatedProperties")) {
            for (place, (_, member)) in members.iter().enumerate() {
                if seen.names.insert(place) && !self.is_valid(rest, member, depth) {
                    return None;
                }
            }
        }
        if let (Json::Array(items), Some(rest)) = (value, schema.get("unevaluatedItems")) {
            for (place, item) in items.iter().enumerate() {
                if seen.items.insert(place) && !self.is_valid(rest, item, depth) {
                    return None;
                }
            }
        }
        Some(seen)
    }

    fn resolved(&self, target: &str) -> &Json {
        let found = match target.strip_prefix("#/$defs/") {
            Some(name) => self.0.get("$defs").and_then(|all| all.get(name)),
            None => Some(self.0),
        };
        found.expect("a reference to a schema that is there")
    }

    fn of_array(
        &self,
        schema: &Json,
        keyword: &str,
        items: &[Json],
        seen: &mut Seen,
        depth: usize,
    ) -> bool {
        let count_of = |name: &str, default: i64| match schema.get(name) {
            Some(Json::Halves(count)) => count / 2,
            _ => default,
        };
        match (keyword, schema.get(keyword)) {
            ("prefixItems", Some(Json::Array(schemas))) => {
                seen.items.extend(0..items.len().min(schemas.len()));
                schemas.iter().zip(items).all(|(part, item)| self.is_valid(part, item, depth))
            }
            ("items", Some(part)) => {
                let first = match schema.get("prefixItems") {
                    Some(Json::Array(schemas)) => schemas.len(),
                    _ => 0,
                };
                seen.items.extend(first..items.len());
                items.iter().skip(first).all(|item| self.is_valid(part, item, depth))
            }
            ("contains", Some(part)) => {
                let found = (0..items.len()).filter(|&at| self.is_valid(part, &items[at], depth));
                let found: Vec<usize> = found.collect();
                let count = found.len() as i64;
                seen.items.extend(found);
                count >= count_of("minContains", 1) && count <= count_of("maxContains", i64::MAX)
            }
            ("minItems", _) => items.len() as i64 >= count_of(keyword, 0),
            ("maxItems", _) => items.len() as i64 <= count_of(keyword, i64::MAX),
            ("uniqueItems", Some(Json::Boolean(true))) => {
                let repeats = |at: usize| items[..at].iter().any(|item| item.equals(&items[at]));
                !(0..items.len()).any(repeats)
            }
            _ => true,
        }
    }

    fn of_object(
        &self,
        schema: &Json,
        keyword: &str,
        (value, members): (&Json, &[(String, Json)]),
        seen: &mut Seen,
        depth: usize,
    ) -> bool {
        let argument = schema.get(keyword);
        let is_listed =
            |name: &str| schema.get("properties").is_some_and(|all| all.get(name).is_some());
        let is_matched = |name: &str| match schema.get("patternProperties") {
            Some(Json::Object(patterns)) => {
                patterns.iter().any(|(pattern, _)| matches(&Json::text(pattern), name))
            }
            _ => false,
        };
        let has_all = |names: &Json| match names {
            Json::Array(names) => names
                .iter()
                .all(|name| matches!(name, Json::Text(name) if value.get(name).is_some())),
            other => panic!("{other:?} are no names"),
        };
        let mut members = members.iter().enumerate();
        match (keyword, argument) {
            ("properties", Some(schemas)) => members.all(|(place, (name, member))| {
                schemas.get(name).is_none_or(|part| {
                    seen.names.insert(place);
                    self.is_valid(part, member, depth)
                })
            }),
            ("patternProperties", Some(Json::Object(patterns))) => {
                members.all(|(place, (name, member))| {
                    let fitting =
                        |(pattern, _): &&(String, Json)| matches(&Json::text(pattern), name);
                    patterns.iter().filter(fitting).all(|(_, part)| {
                        seen.names.insert(place);
                        self.is_valid(part, member, depth)
                    })
                })
            }
            ("additionalProperties", Some(part)) => members.all(|(place, (name, member))| {
                is_listed(name) || is_matched(name) || {
                    seen.names.insert(place);
                    self.is_valid(part, member, depth)
                }
            }),
            ("propertyNames", Some(part)) => {
                members.all(|(_, (name, _))| self.is_valid(part, &Json::text(name), depth))
            }
            ("required", Some(names)) => has_all(names),
            ("dependentRequired", Some(Json::Object(all))) => {
                all.iter().all(|(name, names)| value.get(name).is_none() || has_all(names))
            }
            ("dependentSchemas", Some(Json::Object(all))) => all.iter().all(|(name, part)| {
                value.get(name).is_none() || {
                    let found = self.seen(part, value, depth + 1);
                    found.map(|found| seen.add(found)).is_some()
                }
            }),
            ("minProperties", Some(Json::Halves(count))) => members.len() as i64 >= count / 2,
            ("maxProperties", Some(Json::Halves(count))) => members.len() as i64 <= count / 2,
            _ => true,
        }
    }
}

fn is_of(value: &Json, name: &str) -> bool {
    match value {
        Json::Null => name == "null",
        Json::Boolean(_) => name == "boolean",
        Json::Halves(value) => name == "number" || (name == "integer" && value % 2 == 0),
        Json::Text(_) => name == "string",
        Json::Array(_) => name == "array",
        Json::Object(_) => name == "object",
    }
}

fn of_number(keyword: &str, argument: &Json, number: i64) -> bool {
    let Json::Halves(bound) = argument else { return true };
    match keyword {
        "minimum" => number >= *bound,
        "maximum" => number <= *bound,
        "exclusiveMinimum" => number > *bound,
        "exclusiveMaximum" => number < *bound,
        "multipleOf" => number % bound == 0,
        _ => true,
    }
}

fn of_text(keyword: &str, argument: &Json, text: &str) -> bool {
    let length = 2 * text.chars().count() as i64;
    match (keyword, argument) {
        ("minLength", Json::Halves(bound)) => length >= *bound,
        ("maxLength", Json::Halves(bound)) => length <= *bound,
        ("pattern", pattern) => matches(pattern, text),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Json {
        Json::read(text).flatten().expect("a value")
    }

    #[test]
    fn texts_are_read_as_they_are_written() {
        for text in ["null", "[true,-1.5,\"a\\n\\\"é\"]", "{\"a\":{},\"b\":[]}", "0.5", "-2"] {
            assert_eq!(read(text).compact(), text);
        }
        for text in ["", "[1,]", "01", "\"\n\"", "{\"a\"}", "1 2", "\"\\ud800\"", "-", "1.", "nul"]
        {
            assert!(Json::read(text).is_none(), "{text}");
        }
        assert!(matches!(Json::read("{\"a\":1,\"a\":1}"), Some(None)));
        assert!(matches!(Json::read("1e2"), Some(None)));
        let texts = read("{\"a\":1,\"b\":[{}]}").texts(Layout::Indented(2, ",", ": "), 9);
        assert_eq!(texts.len(), 2);
        assert!(texts.contains(&"{\n  \"a\": 1,\n  \"b\": [\n    {}\n  ]\n}".to_owned()));
    }

    #[test]
    fn the_validator_knows_what_is_left_over() {
        let schema = read(
            "{\"$defs\":{\"x\":{\"properties\":{\"a\":true}}},\"allOf\":[{\"$ref\":\"#/$defs/x\"}],\
             \"unevaluatedProperties\":{\"type\":\"integer\"},\"contains\":{\"const\":1},\
             \"unevaluatedItems\":false,\"if\":{\"required\":[\"b\"]},\"then\":{\"minProperties\":2}}",
        );
        let takes = |text: &str| Validator(&schema).takes(&read(text));
        assert!(takes("{\"a\":\"x\"}") && takes("{\"c\":2}") && takes("[1,1]") && takes("null"));
        assert!(!takes("{\"c\":\"x\"}") && !takes("[1,2]") && !takes("[]") && !takes("{\"b\":1}"));
    }
}
