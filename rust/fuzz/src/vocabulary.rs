//! Vocabularies, sound or not, their tries, and the unfolding of class masks over them.

use crate::input::Input;
use std::collections::BTreeMap;
use tokfold_core::mask::{Unfolder, words};
use tokfold_core::vocabulary::{BROKEN, Trie, Vocabulary, group};

/// Tokens of a vocabulary, at most.
const MOST_TOKENS: usize = 14;

/// Bytes of which tokens are mostly made.
const LETTERS: &[u8] = b"ab\"\\ \n\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80\xFF";

/// A vocabulary out of the input; offsets and ids may be wrong.
pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    match input.one_in(4) {
        true => unsound(&mut input),
        false => sound(&mut input),
    }
}

fn ids(input: &mut Input<'_>, size: usize) -> Vec<u32> {
    (0..input.below(4)).map(|_| input.below(size) as u32).collect()
}

fn unsound(input: &mut Input<'_>) {
    let mut offsets: Vec<u32> = Vec::new();
    for _ in 0..input.below(8) {
        let last = offsets.last().copied().unwrap_or(0);
        offsets.push(match input.one_in(8) {
            true => input.number(),
            false => last.saturating_add(input.below(4) as u32),
        });
    }
    let blob = input.bytes(offsets.last().map_or(3, |&end| end as usize)).to_vec();
    let stops: Vec<u32> = (0..input.below(3)).map(|_| input.number()).collect();
    let special: Vec<u32> = (0..input.below(3)).map(|_| input.number()).collect();
    let size = offsets.len().saturating_sub(1);
    let fits = offsets.first() == Some(&0)
        && offsets.is_sorted()
        && offsets.last().is_some_and(|&end| end as usize == blob.len());
    let known = stops.iter().chain(&special).all(|&id| (id as usize) < size);
    let is_sound = size > 0 && fits && known;
    match Vocabulary::new(blob, offsets, &stops, &special) {
        Ok(vocabulary) => {
            assert!(is_sound, "unsound parts are refused");
            check(&vocabulary, &stops, &special);
        }
        Err(error) => assert!(!is_sound, "sound parts are refused: {error}"),
    }
}

fn sound(input: &mut Input<'_>) {
    let mut offsets = vec![0];
    let mut blob = Vec::new();
    for _ in 0..1 + input.below(MOST_TOKENS) {
        let length = match input.below(16) {
            15 => 8 + input.below(9),
            length => length / 3,
        };
        for _ in 0..length {
            blob.push(input.pick(LETTERS));
        }
        offsets.push(blob.len() as u32);
    }
    let size = offsets.len() - 1;
    let (stops, special) = (ids(input, size), ids(input, size));
    let vocabulary = Vocabulary::new(blob, offsets, &stops, &special).expect("sound parts");
    check(&vocabulary, &stops, &special);
    unfold(&vocabulary, input);
}

fn check(vocabulary: &Vocabulary, stops: &[u32], special: &[u32]) {
    let size = vocabulary.len() as u32;
    let is_text = |id: u32| {
        !vocabulary.bytes(id).is_empty() && !stops.contains(&id) && !special.contains(&id)
    };
    let is_whole = |id: u32| !vocabulary.bytes(id).is_empty() && !stops.contains(&id);
    let mut order: Vec<u32> = (0..size).filter(|&id| is_text(id)).collect();
    order.sort_by_key(|&id| (vocabulary.bytes(id), id));
    assert_eq!(vocabulary.order(), order);
    for id in 0..size {
        assert_eq!(vocabulary.is_textual(id), is_text(id), "token {id}");
        assert_eq!(vocabulary.is_whole(id), is_whole(id), "token {id}");
    }
    let longest = order.iter().map(|&id| vocabulary.bytes(id).len()).max();
    assert_eq!(vocabulary.longest(), longest.unwrap_or(0));
    assert!(vocabulary.stop_ids().is_sorted_by(|a, b| a < b));
    assert!(stops.iter().all(|id| vocabulary.stop_ids().contains(id)));
    let ranges = vocabulary.whole_ranges();
    let listed: Vec<u32> = ranges.iter().flat_map(|&(first, last)| first..=last).collect();
    assert_eq!(listed, (0..size).filter(|&id| is_whole(id)).collect::<Vec<u32>>());
    assert!(ranges.windows(2).all(|pair| pair[0].1 + 1 < pair[1].0), "ranges do not touch");
    let plain = vocabulary.trie();
    let texts = || order.iter().map(|&id| (vocabulary.bytes(id).to_vec(), id));
    check_trie(plain, texts().collect(), &[]);
    check_trie(&vocabulary.trie_with_ids(), texts().collect(), &listed);
}

/// Holds a trie against the map of its entries.
fn check_trie(trie: &Trie, entries: Vec<(Vec<u8>, u32)>, ids: &[u32]) {
    let mut nodes: BTreeMap<Vec<u8>, Vec<u32>> = BTreeMap::from([(Vec::new(), Vec::new())]);
    for (bytes, number) in &entries {
        for end in 1..bytes.len() {
            nodes.entry(bytes[..end].to_vec()).or_default();
        }
        nodes.entry(bytes.clone()).or_default().push(*number);
    }
    let of_bytes = trie.ids().map_or(trie.len(), |root| root as usize);
    assert_eq!(of_bytes, nodes.len(), "nodes");
    assert_eq!(trie.ids().is_some(), !ids.is_empty(), "whether there are ids");
    assert_eq!(trie.is_empty(), entries.is_empty() && ids.is_empty());
    let by_bytes = entries.iter().map(|entry| entry.0.len()).max().unwrap_or(0);
    assert_eq!(trie.longest(), by_bytes.max(if ids.is_empty() { 0 } else { 5 }));
    // Nodes stand depth-first with bytes ascending: in the order of their texts.
    for (node, (text, numbers)) in (0..).zip(&nodes) {
        let below: Vec<&Vec<u8>> =
            entries.iter().map(|entry| &entry.0).filter(|bytes| bytes.starts_with(text)).collect();
        assert_eq!(trie.byte(node), text.last().copied().unwrap_or(0), "byte of {text:?}");
        assert_eq!(trie.numbers(node), numbers, "entries of {text:?}");
        let size = nodes.keys().filter(|other| other.starts_with(text)).count() as u32;
        assert_eq!(trie.end(node), node + size, "end of {text:?}");
        let longest = below.iter().map(|bytes| bytes.len()).max().unwrap_or(0) as u32;
        assert_eq!(trie.longest_below(node), longest, "longest below {text:?}");
        let groups = below.iter().flat_map(|bytes| &bytes[text.len()..]).map(|&byte| group(byte));
        let is_broken = below.iter().any(|bytes| {
            std::str::from_utf8(&bytes[text.len()..])
                .is_err_and(|error| error.error_len().is_some())
        });
        let said = trie.groups_below(node);
        assert_eq!(said & !BROKEN, groups.fold(0, |all, one| all | one), "groups below {text:?}");
        assert_eq!(said & BROKEN != 0, is_broken, "whole characters below {text:?}");
        let within = trie.entries_of(node..trie.end(node));
        assert_eq!(within.len(), below.len(), "entries below {text:?}");
        let characters = below.iter().map(|bytes| {
            let begun = bytes.iter().filter(|&&byte| byte & 0xC0 != 0x80).count();
            begun.min(255) as u8
        });
        assert_eq!(trie.characters_of(within), characters.collect::<Vec<u8>>(), "of {text:?}");
        assert!(!trie.is_escape(node), "{text:?} is text");
    }
    if let Some(root) = trie.ids() {
        assert!(trie.is_escape(root + 1));
        for &id in ids {
            let mut node = root + 1;
            for byte in id.to_be_bytes() {
                let mut child = node + 1;
                while trie.byte(child) != byte {
                    child = trie.end(child);
                }
                assert!(child < trie.end(node), "token {id} has a node");
                node = child;
            }
            assert_eq!(trie.numbers(node), [id]);
        }
    }
}

/// Unfolds class masks, in turn, and holds each row against the classes.
fn unfold(vocabulary: &Vocabulary, input: &mut Input<'_>) {
    let size = vocabulary.len();
    let count = 1 + input.below(40);
    let class_of: Vec<i32> = (0..size).map(|_| input.below(count + 1) as i32 - 1).collect();
    let mut wrong = class_of.clone();
    wrong[input.below(size)] = input.pick(&[-2, i32::MIN, count as i32, i32::MAX]);
    assert!(Unfolder::new(&wrong, count, 0).is_err(), "a class that is none is refused");
    let max_bytes = input.pick(&[0, 500, 1 << 20]);
    let mut unfolder = Unfolder::new(&class_of, count, max_bytes).expect("classes that are some");
    let mut masks: Vec<Vec<i32>> = Vec::new();
    for _ in 0..1 + input.below(12) {
        let mut mask = match masks.last() {
            Some(last) if !input.one_in(3) => last.clone(),
            _ => vec![input.number() as i32; words(count)],
        };
        mask[input.below(words(count))] ^= 1 << input.below(32);
        let mut row = vec![7; words(size)];
        match input.below(6) {
            0 => unfolder.forget(),
            1 => drop(unfolder.bytes()),
            2 if !masks.is_empty() => mask = masks[input.below(masks.len())].clone(),
            _ => {}
        }
        if !unfolder.unfold_again(&mask, &mut row) {
            unfolder.unfold(&mask, &mut row);
        }
        let mut truth = vec![0; words(size)];
        for (id, &class) in class_of.iter().enumerate() {
            if let Ok(class) = usize::try_from(class) {
                truth[id >> 5] |= (mask[class >> 5] >> (class & 31) & 1) << (id & 31);
            }
        }
        assert_eq!(row, truth, "classes {class_of:?} under {mask:?}");
        masks.push(mask);
    }
}
