//! How far a newline terminal that is in progress has come in its line.

use super::super::step::Stepped;
use super::decoder::Decoder;
use super::interpretation::Interpretation;

/// The columns that a newline terminal in progress can have reached.
pub(super) fn columns(
    decoder: &Decoder,
    place: &Interpretation,
    way: &Stepped,
    data: &[u8],
    begun: bool,
) -> Vec<Option<u32>> {
    let tab = decoder.tab();
    if !begun {
        return vec![column(place.layout.column, data, tab)];
    }
    decoder.columns(place.state, data, way)
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
