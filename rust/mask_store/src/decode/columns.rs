//! How far a newline terminal that is in progress has come in its line.

use super::super::step::Stepped;
use super::decoder::Decoder;
use super::interpretation::Interpretation;
use hashbrown::HashSet;

/// The columns that a newline terminal in progress can have reached.
pub(super) fn columns(
    decoder: &mut Decoder,
    place: &Interpretation,
    way: &Stepped,
    data: &[u8],
    begun: bool,
) -> Vec<Option<u32>> {
    let tab = decoder.tab();
    if !begun {
        return vec![column(place.layout.column, data, tab)];
    }
    let starts = begins(decoder, place.state, way, data);
    let mut columns: Vec<Option<u32>> =
        starts.into_iter().map(|start| column(None, &data[start..], tab)).collect();
    columns.sort_unstable();
    columns.dedup();
    columns
}

/// The column after some bytes of a newline terminal.
fn column(before: Option<u32>, data: &[u8], tab: u32) -> Option<u32> {
    let line = data.iter().rposition(|&byte| byte == b'\n');
    let from = match line {
        Some(_) => 0,
        None => before?,
    };
    let blanks = data[line.map_or(0, |at| at + 1)..].iter().map(|byte| match byte {
        b' ' => 1,
        b'\t' => tab,
        _ => 0,
    });
    Some(blanks.fold(from, u32::saturating_add))
}

/// Where in a token the newline terminal that is in progress at its end can have begun.
fn begins(decoder: &mut Decoder, state: u32, way: &Stepped, data: &[u8]) -> Vec<usize> {
    // States of the lexer byte by byte, with where the newline terminal in progress began.
    let mut front: HashSet<(u32, Option<usize>)> = HashSet::new();
    front.insert((state, None));
    for i in 0..data.len() {
        let mut after = HashSet::new();
        for (current, start) in front {
            for step in decoder.ways(current, &data[i..=i]).iter() {
                let Some(state) = step.state else { continue };
                let began = if step.letters.is_empty() { start } else { Some(i) };
                after.insert((state, began.filter(|_| decoder.is_newline_state(state))));
            }
        }
        front = after;
    }
    let ends = front.into_iter().filter(|&(state, _)| way.state == Some(state));
    ends.filter_map(|(_, start)| start).collect()
}
