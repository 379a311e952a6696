//! Values of right and wrong types, dialect by dialect.

use super::*;
use crate::budget::{Budget, Interrupt};
use crate::json_schema::resolve::{NoteLevel, ReadOptions};
use crate::limits::Limits;

fn budget() -> Budget {
    Budget::new(&Limits::default(), &Interrupt::default())
}

fn load(text: &str) -> Schemas {
    let options = ReadOptions { default_dialect: None, max_nesting: 100 };
    Schemas::new(text, &[], options, &budget()).expect("it is JSON")
}

fn of(dialect: &str, rest: &str) -> Schemas {
    load(&format!(r#"{{"$schema": "http://json-schema.org/{dialect}/schema", {rest}}}"#))
}

fn error<T: std::fmt::Debug>(result: Result<T>) -> String {
    let error = result.expect_err("it is refused");
    assert!(matches!(error, Error::Schema { kind: SchemaFault::Invalid, .. }), "{error}");
    error.to_string()
}

#[test]
fn counts_are_integers_that_are_not_negative() {
    let count = |text: &str| {
        let schemas = load(&format!(r#"{{"maxLength": {text}}}"#));
        schemas.count(schemas.root(), "maxLength")
    };
    assert_eq!(count("2.0"), Ok(Some(2)));
    assert_eq!(count("20e-1"), Ok(Some(2)));
    assert_eq!(count("1e30"), Ok(Some(u32::MAX)));
    assert_eq!(count("-0"), Ok(Some(0)));
    let expected = "#: maxLength: expected an integer that is not negative; found";
    for (text, found) in [("-1", "-1"), ("\"2\"", "\"2\""), ("1.5", "1.5"), ("null", "null")] {
        assert_eq!(error(count(text)), format!("{expected} {found}"));
    }
}

#[test]
fn simple_values_have_their_types() {
    let schemas = load(
        r#"{"pattern": "a", "minimum": 0.1, "multipleOf": 0, "uniqueItems": 1, "required": ["a", 3],
            "enum": {}, "not": 3, "allOf": [true, []], "anyOf": {}, "properties": {"a/b": 1},
            "patternProperties": []}"#,
    );
    let root = schemas.root();
    assert_eq!(schemas.text(root, "pattern"), Ok(Some("a")));
    assert_eq!(schemas.text(root, "format"), Ok(None));
    assert_eq!(schemas.number(root, "minimum"), Ok(Decimal::parse("0.1").as_ref()));
    assert_eq!(
        error(schemas.positive(root, "multipleOf")),
        "#: multipleOf: expected a number above zero; found 0"
    );
    assert_eq!(
        error(schemas.flag(root, "uniqueItems")),
        "#: uniqueItems: expected true or false; found 1"
    );
    assert_eq!(
        error(schemas.names(root, "required")),
        "#: required: at /1: expected a string; found 3"
    );
    assert_eq!(error(schemas.values(root, "enum")), "#: enum: expected an array; found an object");
    let schema = "expected a schema, that is an object or a boolean; found";
    assert_eq!(error(schemas.subschema(root, "not")), format!("#: not: {schema} 3"));
    assert_eq!(
        error(schemas.subschemas(root, "allOf")),
        format!("#: allOf: at /1: {schema} an array")
    );
    assert_eq!(
        error(schemas.subschemas(root, "anyOf")),
        "#: anyOf: expected an array; found an object"
    );
    assert_eq!(
        error(schemas.named(root, "properties")),
        format!("#: properties: at /a~1b: {schema} 1")
    );
    assert_eq!(
        error(schemas.named(root, "patternProperties")),
        "#: patternProperties: expected an object of schemas; found an array"
    );
}

const NAMED_TYPES: [NamedType; 7] = [
    NamedType::Null,
    NamedType::Boolean,
    NamedType::Integer,
    NamedType::Number,
    NamedType::String,
    NamedType::Array,
    NamedType::Object,
];

#[test]
fn types_are_names_or_lists_of_names() {
    let types = |dialect: &str, text: &str| {
        let schemas = of(dialect, &format!(r#""type": {text}"#));
        schemas.types(schemas.root())
    };
    let draft = "draft/2020-12";
    let some = types(draft, r#"["null", "object", "null"]"#).expect("names").expect("a type");
    assert!(some.has("null") && some.has("object") && !some.has("array") && !some.has("any"));
    assert!(some.names(NamedType::Null) && some.names(NamedType::Object));
    for (place, name) in Types::NAMES.into_iter().enumerate() {
        let one = types(draft, &format!("{name:?}")).expect("a name").expect("a type");
        let named = NAMED_TYPES.map(|named| one.names(named));
        assert_eq!(named, std::array::from_fn(|other| other == place), "{name}");
    }
    assert_eq!(types(draft, "[]"), Ok(Some(Types::default())));
    assert_eq!(
        error(types(draft, r#"["null", "text"]"#)),
        "#: type: at /1: expected one of null, boolean, integer, number, string, array, object; \
         found \"text\""
    );
    assert!(error(types(draft, "3")).contains("expected the name of a type"));
    for (name, meant) in [
        ("OBJECT", "object"),
        ("int", "integer"),
        ("bigint", "integer"),
        ("Str", "string"),
        ("Date", "string"),
        ("undefined", "null"),
    ] {
        let found = error(types(draft, &format!("{name:?}")));
        assert!(found.ends_with(&format!("found {name:?}; did you mean {meant:?}?")), "{found}");
    }
    assert!(types("draft-03", r#""any""#).is_ok());
    assert!(types("draft-04", r#""any""#).is_err());
    let union = types("draft-03", r#"["null", {"type": "array"}]"#);
    assert!(matches!(union, Err(Error::Schema { kind: SchemaFault::Unsupported, .. })));
}

#[test]
fn exclusive_bounds_are_flags_in_draft_4_and_numbers_later() {
    let bounds = |schemas: &Schemas| {
        let bounds = schemas.lower_bounds(schemas.root());
        bounds.map(|bounds| {
            let bounds = bounds.iter().map(|bound| (bound.value.to_string(), bound.is_exclusive));
            bounds.collect::<Vec<_>>()
        })
    };
    let one = |is_exclusive| Ok(vec![("1".to_owned(), is_exclusive)]);
    let old = r#""minimum": 1, "exclusiveMinimum": true"#;
    let new = r#""minimum": 0, "exclusiveMinimum": 1"#;
    assert_eq!(bounds(&of("draft-04", old)), one(true));
    assert_eq!(bounds(&of("draft-04", r#""exclusiveMinimum": true"#)), Ok(vec![]));
    assert_eq!(bounds(&load(&format!("{{{old}}}"))), one(true));
    assert_eq!(bounds(&load(r#"{"minimum": 1, "exclusiveMinimum": false}"#)), one(false));
    let both = Ok(vec![("1".to_owned(), true), ("0".to_owned(), false)]);
    assert_eq!(bounds(&of("draft-06", new)), both);
    assert_eq!(bounds(&load(&format!("{{{new}}}"))), both);
    assert!(error(bounds(&of("draft-07", old))).contains("true and false are of draft-04"));
    assert!(error(bounds(&of("draft-04", new))).contains("expected true or false"));
    let schemas = load(r#"{"maximum": 1, "exclusiveMaximum": "2"}"#);
    assert!(error(schemas.upper_bounds(schemas.root())).contains("expected a number; found \"2\""));
}

#[test]
fn items_are_one_thing_in_every_dialect() {
    let shape = |schemas: &Schemas| {
        schemas.items(schemas.root()).map(|items| (items.first.len(), items.others.is_some()))
    };
    let tuple = r#""items": [true, {}], "additionalItems": false"#;
    assert_eq!(shape(&of("draft-07", tuple)), Ok((2, true)));
    assert_eq!(shape(&of("draft-07", r#""items": {}, "additionalItems": false"#)), Ok((0, true)));
    assert_eq!(shape(&of("draft-07", r#""additionalItems": false"#)), Ok((0, false)));
    let prefix = r#""prefixItems": [true], "items": false"#;
    assert_eq!(shape(&of("draft/2020-12", prefix)), Ok((1, true)));
    assert_eq!(shape(&of("draft/2019-09", prefix)), Ok((0, true)));
    assert_eq!(shape(&of("draft/2020-12", r#""prefixItems": [true]"#)), Ok((1, false)));
    assert_eq!(shape(&load(&format!("{{{tuple}}}"))), Ok((2, true)));
    assert!(
        error(shape(&of("draft/2020-12", tuple))).contains("stand in prefixItems since 2020-12")
    );
    assert!(error(shape(&load(r#"{"prefixItems": [], "items": []}"#))).contains("prefixItems"));
    assert!(error(shape(&of("draft-07", r#""items": [3]"#))).contains("items: at /0: expected"));
    let hidden = of("draft-07", r##""$ref": "#", "items": {}"##);
    assert_eq!(shape(&hidden), Ok((0, false)));
}

#[test]
fn dependencies_are_gathered_from_three_keywords() {
    let schemas = load(
        r#"{"dependencies": {"a": ["b"], "c": "d", "e": true}, "dependentRequired": {"f": []},
            "dependentSchemas": {"g": {}}}"#,
    );
    let found = schemas.dependencies(schemas.root()).expect("all are right");
    let names: Vec<&str> = found.iter().map(|(name, _, _)| *name).collect();
    assert_eq!(names, ["a", "c", "e", "f", "g"]);
    assert_eq!(found[1].1, Dependency::Names(vec!["d"]));
    assert!(matches!(found[2].1, Dependency::Schema(_)));
    let schemas = load(r#"{"dependentRequired": {"f": "a"}}"#);
    assert_eq!(
        error(schemas.dependencies(schemas.root())),
        "#: dependentRequired: at /f: expected an array of strings; found \"a\""
    );
    let schemas = of("draft-07", r#""dependentRequired": 3"#);
    assert_eq!(schemas.dependencies(schemas.root()), Ok(vec![]));
}

#[test]
fn notes_name_what_has_no_influence() {
    let schemas = of(
        "draft-04",
        r#""title": "t", "const": 1, "nullable": true, "definitions": {}, "$comment": "", "type": "array""#,
    );
    let notes = schemas.notes_on(schemas.root(), &budget()).expect("no draft 3");
    let notes: Vec<_> =
        notes.iter().map(|note| (note.level, &*note.keyword, &*note.message)).collect();
    let lacking = "the dialect of the schema, draft-04, has no such keyword; it is of";
    let constant = format!(
        "{lacking} draft-06 and later, and is not enforced; name a dialect that has it in $schema"
    );
    let comment = format!("{lacking} draft-07 and later");
    let nullable = "the keyword is of openapi-3.0, and is not enforced: null is refused; pass \
                    dialect=\"openapi-3.0\", or add \"null\" to type";
    assert_eq!(
        notes,
        [
            (NoteLevel::Info, "title", "the keyword is an annotation"),
            (NoteLevel::Warning, "const", &constant),
            (NoteLevel::Warning, "nullable", nullable),
            (NoteLevel::Info, "$comment", &comment),
        ]
    );
    assert_eq!(schemas.value(schemas.root(), "const"), None);
    let all = schemas.all_notes([schemas.root(); 2], &budget()).expect("no bound");
    assert_eq!(all.len(), 4);
    assert_eq!(schemas.arena().pointer(all[1].place), "#/const");
    let schemas = of("draft-03", r#""divisibleBy": 2"#);
    let refused =
        schemas.notes_on(schemas.root(), &budget()).expect_err("draft 4 has no such keyword");
    assert!(
        refused.to_string().starts_with("#: divisibleBy: the keyword has this form in draft 3")
    );
    let schemas = of("draft-04", r#""divisibleBy": 2"#);
    assert!(schemas.notes_on(schemas.root(), &budget()).is_ok_and(|notes| notes.len() == 1));
}

#[test]
fn schemas_are_objects_or_booleans() {
    let schemas = load(r#"{"a": true, "b": false, "c": {}, "d": {"x": 1}, "e": "x"}"#);
    let shape = |name: &str| {
        let value = schemas.arena().get(schemas.root(), name);
        schemas.shape(value.expect("it is there"))
    };
    assert!(matches!(shape("a"), Ok(Shape::Always)) && matches!(shape("b"), Ok(Shape::Never)));
    assert!(
        matches!(shape("c"), Ok(Shape::Always)) && matches!(shape("d"), Ok(Shape::Keywords(_)))
    );
    let expected = "#/e: a schema is an object or a boolean; found a string";
    assert_eq!(error(shape("e")), expected);
}
