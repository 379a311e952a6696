//! Objects whose members no condition joins: what their schemas say of each name holds whatever other
//! members there are. Their automaton is a chain, which is read off the schemas.

use crate::error::Result;
use crate::json_schema::atoms::{Atom, Branch, NameId, SchemaId, SchemaKey, ValueId};
use crate::json_schema::converter::Converter;
use crate::json_schema::formula::{Formula, FormulaId};
use crate::json_schema::step::Member;
use rustc_hash::FxHashSet;

/// What an object says of its members, one by one.
pub(super) struct Unjoined {
    /// The schemas whose `properties`, `patternProperties` and `additionalProperties` hold.
    describing: Vec<SchemaId>,
    required: FxHashSet<NameId>,
    /// Where the object is closed, the schemas whose members it may have, and the names that these plainly
    /// cover.
    closed: Vec<(SchemaId, Box<[Branch]>, FxHashSet<NameId>)>,
    /// The values of the names that are due; none for a name that no object has.
    pub(super) values: Vec<Option<ValueId>>,
    /// What is left behind these names.
    pub(super) rest: FormulaId,
}

#[cfg(test)]
thread_local! {
    /// Whether all automata are made of formulas, and how many alternatives were read off.
    static UNJOINED: std::cell::Cell<(bool, usize)> = const { std::cell::Cell::new((false, 0)) };
}

#[cfg(test)]
pub(super) fn count_read_off() {
    UNJOINED.set((false, UNJOINED.get().1 + 1));
}

impl Unjoined {
    pub(super) fn requires(&self, name: NameId) -> bool {
        self.required.contains(&name)
    }
}

impl Converter<'_> {
    /// What a formula says of the members of an object that are left, where no condition joins them; `names` are all
    /// known ones, of which so many were read or are absent.
    pub(super) fn unjoined(
        &mut self,
        formula: FormulaId,
        (names, done): (&[NameId], usize),
    ) -> Result<Option<Unjoined>> {
        #[cfg(test)]
        if UNJOINED.get().0 {
            return Ok(None);
        }
        let mut rest = Vec::new();
        let (mut describing, mut closed) = (Vec::new(), Vec::new());
        let mut required = FxHashSet::default();
        for part in self.formulas.conjuncts(formula) {
            let Formula::Literal(atom, true) = *self.formulas.get(part) else { return Ok(None) };
            match self.atom(atom) {
                Atom::Required(name) => {
                    required.insert(*name);
                    continue;
                }
                Atom::RequiredAll(schema) => {
                    let schema = *schema;
                    required.extend(self.required_names(schema)?.iter());
                    continue;
                }
                Atom::Properties(schema) => {
                    let schema = *schema;
                    describing.push(schema);
                    if self.names_all_it_restricts(schema)? {
                        continue;
                    }
                }
                Atom::UnevaluatedProperties(owner, branches)
                    if self.key(*owner) == SchemaKey::Closed
                        && branches.iter().all(|branch| branch.0 == FormulaId::TRUE) =>
                {
                    let (owner, branches) = (*owner, branches.clone());
                    let plainly = self.plainly_covered(&branches)?;
                    closed.push((owner, branches, plainly));
                }
                _ => return Ok(None),
            }
            rest.push(part);
        }
        self.spend(1 + rest.len() + required.len() + names.len() - done)?;
        // What is required is read as a known name, or not at all.
        if names.iter().filter(|name| required.contains(name)).count() < required.len() {
            return Ok(None);
        }
        let rest = self.formulas.and(rest);
        let mut out = Unjoined { describing, required, closed, values: Vec::new(), rest };
        for &name in &names[done..] {
            let value = self.unjoined_value(&out, name)?;
            out.values.push(value);
        }
        Ok(Some(out))
    }

    /// The value of a member of a name; `None` where there is none.
    fn unjoined_value(&mut self, object: &Unjoined, name: NameId) -> Result<Option<ValueId>> {
        let member = Member::Named(name);
        for (owner, branches, plainly) in &object.closed {
            let mut is_covered = plainly.contains(&name);
            for &(_, branch) in branches {
                is_covered = is_covered || self.covers(*owner, branch, member)?;
            }
            if !is_covered {
                return Ok(None);
            }
        }
        let mut parts = Vec::with_capacity(object.describing.len());
        for &schema in &object.describing {
            parts.push(self.member(schema, member)?);
        }
        let value = self.formulas.and(parts);
        self.value_under(value)
    }
}

#[cfg(test)]
mod tests {
    use super::UNJOINED;
    use crate::budget::{Budget, Interrupt};
    use crate::error::Error;
    use crate::grammar::Grammar;
    use crate::json_schema::{SchemaOptions, convert};
    use crate::laboratory::{Verdict, compare};
    use crate::limits::Limits;
    use crate::network::{Network, NetworkOptions};
    use crate::recognizer::Recognizer;
    use proptest::prelude::*;

    /// The grammar of a schema, and how many alternatives of objects were read off; `by_formulas`: none.
    fn converted(
        text: &str,
        open: bool,
        by_formulas: bool,
        limits: &Limits,
    ) -> (Result<Grammar, Error>, usize) {
        let options = SchemaOptions { open_objects: open, ..SchemaOptions::default() };
        let budget = Budget::new(limits, &Interrupt::default());
        UNJOINED.set((by_formulas, 0));
        let converted = convert(text, &[], &options, limits, &budget);
        let (_, count) = UNJOINED.replace((false, 0));
        (converted.map(|converted| converted.grammar), count)
    }

    /// Whether a value may have spellings of which one way takes some and the other way others: names beside others
    /// are spelled in one way, those of any object in every way, and so are numbers beside a constant.
    fn is_spelled_in_many_ways(text: &[u8]) -> bool {
        let has_fraction = |pair: &[u8]| pair[0].is_ascii_digit() && b".eE".contains(&pair[1]);
        text.contains(&b'\\') || text.windows(2).any(has_fraction)
    }

    /// Whether a grammar has a text with the members of its objects in some order.
    fn takes_an_order(grammar: &Grammar, text: &[u8]) -> bool {
        let (limits, interrupt) = (Limits::default(), Interrupt::default());
        let network = Network::new(grammar, &NetworkOptions::default()).expect("within bounds");
        let text = std::str::from_utf8(text).expect("a text of JSON");
        orders(text).iter().any(|text| {
            let reader = Recognizer::new(&network, &limits, &interrupt);
            let mut reader = reader.expect("within bounds");
            text.bytes().all(|byte| reader.advance(byte).expect("within bounds"))
                && reader.is_accepting()
        })
    }

    /// A text of JSON with the members of its objects in every order; what is in arrays stays as it is.
    fn orders(text: &str) -> Vec<String> {
        let Some(inside) = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')) else {
            return vec![text.to_owned()];
        };
        let (mut depth, mut is_string) = (0, false);
        let mut is_between = |letter: char| {
            is_string ^= letter == '"';
            match letter {
                '{' | '[' if !is_string => depth += 1,
                '}' | ']' if !is_string => depth -= 1,
                _ => {}
            }
            letter == ',' && depth == 0 && !is_string
        };
        let members: Vec<&str> = inside.split(&mut is_between).map(str::trim).collect();
        // What has been written, and the members that are left.
        let mut ends = vec![(String::from("{"), members)];
        while ends.first().is_some_and(|(_, left)| !left.is_empty()) {
            let longer = ends.iter().flat_map(|(written, left)| {
                (0..left.len()).flat_map(move |next| {
                    let mut others = left.clone();
                    let member = others.remove(next);
                    let value = member.find("\":").map_or(0, |colon| colon + 2);
                    let (name, value) = member.split_at(value);
                    let comma = if others.is_empty() { "" } else { ", " };
                    orders(value.trim_start()).into_iter().map(move |value| {
                        (format!("{written}{name} {value}{comma}"), others.clone())
                    })
                })
            });
            ends = longer.collect();
        }
        ends.into_iter().map(|(written, _)| written + "}").collect()
    }

    #[test]
    fn members_are_written_in_every_order() {
        assert_eq!(orders("1"), ["1"]);
        assert_eq!(orders("{}").len(), 1);
        let all = orders(r#"{"a": {"c": ",", "d": [1, 2]}, "b": 1, "}": 2}"#);
        assert_eq!(all.len(), 12);
        assert!(all.contains(&r#"{"b": 1, "a": {"d": [1, 2], "c": ","}, "}": 2}"#.to_owned()));
    }

    /// Compares the language of a schema with the one that formulas give.
    fn check(text: &str, open: bool) -> usize {
        let limits = Limits::default();
        let (read_off, count) = converted(text, open, false, &limits);
        match (read_off, converted(text, open, true, &limits).0) {
            (Ok(read_off), Ok(of_formulas)) => {
                let found =
                    compare(&read_off, &of_formulas, 50_000, &limits, &Interrupt::default());
                let verdict = found.expect("within bounds").verdict;
                let is_wrong = match &verdict {
                    Verdict::Different { text, is_left, .. } => {
                        let other = if *is_left { &of_formulas } else { &read_off };
                        !is_spelled_in_many_ways(text) && !takes_an_order(other, text)
                    }
                    _ => false,
                };
                assert!(!is_wrong, "{text}: {verdict:?}");
            }
            // A cause of several may be another.
            (Err(Error::Schema { kind: one, .. }), Err(Error::Schema { kind: other, .. })) => {
                assert_eq!(one, other, "{text}")
            }
            (read_off, of_formulas) => {
                assert_eq!(read_off.map(|_| ()), of_formulas.map(|_| ()), "{text}");
            }
        }
        count
    }

    #[test]
    fn members_that_no_condition_joins_are_read_off() {
        let object = |more: &str| {
            format!(
                r##"{{"properties": {{"a": {{"type": "null"}}, "b": false, "c": {{"type": "number"}},
                    "d": {{"$ref": "#"}}}}, "type": "object"{more}}}"##
            )
        };
        for more in [
            "",
            r#", "required": ["a", "c"]"#,
            r#", "required": ["b"]"#,
            r#", "required": ["z", "c"]"#,
            r#", "additionalProperties": {"type": "null"}, "required": ["y"]"#,
            r#", "patternProperties": {"^a|x": {"type": "null"}}"#,
            r#", "allOf": [{"properties": {"c": {"type": "integer"}, "e": true}, "required": ["e"]}]"#,
            r#", "const": {"a": null}"#,
        ] {
            for open in [true, false] {
                assert_ne!(check(&object(more), open), 0, "{more} {open}");
            }
        }
        for more in [
            r#", "minProperties": 2"#,
            r#", "propertyNames": {"pattern": "a|c"}"#,
            r#", "dependentRequired": {"a": ["c"]}"#,
            r#", "not": {"required": ["a"]}"#,
        ] {
            assert_eq!(check(&object(more), false), 0, "{more}");
            check(&object(more), true); // whose other members are any values
        }
        let many: Vec<String> = (0..40).map(|number| format!("\"n{number}\"")).collect();
        let more = format!(", \"required\": [{}]", many.join(", "));
        assert_ne!(check(&object(&more), false), 0);
    }

    #[test]
    fn a_union_costs_what_its_alternatives_do_not_share() {
        let mut names: Vec<String> =
            (0..30).map(|number| format!(r#""n{number}": {{"type": "null"}}"#)).collect();
        let mut members = Vec::new();
        for kind in 0..80 {
            // The second half has another order, so it is another alternative.
            if kind == 40 {
                names.rotate_right(1);
            }
            let names = names.join(", ");
            members.push(format!(r#"{{"properties": {{"kind": {{"const": {kind}}}, {names}}}}}"#));
        }
        let text = format!(r#"{{"type": "object", "anyOf": [{}]}}"#, members.join(", "));
        for open in [true, false] {
            let limits = Limits { max_schema_states: 400, ..Limits::default() };
            assert_eq!(converted(&text, open, false, &limits).0.map(|_| ()), Ok(()), "{open}");
            assert!(converted(&text, open, true, &limits).0.is_err(), "{open}");
        }
    }

    #[test]
    fn a_union_that_a_member_tells_apart_costs_by_its_branches() {
        let all = [("anyOf", r#""kind", "b""#), ("oneOf", r#""kind", "b""#), ("anyOf", r#""b""#)];
        for (keyword, required) in all {
            let branch = |kind: usize| {
                let kind = format!(r#""kind": {{"const": "k{kind}"}}"#);
                let members = format!(r#""a": {{"type": "null"}}, {kind}, "b": true"#);
                format!(r#"{{"properties": {{{members}}}, "required": [{required}]}}"#)
            };
            let members: Vec<String> = (0..300).map(branch).collect();
            let text = format!(r#"{{"type": "object", "{keyword}": [{}]}}"#, members.join(", "));
            for open in [true, false] {
                let limits = Limits { max_network_work: 200_000, ..Limits::default() };
                let found = converted(&text, open, false, &limits).0;
                assert_eq!(found.map(|_| ()), Ok(()), "{keyword} {required} {open}");
                assert!(converted(&text, open, true, &limits).0.is_err(), "{keyword} {open}");
            }
        }
    }

    #[test]
    fn two_unions_of_strangers_cost_no_tail_for_each_state() {
        let of_two = |ones: usize, others: usize| {
            let ones: Vec<String> = (0..ones)
                .map(|one| format!(r#"{{"properties": {{"z{one}": {{"type": "null"}}}}}}"#))
                .collect();
            let other = |other: usize| {
                let kind = format!(r#""kind": {{"const": {other}}}"#);
                let members: Vec<String> = (0..4)
                    .map(|member| format!(r#""n{other}_{member}": {{"type": "null"}}"#))
                    .collect();
                format!(
                    r#"{{"properties": {{{kind}, {}}}, "required": ["kind"]}}"#,
                    members.join(", ")
                )
            };
            let others: Vec<String> = (0..others).map(other).collect();
            let unions = [ones, others].map(|all| format!(r#"{{"anyOf": [{}]}}"#, all.join(", ")));
            format!(r#"{{"type": "object", "allOf": [{}]}}"#, unions.join(", "))
        };
        let limits = Limits { max_network_work: 3_000_000, ..Limits::default() };
        assert_eq!(converted(&of_two(40, 40), true, false, &limits).0.map(|_| ()), Ok(()));
        let refused = converted(&of_two(140, 150), true, false, &limits).0.map(|_| ());
        let is_early = refused.is_err_and(|error| error.to_string().contains("max_schema_states"));
        assert!(is_early, "before the work is spent");
    }

    const VALUES: [&str; 7] = [
        r#"{"type": "null"}"#,
        r#"{"enum": ["x", 1]}"#,
        "false",
        "true",
        r##"{"$ref": "#"}"##,
        r##"{"anyOf": [{"$ref": "#/$defs/o"}, {"type": "null"}]}"##,
        r#"{"const": "x"}"#,
    ];

    /// What a schema says of objects, as members of the schema; with a number a member tells it from others.
    #[derive(Clone, Debug)]
    struct Object {
        members: std::collections::BTreeMap<String, usize>,
        required: std::collections::BTreeSet<String>,
        more: u8,
    }

    impl Object {
        fn text(&self, number: Option<usize>) -> String {
            let members = self.members.iter();
            let mut members: Vec<String> =
                members.map(|(name, value)| format!("\"{name}\": {}", VALUES[*value])).collect();
            let mut required: Vec<String> =
                self.required.iter().map(|name| format!("\"{name}\"")).collect();
            if let Some(number) = number {
                // Now and then it is not required, or two have it in common.
                let place = usize::from(self.more % 3).min(members.len());
                let said = format!(r#""k": {{"enum": ["t{number}", "u{}"]}}"#, number % 7);
                members.insert(place, said);
                required.extend((self.more % 4 != 3).then(|| "\"k\"".to_owned()));
            }
            let more = match self.more {
                0 => r#", "additionalProperties": false"#,
                1 => r#", "additionalProperties": {"type": "null"}"#,
                2 => r#", "patternProperties": {"^[ab]": {"type": "null"}}"#,
                3 => r#", "unevaluatedProperties": false"#,
                _ => "",
            };
            format!(
                r#""type": "object", "properties": {{{}}}, "required": [{}]{more}"#,
                members.join(", "),
                required.join(", ")
            )
        }
    }

    fn object() -> impl Strategy<Value = Object> {
        let name = "[a-e]";
        let members = prop::collection::btree_map(name, 0..VALUES.len(), 0..5);
        let required = prop::collection::btree_set(name, 0..3);
        (members, required, 0..12u8).prop_map(|(members, required, more)| Object {
            members,
            required,
            more,
        })
    }

    proptest! {
        #[test]
        fn chains_are_what_the_formulas_give(
            whole in object(), branches in prop::collection::vec(object(), 0..4),
            shared in object(), keyword in 0..4usize, open: bool, tagged: bool, alike: bool,
        ) {
            let keyword = ["anyOf", "oneOf", "allOf", "then"][keyword];
            let tagged = tagged && keyword != "allOf";
            let branches: Vec<String> = (0..branches.len())
                .map(|number| {
                    let object = &branches[if alike { 0 } else { number }];
                    format!("{{{}}}", object.text(tagged.then_some(number)))
                })
                .collect();
            let mut more = String::new();
            match (branches.as_slice(), keyword) {
                ([], _) => {}
                ([branch, ..], "then") => {
                    more = format!(r#", "if": {{"required": ["a"]}}, "then": {branch}"#);
                }
                (all, keyword) => more = format!(r#", "{keyword}": [{}]"#, all.join(", ")),
            }
            let (whole, shared) = (whole.text(None), shared.text(None));
            check(&format!(r#"{{{whole}{more}, "$defs": {{"o": {{{shared}}}}}}}"#), open);
            check(&format!(r#"{{"type": "object"{more}, "$defs": {{"o": {{{shared}}}}}}}"#), open);
        }
    }
}
