//! What `TagDispatch` means (XGrammar 2, section 3.1): free text in which tags call rules.
//!
//! Design: docs/design/structural-tags.md, "TagDispatch".
//!
//! An Aho-Corasick automaton over the tags and the excluded texts. Its states are the beginnings of
//! these; each says how much of one has just been written. Where a tag ends, its rule must follow,
//! or the beginning of a longer tag or excluded text goes on; no text that holds an excluded one is
//! allowed. As in XGrammar, a tag counts only where no longer beginning of another is being
//! written: of `ab` and `b`, `ab` calls its own rule only.

use super::{CallEdge, Callee, Described, Grammar, Macro, MacroArgument};
use crate::error::{Error, Result};
use crate::ids::ExprId;
use crate::limits::Limits;
use std::collections::{HashMap, VecDeque};

/// The tags with the rules that they call, the excluded texts, and whether free text goes on after
/// a call.
pub(crate) struct Dispatch<'m> {
    pub(crate) tags: Vec<(&'m [u8], usize)>,
    pub(crate) excludes: Vec<&'m [u8]>,
    pub(crate) loops: bool,
}

impl<'m> Dispatch<'m> {
    /// The arguments of the macro, which were checked when it was read.
    fn read(call: &'m Macro) -> Self {
        let mut tags = Vec::new();
        for argument in &call.positional {
            if let MacroArgument::Tuple(parts) = argument
                && let [MacroArgument::Text(tag), MacroArgument::Rule(rule)] = parts.as_slice()
            {
                tags.push((&**tag, rule.index()));
            }
        }
        let excludes = match call.argument("excludes") {
            Some(MacroArgument::Tuple(texts)) => texts.as_slice(),
            _ => &[],
        };
        let excludes = excludes.iter().filter_map(|text| match text {
            MacroArgument::Text(text) => Some(&**text),
            _ => None,
        });
        let loops =
            !matches!(call.argument("loop_after_dispatch"), Some(MacroArgument::Boolean(false)));
        Self { tags, excludes: excludes.collect(), loops }
    }
}

#[derive(Default)]
struct DispatchNode {
    children: Vec<(u8, u32)>,
    /// The node of the longest proper suffix.
    suffix: u32,
    /// Rules that the text of the node calls, in the order written.
    calls: Vec<usize>,
    /// Whether an excluded text ends here.
    is_excluded: bool,
}

struct Tries {
    nodes: Vec<DispatchNode>,
}

impl Tries {
    fn add(&mut self, text: &[u8]) -> u32 {
        let mut at = 0u32;
        for &byte in text {
            let children = &self.nodes[at as usize].children;
            at = match children.binary_search_by_key(&byte, |child| child.0) {
                Ok(found) => children[found].1,
                Err(place) => {
                    let node = self.nodes.len() as u32;
                    self.nodes[at as usize].children.insert(place, (byte, node));
                    self.nodes.push(DispatchNode::default());
                    node
                }
            };
        }
        at
    }

    /// Links suffixes, level by level; returns the nodes in that order.
    fn link(&mut self) -> Vec<u32> {
        let mut order = Vec::with_capacity(self.nodes.len());
        let mut queue = VecDeque::from([0u32]);
        while let Some(node) = queue.pop_front() {
            order.push(node);
            for index in 0..self.nodes[node as usize].children.len() {
                let (byte, child) = self.nodes[node as usize].children[index];
                let mut suffix =
                    if node == 0 { None } else { Some(self.nodes[node as usize].suffix) };
                let link = loop {
                    let Some(at) = suffix else { break 0 };
                    if let Some(next) = self.child(at, byte) {
                        break next;
                    }
                    suffix = if at == 0 { None } else { Some(self.nodes[at as usize].suffix) };
                };
                self.nodes[child as usize].suffix = link;
                let excluded = self.nodes[link as usize].is_excluded;
                self.nodes[child as usize].is_excluded |= excluded;
                queue.push_back(child);
            }
        }
        order
    }

    fn child(&self, node: u32, byte: u8) -> Option<u32> {
        let children = &self.nodes[node as usize].children;
        children.binary_search_by_key(&byte, |child| child.0).ok().map(|found| children[found].1)
    }
}

/// An automaton with the states of it that fall back.
pub(crate) struct Compact {
    pub(crate) automaton: Described,
    pub(crate) fallbacks: Vec<u32>,
}

/// The automaton of a `TagDispatch`, or `None` for another macro.
fn meaning(call: &Macro, limits: &Limits) -> Result<Option<Compact>> {
    match call.name.as_str() {
        "TagDispatch" => compact(&Dispatch::read(call), limits).map(Some),
        _ => Ok(None),
    }
}

/// The automaton. Its edges that call lead to where free text goes on, or to its end.
pub(crate) fn compact(dispatch: &Dispatch<'_>, limits: &Limits) -> Result<Compact> {
    let mut tries = Tries { nodes: vec![DispatchNode::default()] };
    for &(tag, rule) in &dispatch.tags {
        let node = tries.add(tag);
        tries.nodes[node as usize].calls.push(rule);
    }
    for text in &dispatch.excludes {
        let node = tries.add(text);
        tries.nodes[node as usize].is_excluded = true;
    }
    let order = tries.link();
    let nodes = &tries.nodes;
    if nodes.len() >= limits.max_network_states {
        return Err(too_large("max_network_states", limits.max_network_states));
    }
    let mut out = Described { states: nodes.len() as u32, ..Described::default() };
    let end = if dispatch.loops {
        0
    } else {
        out.states += 1;
        out.finals.push(out.states - 1);
        out.states - 1
    };
    let is_open = |to: u32| !nodes[to as usize].is_excluded;
    let start = with_children(&[(0, 255, 0)], &nodes[0].children);
    let is_open_at_start =
        |byte: u8| !nodes[0].children.iter().any(|child| child.0 == byte && !is_open(child.1));
    // For each node where it leads that the start does not.
    let mut own: Vec<Vec<(u8, u32)>> = vec![Vec::new(); nodes.len()];
    let mut fallbacks = Vec::new();
    let mut edges = 0usize;
    for node in order {
        let this = &nodes[node as usize];
        if this.is_excluded {
            continue;
        }
        if node != 0 {
            own[node as usize] = joined(&own[this.suffix as usize], &this.children);
        }
        let own = &own[node as usize];
        let before = out.bytes.len();
        for &rule in &this.calls {
            let callee = Callee::Rule(rule);
            out.calls.push(CallEdge { from: node, callee, min: 1, max: Some(1), to: end });
        }
        let read = |&(byte, to): &(u8, u32)| (node, byte, byte, to);
        if !this.calls.is_empty() {
            out.bytes.extend(this.children.iter().filter(|child| is_open(child.1)).map(read));
        } else {
            out.finals.push(node);
            let falls_back = own.iter().any(|edge| is_open(edge.1))
                && own.iter().all(|edge| is_open(edge.1) || !is_open_at_start(edge.0));
            if falls_back {
                fallbacks.push(node);
                out.bytes.extend(own.iter().filter(|edge| is_open(edge.1)).map(read));
            } else {
                let all = with_children(&start, own).into_iter().filter(|range| is_open(range.2));
                out.bytes.extend(all.map(|(first, last, to)| (node, first, last, to)));
            }
        }
        edges += own.len().max(out.bytes.len() - before);
        if edges > limits.max_network_edges {
            return Err(too_large("max_network_edges", limits.max_network_edges));
        }
    }
    Ok(Compact { automaton: out, fallbacks })
}

/// Where bytes lead, sorted; children take the place of what was there.
fn joined(before: &[(u8, u32)], children: &[(u8, u32)]) -> Vec<(u8, u32)> {
    let is_left = |edge: &&(u8, u32)| !children.iter().any(|child| child.0 == edge.0);
    let mut out: Vec<(u8, u32)> = before.iter().filter(is_left).copied().collect();
    out.extend(children);
    out.sort_unstable();
    out
}

/// Ranges of bytes with where they lead, in order, some bytes of which lead elsewhere.
fn with_children(ranges: &[(u8, u8, u32)], children: &[(u8, u32)]) -> Vec<(u8, u8, u32)> {
    let mut out: Vec<(u8, u8, u32)> = Vec::with_capacity(ranges.len() + 2 * children.len());
    let mut children = children.iter().peekable();
    for &(first, last, to) in ranges {
        let mut from = Some(first);
        while let Some(&&(byte, child)) = children.peek()
            && byte <= last
        {
            children.next();
            if let Some(start) = from.filter(|&start| start < byte) {
                out.push((start, byte - 1, to));
            }
            out.push((byte, byte, child));
            from = byte.checked_add(1);
        }
        if let Some(start) = from.filter(|&start| start <= last) {
            out.push((start, last, to));
        }
    }
    out
}

fn too_large(limit: &'static str, value: usize) -> Error {
    Error::Limit {
        limit,
        value: value as u64,
        message:
            "the tags and excluded texts of a TagDispatch need more; use fewer, shorter ones, \
                  or raise the limit"
                .into(),
    }
}

impl Grammar {
    /// The grammar with automata in place of each `TagDispatch` that the root can reach.
    ///
    /// # Errors
    /// [`Error::Limit`] when the automata pass the limits on the network.
    pub fn with_dispatches(&self, limits: &Limits) -> Result<Grammar> {
        let mut meanings: HashMap<ExprId, Compact> = HashMap::new();
        for id in self.macros() {
            if let super::Expr::Macro(call) = self.expr(id)
                && let Some(meaning) = meaning(call, limits)?
            {
                meanings.insert(id, meaning);
            }
        }
        if meanings.is_empty() {
            return Ok(self.clone());
        }
        self.with_replaced(|builder, id, _| {
            let Some(Compact { automaton, fallbacks }) = meanings.remove(&id) else {
                return Ok(None);
            };
            let position = self.position(id);
            let added = self.add_described(builder, automaton, &fallbacks, &[], position);
            let unsound = || Error::State("an automaton of a TagDispatch is not sound".into());
            added.map(Some).ok_or_else(unsound)
        })
    }
}
