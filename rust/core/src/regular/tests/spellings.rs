//! Automata over bytes against a decoder that reads one text at a time.

use super::*;
use crate::grammar::Described;

const SPELLINGS: [Spelling; 3] =
    [Spelling::Utf8, Spelling::Json(JsonEscapes::Plain), Spelling::Json(JsonEscapes::Any)];

/// Characters with escapes, those that stand in escapes, and some that are long.
const SPELLED: [char; 9] = ['n', 'u', '0', '1', '\n', '\u{1}', '\\', '"', '\u{1F600}'];

/// Whether the automaton reads the bytes, and that it reads them in one way only.
fn reads(automaton: &Described, bytes: &[u8]) -> bool {
    let mut state = automaton.start;
    for &byte in bytes {
        let edges = automaton.bytes.iter();
        let next: Vec<u32> = edges
            .filter(|edge| edge.0 == state && (edge.1..=edge.2).contains(&byte))
            .map(|edge| edge.3)
            .collect();
        assert!(next.len() <= 1, "deterministic");
        match next.first() {
            Some(&next) => state = next,
            None => return false,
        }
    }
    automaton.finals.contains(&state)
}

/// The text that bytes spell.
fn decode(bytes: &[u8], spelling: Spelling) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?;
    let Spelling::Json(escapes) = spelling else { return Some(text.to_owned()) };
    let mut out = Vec::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '"' | '\0'..='\u{1F}' => return None,
            '\\' => {}
            c => {
                let mut units = [0; 2];
                out.extend_from_slice(c.encode_utf16(&mut units));
                continue;
            }
        }
        match chars.next()? {
            c @ ('"' | '\\') => out.push(c as u16),
            '/' if escapes == JsonEscapes::Any => out.push(u16::from(b'/')),
            'b' => out.push(8),
            'f' => out.push(12),
            'n' => out.push(10),
            'r' => out.push(13),
            't' => out.push(9),
            'u' => {
                let digits: String = chars.by_ref().take(4).collect();
                if digits.len() != 4 || !digits.chars().all(|c| c.is_ascii_hexdigit()) {
                    return None;
                }
                let unit = u16::from_str_radix(&digits, 16).ok()?;
                if escapes == JsonEscapes::Plain
                    && (unit > 0x1F || [8, 9, 10, 12, 13].contains(&unit))
                {
                    return None;
                }
                out.push(unit);
            }
            _ => return None,
        }
    }
    // Units that came as characters are whole pairs, so a mixture of both is no pair either.
    String::from_utf16(&out).ok()
}

/// All spellings of a character.
fn spellings_of(c: char, spelling: Spelling) -> Vec<String> {
    let Spelling::Json(escapes) = spelling else { return vec![c.to_string()] };
    let short = "\"\"\\\\\u{8}b\u{C}f\nn\rr\tt".chars().collect::<Vec<_>>();
    let short = short.chunks(2).find(|pair| pair[0] == c).map(|pair| format!("\\{}", pair[1]));
    let is_raw = c >= ' ' && c != '"' && c != '\\';
    let mut out = Vec::new();
    out.extend(is_raw.then(|| c.to_string()));
    let has_long = escapes == JsonEscapes::Any || (!is_raw && short.is_none());
    out.extend(short);
    if escapes == JsonEscapes::Any && c == '/' {
        out.push("\\/".to_owned());
    }
    if has_long {
        let mut long = vec![String::new()];
        for unit in c.encode_utf16(&mut [0; 2]) {
            long.iter_mut().for_each(|text| text.push_str("\\u"));
            for digit in format!("{unit:04x}").chars() {
                let upper = digit.to_ascii_uppercase();
                let cases = if upper == digit { vec![digit] } else { vec![digit, upper] };
                let add = |text: String| cases.iter().map(move |c| format!("{text}{c}")).collect();
                long = long.into_iter().flat_map(|text| -> Vec<String> { add(text) }).collect();
            }
        }
        out.extend(long);
    }
    out
}

/// How many strings the automaton reads, which has no cycle.
fn count(automaton: &Described) -> u64 {
    let mut counts: Vec<Option<u64>> = vec![None; automaton.states as usize];
    loop {
        let mut is_done = true;
        for q in 0..automaton.states {
            if counts[q as usize].is_some() {
                continue;
            }
            let mut sum = u64::from(automaton.finals.contains(&q));
            let mut is_known = true;
            for edge in automaton.bytes.iter().filter(|edge| edge.0 == q) {
                match counts[edge.3 as usize] {
                    Some(count) => sum += count * u64::from(edge.2 - edge.1 + 1),
                    None => is_known = false,
                }
            }
            if is_known {
                counts[q as usize] = Some(sum);
            }
            is_done &= is_known;
        }
        if is_done {
            return counts[automaton.start as usize].expect("it is known");
        }
    }
}

/// Number of classes of equivalent states, by Moore's refinement.
fn classes(automaton: &Described) -> usize {
    let states = automaton.states as usize;
    let mut next = vec![[u32::MAX; 256]; states];
    for &(p, a, b, q) in &automaton.bytes {
        for byte in a..=b {
            next[p as usize][byte as usize] = q;
        }
    }
    let finals = (0..states).map(|q| usize::from(automaton.finals.contains(&(q as u32))));
    let mut class: Vec<usize> = finals.collect();
    let mut known = 0;
    loop {
        let mut numbers = std::collections::HashMap::new();
        let keys = (0..states).map(|q| {
            let row = next[q].iter().map(|&to| class.get(to as usize).map_or(usize::MAX, |&c| c));
            (class[q], row.collect::<Vec<_>>())
        });
        let keys: Vec<_> = keys.collect();
        for key in &keys {
            let number = numbers.len();
            numbers.entry(key).or_insert(number);
        }
        let refined: Vec<usize> = keys.iter().map(|key| numbers[key]).collect();
        if numbers.len() == known {
            return known;
        }
        known = numbers.len();
        class = refined;
    }
}

/// Sets of many shapes: ends of encodings, escapes, surrogates, single characters.
fn sets() -> impl Strategy<Value = CharSet> {
    let ends = vec![
        0u32, 8, 9, 0x0F, 0x10, 0x1F, 0x20, 0x22, 0x2F, 0x5B, 0x5C, 0x7F, 0x80, 0xFF, 0x100, 0x7FF,
        0x800, 0xFFF, 0x1000, 0xCFFF, 0xD000, 0xD7FF, 0xD800, 0xDFFF, 0xE000, 0xFFFF, 0x1_0000,
        0x1_03FF, 0x1_0400, 0x4_FFFF, 0x5_0000, 0xF_FFFF, 0x10_0000, 0x10_FFFE, 0x10_FFFF,
    ];
    let point = prop_oneof![proptest::sample::select(ends), 0u32..=0x10_FFFF];
    let ranges = proptest::collection::vec((point.clone(), point), 0..6);
    ranges.prop_map(|ranges| CharSet::new(ranges.into_iter().map(|(a, b)| (a.min(b), a.max(b)))))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(30))]
    #[test]
    fn characters_have_exactly_their_spellings(set in sets()) {
        for spelling in SPELLINGS {
            let automaton = encode_character(&set, spelling);
            prop_assert_eq!(classes(&automaton), automaton.states as usize, "minimal");
            let mut expected = 0;
            for &(a, b) in set.ranges() {
                for c in (a..=b).filter_map(char::from_u32) {
                    let code_point = c as u32;
                    let spellings = || spellings_of(c, spelling);
                    expected += match spelling {
                        Spelling::Utf8 => 1,
                        _ if code_point > 0x7F && spelling == Spelling::Json(JsonEscapes::Plain) => 1,
                        _ if code_point > 0x7F => {
                            let units = c.encode_utf16(&mut [0; 2]).to_vec();
                            let digits = units.iter().flat_map(|u| (0..4).map(move |i| u >> (4 * i) & 15));
                            1 + (1 << digits.filter(|&digit| digit > 9).count())
                        }
                        _ => spellings().len() as u64,
                    };
                    let is_near_an_end = code_point - a < 3 || b - code_point < 3;
                    if is_near_an_end || code_point.is_multiple_of(9973) {
                        for text in spellings() {
                            prop_assert!(reads(&automaton, text.as_bytes()), "{:?}", text);
                        }
                    }
                }
            }
            prop_assert_eq!(count(&automaton), expected);
        }
    }

}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]
    #[test]
    fn bytes_are_read_as_they_are_decoded(
        expression in expressions(&SPELLED),
        letters in proptest::collection::vec((any::<usize>(), any::<usize>()), 0..4),
        damage in proptest::option::of((any::<usize>(), any::<u8>())),
    ) {
        let budget = unbounded();
        let bounds = within(&budget);
        let dfa = expression.dfa(&bounds);
        for spelling in SPELLINGS {
            let automaton = encode(&dfa, spelling, &bounds).expect("within bounds");
            let mut bytes = Vec::new();
            for &(letter, way) in &letters {
                let ways = spellings_of(SPELLED[letter % SPELLED.len()], spelling);
                bytes.extend_from_slice(ways[way % ways.len()].as_bytes());
            }
            if let Some((place, byte)) = damage && !bytes.is_empty() {
                let place = place % bytes.len();
                bytes[place] = byte;
            }
            let expected = decode(&bytes, spelling).is_some_and(|text| dfa.accepts(&text));
            prop_assert_eq!(reads(&automaton, &bytes), expected, "{:?}", bytes);
            prop_assert_eq!(classes(&automaton), automaton.states as usize, "minimal");
        }
    }
}

#[test]
fn what_stands_behind_a_backslash_may_stand_elsewhere() {
    let budget = unbounded();
    let bounds = within(&budget);
    let dfa = Dfa::texts(["\n", "xn"], &bounds).expect("within bounds");
    let automaton =
        encode(&dfa, Spelling::Json(JsonEscapes::Plain), &bounds).expect("within bounds");
    assert_eq!((automaton.states, classes(&automaton)), (3, 3));
    assert!(reads(&automaton, b"\\n") && reads(&automaton, b"xn") && !reads(&automaton, b"n"));
}

#[test]
fn a_character_of_a_string_takes_few_states() {
    let raw = CharSet::new([(0x20, 0x21), (0x23, 0x5B), (0x5D, 0x10_FFFF)]);
    for (set, most) in [(raw, 25), (CharSet::scalar_values(), 21)] {
        let automaton = encode_character(&set, Spelling::Json(JsonEscapes::Any));
        assert!(automaton.states <= most, "{}", automaton.states);
    }
}
