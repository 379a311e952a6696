//! What takes a token whole, by its id: `Token`, `ExcludeToken` and `TokenTagDispatch`.
//!
//! As in XGrammar, a token may then be read in two ways, by its bytes and whole, and either will
//! do. Ids without bytes are never taken whole. A stop token that `Token` names becomes a mark, with
//! which the text can end there (`network/stop_tokens.rs`); nothing else names one.

use super::{Expr, Grammar, GrammarBuilder, Macro, MacroArgument};
use crate::error::{Error, Position, Result};
use crate::ids::{ExprId, RuleId};
use rustc_hash::FxHashSet;

/// Ranges of ids, in order, that do not touch.
type Ids = Box<[(u32, u32)]>;

/// Numbers from here on are no ids but marks: that of a stop token is this and its id. Vocabularies have
/// fewer ids.
pub(crate) const FIRST_MARK: u32 = 1 << 31;
/// The id of no token, and no mark: what it leads to is never read.
pub(crate) const NO_TOKEN: u32 = FIRST_MARK - 1;
/// The mark of a text that may end with any stop token.
pub(crate) const ANY_STOP: u32 = u32::MAX;

/// What of a vocabulary can be taken whole.
pub struct WholeTokens<'a> {
    /// The ids that can stand anywhere, as ranges that do not touch.
    pub ranges: Vec<(u32, u32)>,
    /// The stop tokens, which can stand at the end of a text; sorted.
    pub stops: &'a [u32],
}

impl Grammar {
    /// The grammar with sets of ids in place of what takes tokens whole, over a vocabulary of `size`
    /// ids of which `whole` says those that can be taken so; `None` where nothing does.
    ///
    /// # Errors
    /// [`Error::Unsupported`] where a token is named that cannot be taken, or excluded that is none.
    pub fn with_tokens<'a>(
        &self,
        whole: impl FnOnce() -> WholeTokens<'a>,
        size: usize,
    ) -> Result<Option<Grammar>> {
        let takes_tokens = |id: &ExprId| match self.expr(*id) {
            Expr::Macro(call) => is_of_tokens(call),
            _ => false,
        };
        let mut reached: FxHashSet<ExprId> = self.macros().into_iter().collect();
        reached.retain(takes_tokens);
        if reached.is_empty() {
            return Ok(None);
        }
        let whole = whole();
        let replaced = self.with_replaced(|builder, id, call| {
            let is_reached = reached.contains(&id);
            is_reached.then(|| add(builder, call, (&whole, size), self.position(id))).transpose()
        })?;
        Ok(Some(replaced))
    }
}

fn is_of_tokens(call: &Macro) -> bool {
    matches!(call.name.as_str(), "Token" | "ExcludeToken" | "TokenTagDispatch")
}

fn add(
    builder: &mut GrammarBuilder,
    call: &Macro,
    (whole, size): (&WholeTokens<'_>, usize),
    position: Position,
) -> Result<ExprId> {
    let all = &*whole.ranges;
    let is_taken = |id: u32| {
        let after = all.partition_point(|range| range.0 <= id);
        after > 0 && id <= all[after - 1].1
    };
    let refuse = |id: u32, why: &str| Error::Unsupported {
        construct: call.name.clone(),
        message: format!("token {id} {why}"),
        position,
    };
    let known = |id: u32| match (id as usize) < size {
        true => Ok(id),
        false => Err(refuse(id, &format!("is outside the vocabulary of {size} tokens"))),
    };
    let is_stop = |id: u32| whole.stops.binary_search(&id).is_ok();
    let check = |id: u32| match known(id) {
        Ok(id) if is_stop(id) => {
            Err(refuse(id, "is a stop token, which ends the text, so that no tag follows it"))
        }
        Ok(id) if !is_taken(id) => Err(refuse(id, "has no bytes, and so is never taken whole")),
        known => known,
    };
    let named = |id: u32| match is_stop(id) {
        true => known(id).map(|id| FIRST_MARK | id),
        false => check(id),
    };
    let ids =
        |arguments: &[MacroArgument]| arguments.iter().filter_map(id_of).collect::<Vec<u32>>();
    match call.name.as_str() {
        "Token" => {
            let named = ids(&call.positional).into_iter().map(named).collect::<Result<_>>()?;
            Ok(builder.add(Expr::Tokens(ranges_of(named)), position))
        }
        "ExcludeToken" => {
            let excluded = ids(&call.positional).into_iter().map(known).collect::<Result<_>>()?;
            Ok(builder.add(Expr::Tokens(without(all, excluded)), position))
        }
        _ => {
            // Triggers of one rule go together.
            let mut rules: Vec<(RuleId, Vec<u32>)> = Vec::new();
            let mut apart = Vec::new();
            for argument in &call.positional {
                let MacroArgument::Tuple(pair) = argument else { continue };
                let [trigger, MacroArgument::Rule(rule)] = pair.as_slice() else { continue };
                let Some(id) = id_of(trigger) else { continue };
                let id = check(id)?;
                apart.push(id);
                match rules.iter_mut().find(|known| known.0 == *rule) {
                    Some(known) => known.1.push(id),
                    None => rules.push((*rule, vec![id])),
                }
            }
            if let Some(MacroArgument::Tuple(excluded)) = call.argument("excludes") {
                for id in ids(excluded) {
                    apart.push(known(id)?);
                }
            }
            let loops =
                call.argument("loop_after_dispatch") != Some(&MacroArgument::Boolean(false));
            let free = builder.add(Expr::Tokens(without(all, apart)), position);
            let mut tags = Vec::with_capacity(rules.len() + 1);
            for (rule, triggers) in rules {
                let trigger = builder.add(Expr::Tokens(ranges_of(triggers)), position);
                let rule = builder.add(Expr::Rule(rule), position);
                tags.push(builder.add(Expr::Sequence([trigger, rule].into()), position));
            }
            Ok(dispatch(builder, free, tags, loops, position))
        }
    }
}

/// Free tokens, and tags among them, or one at the end.
fn dispatch(
    builder: &mut GrammarBuilder,
    free: ExprId,
    mut tags: Vec<ExprId>,
    loops: bool,
    position: Position,
) -> ExprId {
    let one_of = |builder: &mut GrammarBuilder, mut parts: Vec<ExprId>| match parts.len() {
        1 => parts.swap_remove(0),
        _ => builder.add(Expr::Choice(parts.into()), position),
    };
    let any = |body| Expr::Repeat { body, min: 0, max: None };
    if loops {
        tags.push(free);
        let body = one_of(builder, tags);
        return builder.add(any(body), position);
    }
    let free = builder.add(any(free), position);
    if tags.is_empty() {
        return free;
    }
    let body = one_of(builder, tags);
    let last = builder.add(Expr::Repeat { body, min: 0, max: Some(1) }, position);
    builder.add(Expr::Sequence([free, last].into()), position)
}

/// The id that an argument is, which was checked when the macro was read.
fn id_of(argument: &MacroArgument) -> Option<u32> {
    match argument {
        MacroArgument::Integer(id) => u32::try_from(*id).ok(),
        _ => None,
    }
}

fn ranges_of(mut ids: Vec<u32>) -> Ids {
    ids.sort_unstable();
    ids.dedup();
    ids.chunk_by(|a, b| a + 1 == *b).map(|run| (run[0], run[run.len() - 1])).collect()
}

fn without(ranges: &[(u32, u32)], mut ids: Vec<u32>) -> Ids {
    ids.sort_unstable();
    let mut ids = ids.into_iter().peekable();
    let mut out = Vec::new();
    for &(first, last) in ranges {
        let mut from = first;
        while let Some(id) = ids.next_if(|&id| id <= last) {
            if from < id {
                out.push((from, id - 1));
            }
            from = from.max(id.saturating_add(1));
        }
        if from <= last {
            out.push((from, last));
        }
    }
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::Limits;
    use crate::syntax;
    use proptest::prelude::*;

    fn replaced(text: &str) -> Result<Option<Grammar>> {
        let grammar = syntax::parse(text, "root", &Limits::default()).expect("it is a grammar");
        let whole = || WholeTokens { ranges: vec![(0, 4), (6, 9)], stops: &[10] };
        grammar.with_tokens(whole, 12)
    }

    fn tokens(text: &str) -> Vec<Ids> {
        let grammar = replaced(text).expect("they can be taken").expect("tokens are taken");
        let sets = grammar.exprs().iter().filter_map(|expr| match expr {
            Expr::Tokens(ids) => Some(ids.clone()),
            _ => None,
        });
        sets.collect()
    }

    #[test]
    fn sets_of_ids_stand_in_place_of_macros() {
        assert_eq!(tokens("root ::= Token(7, 2, 3, 2)"), [[(2, 3), (7, 7)].into()]);
        let all: Ids = [(0, 0), (2, 3), (6, 8)].into();
        assert_eq!(tokens("root ::= ExcludeToken(1, 5, 4, 9, 10)"), [all]);
        let mark = FIRST_MARK | 10;
        assert_eq!(tokens("root ::= Token(10, 2)"), [[(2, 2), (mark, mark)].into()]);
        let dispatch = "root ::= TokenTagDispatch((1, x), (6, y), (2, x), excludes=(3, 5))\n\
                        x ::= \"a\"\ny ::= \"b\"";
        let free: Ids = [(0, 0), (4, 4), (7, 9)].into();
        assert_eq!(tokens(dispatch), [free, [(1, 2)].into(), [(6, 6)].into()]);
    }

    #[test]
    fn what_cannot_be_taken_is_named() {
        let excluding = "TokenTagDispatch((4, x), excludes=(12))";
        let stop = "TokenTagDispatch((10, x))";
        for text in [
            "Token(5)",
            "Token(1, 11)",
            "TokenTagDispatch((5, x))",
            stop,
            "ExcludeToken(12)",
            excluding,
        ] {
            let error =
                replaced(&format!("root ::= \"a\" {text}\nx ::= \"b\"")).expect_err("refused");
            let Error::Unsupported { construct, position, .. } = error else { panic!("{error}") };
            assert!(text.starts_with(&construct));
            assert_eq!((position.line, position.column), (1, 14));
        }
        // What the root does not reach does no harm.
        assert!(replaced("root ::= \"a\"\nx ::= Token(5)").expect("unreached").is_none());
    }

    proptest! {
        #[test]
        fn what_is_left_is_left(
            ids in proptest::collection::vec(0u32..20, 0..12),
            taken in proptest::collection::vec(0u32..20, 0..12),
        ) {
            let all = ranges_of(ids.clone());
            let left = without(&all, taken.clone());
            let has = |ranges: &Ids, id: u32| ranges.iter().any(|r| (r.0..=r.1).contains(&id));
            for id in 0..20 {
                prop_assert_eq!(has(&all, id), ids.contains(&id));
                prop_assert_eq!(has(&left, id), ids.contains(&id) && !taken.contains(&id));
            }
            prop_assert!(all.windows(2).all(|w| w[0].1 + 1 < w[1].0));
        }
    }
}
