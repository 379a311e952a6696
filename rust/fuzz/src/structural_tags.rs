//! Structural tags: choices of tags and free text with tags, linked of parts, have the texts of the
//! grammar that says the same, and those that an Earley recognizer knows.

use crate::doors::{check_limit, door_limits};
use crate::earley::{Earley, START};
use crate::engines::{NETWORKS, network_options, none};
use crate::input::Input;
use std::sync::Arc;
use tokfold_core::budget::Budget;
use tokfold_core::error::{Error, Result};
use tokfold_core::grammar::Grammar;
use tokfold_core::ids::RuleId;
use tokfold_core::limits::Limits;
use tokfold_core::network::tags::{self, Tag, TagPlacement};
use tokfold_core::network::{Network, NetworkOptions, NetworkPart, PartCache};
use tokfold_core::recognizer::Recognizer;
use tokfold_core::syntax;

/// Texts with which tags begin.
const BEGINS: [&str; 8] = ["<a>", "<ab>", "<", "a", "ab", "ba", "<a", "é"];

/// Texts before contents.
const TEXTS: [&str; 6] = ["", "", ":", "a", "<a>", ">b"];

/// Texts that end tags.
const ENDS: [&str; 6] = [">", "</a>", "b", "", "ab", "<"];

/// Texts that do not come in free text.
const EXCLUDES: [&str; 5] = ["</a>", "<b", "c", "<ab", ">"];

/// Contents: with the empty text and without, recursive, ambiguous, without any text.
const CONTENTS: [&str; 12] = [
    "root ::= \"a\"*",
    "root ::= [ab]+ | \"<\" root",
    "root ::= \"a\" root \"b\" | \"\"",
    "root ::= \"c\"",
    "root ::= \"\"",
    "root ::= root \"a\"",
    "root ::= [^<]{0,3}",
    "root ::= \"a\"{2,20} | x\nx ::= \"b\" x? root?",
    "root ::= root root | \"a\" | \"\"",
    "root ::= \"{\" (root (\",\" root)*)? \"}\" | [0-9]",
    "root ::= \"é\" | [à-ü]",
    "root ::= TagDispatch((\"<a>\", x))\nx ::= \"c\"",
];

/// Texts that are read, and how long they are.
const WALKS: usize = 4;
const LONGEST: usize = 24;

/// What a tag is made of.
struct Owned {
    begin: &'static str,
    texts: Vec<Box<[u8]>>,
    ends: Vec<Box<[u8]>>,
}

/// Tags out of the input.
pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let limits = door_limits();
    let network = input.below(NETWORKS);
    let options = network_options(network, limits.clone());
    let is_free = input.one_in(2);
    let loops = !input.one_in(3);
    let (mut owned, mut contents) = (Vec::new(), Vec::new());
    for _ in 0..1 + input.below(4) {
        let begin = input.pick(&BEGINS);
        // In free text a tag is called by its beginning: that of no other.
        if is_free && owned.iter().any(|known: &Owned| known.begin == begin) {
            continue;
        }
        let count = input.pick(&[1, 1, 1, 0, 2, 3]);
        let bytes = |text: &str| -> Box<[u8]> { text.as_bytes().into() };
        let texts = (0..count).map(|_| bytes(input.pick(&TEXTS))).collect();
        contents.extend((0..count).map(|_| input.pick(&CONTENTS)));
        let count = if is_free { 1 } else { input.below(4) };
        let ends = (0..count).map(|_| bytes(input.pick(&ENDS))).collect();
        owned.push(Owned { begin, texts, ends });
    }
    let excludes: Vec<Box<[u8]>> = match is_free && input.one_in(3) {
        true => (0..1 + input.below(2)).map(|_| input.pick(&EXCLUDES).as_bytes().into()).collect(),
        false => Vec::new(),
    };
    let way = if is_free {
        TagPlacement::Dispatch { loops, excludes: &excludes }
    } else {
        TagPlacement::Choice
    };
    let tags = owned.iter();
    let tags =
        tags.map(|tag| Tag { begin: tag.begin.as_bytes(), texts: &tag.texts, ends: &tag.ends });
    let tags: Vec<Tag<'_>> = tags.collect();
    let contents = contents.iter().map(|text| {
        let grammar = syntax::parse(text, "root", &limits).expect("a grammar of the list");
        grammar.with_dispatches(&limits).expect("a grammar of the list")
    });
    let contents: Vec<Grammar> = contents.collect();
    let case = Case { tags: &tags, contents: &contents, way, options: &options };
    let Some(written) = case.written() else { return };
    case.check(&written, &mut input);
}

struct Case<'c> {
    tags: &'c [Tag<'c>],
    contents: &'c [Grammar],
    way: TagPlacement<'c>,
    options: &'c NetworkOptions,
}

/// The answer, or `None` where a limit is reached.
fn within<T>(result: Result<T>, limits: &Limits) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(Error::Limit { limit, value, message }) => {
            check_limit(limit, value, &message, limits);
            None
        }
        Err(error) => panic!("tags are refused: {error:?}"),
    }
}

impl Case<'_> {
    fn name(&self) -> String {
        let text = |text: &[u8]| String::from_utf8_lossy(text).into_owned();
        let tag = |tag: &Tag<'_>| {
            let list = |texts: &[Box<[u8]>]| texts.iter().map(|one| text(one)).collect::<Vec<_>>();
            format!("{:?} {:?} {:?}", text(tag.begin), list(tag.texts), list(tag.ends))
        };
        let tags: Vec<String> = self.tags.iter().map(tag).collect();
        let contents: Vec<String> = self.contents.iter().map(syntax::print).collect();
        format!("{tags:?} {:?} around {contents:?}", self.way)
    }

    /// The tags as one grammar.
    fn written(&self) -> Option<Grammar> {
        let numbered: Vec<(RuleId, &Grammar)> = (1..).map(RuleId::new).zip(self.contents).collect();
        let whole = tags::grammar(self.tags, self.way).composed(&numbered);
        within(whole.with_dispatches(&self.options.limits), &self.options.limits)
    }

    /// The network of the tags, made of parts; `Some(None)` where they have no text.
    fn linked(&self) -> Option<Option<Network>> {
        let limits = &self.options.limits;
        let budget = Budget::new(limits, &none());
        let cache = PartCache::new(1 << 20);
        let mut parts: Vec<Option<Arc<NetworkPart>>> = Vec::new();
        for content in self.contents {
            parts.push(within(NetworkPart::of(content, self.options, &cache, &budget), limits)?);
        }
        let made = NetworkPart::of_tags(self.tags, &parts, self.way, self.options, &budget);
        match made {
            Err(Error::Syntax { message, .. } | Error::Unsupported { message, .. })
                if message.starts_with("the language is empty") =>
            {
                Some(None)
            }
            made => match within(made, limits)? {
                Some(part) => within(part.link(limits, &budget), limits).map(Some),
                None => Some(None),
            },
        }
    }

    fn check(&self, written: &Grammar, input: &mut Input<'_>) {
        let limits = &self.options.limits;
        let Some(linked) = self.linked() else { return };
        let whole = match Network::new(written, self.options) {
            Err(Error::Syntax { message, .. } | Error::Unsupported { message, .. })
                if message.starts_with("the language is empty") =>
            {
                None
            }
            made => match within(made, limits) {
                Some(network) => Some(network),
                None => return,
            },
        };
        assert_eq!(linked.is_some(), whole.is_some(), "whether there are texts of {}", self.name());
        let (Some(linked), Some(whole)) = (linked, whole) else { return };
        if linked.is_for_charts() || whole.is_for_charts() {
            return;
        }
        let Some(mut earley) = Earley::new(written) else { return };
        for _ in 0..WALKS {
            let recognizer = |network| Recognizer::new(network, limits, &none()).ok();
            let (Some(mut one), Some(mut two)) = (recognizer(&linked), recognizer(&whole)) else {
                return;
            };
            let mut place = START;
            let mut text = Vec::new();
            while text.len() < LONGEST {
                let next = earley.next_bytes(place);
                let expected: Vec<u8> = (0..=255).filter(|&byte| next[byte as usize]).collect();
                let accepts = earley.accepts(place);
                for (recognizer, what) in [(&mut one, "of parts"), (&mut two, "as a whole")] {
                    let text = String::from_utf8_lossy(&text);
                    let found = recognizer.expected().expect("no limit");
                    assert_eq!(found, expected, "behind {text:?}, {what}, of {}", self.name());
                    let found = recognizer.is_accepting();
                    assert_eq!(found, accepts, "whether {text:?} ends, {what}, of {}", self.name());
                }
                let choice = usize::from(input.byte());
                let likely: Vec<u8> =
                    expected.iter().copied().filter(|byte| b"<ab>/:c".contains(byte)).collect();
                let among = if likely.is_empty() || choice > 230 { &expected } else { &likely };
                if among.is_empty() {
                    break;
                }
                let byte = among[choice % among.len()];
                match earley.byte(place, byte) {
                    Ok(Some(next)) => place = next,
                    _ => return,
                }
                for recognizer in [&mut one, &mut two] {
                    match recognizer.advance(byte) {
                        Ok(is_read) => {
                            assert!(is_read, "{byte} behind {text:?} of {}", self.name())
                        }
                        Err(_) => return,
                    }
                }
                text.push(byte);
            }
        }
    }
}
