//! The metaschemas of the standard: what they assert, without annotations.
//!
//! Design: docs/design/json-schema.md.

/// Canonical URIs and texts.
const METASCHEMAS: [(&str, &str); 19] = [
    (
        "https://json-schema.org/draft/2019-09/meta/applicator",
        include_str!("2019-09/applicator.json"),
    ),
    ("https://json-schema.org/draft/2019-09/meta/content", include_str!("2019-09/content.json")),
    ("https://json-schema.org/draft/2019-09/meta/core", include_str!("2019-09/core.json")),
    ("https://json-schema.org/draft/2019-09/meta/format", include_str!("2019-09/format.json")),
    (
        "https://json-schema.org/draft/2019-09/meta/meta-data",
        include_str!("2019-09/meta-data.json"),
    ),
    ("https://json-schema.org/draft/2019-09/schema", include_str!("2019-09/schema.json")),
    (
        "https://json-schema.org/draft/2019-09/meta/validation",
        include_str!("2019-09/validation.json"),
    ),
    (
        "https://json-schema.org/draft/2020-12/meta/applicator",
        include_str!("2020-12/applicator.json"),
    ),
    ("https://json-schema.org/draft/2020-12/meta/content", include_str!("2020-12/content.json")),
    ("https://json-schema.org/draft/2020-12/meta/core", include_str!("2020-12/core.json")),
    (
        "https://json-schema.org/draft/2020-12/meta/format-annotation",
        include_str!("2020-12/format-annotation.json"),
    ),
    (
        "https://json-schema.org/draft/2020-12/meta/format-assertion",
        include_str!("2020-12/format-assertion.json"),
    ),
    (
        "https://json-schema.org/draft/2020-12/meta/meta-data",
        include_str!("2020-12/meta-data.json"),
    ),
    ("https://json-schema.org/draft/2020-12/schema", include_str!("2020-12/schema.json")),
    (
        "https://json-schema.org/draft/2020-12/meta/unevaluated",
        include_str!("2020-12/unevaluated.json"),
    ),
    (
        "https://json-schema.org/draft/2020-12/meta/validation",
        include_str!("2020-12/validation.json"),
    ),
    ("http://json-schema.org/draft-04/schema", include_str!("draft-04.json")),
    ("http://json-schema.org/draft-06/schema", include_str!("draft-06.json")),
    ("http://json-schema.org/draft-07/schema", include_str!("draft-07.json")),
];

/// The canonical URI and the text of a metaschema. Both http and https lead to it.
pub(super) fn of(uri: &str) -> Option<(&'static str, &'static str)> {
    let path = |uri: &'static str| uri.split_once("://").map(|(_, path)| path);
    let wanted = uri.strip_prefix("http://").or_else(|| uri.strip_prefix("https://"))?;
    METASCHEMAS.iter().find(|(known, _)| path(known) == Some(wanted)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::budget::{Budget, Interrupt};
    use crate::json_schema::dialect::Language;
    use crate::json_schema::resolve::{NoteLevel, ReadOptions, Schemas};
    use crate::limits::Limits;

    #[test]
    fn every_metaschema_is_a_schema_of_its_uri_whose_references_lead_somewhere() {
        let options = ReadOptions { default_dialect: None, max_nesting: 100 };
        for (uri, text) in METASCHEMAS {
            let budget = Budget::new(&Limits::default(), &Interrupt::default());
            let schemas = Schemas::new(text, &[], options, &budget).expect("it is JSON");
            let (root, arena) = (schemas.root(), schemas.arena());
            let id = arena.get(root, schemas.dialect(root).id_keyword());
            let id = id.and_then(|id| arena.node(id).as_str()).expect("it has a URI");
            assert_eq!(id.trim_end_matches('#'), uri);
            assert!(schemas.language(root).is_declared);
            for schema in schemas.schemas() {
                schemas.reference(schema).expect("it leads somewhere");
                schemas.dynamic(schema).expect("it leads somewhere");
                let notes = schemas.notes_on(schema, &budget).expect("no draft 3");
                assert!(notes.iter().all(|note| note.level == NoteLevel::Info), "{notes:?}");
            }
        }
    }

    #[test]
    fn both_schemes_lead_to_a_metaschema_and_every_dialect_has_one() {
        let secure = of("https://json-schema.org/draft-07/schema").expect("it is there");
        assert_eq!(Some(secure), of("http://json-schema.org/draft-07/schema"));
        assert_eq!(of("ftp://json-schema.org/draft-07/schema"), None);
        assert_eq!(of("http://json-schema.org/draft-08/schema"), None);
        let dialects = METASCHEMAS.iter().filter_map(|(uri, _)| Language::of_metaschema(uri));
        assert_eq!(dialects.count(), 5);
    }
}
