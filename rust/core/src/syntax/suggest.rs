//! "Did you mean": the defined name nearest to one that is not defined.
//!
//! Computed at most once a parse, for its first error, under a fixed budget of steps.

/// Names longer than this get no suggestion.
const LONGEST: usize = 64;
/// Table cells that one suggestion may cost.
const BUDGET: usize = 20_000_000;

/// The name nearest to `name`, the first of several, unless all are too far to be meant.
pub(super) fn nearest<'n>(name: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    if name.len() > LONGEST {
        return None;
    }
    let wanted: Vec<char> = name.chars().collect();
    let mut bound = (wanted.len() / 3).max(1);
    let mut best = None;
    let mut budget = BUDGET;
    for candidate in names {
        if candidate.len() > LONGEST || candidate.len().abs_diff(name.len()) > bound {
            continue;
        }
        budget = budget.checked_sub((name.len() + 1) * (candidate.len() + 1))?;
        let found = distance(&wanted, candidate);
        if found < bound || (found == bound && best.is_none()) {
            (bound, best) = (found, Some(candidate));
        }
    }
    best
}

/// Insertions, deletions, replacements and swaps of neighbours that turn one name into the other
/// (optimal string alignment: no place is edited twice).
fn distance(a: &[char], b: &str) -> usize {
    let width = a.len() + 1;
    let mut before: Vec<usize> = vec![0; width];
    let mut above: Vec<usize> = (0..width).collect();
    let mut previous = None;
    for (row, y) in b.chars().enumerate() {
        let mut current = vec![row + 1; width];
        for (column, &x) in a.iter().enumerate() {
            let mut least = (above[column] + usize::from(x != y))
                .min(above[column + 1] + 1)
                .min(current[column] + 1);
            if column > 0 && previous == Some(x) && a[column - 1] == y {
                least = least.min(before[column - 1] + 1);
            }
            current[column + 1] = least;
        }
        before = std::mem::replace(&mut above, current);
        previous = Some(y);
    }
    above[a.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        let of = |a: &str, b| distance(&a.chars().collect::<Vec<_>>(), b);
        assert_eq!(of("", "abc"), 3);
        assert_eq!(of("abc", ""), 3);
        assert_eq!(of("expr", "exprr"), 1);
        assert_eq!(of("stirng", "string"), 1);
        assert_eq!(of("ab", "ba"), 1);
        assert_eq!(of("kitten", "sitting"), 3);
    }

    #[test]
    fn nearest_prefers_the_first_of_equals() {
        assert_eq!(nearest("exprr", ["term", "expr", "exprs"].into_iter()), Some("expr"));
        assert_eq!(nearest("zzz", ["term", "expr"].into_iter()), None);
        assert_eq!(nearest("x", [].into_iter()), None);
    }
}
