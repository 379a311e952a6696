//! The beginning of a JSON text: which arrays and objects are open, what they hold, and what is due.
//!
//! The grammar has read the text, so it is JSON as far as it goes. What is read here is kept as places
//! in the text; values are only looked into where an explanation needs them.

use std::ops::Range;

/// A member of an object that was read: its name, with the quotation marks, and its value.
pub(super) struct MemberSpan {
    pub(super) name: Range<usize>,
    pub(super) value: Range<usize>,
}

/// An array or an object that is open.
pub(super) struct OpenValue {
    start: usize,
    pub(super) inside: Inside,
}

/// What was read of it.
pub(super) enum Inside {
    /// Members, and the name of the one whose value is due.
    Object(Vec<MemberSpan>, Option<Range<usize>>),
    Array(Vec<Range<usize>>),
}

/// What is due at the end of the beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Spot {
    /// A value, of which what follows `start` was read. `is_first`: of an array, which may end instead.
    Value { start: usize, is_first: bool },
    /// A name, likewise; `start` is the place of its quotation mark.
    Name { start: Option<usize>, is_first: bool },
    /// A colon.
    Colon,
    /// What follows a member, an item, or the whole value.
    Behind,
}

/// The beginning of a text.
pub(super) struct Scan {
    pub(super) levels: Vec<OpenValue>,
    pub(super) spot: Spot,
}

/// Whether a byte is white space of JSON.
pub(super) fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

/// Whether a byte may stand in a number.
pub(super) fn is_numeric(byte: u8) -> bool {
    byte.is_ascii_digit() || matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E')
}

/// Whether a number is zero with a sign, which is written without one: behind it the grammar waits for another digit.
pub(super) fn is_negative_zero(number: &[u8]) -> bool {
    let mut digits = number.iter().take_while(|byte| !matches!(byte, b'e' | b'E'));
    digits.next() == Some(&b'-') && digits.all(|byte| matches!(byte, b'0' | b'.'))
}

/// Where a scalar ends that begins at a place; `None` where it goes on behind the text.
pub(super) fn end_of_scalar(text: &[u8], start: usize) -> Option<usize> {
    match text.get(start)? {
        b'"' => {
            let mut at = start + 1;
            loop {
                match text.get(at)? {
                    b'"' => return Some(at + 1),
                    b'\\' => at += 2,
                    _ => at += 1,
                }
            }
        }
        &byte if is_numeric(byte) => {
            let length = text[start..].iter().position(|&byte| !is_numeric(byte))?;
            Some(start + length)
        }
        letter => {
            let word: &[u8] = match letter {
                b't' => b"true",
                b'f' => b"false",
                _ => b"null",
            };
            text[start..].starts_with(word).then_some(start + word.len())
        }
    }
}

impl Scan {
    /// Reads the beginning of a text; `None` where it is none of JSON.
    pub(super) fn of(text: &[u8]) -> Option<Self> {
        let mut out = Scan { levels: Vec::new(), spot: Spot::Value { start: 0, is_first: false } };
        let mut at = 0;
        while at < text.len() {
            let byte = text[at];
            if is_blank(byte) {
                at += 1;
                continue;
            }
            match out.spot {
                Spot::Value { is_first, .. } => match byte {
                    b'{' => {
                        out.open(at, Inside::Object(Vec::new(), None));
                        out.spot = Spot::Name { start: None, is_first: true };
                    }
                    b'[' => {
                        out.open(at, Inside::Array(Vec::new()));
                        out.spot = Spot::Value { start: 0, is_first: true };
                    }
                    b']' if is_first => out.close(at)?,
                    _ => {
                        let Some(end) = end_of_scalar(text, at) else {
                            out.spot = Spot::Value { start: at, is_first };
                            return Some(out);
                        };
                        out.done(at..end)?;
                        at = end - 1;
                    }
                },
                Spot::Name { is_first, .. } => match byte {
                    b'}' if is_first => out.close(at)?,
                    b'"' => {
                        let Some(end) = end_of_scalar(text, at) else {
                            out.spot = Spot::Name { start: Some(at), is_first };
                            return Some(out);
                        };
                        let Inside::Object(_, name) = &mut out.levels.last_mut()?.inside else {
                            return None;
                        };
                        *name = Some(at..end);
                        out.spot = Spot::Colon;
                        at = end - 1;
                    }
                    _ => return None,
                },
                Spot::Colon if byte == b':' => {
                    out.spot = Spot::Value { start: 0, is_first: false };
                }
                Spot::Colon => return None,
                Spot::Behind => match byte {
                    b',' => {
                        out.spot = match out.levels.last()?.inside {
                            Inside::Object(..) => Spot::Name { start: None, is_first: false },
                            Inside::Array(_) => Spot::Value { start: 0, is_first: false },
                        };
                    }
                    b'}' | b']' => out.close(at)?,
                    _ => return None,
                },
            }
            at += 1;
        }
        if let Spot::Value { start, .. } = &mut out.spot {
            *start = text.len();
        }
        Some(out)
    }

    fn open(&mut self, start: usize, inside: Inside) {
        self.levels.push(OpenValue { start, inside });
    }

    fn close(&mut self, at: usize) -> Option<()> {
        let level = self.levels.pop()?;
        self.done(level.start..at + 1)
    }

    /// A value was read.
    pub(super) fn done(&mut self, value: Range<usize>) -> Option<()> {
        self.spot = Spot::Behind;
        match self.levels.last_mut().map(|level| &mut level.inside) {
            None => {}
            Some(Inside::Array(items)) => items.push(value),
            Some(Inside::Object(members, name)) => {
                members.push(MemberSpan { name: name.take()?, value });
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Inside, Scan};

    fn shown(text: &str) -> String {
        let Some(scan) = Scan::of(text.as_bytes()) else { return "none".into() };
        let levels = scan.levels.iter().map(|level| match &level.inside {
            Inside::Object(members, name) => {
                let members = members.iter();
                let members = members.map(|m| [&text[m.name.clone()], &text[m.value.clone()]]);
                format!("{:?} {:?}", members.collect::<Vec<_>>(), name.clone().map(|n| &text[n]))
            }
            Inside::Array(items) => {
                format!("{:?}", items.iter().map(|item| &text[item.clone()]).collect::<Vec<_>>())
            }
        });
        format!("{} | {:?}", levels.collect::<Vec<_>>().join("; "), scan.spot)
    }

    #[test]
    fn the_beginning_of_a_text_is_scanned() {
        assert_eq!(shown(""), " | Value { start: 0, is_first: false }");
        assert_eq!(shown("12"), " | Value { start: 0, is_first: false }");
        assert_eq!(shown("12 "), " | Behind");
        assert_eq!(shown("[ "), "[] | Value { start: 2, is_first: true }");
        assert_eq!(
            shown(r#"{"a": [1, {"b" :null}], "c"#),
            r#"[["\"a\"", "[1, {\"b\" :null}]"]] None | Name { start: Some(24), is_first: false }"#
        );
        assert_eq!(shown(r#"{"\"" "#), r#"[] Some("\"\\\"\"") | Colon"#);
        assert_eq!(
            shown(r#"{"a": tr"#),
            r#"[] Some("\"a\"") | Value { start: 6, is_first: false }"#
        );
        assert_eq!(shown("[1}x"), "none");
        assert_eq!(shown("{]"), "none");
    }

    #[test]
    fn no_text_is_a_panic() {
        let bytes = br#"{}[],:"a\1e-tfn "#;
        for first in bytes {
            for second in bytes {
                for third in bytes {
                    for fourth in bytes {
                        let _ = Scan::of(&[*first, *second, *third, *fourth]);
                    }
                }
            }
        }
    }
}
