//! Patterns between slashes, as programs in JavaScript and PHP write them.

use super::error::PatternError;

/// Refuses a pattern within delimiters whose anchors say that these are none of its characters:
/// `/^abc$/i` matches nothing.
pub(super) fn check_delimiters(text: &[char]) -> Result<(), PatternError> {
    let Some((&first, rest)) = text.split_first() else { return Ok(()) };
    if !"/#~@%!".contains(first) {
        return Ok(());
    }
    let Some(end) = rest.iter().rposition(|&here| here == first) else { return Ok(()) };
    let (inner, flags) = (&rest[..end], &rest[end + 1..]);
    if !flags.iter().all(|flag| "ADSUXdgimnsuvxy".contains(*flag)) {
        return Ok(());
    }
    let ends = match inner.split_last() {
        Some(('$', before)) => {
            before.iter().rev().take_while(|&&here| here == '\\').count() % 2 == 0
        }
        _ => false,
    };
    let starts = inner.first() == Some(&'^');
    if !(starts && ends || (starts || ends) && !has_alternatives(inner)) {
        return Ok(());
    }
    const LONGEST: usize = 60;
    let advice = if inner.len() > LONGEST {
        "write the pattern without them".to_owned()
    } else {
        let kept: String = flags.iter().filter(|flag| "imsx".contains(**flag)).collect();
        let kept = if kept.is_empty() { kept } else { format!("(?{kept})") };
        format!("write `{kept}{}`", inner.iter().collect::<String>())
    };
    let message = format!(
        "`{first}` around a pattern is how programs in JavaScript or PHP write it; here it is a \
         character, and none stands before the start of a text or behind its end; {advice}"
    );
    Err(PatternError::unsupported("delimiters", message, 0))
}

/// Whether a `|` stands outside of groups and classes.
fn has_alternatives(text: &[char]) -> bool {
    let (mut depth, mut in_class, mut at) = (0usize, false, 0);
    while let Some(&here) = text.get(at) {
        match here {
            '\\' => at += 1,
            '[' => in_class = true,
            ']' => in_class = false,
            '(' if !in_class => depth += 1,
            ')' if !in_class => depth = depth.saturating_sub(1),
            '|' if !in_class && depth == 0 => return true,
            _ => {}
        }
        at += 1;
    }
    false
}
