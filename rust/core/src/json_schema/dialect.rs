//! Dialects of JSON Schema, and the keywords of each. `resolve/load.rs` says which one a document is written in, also
//! where its `$schema` is unknown.

use rustc_hash::FxHashMap;
use std::sync::OnceLock;

/// A dialect, older ones first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dialect {
    /// Draft 4, and draft 3 as far as both agree.
    Draft4,
    /// The schemas of OpenAPI 3.0: draft 4, with words of its own.
    OpenApi30,
    /// Draft 6.
    Draft6,
    /// Draft 7.
    Draft7,
    /// Draft 2019-09.
    Draft2019,
    /// Draft 2020-12.
    Draft2020,
}

impl Dialect {
    /// Its name, as in the URI of its metaschema.
    pub fn name(self) -> &'static str {
        match self {
            Dialect::Draft4 => "draft-04",
            Dialect::OpenApi30 => "openapi-3.0",
            Dialect::Draft6 => "draft-06",
            Dialect::Draft7 => "draft-07",
            Dialect::Draft2019 => "2019-09",
            Dialect::Draft2020 => "2020-12",
        }
    }

    /// The dialect of this name.
    pub fn named(name: &str) -> Option<Self> {
        let all = [Draft4, OpenApi30, Draft6, Draft7, Draft2019, Draft2020];
        all.into_iter().find(|dialect| dialect.name() == name)
    }

    /// Whether `exclusiveMinimum` and `exclusiveMaximum` are booleans.
    pub fn has_boolean_bounds(self) -> bool {
        self <= Dialect::OpenApi30
    }

    /// Whether `$ref` hides what stands beside it.
    pub fn reference_hides_siblings(self) -> bool {
        self <= Dialect::Draft7
    }

    /// The keyword that gives a schema its URI.
    pub fn id_keyword(self) -> &'static str {
        if self <= Dialect::OpenApi30 { "id" } else { "$id" }
    }
}

/// A group of keywords that a metaschema may leave out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeywordVocabulary {
    /// Identifiers, references, definitions: always there.
    Core = 1,
    /// Keywords that apply schemas.
    Applicator = 2,
    /// `unevaluatedItems`, `unevaluatedProperties`; in 2019-09 a part of the applicators.
    Unevaluated = 4,
    /// Assertions.
    Validation = 8,
    /// Annotations.
    MetaData = 16,
    /// `format`, as an annotation or as the dialect leaves it.
    Format = 32,
    /// `format`, asserted.
    FormatAssertion = 64,
    /// `contentEncoding` and the like.
    Content = 128,
}

/// The start of the URIs of the vocabularies of 2019-09.
const VOCABULARIES_2019: &str = "https://json-schema.org/draft/2019-09/vocab/";
/// The start of the URIs of the vocabularies of 2020-12.
const VOCABULARIES_2020: &str = "https://json-schema.org/draft/2020-12/vocab/";

/// The starts of the URIs of the dialects of OpenAPI 3.1 and 3.2, without their schemes.
const OPENAPI_DIALECTS: [&str; 2] =
    ["spec.openapis.org/oas/3.1/dialect/", "spec.openapis.org/oas/3.2/dialect/"];

/// The start of the URIs of schemas of OpenAPI 3.0, without their scheme; what they name is one definition there.
const OPENAPI_30: &str = "spec.openapis.org/oas/3.0/schema/";

/// The bits of the vocabularies that a URI names; `None` where it is not one of the standard's.
fn vocabulary_bits(uri: &str) -> Option<u8> {
    let older = uri.strip_prefix(VOCABULARIES_2019);
    let name = older.or_else(|| uri.strip_prefix(VOCABULARIES_2020))?;
    let vocabulary = match name {
        "core" => KeywordVocabulary::Core,
        "applicator" if older.is_some() => {
            return Some(
                KeywordVocabulary::Applicator as u8 | KeywordVocabulary::Unevaluated as u8,
            );
        }
        "applicator" => KeywordVocabulary::Applicator,
        "unevaluated" if older.is_none() => KeywordVocabulary::Unevaluated,
        "validation" => KeywordVocabulary::Validation,
        "meta-data" => KeywordVocabulary::MetaData,
        "format" if older.is_some() => KeywordVocabulary::Format,
        "format-annotation" if older.is_none() => KeywordVocabulary::Format,
        "format-assertion" if older.is_none() => {
            return Some(
                KeywordVocabulary::Format as u8 | KeywordVocabulary::FormatAssertion as u8,
            );
        }
        "content" => KeywordVocabulary::Content,
        _ => return None,
    };
    Some(vocabulary as u8)
}

/// What a schema resource is written in: a dialect, or the part of it that a metaschema picks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Language {
    /// The dialect.
    pub dialect: Dialect,
    /// Whether the document, or the caller, names the dialect; else it is the default.
    pub is_declared: bool,
    /// Whether `$schema` names draft 3.
    pub is_draft3: bool,
    vocabularies: u8,
}

impl Language {
    /// A whole dialect, named by the document or the caller.
    pub fn of(dialect: Dialect) -> Self {
        let vocabularies = !(KeywordVocabulary::FormatAssertion as u8);
        Self { dialect, is_declared: true, is_draft3: false, vocabularies }
    }

    /// What holds where nothing is named: 2020-12.
    pub fn by_default() -> Self {
        Self { is_declared: false, ..Self::of(Dialect::Draft2020) }
    }

    /// The language of a `$schema` of the standard, with or without `#`, by http, https or no scheme. Hyper-schemas
    /// are schemas with annotations, and so are the dialects of OpenAPI 3.1 and 3.2.
    pub fn of_metaschema(uri: &str) -> Option<Self> {
        let uri = uri.strip_suffix('#').unwrap_or(uri);
        let schemes = ["http://", "https://"];
        let uri = schemes.iter().find_map(|scheme| uri.strip_prefix(scheme)).unwrap_or(uri);
        let dialect = match &*uri.replace("/hyper-schema", "/schema") {
            "json-schema.org/draft-03/schema" => {
                return Some(Self { is_draft3: true, ..Self::of(Dialect::Draft4) });
            }
            "json-schema.org/draft-04/schema" => Dialect::Draft4,
            "json-schema.org/draft-06/schema" => Dialect::Draft6,
            "json-schema.org/draft-07/schema" => Dialect::Draft7,
            "json-schema.org/draft/2019-09/schema" => Dialect::Draft2019,
            "json-schema.org/draft/2020-12/schema" => Dialect::Draft2020,
            _ if OPENAPI_DIALECTS.iter().any(|start| uri.starts_with(start)) => Dialect::Draft2020,
            _ if uri.starts_with(OPENAPI_30) && uri.ends_with("#/definitions/Schema") => {
                Dialect::OpenApi30
            }
            _ => return None,
        };
        Some(Self::of(dialect))
    }

    /// The part of this language that the vocabularies of a metaschema pick, each given with
    /// whether it is required.
    ///
    /// # Errors
    /// The URI of a vocabulary that is required and unknown.
    pub fn restricted<'a>(
        self,
        vocabularies: impl Iterator<Item = (&'a str, bool)>,
    ) -> Result<Self, &'a str> {
        let mut bits = KeywordVocabulary::Core as u8;
        for (uri, is_required) in vocabularies {
            match vocabulary_bits(uri) {
                Some(known) => bits |= known,
                None if is_required => return Err(uri),
                None => {}
            }
        }
        Ok(Self { vocabularies: bits, ..self })
    }

    /// Whether a vocabulary is in use. [`KeywordVocabulary::FormatAssertion`] is only where a metaschema
    /// asks for it.
    pub fn has(self, vocabulary: KeywordVocabulary) -> bool {
        self.vocabularies & vocabulary as u8 != 0
    }

    /// The keyword of this name, where the language has it.
    pub fn keyword(self, name: &str) -> Option<&'static Keyword> {
        Keyword::named(name).filter(|keyword| self.counts(keyword))
    }

    /// Whether the language has a keyword.
    pub fn counts(self, keyword: &Keyword) -> bool {
        keyword.is_in(self.dialect) && self.has(keyword.vocabulary)
    }
}

/// In which places of a keyword's value schemas stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// Nowhere.
    NoSchema,
    /// The value is a schema.
    Schema,
    /// The items of the array are.
    Array,
    /// The values of the object are.
    Object,
    /// The value, or its items where it is an array: `items`.
    SchemaOrArray,
}

/// What a keyword is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It says what is valid.
    Constrains,
    /// It names, refers or defines.
    Structure,
    /// It informs people and programs.
    Annotates,
}

/// A keyword of some dialects.
#[derive(Debug, PartialEq, Eq)]
pub struct Keyword {
    /// Its name.
    pub name: &'static str,
    /// The first dialect that has it.
    pub first: Dialect,
    /// The last dialect that has it.
    pub last: Dialect,
    /// Where schemas stand in its value.
    pub holds: Holds,
    /// What it is for.
    pub role: Role,
    /// The group that it belongs to.
    pub vocabulary: KeywordVocabulary,
}

impl Keyword {
    /// The keyword of this name in any dialect.
    pub fn named(name: &str) -> Option<&'static Keyword> {
        static BY_NAME: OnceLock<FxHashMap<&str, &Keyword>> = OnceLock::new();
        let by_name = BY_NAME
            .get_or_init(|| KEYWORDS.iter().map(|keyword| (keyword.name, keyword)).collect());
        by_name.get(name).copied()
    }

    /// The dialects that have the keyword, in words.
    pub fn dialects(&self) -> String {
        match (self.first, self.last) {
            (first, last) if first == last => first.name().to_owned(),
            (first, Draft2020) => format!("{} and later", first.name()),
            (_, last) => format!("{} and older", last.name()),
        }
    }

    /// Whether a dialect has the keyword.
    pub fn is_in(&self, dialect: Dialect) -> bool {
        (self.first..=self.last).contains(&dialect)
    }
}

/// All keywords of a dialect.
pub fn keywords(dialect: Dialect) -> impl Iterator<Item = &'static Keyword> {
    KEYWORDS.iter().filter(move |keyword| keyword.is_in(dialect))
}

/// The keywords of draft 3 that draft 4 dropped.
pub(super) const ONLY_DRAFT3: [&str; 3] = ["disallow", "divisibleBy", "extends"];

const fn row(
    name: &'static str,
    (first, last): (Dialect, Dialect),
    holds: Holds,
    role: Role,
    vocabulary: KeywordVocabulary,
) -> Keyword {
    Keyword { name, first, last, holds, role, vocabulary }
}

use Dialect::{Draft4, Draft6, Draft7, Draft2019, Draft2020, OpenApi30};
use Holds::{Array, NoSchema, Object, Schema, SchemaOrArray};
use KeywordVocabulary::{Applicator, Content, Core, Format, MetaData, Unevaluated, Validation};
use Role::{Annotates, Constrains, Structure};

const ALL: (Dialect, Dialect) = (Draft4, Draft2020);
const SINCE_6: (Dialect, Dialect) = (Draft6, Draft2020);
const SINCE_7: (Dialect, Dialect) = (Draft7, Draft2020);
const SINCE_2019: (Dialect, Dialect) = (Draft2019, Draft2020);
const ONLY_OPENAPI: (Dialect, Dialect) = (OpenApi30, OpenApi30);
const ONLY_2019: (Dialect, Dialect) = (Draft2019, Draft2019);
const ONLY_2020: (Dialect, Dialect) = (Draft2020, Draft2020);

/// Every keyword, by name. `dependencies` and `definitions` stay keywords after 2019-09 replaced
/// them, as the metaschemas of the later dialects recommend.
pub(super) static KEYWORDS: &[Keyword] = &[
    row("$anchor", SINCE_2019, NoSchema, Structure, Core),
    row("$comment", SINCE_7, NoSchema, Annotates, Core),
    row("$defs", SINCE_2019, Object, Structure, Core),
    row("$dynamicAnchor", ONLY_2020, NoSchema, Structure, Core),
    row("$dynamicRef", ONLY_2020, NoSchema, Constrains, Core),
    row("$id", SINCE_6, NoSchema, Structure, Core),
    row("$recursiveAnchor", ONLY_2019, NoSchema, Structure, Core),
    row("$recursiveRef", ONLY_2019, NoSchema, Constrains, Core),
    row("$ref", ALL, NoSchema, Constrains, Core),
    row("$schema", ALL, NoSchema, Structure, Core),
    row("$vocabulary", SINCE_2019, NoSchema, Structure, Core),
    row("additionalItems", (Draft4, Draft2019), Schema, Constrains, Applicator),
    row("additionalProperties", ALL, Schema, Constrains, Applicator),
    row("allOf", ALL, Array, Constrains, Applicator),
    row("anyOf", ALL, Array, Constrains, Applicator),
    row("const", SINCE_6, NoSchema, Constrains, Validation),
    row("contains", SINCE_6, Schema, Constrains, Applicator),
    row("contentEncoding", SINCE_7, NoSchema, Annotates, Content),
    row("contentMediaType", SINCE_7, NoSchema, Annotates, Content),
    row("contentSchema", SINCE_2019, Schema, Annotates, Content),
    row("default", ALL, NoSchema, Annotates, MetaData),
    row("definitions", ALL, Object, Structure, Core),
    row("dependencies", ALL, Object, Constrains, Applicator),
    row("dependentRequired", SINCE_2019, NoSchema, Constrains, Validation),
    row("dependentSchemas", SINCE_2019, Object, Constrains, Applicator),
    row("deprecated", SINCE_2019, NoSchema, Annotates, MetaData),
    row("description", ALL, NoSchema, Annotates, MetaData),
    row("discriminator", ONLY_OPENAPI, NoSchema, Annotates, MetaData),
    row("else", SINCE_7, Schema, Constrains, Applicator),
    row("enum", ALL, NoSchema, Constrains, Validation),
    row("example", ONLY_OPENAPI, NoSchema, Annotates, MetaData),
    row("examples", SINCE_6, NoSchema, Annotates, MetaData),
    row("exclusiveMaximum", ALL, NoSchema, Constrains, Validation),
    row("exclusiveMinimum", ALL, NoSchema, Constrains, Validation),
    row("externalDocs", ONLY_OPENAPI, NoSchema, Annotates, MetaData),
    row("format", ALL, NoSchema, Constrains, Format),
    row("id", (Draft4, Draft4), NoSchema, Structure, Core),
    row("if", SINCE_7, Schema, Constrains, Applicator),
    row("items", ALL, SchemaOrArray, Constrains, Applicator),
    row("maxContains", SINCE_2019, NoSchema, Constrains, Validation),
    row("maxItems", ALL, NoSchema, Constrains, Validation),
    row("maxLength", ALL, NoSchema, Constrains, Validation),
    row("maxProperties", ALL, NoSchema, Constrains, Validation),
    row("maximum", ALL, NoSchema, Constrains, Validation),
    row("minContains", SINCE_2019, NoSchema, Constrains, Validation),
    row("minItems", ALL, NoSchema, Constrains, Validation),
    row("minLength", ALL, NoSchema, Constrains, Validation),
    row("minProperties", ALL, NoSchema, Constrains, Validation),
    row("minimum", ALL, NoSchema, Constrains, Validation),
    row("multipleOf", ALL, NoSchema, Constrains, Validation),
    row("not", ALL, Schema, Constrains, Applicator),
    row("nullable", ONLY_OPENAPI, NoSchema, Constrains, Validation),
    row("oneOf", ALL, Array, Constrains, Applicator),
    row("pattern", ALL, NoSchema, Constrains, Validation),
    row("patternProperties", ALL, Object, Constrains, Applicator),
    row("prefixItems", ONLY_2020, Array, Constrains, Applicator),
    row("properties", ALL, Object, Constrains, Applicator),
    row("propertyNames", SINCE_6, Schema, Constrains, Applicator),
    row("readOnly", SINCE_7, NoSchema, Annotates, MetaData),
    row("required", ALL, NoSchema, Constrains, Validation),
    row("then", SINCE_7, Schema, Constrains, Applicator),
    row("title", ALL, NoSchema, Annotates, MetaData),
    row("type", ALL, NoSchema, Constrains, Validation),
    row("unevaluatedItems", SINCE_2019, Schema, Constrains, Unevaluated),
    row("unevaluatedProperties", SINCE_2019, Schema, Constrains, Unevaluated),
    row("uniqueItems", ALL, NoSchema, Constrains, Validation),
    row("writeOnly", SINCE_7, NoSchema, Annotates, MetaData),
    row("xml", ONLY_OPENAPI, NoSchema, Annotates, MetaData),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_every_keyword_is_found() {
        assert!(KEYWORDS.windows(2).all(|pair| pair[0].name < pair[1].name));
        for keyword in KEYWORDS {
            assert_eq!(Keyword::named(keyword.name), Some(keyword));
        }
        assert_eq!(Keyword::named("nullabel"), None);
    }

    #[test]
    fn each_dialect_has_its_keywords() {
        let has = |dialect, name| Language::of(dialect).keyword(name).is_some();
        assert!(has(Draft4, "id") && !has(Draft6, "id") && !has(Draft4, "$id"));
        assert!(!has(Draft4, "const") && has(Draft6, "const"));
        assert!(!has(Draft6, "if") && has(Draft7, "if"));
        assert!(!has(Draft7, "$defs") && has(Draft2019, "$defs"));
        assert!(has(Draft2019, "additionalItems") && !has(Draft2020, "additionalItems"));
        assert!(!has(Draft2019, "prefixItems") && has(Draft2020, "prefixItems"));
        assert!(has(Draft2019, "$recursiveRef") && !has(Draft2020, "$recursiveRef"));
        assert_eq!(keywords(Draft4).count(), 34);
        assert_eq!(keywords(Draft2020).count(), KEYWORDS.len() - 9);
        let more: Vec<_> = keywords(OpenApi30).filter(|word| !word.is_in(Draft4)).collect();
        assert_eq!(more.len(), 5);
        assert!(has(OpenApi30, "nullable") && !has(OpenApi30, "id") && !has(OpenApi30, "const"));
        for dialect in ["draft-04", "openapi-3.0", "draft-06", "draft-07", "2019-09", "2020-12"] {
            assert_eq!(Dialect::named(dialect).map(Dialect::name), Some(dialect));
        }
        assert_eq!(Dialect::named("draft-05"), None);
    }

    #[test]
    fn metaschemas_are_known_with_and_without_a_hash_by_either_scheme() {
        let dialect = |uri| Language::of_metaschema(uri).map(|language| language.dialect);
        assert_eq!(dialect("http://json-schema.org/draft-04/schema"), Some(Draft4));
        assert_eq!(dialect("https://json-schema.org/draft-07/schema#"), Some(Draft7));
        assert_eq!(dialect("http://json-schema.org/draft/2020-12/schema#"), Some(Draft2020));
        assert_eq!(dialect("http://json-schema.org/schema#"), None);
        assert_eq!(dialect("https://spec.openapis.org/oas/3.1/dialect/base"), Some(Draft2020));
        assert_eq!(dialect("https://spec.openapis.org/oas/3.0/schema/2021-09-28"), None);
        let of_openapi = "https://spec.openapis.org/oas/3.0/schema/2024-10-18#/definitions/Schema";
        assert_eq!(dialect(of_openapi), Some(OpenApi30));
        assert_eq!(dialect("http://json-schema.org/draft-07/hyper-schema#"), Some(Draft7));
        assert_eq!(dialect("json-schema.org/draft-07/schema#"), Some(Draft7));
        assert!(
            Language::of_metaschema("http://json-schema.org/draft-03/schema#")
                .is_some_and(|language| language.is_draft3)
        );
    }

    #[test]
    fn a_metaschema_picks_vocabularies() {
        let core = "https://json-schema.org/draft/2020-12/vocab/core";
        let applicator = "https://json-schema.org/draft/2020-12/vocab/applicator";
        let picked =
            Language::of(Draft2020).restricted([(core, true), (applicator, true)].into_iter());
        let picked = picked.expect("both are known");
        assert!(picked.keyword("properties").is_some() && picked.keyword("minimum").is_none());
        assert!(picked.keyword("unevaluatedItems").is_none());
        let older = "https://json-schema.org/draft/2019-09/vocab/applicator";
        let picked = Language::of(Draft2019).restricted([(older, true)].into_iter());
        assert!(picked.is_ok_and(|picked| picked.keyword("unevaluatedItems").is_some()));
        let unknown = [("https://example.com/vocab", true)];
        assert!(Language::of(Draft2020).restricted(unknown.into_iter()).is_err());
        let optional = [("https://example.com/vocab", false)];
        assert!(Language::of(Draft2020).restricted(optional.into_iter()).is_ok());
    }
}
