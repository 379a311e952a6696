//! The fewest letters of objects whose members come in any order, as completions read them
//! ([`Network::calls_to_end`]): the required members that are left, a comma before each, and the closing brace.

use super::strings::UNREACHABLE;
use crate::budget::{Halt, Meter};
use crate::network::{Call, MemberOrder, MemberPlace, MemberState, Network};

/// The fewest letters from a state to the end of its rule.
type Fewest<'f> = &'f dyn Fn(u32) -> u32;

/// What the rule of an object takes.
pub(super) struct MemberLetters {
    /// By member, each by its shortest value.
    members: Box<[u32]>,
    comma: u32,
    close: u32,
    /// The most letters of a member that is not required, or of another name.
    longest: u32,
    /// From before the first member.
    at_name: u32,
    pub(super) at_start: u32,
}

impl MemberLetters {
    /// Of a rule, as far as the letters of the rules that it calls are known.
    ///
    /// # Errors
    /// Those of the meter.
    pub(super) fn new(
        of: Fewest<'_>,
        network: &Network,
        (rule, order): (u32, &MemberOrder),
        meter: &mut Meter,
    ) -> Result<Self, Halt> {
        let (mut members, mut longest) = (vec![UNREACHABLE; order.num_members()], 0);
        let mut least = UNREACHABLE;
        for state in order.states(MemberPlace::Name) {
            let calls = network.calls(state);
            meter.spend(1 + calls.len() as u64 / 4)?;
            for call in calls.iter() {
                let taken = member(of, network, rule, call);
                least = least.min(taken);
                let added = network.adds(rule, call);
                if let Some(member) = added {
                    let known = &mut members[member as usize];
                    *known = taken.min(*known);
                }
                if added.is_none_or(|member| !order.needs(member)) {
                    longest = longest.max(taken);
                }
            }
        }
        let (mut comma, mut close) = (UNREACHABLE, UNREACHABLE);
        for state in order.states(MemberPlace::Behind) {
            for call in network.calls(state).iter() {
                let known = match order.place(call.to) {
                    MemberPlace::End => &mut close,
                    _ => &mut comma,
                };
                *known = callee(of, network, call).min(*known);
            }
        }
        let members = members.into();
        let mut out = Self { members, comma, close, longest, at_name: 0, at_start: UNREACHABLE };
        out.at_name = match order.left(&order.nothing()).next() {
            Some(_) => out.rest(order, &order.nothing(), true),
            None => add([least, close]),
        };
        for call in network.calls(order.start).iter() {
            let behind = if order.place(call.to) == MemberPlace::End { 0 } else { out.at_name };
            out.at_start = add([callee(of, network, call), behind]).min(out.at_start);
        }
        Ok(out)
    }

    /// The required members that are left, with the closing brace; before a name the first has no comma.
    fn rest(&self, order: &MemberOrder, read: &[u64], is_at_name: bool) -> u32 {
        let mut sum = u64::from(self.close);
        let mut is_at_name = is_at_name;
        for member in order.left(read) {
            let comma = if std::mem::take(&mut is_at_name) { 0 } else { self.comma };
            sum += u64::from(self.members[member as usize]) + u64::from(comma);
        }
        sum.min(UNREACHABLE.into()) as u32
    }

    /// The fewest letters from a state.
    pub(super) fn of(
        &self,
        of: Fewest<'_>,
        network: &Network,
        state: u32,
        MemberState { rule, order, listed, read }: MemberState<'_>,
    ) -> u32 {
        match order.place(listed) {
            MemberPlace::Start => self.at_start,
            MemberPlace::Name if order.left(read).next().is_some() => self.rest(order, read, true),
            MemberPlace::Name => {
                let calls = network.calls(state);
                let least = calls.iter().map(|call| member(of, network, rule, call)).min();
                add([least.unwrap_or(UNREACHABLE), self.close])
            }
            MemberPlace::Between => {
                add([entry(of, network, listed), self.rest(order, read, false)])
            }
            MemberPlace::Behind => self.rest(order, read, false),
            MemberPlace::End => 0,
        }
    }

    /// What a call of a state of the tables adds to what is needed, at most, whatever was read: what the called
    /// rule has taken, and what is needed behind it, less what was needed before. `None` where nobody knows a bound.
    pub(super) fn raised(
        &self,
        of: Fewest<'_>,
        network: &Network,
        (rule, order): (u32, &MemberOrder),
        (state, call, taken): (u32, &Call, u32),
    ) -> Option<i64> {
        let comma = if order.left(&order.nothing()).next().is_some() { self.comma } else { 0 };
        let (more, less) = match (order.place(state), order.place(call.to)) {
            (MemberPlace::Start, MemberPlace::End) => (0, self.at_start),
            (MemberPlace::Start, _) => (self.at_name, self.at_start),
            (MemberPlace::Name, MemberPlace::Between) => {
                (add([entry(of, network, call.to), comma]), 0)
            }
            (MemberPlace::Name, _) => match network.adds(rule, call) {
                Some(member) if order.needs(member) => (0, self.members[member as usize]),
                _ => (comma, 0),
            },
            (MemberPlace::Between, _) => (0, entry(of, network, state)),
            (MemberPlace::Behind, MemberPlace::End) => (0, self.close),
            // Nothing is required any more, and yet a member has to come.
            (MemberPlace::Behind, _) => (self.longest, 0),
            (MemberPlace::End, _) => return None,
        };
        let is_known = [taken, more, less].iter().all(|&letters| letters < UNREACHABLE);
        is_known.then(|| i64::from(taken) + i64::from(more) - i64::from(less))
    }

    /// Bytes held.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.members)
    }
}

fn add(parts: [u32; 2]) -> u32 {
    parts[0].saturating_add(parts[1]).min(UNREACHABLE)
}

/// What a called rule takes.
fn callee(of: Fewest<'_>, network: &Network, call: &Call) -> u32 {
    of(network.unguarded(call.start))
}

/// What a member takes, or another name with what follows it.
fn member(of: Fewest<'_>, network: &Network, rule: u32, call: &Call) -> u32 {
    let taken = callee(of, network, call);
    match network.adds(rule, call) {
        Some(_) => taken,
        None => add([taken, entry(of, network, call.to)]),
    }
}

/// What follows another name.
fn entry(of: Fewest<'_>, network: &Network, state: u32) -> u32 {
    let calls = network.calls(state);
    calls.iter().map(|call| callee(of, network, call)).min().unwrap_or(UNREACHABLE)
}
