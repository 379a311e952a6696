//! The texts of a language: the shortest, or all.

use super::alphabet::REST;
use super::dfa::Dfa;
use super::table::DEAD;

impl Dfa {
    /// The shortest text, and of several the first in the order of code points.
    pub fn shortest(&self) -> Option<String> {
        // States are numbered in breadth-first order but for the order of classes, so each state's
        // distance to an end is found from the ends on.
        let distance = self.distances();
        if distance[0] == u32::MAX {
            return None;
        }
        let mut text = String::new();
        let mut state = 0;
        while distance[state as usize] > 0 {
            let closer = |to: u32| to != DEAD && distance[to as usize] < distance[state as usize];
            let mut best: Option<(u32, u32)> = None;
            let default = self.default(state);
            let mut consider = |first: u32, to: u32| {
                if best.is_none_or(|best| first < best.0) {
                    best = Some((first, to));
                }
            };
            for &(class, to) in self.row(state).iter().filter(|edge| closer(edge.1)) {
                consider(self.class_ranges().of(class)[0].0, to);
            }
            if closer(default) {
                let named = self.row(state);
                let is_named = |class: &u32| named.binary_search_by_key(class, |e| e.0).is_ok();
                let first = (REST..self.alphabet().len())
                    .filter(|class| !is_named(class))
                    .map(|class| self.class_ranges().of(class)[0].0);
                first.min().into_iter().for_each(|first| consider(first, default));
            }
            let (first, to) = best?;
            text.push(char::from_u32(first)?);
            state = to;
        }
        Some(text)
    }

    /// How many characters are missing at least from each state to a final one.
    fn distances(&self) -> Vec<u32> {
        let states = self.num_states();
        let mut starts = vec![0u32; states + 1];
        let targets = |q: u32| {
            let row = self.row(q).iter().map(|edge| edge.1);
            row.chain([self.default(q)]).filter(|&to| to != DEAD)
        };
        for q in 0..self.len() {
            targets(q).for_each(|to| starts[to as usize + 1] += 1);
        }
        for q in 0..states {
            starts[q + 1] += starts[q];
        }
        let mut sources = vec![0; starts[states] as usize];
        let mut fill = starts.clone();
        for q in 0..self.len() {
            for to in targets(q) {
                sources[fill[to as usize] as usize] = q;
                fill[to as usize] += 1;
            }
        }
        let mut distance = vec![u32::MAX; states];
        let mut queue: Vec<u32> = (0..self.len()).filter(|&q| self.is_final(q)).collect();
        queue.iter().for_each(|&q| distance[q as usize] = 0);
        let mut next = 0;
        while let Some(&q) = queue.get(next) {
            next += 1;
            for &p in &sources[starts[q as usize] as usize..starts[q as usize + 1] as usize] {
                if distance[p as usize] == u32::MAX {
                    distance[p as usize] = distance[q as usize] + 1;
                    queue.push(p);
                }
            }
        }
        distance
    }

    /// The number of texts, or `u64::MAX` where it is greater; `None` where they are infinitely many.
    pub fn count(&self) -> Option<u64> {
        if self.is_empty() {
            return Some(0);
        }
        // Each state after those to which it leads, by an explicit stack.
        let states = self.num_states();
        let mut open = vec![0u8; states];
        let mut counts = vec![0u64; states];
        let mut stack = vec![(0u32, 0usize)];
        open[0] = 1;
        while let Some((q, place)) = stack.last_mut() {
            let q = *q;
            let row = self.row(q);
            let to = match *place {
                place if place < row.len() => row[place].1,
                place if place == row.len() => self.default(q),
                _ => {
                    let mut count = u64::from(self.is_final(q));
                    let mut others: u64 = self.size_of(None);
                    for &(class, to) in row {
                        let size = self.size_of(Some(class));
                        others -= size;
                        if to != DEAD {
                            count = count.saturating_add(size.saturating_mul(counts[to as usize]));
                        }
                    }
                    if let Some(&of_default) = counts.get(self.default(q) as usize) {
                        count = count.saturating_add(others.saturating_mul(of_default));
                    }
                    counts[q as usize] = count;
                    open[q as usize] = 2;
                    stack.pop();
                    continue;
                }
            };
            *place += 1;
            if to == DEAD {
                continue;
            }
            match open[to as usize] {
                0 => {
                    open[to as usize] = 1;
                    stack.push((to, 0));
                }
                // A way back: every state is on a way to an end, so it can be gone at will.
                1 => return None,
                _ => {}
            }
        }
        Some(counts[0])
    }

    /// The number of code points of a class, or of all.
    fn size_of(&self, class: Option<u32>) -> u64 {
        match class {
            None => 0x11_0000 - 0x800,
            Some(class) => {
                let ranges = self.class_ranges().of(class);
                ranges.iter().map(|&(a, b)| u64::from(b - a + 1)).sum()
            }
        }
    }

    /// All texts in order, where they are no more than `most`.
    pub fn strings(&self, most: usize) -> Option<Vec<String>> {
        let count = usize::try_from(self.count()?).ok().filter(|&count| count <= most)?;
        let mut out = Vec::with_capacity(count);
        if count == 0 {
            return Some(out);
        }
        let mut text = String::new();
        // For each character of the text what its state reads yet.
        let mut stack = vec![self.characters(0)];
        if self.is_final(0) {
            out.push(String::new());
        }
        while let Some(rest) = stack.last_mut() {
            let Some((c, to)) = rest.next() else {
                stack.pop();
                text.pop();
                continue;
            };
            text.push(c);
            if self.is_final(to) {
                out.push(text.clone());
            }
            stack.push(self.characters(to));
        }
        Some(out)
    }

    /// The characters that a state reads, in order, and where they lead.
    fn characters(&self, state: u32) -> impl Iterator<Item = (char, u32)> + use<> {
        let ranges = self.ranges(state).into_iter();
        ranges.flat_map(|(a, b, to)| (a..=b).filter_map(char::from_u32).map(move |c| (c, to)))
    }
}
