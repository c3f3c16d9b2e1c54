//! The counters as JSON.

use serde_json::{Map, Value, json};

use crate::world::World;

/// The answer to [`execlab_abi::wire::Op::Statistics`]: `model` (the model's counters by name), `door`, `lateness`
/// (`count`, `p50_ns`, `p99_ns`, `max_ns` over all deadlines of this guest), `wait`, `profile`, `seed`,
/// `dilation`, `time_ns`.
#[must_use]
pub fn json(world: &World) -> String {
    let model: Map<String, Value> =
        world.gpu().stats().iter().map(|(name, count)| (name.to_owned(), count.into())).collect();
    let lateness = world.lateness().summary();
    let door = world.counters;
    let settings = world.settings();
    json!({
        "model": model,
        "door": {
            "posted_chains": door.posted_chains,
            "control_requests": door.control_requests,
            "interrupts_delivered": door.interrupts_delivered,
            "interrupts_waited": door.interrupts_waited,
            "malformed_chains": door.malformed_chains,
        },
        "lateness": {
            "count": lateness.count,
            "p50_ns": lateness.p50,
            "p99_ns": lateness.p99,
            "max_ns": lateness.max,
        },
        "wait": settings.wait.name(),
        "profile": world.profile().name,
        "seed": settings.seed,
        "dilation": settings.dilation,
        "time_ns": world.now(),
    })
    .to_string()
}
