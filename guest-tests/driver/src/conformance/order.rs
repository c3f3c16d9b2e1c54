//! Requests in their order.

use alloc::format;
use alloc::vec::Vec;

use super::{Bench, Failure, Outcome, wrong_unless};
use crate::bus::Bus;
use crate::kernel::Kernel;
use crate::{Batch, Context, RequestSpec, SubmitError};

/// Numerical Recipes' generator: the cases need no better, and it is the same in every world.
struct Random(u32);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.0 >> 16) as usize % n
    }
}

/// Twelve contexts over all engines and three priorities; whenever one is looked at, its seqno has not gone back and
/// no request is complete that was not submitted.
pub(super) fn thousand<K: Kernel, B: Bus>(bench: &Bench<K, B>) -> Outcome {
    let batch = bench.driver.batch_create(0)?;
    let mut contexts = Vec::new();
    for (n, priority) in (0..12).zip([-1, 0, 1].into_iter().cycle()) {
        let mut context = bench.context(bench.engines[n % bench.engines.len()])?;
        context.set_priority(priority).map_err(|error| Failure::Wrong(format!("{error}")))?;
        let fresh = context.completed_seqno();
        contexts.push((context, fresh));
    }
    let mut random = Random(12345);
    for _ in 0..1000 {
        let which = random.below(contexts.len());
        let batch = (random.below(2) == 0).then_some(batch.address());
        bench.submit(&mut contexts[which].0, RequestSpec { batch })?;
        if random.below(5) == 0 {
            bench.driver.kernel().sleep_until(bench.now() + 1_000);
        }
        for (context, seen) in &mut contexts {
            let reached = context.completed_seqno();
            let (low, high) = (*seen, context.last_seqno());
            // Over the wrap: no further from the last one seen than what was submitted last.
            wrong_unless(reached.wrapping_sub(low) <= high.wrapping_sub(low), || {
                format!("seqno {reached} is none of {low} to {high}")
            })?;
            *seen = reached;
        }
    }
    let mut contexts: Vec<_> = contexts.into_iter().map(|(context, _)| context).collect();
    bench.drain(&mut contexts)?;
    for context in &contexts {
        let (reached, last) = (context.completed_seqno(), context.last_seqno());
        wrong_unless(reached == last, || format!("seqno {reached} after all, not {last}"))?;
    }
    let seen = bench.driver.counters();
    wrong_unless(seen.submissions == 1000, || format!("{} submissions", seen.submissions))
}

pub(super) fn priority<K: Kernel, B: Bus>(bench: &Bench<K, B>) -> Outcome {
    // Whoever waits is woken late, by a CPU that sleeps deeply or is busy: the request that must come last is longer
    // than that.
    let (short, long) = (bench.driver.batch_create(50_000)?, bench.driver.batch_create(20_000_000)?);
    let of = |batch: &Batch<B::Dma>| RequestSpec { batch: Some(batch.address()) };
    let context = |priority| -> Result<Context<B::Dma>, Failure> {
        let mut context = bench.context(bench.first_engine())?;
        context.set_priority(priority).map_err(|error| Failure::Wrong(format!("{error}")))?;
        Ok(context)
    };
    let (mut first, mut low, mut high) = (context(0)?, context(-5)?, context(5)?);
    // The first is on its way to the hardware for a while, so the others meet in the queue.
    bench.submit(&mut first, of(&short))?;
    let seqno_low = bench.submit(&mut low, of(&long))?;
    let seqno_high = bench.submit(&mut high, of(&short))?;
    bench.wait(&high, seqno_high)?;
    let overtaken = !low.is_complete(seqno_low);
    bench.wait(&low, seqno_low)?;
    wrong_unless(overtaken, || "the request of low priority was complete first".into())
}

pub(super) fn busy<K: Kernel, B: Bus>(bench: &Bench<K, B>) -> Outcome {
    let mut context = bench.context(bench.first_engine())?;
    let seqno = bench.submit(&mut context, RequestSpec::default())?;
    let refused = context.set_priority(1);
    bench.wait(&context, seqno)?;
    wrong_unless(refused == Err(SubmitError::Busy), || format!("in flight: {refused:?}"))?;
    let taken = context.set_priority(1);
    wrong_unless(taken.is_ok(), || format!("complete: {taken:?}"))
}
