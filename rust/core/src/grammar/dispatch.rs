//! What `TagDispatch` means (XGrammar 2, section 3.1): free text in which tags call rules.
//!
//! An Aho-Corasick automaton over the tags and the excluded texts. Its states are the beginnings of
//! these; each says how much of one has just been written. Where a tag ends, its rule must follow,
//! or the beginning of a longer tag or excluded text goes on; no text that holds an excluded one is
//! allowed. As in XGrammar, a tag counts only where no longer beginning of another is being
//! written: of `ab` and `b`, `ab` calls its own rule only.

use super::{CallEdge, Callee, Described, Grammar, Macro, MacroArgument, Meaning};
use crate::error::{Error, Result};
use crate::ids::ExprId;
use crate::limits::Limits;
use std::collections::{HashMap, VecDeque};

/// The tags with the rules that they call, the excluded texts, and whether free text goes on after
/// a call.
struct Dispatch<'m> {
    tags: Vec<(&'m [u8], usize)>,
    excludes: Vec<&'m [u8]>,
    loops: bool,
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
struct Node {
    children: Vec<(u8, u32)>,
    /// The node of the longest proper suffix.
    suffix: u32,
    /// Rules that the text of the node calls, in the order written.
    calls: Vec<usize>,
    /// Whether an excluded text ends here.
    is_excluded: bool,
}

struct Tries {
    nodes: Vec<Node>,
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
                    self.nodes.push(Node::default());
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

/// The automaton of a `TagDispatch`, or `None` for another macro.
fn meaning(call: &Macro, limits: &Limits) -> Result<Option<Meaning>> {
    if call.name != "TagDispatch" {
        return Ok(None);
    }
    let dispatch = Dispatch::read(call);
    let mut tries = Tries { nodes: vec![Node::default()] };
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
    // Where each byte leads, as ranges: those of the suffix with the node's own children in them.
    let mut ways: HashMap<u32, Vec<(u8, u8, u32)>> = HashMap::new();
    let mut edges = 0usize;
    for node in order {
        let this = &nodes[node as usize];
        if this.is_excluded {
            continue;
        }
        let before: &[(u8, u8, u32)] = match node {
            0 => &[(0, 255, 0)],
            _ => ways.get(&this.suffix).map_or(&[], |ranges| ranges),
        };
        let all = with_children(before, &this.children);
        for &rule in &this.calls {
            let callee = Callee::Rule(rule);
            out.calls.push(CallEdge { from: node, callee, min: 1, max: Some(1), to: end });
        }
        let is_tag = !this.calls.is_empty();
        if !is_tag {
            out.finals.push(node);
        }
        for &(first, last, to) in &all {
            let is_own = !is_tag || this.children.iter().any(|child| child.1 == to);
            if is_own && !nodes[to as usize].is_excluded {
                out.bytes.push((node, first, last, to));
            }
        }
        edges += all.len();
        if edges > limits.max_network_edges {
            return Err(too_large("max_network_edges", limits.max_network_edges));
        }
        ways.insert(node, all);
    }
    Ok(Some(vec![out]))
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
        let mut meanings: HashMap<ExprId, Meaning> = HashMap::new();
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
        self.with_meanings(&meanings)
            .ok_or_else(|| Error::State("an automaton of a TagDispatch is not sound".into()))
    }
}
