//! The network as text, for people.

use super::Network;
use std::fmt;

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let alphabet = self.alphabet();
        writeln!(
            f,
            "{} rules, {} states, {} byte classes; start {}{}",
            self.num_rules(),
            self.len(),
            alphabet.len(),
            self.start(),
            if self.accepts_empty() { ", accepts the empty string" } else { "" }
        )?;
        for state in 0..self.len() as u32 {
            if self.rule_starts[self.rule_of(state) as usize] == state {
                writeln!(f, "rule {}", self.rule_of(state))?;
            }
            write!(f, "  {state}{}", if self.is_final(state) { " final" } else { "" })?;
            for targets in by_target(self.listed(state)) {
                write!(f, " {}->{}", bytes_of(self, &targets.1), targets.0)?;
            }
            if let Some(other) = self.fallback(state) {
                write!(f, " else as {other}")?;
            }
            for call in self.calls(state).iter() {
                write!(f, " rule {}->{}", self.rule_of(call.start), call.to)?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

fn by_target(edges: &[(u8, u32)]) -> Vec<(u32, Vec<u8>)> {
    let mut out: Vec<(u32, Vec<u8>)> = Vec::new();
    for &(class, target) in edges {
        match out.iter_mut().find(|t| t.0 == target) {
            Some(entry) => entry.1.push(class),
            None => out.push((target, vec![class])),
        }
    }
    out
}

/// The bytes of some classes as `[a-z]`.
fn bytes_of(network: &Network, classes: &[u8]) -> String {
    let mut out = String::from("[");
    let inside: Vec<bool> =
        (0..=255).map(|b| classes.contains(&network.alphabet().class(b))).collect();
    let mut b = 0;
    while b < 256 {
        if !inside[b] {
            b += 1;
            continue;
        }
        let first = b;
        while b < 256 && inside[b] {
            b += 1;
        }
        out.push_str(&std::ascii::escape_default(first as u8).to_string());
        if b - 1 > first {
            out.push('-');
            out.push_str(&std::ascii::escape_default((b - 1) as u8).to_string());
        }
    }
    out.push(']');
    if network.alphabet().escape().is_some_and(|class| classes.contains(&class)) {
        out.push_str("token");
    }
    out
}
