//! References of small schemas, by hand; hostile ones.

use super::*;
use crate::budget::Interrupt;
use crate::limits::Limits;

fn options() -> ReadOptions {
    ReadOptions { default_dialect: None, max_nesting: 1_000 }
}

fn budget() -> Budget {
    Budget::new(&Limits::default(), &Interrupt::default())
}

fn load_with(text: &str, resources: &[(&str, &str)]) -> Result<Schemas> {
    let owned = |&(uri, text): &(&str, &str)| (uri.to_owned(), text.to_owned());
    let resources: Vec<(String, String)> = resources.iter().map(owned).collect();
    Schemas::new(text, &resources, options(), &budget())
}

fn load(text: &str) -> Schemas {
    load_with(text, &[]).expect("it is a schema")
}

/// The value that a pointer names in the root document.
fn at(schemas: &Schemas, pointer: &str) -> JsonNodeId {
    schemas.arena().follow(schemas.root(), pointer).expect("it is there")
}

/// Where the `$ref` of the schema at a pointer leads, or the error.
fn target(schemas: &Schemas, pointer: &str) -> String {
    match schemas.reference(at(schemas, pointer)) {
        Ok(target) => schemas.arena().pointer(target.expect("it has a $ref")),
        Err(error) => error.to_string(),
    }
}

/// The target of a `$ref` in `{"properties": {"x": {"$ref": ...}}, ...}` of a dialect.
fn target_in(dialect: &str, reference: &str, rest: &str) -> String {
    let text = format!(
        r##"{{"$schema": "{dialect}", "properties": {{"x": {{"$ref": "{reference}"}}}}, {rest}}}"##
    );
    target(&load(&text), "/properties/x")
}

const D4: &str = "http://json-schema.org/draft-04/schema#";
const D7: &str = "http://json-schema.org/draft-07/schema#";
const D2019: &str = "https://json-schema.org/draft/2019-09/schema";
const D2020: &str = "https://json-schema.org/draft/2020-12/schema";

#[test]
fn pointers_lead_anywhere_in_the_document() {
    let rest = r#""$defs": {"a/b": {"~": {"c%\"": [0, true]}}}, "my own": {"type": "null"}"#;
    let cases = [
        ("#", "#"),
        ("", "#"),
        ("#/$defs/a~1b", "#/$defs/a~1b"),
        ("#/%24defs/a~1b/~0/c%25%22/1", "#/$defs/a~1b/~0/c%25%22/1"),
        ("#/my%20own", "#/my%20own"),
        ("#/properties/x", "#/properties/x"),
    ];
    for (reference, expected) in cases {
        assert_eq!(target_in(D2020, reference, rest), expected, "{reference}");
    }
}

#[test]
fn dangling_references_say_what_is_missing() {
    let cases = [
        (
            "#/$defs/b/c",
            "#/properties/x: $ref: #/$defs/b/c leads to nothing: #/$defs is the last part of it \
             that exists, an object",
        ),
        ("#b", "#/properties/x: $ref: #b leads to nothing: no schema of # has the anchor b"),
        ("#/%FF", "#/properties/x: $ref: the fragment of #/%FF is not percent-encoded UTF-8"),
        (
            "http://x/y.json#/a",
            "#/properties/x: $ref: the document http://x/y.json is not given, and references are \
             never fetched; pass its text in resources, under this URI",
        ),
    ];
    for (reference, expected) in cases {
        assert_eq!(target_in(D2020, reference, r#""$defs": {"a": {}}"#), expected);
    }
}

#[test]
fn identifiers_nest_and_count_only_in_schemas() {
    let schemas = load(
        r##"{
        "$id": "http://x/root/", "$defs": {
            "a": {"$id": "folder/", "$defs": {"b": {"$id": "leaf", "$ref": "#/$defs/c", "$defs": {"c": {}}}}},
            "not": {"enum": [{"$id": "http://x/root/hidden"}], "unknown": {"$id": "http://x/root/hidden"}},
            "same": {"$ref": "http://x/root/#/$defs/d"}, "d": {"$ref": "folder/leaf"},
            "e": {"$ref": "hidden"}, "f": {"$ref": "/root/folder/../folder/leaf#/$defs/c"}
        }}"##,
    );
    assert_eq!(target(&schemas, "/$defs/a/$defs/b"), "#/$defs/a/$defs/b/$defs/c");
    assert_eq!(target(&schemas, "/$defs/same"), "#/$defs/d");
    assert_eq!(target(&schemas, "/$defs/d"), "#/$defs/a/$defs/b");
    assert!(target(&schemas, "/$defs/e").contains("http://x/root/hidden is not given"));
    assert_eq!(target(&schemas, "/$defs/f"), "#/$defs/a/$defs/b/$defs/c");
    let inner = at(&schemas, "/$defs/a/$defs/b/$defs/c");
    assert_eq!(schemas.resource(inner), at(&schemas, "/$defs/a/$defs/b"));
}

#[test]
fn each_dialect_has_its_own_identifiers_and_anchors() {
    let foo = |keyword: &str| format!(r##""definitions": {{"a": {{"{keyword}": "#foo"}}}}"##);
    assert_eq!(target_in(D4, "#foo", &foo("id")), "#/definitions/a");
    assert_eq!(target_in(D7, "#foo", &foo("$id")), "#/definitions/a");
    assert!(target_in(D4, "#foo", &foo("$id")).contains("no schema of # has the anchor foo"));
    assert!(target_in(D7, "#foo", &foo("id")).contains("no schema of # has the anchor foo"));
    let anchor = r#""definitions": {"a": {"$anchor": "foo"}}"#;
    assert_eq!(target_in(D2019, "#foo", anchor), "#/definitions/a");
    assert!(target_in(D7, "#foo", anchor).contains("no schema of # has the anchor foo"));
    let dynamic = r#""$defs": {"a": {"$dynamicAnchor": "foo"}}"#;
    assert_eq!(target_in(D2020, "#foo", dynamic), "#/$defs/a");
    assert!(target_in(D2019, "#foo", dynamic).contains("no schema of # has the anchor foo"));
    let hidden = r##""definitions": {"a": {"$id": "#foo", "$ref": "#"}}"##;
    assert!(target_in(D7, "#foo", hidden).contains("no schema of # has the anchor foo"));
    let twice = r#""$defs": {"a": {"$anchor": "foo"}, "b": {"$anchor": "foo"}}"#;
    assert!(
        target_in(D2020, "#foo", twice)
            .ends_with("#foo stands for two schemas, #/$defs/a and #/$defs/b; rename one")
    );
    let nested = r#""$defs": {"a": {"$id": "u", "$anchor": "foo"}}"#;
    assert_eq!(target_in(D2020, "u#foo", nested), "#/$defs/a");
    assert!(target_in(D2020, "#foo", nested).contains("has the anchor foo"));
}

#[test]
fn a_reference_hides_its_siblings_up_to_draft_7() {
    for (dialect, hides) in [(D4, true), (D7, true), (D2019, false), (D2020, false)] {
        let text = format!(
            r##"{{"$schema": "{dialect}", "definitions": {{"a": {{}}}},
                "properties": {{"x": {{"$ref": "#/definitions/a", "type": "null"}}}}}}"##
        );
        let schemas = load(&text);
        let x = at(&schemas, "/properties/x");
        assert_eq!(schemas.value(x, "type").is_none(), hides, "{dialect}");
        let notes = schemas.notes_on(x, &budget()).expect("no draft 3");
        let said = notes.first().map(|note| (note.level, &*note.message));
        let hidden = format!(
            "in {}, $ref hides all keywords beside it, so it is not enforced; write both into allOf",
            schemas.dialect(x).name()
        );
        assert_eq!(said, hides.then_some((NoteLevel::Warning, &*hidden)));
        assert_eq!(target(&schemas, "/properties/x"), "#/definitions/a");
    }
}

#[test]
fn documents_are_given_or_of_the_standard() {
    let given = [
        ("http://x/a.json#", r##"{"$defs": {"n": {"$ref": "b.json"}}}"##),
        (
            "http://x/b.json",
            r##"{"$id": "http://y/c.json", "$defs": {"m": {"$id": "http://y/m"}}}"##,
        ),
        ("http://x/broken", "{"),
        ("http://z/only-inside", r#"{"$defs": {"k": {"$id": "http://y/k"}}}"#),
    ];
    let text = r##"{"allOf": [
        {"$ref": "http://x/a.json#/$defs/n"}, {"$ref": "http://y/c.json"}, {"$ref": "http://y/m"},
        {"$ref": "http://json-schema.org/draft-07/schema#/definitions/stringArray"},
        {"$ref": "http://json-schema.org/draft/2020-12/schema"},
        {"$ref": "http://x/broken"}, {"$ref": "http://x/none"}, {"$ref": "http://y/k"}]}"##;
    let schemas = load_with(text, &given).expect("it is a schema");
    let targets: Vec<String> =
        (0..8).map(|index| target(&schemas, &format!("/allOf/{index}"))).collect();
    assert_eq!(targets[0], "http://x/a.json#/$defs/n");
    assert_eq!(targets[1], "http://x/b.json#");
    assert_eq!(targets[2], "http://x/b.json#/$defs/m");
    assert_eq!(targets[3], "http://json-schema.org/draft-07/schema#/definitions/stringArray");
    assert_eq!(targets[4], "https://json-schema.org/draft/2020-12/schema#");
    assert!(targets[5].starts_with("http://x/broken#: line 1, column 2: expected a name"));
    assert!(targets[6].contains("http://x/none is not given"));
    assert_eq!(targets[7], "http://z/only-inside#/$defs/k");
    let alone = load_with(r#"{"$ref": "http://y/k"}"#, &given).expect("it is a schema");
    assert_eq!(target(&alone, ""), "http://z/only-inside#/$defs/k");
}

#[test]
fn what_a_pointer_reaches_is_a_schema() {
    let schemas = load(
        r##"{"$id": "http://x/", "unknown": {"a": {"$ref": "#/other/0"}, "$id": "u/"},
             "other": [{"$ref": "y"}], "$ref": "#/unknown/a", "$defs": {"y": {"$id": "y"}}}"##,
    );
    assert_eq!(target(&schemas, ""), "#/unknown/a");
    assert_eq!(target(&schemas, "/unknown/a"), "#/other/0");
    assert_eq!(target(&schemas, "/other/0"), "#/$defs/y");
}

#[test]
fn dynamic_references_name_their_anchor() {
    let schemas = load(
        r##"{"$id": "http://x/root", "$dynamicAnchor": "node", "$defs": {
            "a": {"$dynamicRef": "#node"}, "b": {"$dynamicRef": "#/$defs/a"},
            "c": {"$dynamicRef": "other#node"}, "d": {"$dynamicRef": "#plain"},
            "other": {"$id": "other", "$anchor": "node"}, "plain": {"$anchor": "plain"},
            "e": {"$dynamicRef": "#nothing"}, "f": {"$ref": "#node"}}}"##,
    );
    let dynamic = |name: &str| {
        let found = schemas.dynamic(at(&schemas, &format!("/$defs/{name}")));
        found.map(|found| {
            let found = found.expect("it has a $dynamicRef");
            (schemas.arena().pointer(found.target), found.name.map(String::from))
        })
    };
    assert_eq!(dynamic("a"), Ok(("#".to_owned(), Some("node".to_owned()))));
    assert_eq!(dynamic("b"), Ok(("#/$defs/a".to_owned(), None)));
    assert_eq!(dynamic("c"), Ok(("#/$defs/other".to_owned(), None)));
    assert_eq!(dynamic("d"), Ok(("#/$defs/plain".to_owned(), None)));
    let error = dynamic("e").expect_err("there is no such anchor").to_string();
    assert!(error.starts_with("#/$defs/e: $dynamicRef: #nothing leads to nothing"), "{error}");
    assert_eq!(target(&schemas, "/$defs/f"), "#");
    assert_eq!(schemas.dynamic_anchors(schemas.root()).len(), 1);
    assert_eq!(schemas.dynamic_anchor(schemas.root(), "node"), Some(schemas.root()));
}

#[test]
fn recursive_references_are_dynamic_where_their_resource_says_so() {
    for (anchor, expected) in [("true", Some("")), ("false", None)] {
        let text = format!(
            r##"{{"$schema": "{D2019}", "$recursiveAnchor": {anchor}, "items": {{"$recursiveRef": "#"}},
                 "$defs": {{"a": {{"$recursiveAnchor": true}}}}}}"##
        );
        let schemas = load(&text);
        let dynamic = schemas.dynamic(at(&schemas, "/items")).expect("it leads somewhere");
        let dynamic = dynamic.expect("it has a $recursiveRef");
        assert_eq!((dynamic.target, dynamic.name.as_deref()), (schemas.root(), expected));
        assert_eq!(schemas.dynamic_anchors(schemas.root()).len(), expected.iter().count());
    }
    let schemas = load(r##"{"items": {"$recursiveRef": "#"}}"##);
    assert_eq!(schemas.dynamic(at(&schemas, "/items")), Ok(None));
}

#[test]
fn dialects_come_from_schema_of_the_resource() {
    let schemas = load_with(
        r##"{"$schema": "http://json-schema.org/draft-07/schema", "$id": "http://x/a", "definitions": {
            "inner": {"$id": "b", "$schema": "https://json-schema.org/draft/2020-12/schema", "items": {}},
            "plain": {"$schema": "https://json-schema.org/draft/2020-12/schema"},
            "old": {"id": "c", "$schema": "http://json-schema.org/draft-04/schema#"}},
            "allOf": [{"$ref": "d"}]}"##,
        &[("http://x/d", "{}")],
    );
    let schemas = schemas.expect("it is a schema");
    let dialect = |pointer| schemas.dialect(at(&schemas, pointer));
    assert_eq!(dialect(""), Dialect::Draft7);
    assert_eq!(dialect("/definitions/inner/items"), Dialect::Draft2020);
    assert_eq!(dialect("/definitions/plain"), Dialect::Draft7);
    assert_eq!(dialect("/definitions/old"), Dialect::Draft4);
    let other = schemas.reference(at(&schemas, "/allOf/0")).expect("given").expect("a $ref");
    assert_eq!(schemas.dialect(other), Dialect::Draft7);
    assert_eq!(schemas.notes().len(), 1);
    let pointer = schemas.arena().pointer(schemas.notes()[0].place);
    assert_eq!(pointer, "#/definitions/plain/$schema");
    assert_eq!(load("{}").dialect(JsonNodeId(0)), Dialect::Draft2020);
    let options = ReadOptions { default_dialect: Some(Dialect::Draft4), ..options() };
    let schemas = Schemas::new("{}", &[], options, &budget()).expect("it is a schema");
    assert_eq!(schemas.dialect(schemas.root()), Dialect::Draft4);
}

#[test]
fn metaschemas_of_others_pick_vocabularies() {
    let meta = |more: &str| {
        format!(
            r##"{{"$schema": "{D2020}", "$id": "http://x/meta", "$vocabulary": {{
                "https://json-schema.org/draft/2020-12/vocab/core": true,
                "https://json-schema.org/draft/2020-12/vocab/applicator": true{more}}}}}"##
        )
    };
    let text = r##"{"$schema": "http://x/meta", "properties": {"a": {"minimum": 1}}}"##;
    let schemas = load_with(text, &[("http://x/meta", &meta(""))]).expect("it is a schema");
    let a = at(&schemas, "/properties/a");
    assert_eq!(schemas.number(a, "minimum"), Ok(None));
    let notes = schemas.notes_on(a, &budget()).expect("no draft 3");
    let left_out = "the metaschema leaves out the vocabulary of the keyword";
    assert_eq!((notes[0].level, &*notes[0].message), (NoteLevel::Warning, left_out));
    let optional = meta(r#", "http://x/vocab": false"#);
    assert!(load_with(text, &[("http://x/meta", &optional)]).is_ok());
    let required = meta(r#", "http://x/vocab": true"#);
    let error = load_with(text, &[("http://x/meta", &required)]).err().expect("it is refused");
    assert!(matches!(error, Error::Schema { kind: SchemaFault::Unsupported, .. }));
    assert!(error.to_string().starts_with(
        "#: $schema: the metaschema http://x/meta requires the vocabulary http://x/vocab, which \
         is unknown"
    ));
    let inner = r##"{"properties": {"a": {"$id": "http://x/a", "$schema": "http://x/meta"}}}"##;
    let schemas = load_with(inner, &[("http://x/meta", &required)]).expect("the root is known");
    assert!(schemas.shape(at(&schemas, "/properties/a")).is_err());
    let schemas = load(text);
    assert_eq!(schemas.dialect(schemas.root()), Dialect::Draft2020);
    assert!(
        schemas.notes()[0].message.starts_with("the metaschema is neither of the standard nor")
    );
    let own = r##"{"$schema": "http://x/meta"}"##;
    assert!(load_with(own, &[("http://x/meta", own)]).is_ok());
    // What the caller says holds where `$schema` says nothing that is known.
    let options = ReadOptions { default_dialect: Some(Dialect::Draft7), ..options() };
    let schemas = Schemas::new(text, &[], options, &budget()).expect("it is a schema");
    assert_eq!(schemas.dialect(schemas.root()), Dialect::Draft7);
    assert!(schemas.notes()[0].message.ends_with("the schema is read as draft-07"));
}

#[test]
fn ambiguous_uris_are_refused_where_they_are_used() {
    let text = |other: &str| {
        format!(
            r##"{{"$defs": {{"a": {{"$id": "http://x/"}}, "b": {{"$id": "http://x/"{other}}},
                 "c": {{"$ref": "http://x/"}}}}}}"##
        )
    };
    assert_eq!(target(&load(&text("")), "/$defs/c"), "#/$defs/a");
    let refused = target(&load(&text(r#", "type": "null""#)), "/$defs/c");
    assert!(refused.ends_with("stands for two schemas, #/$defs/a and #/$defs/b; rename one"));
}

#[test]
fn loops_are_no_matter() {
    let schemas = load(
        r##"{"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#"}}}"##,
    );
    assert_eq!(target(&schemas, "/$defs/b"), "#");
    assert_eq!(target(&load(r##"{"$ref": "#"}"##), ""), "#");
}

#[test]
fn large_schemas_take_linear_work() {
    let count = 100_000;
    let entries: Vec<String> = (0..count)
        .map(|at| format!(r##""n{at}": {{"$id": "d/n{at}", "$ref": "n{}#/x"}}"##, (at + 1) % count))
        .collect();
    let text = format!(r##"{{"$id": "http://x/", "$defs": {{{}}}}}"##, entries.join(","));
    let budget = budget();
    let schemas = Schemas::new(&text, &[], options(), &budget).expect("it is a schema");
    assert!(target(&schemas, "/$defs/n7").contains("n8#/x leads to nothing: #/$defs/n8 is"));
    assert!(budget.done() < 10_000_000, "{}", budget.done());
}

#[test]
fn long_bases_run_into_a_limit() {
    let long = "a".repeat(20_000);
    let inner: Vec<String> =
        (0..50_000).map(|at| format!(r#""{at}": {{"$id": "{at}"}}"#)).collect();
    let text = format!(r#"{{"$id": "http://x/{long}/", "$defs": {{{}}}}}"#, inner.join(","));
    let result = Schemas::new(&text, &[], options(), &budget());
    assert!(matches!(result.err(), Some(Error::Limit { limit: "max_network_work", .. })));
}

#[test]
fn nothing_panics_on_what_is_no_schema() {
    for text in
        ["3", "null", "\"a\"", "[]", "true", "{\"$ref\": 3}", "{\"$id\": 3, \"$anchor\": []}"]
    {
        let schemas = load(text);
        let root = schemas.root();
        let _ = (schemas.shape(root).is_ok(), schemas.reference(root).is_ok());
    }
    let error = load_with(r#"{"$schema": 4}"#, &[]).err().expect("it is refused").to_string();
    assert_eq!(error, "#: $schema: expected the URI of a metaschema, found a number");
    let error = load(r#"{"$ref": 3}"#).reference(JsonNodeId(0)).expect_err("no string").to_string();
    assert_eq!(error, "#: $ref: expected a string; found 3");
}
