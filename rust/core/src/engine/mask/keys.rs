//! Under what answers are shared, as far as they are worth it.

use crate::engine::mask::found::class_of;
use crate::engine::mask::pool::{Pool, PoolKey};
use crate::engine::mask::query::{ALONE, NOTHING, OWN, Question};
use crate::network::{Network, Quota, contains, members};
use crate::vocabulary::Trie;
use std::sync::OnceLock;

/// Trie nodes that are entered in the time of describing one state.
const NODES_OF_STATE: u64 = 32;

/// An answer about less than one in so many nodes is made as fast as it is found.
const PART: u32 = 64;

/// So few states are described for any answer.
pub(in crate::engine) const FEW_STATES: usize = 48;

/// No more are described for one mask: none is to wait for long.
pub(in crate::engine) const MOST_STATES: usize = 96;

/// Digests of states, made when answers are worth them.
#[derive(Default)]
pub(in crate::engine) struct Digests {
    /// Trie nodes of questions whose digests would have cost more than their answers.
    denied: u64,
    /// What that was when digests for all of it were last found to cost too much.
    tried: u64,
}

impl Digests {
    /// Under what an answer is shared; `None` for one that is made as fast as it is found.
    ///
    /// A state is described with all that it leads to, which from the start is the whole network,
    /// while little of the trie may be below the first bytes. So each answer describes only as many
    /// as take no more time than it does, and its mask has `left`: its own or, where they are too
    /// many, some that later ones will need. Large tables are described as a whole, once answers that went without have taken as
    /// long as that.
    pub(in crate::engine) fn key(
        &mut self,
        (network, trie, begun): (&Network, &Trie, &FirstByteCounts),
        pool: &Pool,
        (question, nodes): (Question, &[u32]),
        left: &mut usize,
    ) -> Option<PoolKey> {
        let all_below: u32 = nodes.iter().map(|&node| trie.end(node) - node).sum();
        if all_below < pool.least_nodes {
            return None;
        }
        let below = match nodes {
            [0] => u64::from(begun.by(network, trie, question.frame)),
            _ => below(network, trie, question.frame, nodes),
        };
        // Of a large trie next to nothing is looked at.
        if below < u64::from(pool.least_nodes.min(all_below / PART)) {
            return None;
        }
        let all = below + self.denied;
        // Each look for how much is missing takes time too: now and then for all that was denied.
        let is_time = all >= 2 * self.tried;
        let worth = |nodes: u64| (nodes / NODES_OF_STATE) as usize;
        let mut quota = Quota {
            most: (FEW_STATES + worth(below)).min(*left),
            ahead: worth(below).min(*left),
            at_once: FEW_STATES + worth(if is_time { all } else { below }),
            used: 0,
        };
        let under = match question.under {
            ALONE => Some([0; 32]),
            NOTHING => Some([3; 32]),
            OWN => Some(without_calls(network, question.frame)),
            state => network.find_identity(state, &mut quota),
        };
        let frame = network.find_identity(question.frame, &mut quota);
        *left = left.saturating_sub(quota.used);
        if let Some((frame, under)) = frame.zip(under) {
            return Some(Pool::key(&[frame, under], nodes));
        }
        self.denied = all;
        if is_time {
            self.tried = all;
        }
        None
    }
}

/// For each class of bytes the number of trie nodes of the entries that begin with it, counted at the first question.
#[derive(Default)]
pub(in crate::engine) struct FirstByteCounts(OnceLock<Box<[u32; 256]>>);

impl FirstByteCounts {
    /// The number of trie nodes of the entries that begin with a byte that a frame can read first.
    pub(in crate::engine) fn by(&self, network: &Network, trie: &Trie, frame: u32) -> u32 {
        let by_class = self.0.get_or_init(|| {
            let mut by_class = Box::new([0; 256]);
            for (byte, nodes) in trie.children(0) {
                by_class[network.alphabet().class(byte) as usize] += nodes.len() as u32;
            }
            by_class
        });
        members(network.first(frame)).map(|class| by_class[class as usize]).sum()
    }
}

/// In place of what stands beneath a frame whose delegated calls are left out: which those are.
fn without_calls(network: &Network, frame: u32) -> [u8; 32] {
    let delegated = network.delegated(frame);
    [if delegated.iter().any(|call| network.counts_narrowly(call.start)) { 2 } else { 1 }; 32]
}

/// Trie nodes below some, past the bytes that a frame can read first.
fn below(network: &Network, trie: &Trie, frame: u32, nodes: &[u32]) -> u64 {
    let (alphabet, first) = (network.alphabet(), network.first(frame));
    let children = nodes.iter().flat_map(|&node| trie.children(node));
    let begun = children.filter(|(byte, nodes)| {
        contains(first, class_of(alphabet, *byte, trie.is_escape(nodes.start)))
    });
    begun.map(|(_, nodes)| nodes.len() as u64).sum()
}
