//! Documents printed and read back; errors with their places; hostile text.

use super::*;
use crate::budget::{Budget, Interrupt};
use crate::error::{Error, Result, SchemaFault};
use crate::limits::Limits;
use proptest::prelude::*;

fn budget() -> Budget {
    Budget::new(&Limits::default(), &Interrupt::default())
}

fn read(text: &str) -> Result<(Arena, JsonNodeId)> {
    let mut arena = Arena::new();
    let root = arena.read(text, "", 100, &budget())?;
    Ok((arena, root))
}

fn fault(text: &str) -> String {
    match read(text).map(|(_, root)| root) {
        Err(Error::Schema { kind: SchemaFault::Invalid, pointer, keyword, message }) => {
            assert_eq!(keyword, "");
            format!("{pointer}: {message}")
        }
        other => panic!("{text}: {other:?}"),
    }
}

/// A value as text, recursively: the oracle for what was read.
fn print(arena: &Arena, id: JsonNodeId) -> String {
    match arena.node(id) {
        JsonNode::Null => "null".to_owned(),
        JsonNode::Boolean(flag) => flag.to_string(),
        JsonNode::Number(number) => number.to_string(),
        JsonNode::String(text) => quoted(text, 0),
        JsonNode::Array(items) => {
            let items: Vec<String> = items.iter().map(|&item| print(arena, item)).collect();
            format!("[{}]", items.join(","))
        }
        JsonNode::Object(object) => {
            let entries = object.iter();
            let entries: Vec<String> = entries
                .map(|(name, value)| format!("{}:{}", quoted(name, 0), print(arena, value)))
                .collect();
            format!("{{{}}}", entries.join(","))
        }
    }
}

/// A JSON string; `style` picks the spelling of some characters.
fn quoted(text: &str, style: u32) -> String {
    let mut out = String::from("\"");
    for character in text.chars() {
        let mut units = [0; 2];
        match character {
            '"' | '\\' => out.extend(['\\', character]),
            '\n' if style == 1 => out.push_str("\\n"),
            '/' if style == 1 => out.push_str("\\/"),
            _ if character < ' ' || style == 2 => {
                for unit in character.encode_utf16(&mut units) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
            _ => out.push(character),
        }
    }
    out + "\""
}

/// A JSON value as a tree, small enough to recurse over.
#[derive(Clone, Debug, PartialEq)]
enum Tree {
    Word(&'static str),
    Number(i64, u32),
    Text(String, u32),
    Array(Vec<Tree>),
    Object(Vec<(String, Tree)>),
}

impl Tree {
    fn text(&self, blank: &str, plain: bool) -> String {
        match self {
            Tree::Word(word) => (*word).to_owned(),
            Tree::Number(value, 1) if !plain => format!("{value}.0"),
            Tree::Number(value, 2) if !plain => format!("{value}.00e+0"),
            Tree::Number(value, _) => value.to_string(),
            Tree::Text(text, style) => quoted(text, if plain { 0 } else { *style }),
            Tree::Array(items) => {
                let items: Vec<String> = items.iter().map(|item| item.text(blank, plain)).collect();
                format!("[{blank}{}{blank}]", items.join(&format!("{blank},{blank}")))
            }
            Tree::Object(entries) => {
                let entry = |(name, value): &(String, Tree)| {
                    format!("{}{blank}:{blank}{}", quoted(name, 0), value.text(blank, plain))
                };
                let entries: Vec<String> = entries.iter().map(entry).collect();
                format!("{{{blank}{}{blank}}}", entries.join(&format!("{blank},{blank}")))
            }
        }
    }

    /// JSON equality, recursively: the oracle for the arena's.
    fn equals(&self, other: &Tree) -> bool {
        match (self, other) {
            (Tree::Word(a), Tree::Word(b)) => a == b,
            (Tree::Number(a, _), Tree::Number(b, _)) => a == b,
            (Tree::Text(a, _), Tree::Text(b, _)) => a == b,
            (Tree::Array(a), Tree::Array(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.equals(b))
            }
            (Tree::Object(a), Tree::Object(b)) => {
                let has = |(name, value): &(String, Tree)| {
                    b.iter().any(|(other, found)| other == name && value.equals(found))
                };
                a.len() == b.len() && a.iter().all(has)
            }
            _ => false,
        }
    }
}

fn trees() -> impl Strategy<Value = Tree> {
    let text = prop_oneof!["[ab/\"\\\\\n\u{e9}\u{1f600}]{0,3}", any::<String>()];
    let leaf = prop_oneof![
        prop::sample::select(vec!["null", "true", "false"]).prop_map(Tree::Word),
        (-3i64..4, 0u32..3).prop_map(|(value, style)| Tree::Number(value, style)),
        (text, 0u32..3).prop_map(|(text, style)| Tree::Text(text, style)),
    ];
    leaf.prop_recursive(4, 40, 12, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Tree::Array),
            prop::collection::btree_map("[a-d01~/%]{0,3}", inner, 0..14)
                .prop_map(|entries| entries.into_iter().collect())
                .prop_shuffle()
                .prop_map(Tree::Object),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn documents_are_read_as_they_are_written(
        tree in trees(),
        blank in prop::sample::select(vec!["", " ", "\n\t", "\r\n "]),
    ) {
        let (arena, root) = read(&tree.text(blank, false)).expect("it is JSON");
        prop_assert_eq!(print(&arena, root), tree.text("", true));
    }

    #[test]
    fn every_pointer_leads_back(tree in trees()) {
        let (arena, root) = read(&tree.text("", false)).expect("it is JSON");
        for value in arena.values_of(root).map(JsonNodeId) {
            let pointer = arena.pointer(value);
            let decoded = crate::json_schema::uri::percent_decoded(&pointer[1..]);
            prop_assert_eq!(arena.follow(root, &decoded.expect("ours")), Ok(value), "{}", pointer);
        }
    }

    #[test]
    fn equality_is_that_of_values(left in trees(), right in trees()) {
        let mut arena = Arena::new();
        let budget = budget();
        let one = arena.read(&left.text(" ", false), "", 100, &budget).expect("it is JSON");
        let other = arena.read(&left.text("", true), "", 100, &budget).expect("it is JSON");
        let third = arena.read(&right.text("", true), "", 100, &budget).expect("it is JSON");
        prop_assert!(arena.equal(one, other));
        prop_assert_eq!(arena.hash_by_value(one), arena.hash_by_value(other));
        prop_assert_eq!(arena.equal(one, third), left.equals(&right));
    }

    #[test]
    fn damaged_documents_are_refused_or_read(
        tree in trees(),
        place in 0usize..200,
        byte in prop::sample::select(b"{}[]\",:0e.\\u-tn \x01".to_vec()),
        removes in any::<bool>(),
    ) {
        let mut text = tree.text("", false);
        let place = (0..=text.len()).filter(|&at| text.is_char_boundary(at)).cycle().nth(place);
        let place = place.expect("a cycle");
        if removes && place < text.len() {
            text.remove(place);
        } else {
            text.insert(place, byte as char);
        }
        if let Ok((arena, root)) = read(&text) {
            let printed = print(&arena, root);
            let (again, root) = read(&printed).expect("it is JSON");
            prop_assert_eq!(print(&again, root), printed);
        }
    }
}

#[test]
fn errors_say_what_and_where() {
    let number = "the number is not one of JSON: write digits without a zero before them, with \
                  digits on both sides of a point";
    let value = "expected a JSON value: an object, an array, a string in double quotes, a number, \
                 true, false or null";
    let repeated = "the object has this name before; names must be unique";
    let half = "the \\u escape is half of a surrogate pair; write both halves, or the character \
                itself";
    let cases = [
        ("", format!("#: line 1, column 1: {value}")),
        ("{\"a\": [1,\n  x]}", format!("#/a/1: line 2, column 3: {value}")),
        ("[1, ]", "#/1: line 1, column 5: expected a value; drop the comma before \"]\"".into()),
        ("{\"a\":1,}", "#: line 1, column 8: expected a name; drop the comma before \"}\"".into()),
        ("[1 2]", "#/1: line 1, column 4: expected \",\" or \"]\" after the value".into()),
        ("{\"a\" 1}", "#/a: line 1, column 6: expected \":\" after the name".into()),
        ("{a: 1}", "#: line 1, column 2: expected a name in double quotes".into()),
        ("{} {}", "#: line 1, column 4: expected the end of the document".into()),
        ("[[0], [NaN]]", format!("#/1/0: line 1, column 8: {value}")),
        ("-Infinity", format!("#: line 1, column 1: {number}")),
        ("[01]", format!("#/0: line 1, column 2: {number}")),
        ("[1.]", format!("#/0: line 1, column 2: {number}")),
        ("+1", format!("#: line 1, column 1: {value}")),
        ("'a'", format!("#: line 1, column 1: {value}")),
        ("[\"\u{e9}\", \"\\ud800\"]", format!("#/1: line 1, column 8: {half}")),
        ("\"\\udc00\\ud800\"", format!("#: line 1, column 2: {half}")),
        ("\"\\ud83d\\u0041\"", format!("#: line 1, column 2: {half}")),
        ("\"\\u12G4\"", "#: line 1, column 2: \\u needs four hexadecimal digits".into()),
        ("\"\\u+123\"", "#: line 1, column 2: \\u needs four hexadecimal digits".into()),
        ("\"a", "#: line 1, column 3: the document ends within a string".into()),
        (
            "{\"x\":{\"a\":1,\n\"b\":2, \"\\u0061\":3}}",
            format!("#/x/a: line 2, column 8: {repeated}"),
        ),
        (
            "[1e9999999]",
            "#/0: line 1, column 2: the exponent of the number passes 1000000: write a number \
             nearer to zero or to one"
                .into(),
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(fault(text), expected, "{text}");
    }
    assert!(fault("\"a\tb\"").contains("column 3: the string holds a control character"));
    assert!(fault("\"\\x41\"").contains("column 2: a backslash begins no escape of JSON here"));
    assert!(fault("\u{feff}{").ends_with("column 2: expected a name in double quotes"));
    assert!(fault(" \u{feff}1").contains("column 2: expected a JSON value"));
}

#[test]
fn the_first_repeated_name_of_many_is_named() {
    let names: Vec<String> = (0..20).map(|name| format!("\"{}\": 0", name % 11)).collect();
    let text = format!("{{{}}}", names.join(","));
    assert!(fault(&text).starts_with("#/0: line 1, column 80: "), "{}", fault(&text));
}

#[test]
fn a_failed_read_leaves_the_arena_as_it_was() {
    let mut arena = Arena::new();
    let first = arena.read("[1, {\"a\": 2}]", "", 10, &budget()).expect("it is JSON");
    assert!(arena.read("[1, {\"a\": 2}", "", 10, &budget()).is_err());
    let second = arena.read("[3]", "http://x/y", 10, &budget()).expect("it is JSON");
    assert_eq!((arena.values_of(first), arena.values_of(second)), (0..4, 4..6));
    assert_eq!(arena.pointer(JsonNodeId(3)), "#/1/a");
    assert_eq!(arena.pointer(JsonNodeId(5)), "http://x/y#/0");
    assert_eq!(arena.document_of(JsonNodeId(5)), second);
}

#[test]
fn pointers_escape_what_fragments_cannot_hold() {
    let (arena, _) = read(r#"{"a/b~c": {"": {"d e%\"\u0001é": [1]}}}"#).expect("it is JSON");
    assert_eq!(arena.pointer(JsonNodeId(4)), "#/a~1b~0c//d%20e%25%22%01\u{e9}/0");
    let (arena, root) = read(r#"{"~1": 7}"#).expect("it is JSON");
    assert_eq!(arena.pointer(JsonNodeId(1)), "#/~01");
    assert_eq!(arena.follow(root, "/~01"), Ok(JsonNodeId(1)));
    let (arena, root) = read("[[7]]").expect("it is JSON");
    assert_eq!(arena.follow(root, "/0/0"), Ok(JsonNodeId(2)));
    for missing in ["/00", "/-", "/1", "/0/0/0", "/0/", "/+0"] {
        assert!(arena.follow(root, missing).is_err(), "{missing}");
    }
}

#[test]
fn nesting_is_bounded_and_takes_no_stack() {
    let text = "[".repeat(1_000_000) + &"]".repeat(1_000_000);
    match read(&text).map(|(_, root)| root) {
        Err(Error::Limit { limit: "max_nesting", value: 100, message }) => {
            assert!(message.starts_with("line 1, column 101: "), "{message}");
        }
        other => panic!("{other:?}"),
    }
    let mut arena = Arena::new();
    let one = arena.read(&text, "", usize::MAX, &budget()).expect("no bound");
    let other = arena.read(&text, "", usize::MAX, &budget()).expect("no bound");
    assert!(arena.equal(one, other));
    assert_eq!(arena.pointer(JsonNodeId(other.0 - 1)).len(), 1 + 2 * 999_999);
    assert!(arena.read(&"{\"a\":".repeat(1_000_000), "", usize::MAX, &budget()).is_err());
}

#[test]
fn large_documents_take_linear_time() {
    let names: Vec<String> =
        (0..100_000).map(|name| format!("\"name {name}\": {name}.0")).collect();
    let text = format!("{{{}}}", names.join(","));
    let mut arena = Arena::new();
    let budget = budget();
    let root = arena.read(&text, "", 10, &budget).expect("it is JSON");
    let found = arena.get(root, "name 77777").expect("it is there");
    assert_eq!(print(&arena, found), "77777");
    assert_eq!(arena.get(root, "name 100000"), None);
    let values: Vec<String> =
        (0..200_000).map(|value| format!("{{\"a\":{}}}", value / 2)).collect();
    let root = arena.read(&format!("[{}]", values.join(",")), "", 10, &budget);
    let items = arena.node(root.expect("it is JSON")).as_array().expect("an array");
    let distinct = arena.distinct(items, &budget).expect("no bound");
    assert_eq!(distinct.len(), 100_000);
    assert!(budget.done() < 2_000_000, "{}", budget.done());
}

#[test]
fn work_is_counted() {
    let limits = Limits { max_network_work: 1_000, ..Limits::default() };
    let budget = Budget::new(&limits, &Interrupt::default());
    let text = format!("[{}0]", "0,".repeat(1_000));
    let result = Arena::new().read(&text, "", 10, &budget);
    assert!(matches!(result, Err(Error::Limit { limit: "max_network_work", .. })));
    let budget = Budget::new(&limits, &Interrupt::default());
    let result = Arena::new().read(&format!("\"{}\"", "a".repeat(20_000)), "", 10, &budget);
    assert!(matches!(result, Err(Error::Limit { limit: "max_network_work", .. })));
}

#[test]
fn names_of_objects_are_found_however_they_are_written() {
    let text = r#"[{"a": "$ref"}, {"b": {"\u0024ref": 1, "x": 2, "aa": 3}}]"#;
    let (arena, _) = read(text).expect("it is JSON");
    for (names, expected) in [
        (&["$ref"][..], true),
        (&["none", "b"], true),
        (&["$dynamicRef", "nor"], false),
        (&[], false),
    ] {
        assert_eq!(arena.has_name(names), expected, "{names:?}");
    }
}

#[test]
fn names_are_found_among_few_and_many() {
    for count in [1, 8, 9, 200] {
        let names: Vec<String> = (0..count).map(|number| format!("{number}é{number}")).collect();
        let members: Vec<String> = names.iter().map(|name| format!("\"{name}\": 0")).collect();
        let (arena, root) = read(&format!("{{{}}}", members.join(","))).expect("it is JSON");
        let object = arena.object(root).expect("an object");
        assert!(names.iter().all(|name| object.get(name).is_some()));
        for other in ["", "é", "1", "0é1", "201é201"] {
            assert_eq!(object.get(other), None, "{other}");
        }
    }
}
