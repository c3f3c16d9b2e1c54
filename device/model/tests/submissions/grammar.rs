//! What holds whatever the delays are.

use execlab_abi::irq;
use execlab_profile::Profile;

use crate::drive::{Run, Seen, Submission};
use crate::program::Step;
use crate::support::Random;

/// A profile with a random spread at each point.
pub fn profile(random: &mut Random) -> Profile {
    let points = [
        "elsp.accept",
        "context.restore",
        "context.save",
        "arbitration",
        "command.execute",
        "csb.visible",
        "irq.deliver",
        "seqno.visible",
    ];
    let mut text = String::from("name = \"random\"\n[delay]\n");
    for point in points {
        let most = random.below(6_000);
        text += &match random.below(3) {
            0 => String::new(),
            1 => format!("\"{point}\" = \"{most}ns\"\n"),
            _ => format!("\"{point}\" = {{ uniform = [\"0ns\", \"{most}ns\"] }}\n"),
        };
    }
    Profile::parse(&text, "random").expect("a profile of uniform delays")
}

/// Checks a run; says what is broken.
pub fn check(run: &Run) -> Result<(), String> {
    let events: Vec<(u32, u32)> = run
        .visible
        .iter()
        .filter_map(|(_, seen)| match seen {
            Seen::Event { status, context } => Some((*status, *context)),
            _ => None,
        })
        .collect();
    explained(&events, &run.history)?;
    indices(&run.indices)?;
    if !run.visible.is_sorted_by_key(|(time, _)| *time) {
        return Err("time goes back".into());
    }
    seqnos(run)?;
    interrupts(run)
}

/// Every event has a cause, and every accepted context leaves exactly once: the events are those of the lists in
/// order, where a list ends by itself or is replaced by the next one.
fn explained(events: &[(u32, u32)], history: &[Submission]) -> Result<(), String> {
    let mut rest = events;
    let mut take = |wanted: &[(u32, u32)]| {
        let found = rest.starts_with(wanted);
        if found {
            rest = &rest[wanted.len()..];
        }
        found
    };
    let id = |context: usize| context as u32 + 1;
    let mut idle = true;
    for (k, Submission { first, second, .. }) in history.iter().enumerate() {
        if idle && !take(&[(0x1, 0)]) {
            return Err(format!("submission {k} was not acknowledged by idle→active"));
        }
        let mut on = *first;
        if let Some(second) = second
            && take(&[(0x14, id(*first))])
        {
            on = *second;
        }
        let last = second.unwrap_or(*first) == on;
        let next = history.get(k + 1);
        idle = false;
        let lite = next.is_some_and(|next| next.first == on) && take(&[(0x8002, id(on))]);
        if lite || (next.is_some() && take(&[(0x2, id(on))])) {
            continue;
        }
        if !(last && take(&[(0x18, id(on))])) {
            return Err(format!("context {on} of submission {k} neither completed nor was preempted"));
        }
        idle = true;
    }
    if rest.is_empty() { Ok(()) } else { Err(format!("events without a cause: {rest:?}")) }
}

/// The index moves by one, with wrap, from whatever it was.
fn indices(indices: &[u32]) -> Result<(), String> {
    let follows = |pair: &[u32]| pair[1] == if pair[0] >= 5 { 0 } else { pair[0] + 1 };
    if indices.windows(2).all(follows) { Ok(()) } else { Err(format!("the index skips: {indices:?}")) }
}

/// A context's seqnos become visible in order, each once. Those that never do belong to a context that was left
/// behind, and then no later one does either.
fn seqnos(run: &Run) -> Result<(), String> {
    for context in 0..crate::drive::CONTEXTS {
        let asked: Vec<u32> = run
            .appended
            .iter()
            .filter(|append| append.context == context)
            .flat_map(|append| &append.steps)
            .filter_map(|step| if let Step::Store(value) = step { Some(*value) } else { None })
            .collect();
        let seen: Vec<u32> = run
            .visible
            .iter()
            .filter_map(|(_, seen)| match seen {
                Seen::Seqno { context: c, value } if *c == context => Some(*value),
                _ => None,
            })
            .collect();
        if !asked.starts_with(&seen) {
            return Err(format!("context {context}: asked {asked:?}, seen {seen:?}"));
        }
    }
    Ok(())
}

/// At no time have more interrupts arrived than what raises them had become visible, and none is missing at the end
/// but those that an earlier one took along.
fn interrupts(run: &Run) -> Result<(), String> {
    let (mut seqnos, mut users, mut events, mut switches) = (0, 0, 0, 0);
    for (time, seen) in &run.visible {
        match seen {
            Seen::Seqno { .. } => seqnos += 1,
            Seen::Event { .. } => events += 1,
            Seen::Interrupt(bits) => {
                users += u32::from(bits & irq::USER != 0);
                switches += u32::from(bits & irq::CONTEXT_SWITCH != 0);
            }
        }
        if users > seqnos || switches > events {
            return Err(format!("an interrupt at {time} came before what it announces"));
        }
    }
    let last = run.visible.iter().rev().find_map(|(_, seen)| match seen {
        Seen::Interrupt(bits) => Some(bits & irq::CONTEXT_SWITCH != 0),
        Seen::Event { .. } => Some(false),
        Seen::Seqno { .. } => None,
    });
    if last == Some(true) { Ok(()) } else { Err("the last event has no interrupt behind it".into()) }
}
