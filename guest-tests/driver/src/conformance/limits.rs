//! Full rings, stuck engines, late events.

use alloc::format;

use super::{Bench, Failure, Outcome, wrong_unless};
use crate::bus::Bus;
use crate::kernel::Kernel;
use crate::{Context, DriverError, RequestSpec, SubmitError, WaitError};

/// How long a wait for a stuck engine may take.
const SHORT_NS: u64 = 20_000_000;
/// By how much a wait may overrun on a busy machine.
const SLACK_NS: u64 = 2_000_000_000;

/// Submits until the ring is full; how many that were.
fn fill<K: Kernel, B: Bus>(bench: &Bench<K, B>, context: &mut Context<B::Dma>) -> Result<usize, Failure> {
    for count in 0..4096 / crate::request::MIN_BYTES {
        match bench.driver.submit(context, RequestSpec::default()) {
            Ok(_) => {}
            Err(SubmitError::RingFull) => return Ok(count),
            Err(error @ SubmitError::Busy) => return Err(Failure::Wrong(format!("{error}"))),
        }
    }
    Err(Failure::Wrong("a ring of one page takes more than a page of requests".into()))
}

pub(super) fn full<K: Kernel, B: Bus>(bench: &Bench<K, B>) -> Outcome {
    for engine in &bench.engines {
        let mut context = bench.context(*engine)?;
        let before = bench.driver.counters().elsp_writes;
        let count = fill(bench, &mut context)?;
        let writes = bench.driver.counters().elsp_writes - before;
        wrong_unless(writes == 1, || format!("{writes} ELSP writes before the first was answered"))?;
        // 32 or 40 bytes each, and the last qword is never used.
        wrong_unless((102..=127).contains(&count), || format!("{count} requests fill a ring of one page"))?;
        wrong_unless(context.in_flight() == count, || format!("{} in flight", context.in_flight()))?;
        bench.drain(core::slice::from_mut(&mut context))?;
        let seqno = bench.submit(&mut context, RequestSpec::default())?;
        bench.wait(&context, seqno)?;
    }
    Ok(())
}

pub(super) fn waits<K: Kernel, B: Bus>(bench: &Bench<K, B>) -> Outcome {
    let mut context = bench.context(bench.first_engine())?;
    for _ in 0..500 {
        bench.driver.submit_waiting(&mut context, RequestSpec::default(), bench.deadline())?;
    }
    bench.wait(&context, context.last_seqno())?;
    let submitted = bench.driver.counters().submissions;
    wrong_unless(submitted == 500, || format!("{submitted} requests"))
}

pub(super) fn room_times_out<K: Kernel, B: Bus>(bench: &Bench<K, B>) -> Outcome {
    let mut context = bench.context(bench.first_engine())?;
    let count = fill(bench, &mut context)?;
    let deadline = bench.now() + SHORT_NS;
    let result = bench.driver.submit_waiting(&mut context, RequestSpec::default(), deadline);
    timed_out(bench, result.map(drop), deadline)?;
    wrong_unless(context.in_flight() == count, || format!("{} of {count} in flight", context.in_flight()))
}

pub(super) fn wait_times_out<K: Kernel, B: Bus>(bench: &Bench<K, B>) -> Outcome {
    let mut context = bench.context(bench.first_engine())?;
    let seqno = bench.submit(&mut context, RequestSpec::default())?;
    let deadline = bench.now() + SHORT_NS;
    timed_out(bench, bench.driver.wait(&context, seqno, deadline), deadline)?;
    // And after a time-out the next wait is as good as any.
    bench.wait(&context, seqno)
}

fn timed_out<K: Kernel, B: Bus>(
    bench: &Bench<K, B>,
    result: Result<(), WaitError>,
    deadline: u64,
) -> Outcome {
    let now = bench.now();
    let incomplete = |seqno: u32, reached: u32| seqno.wrapping_sub(reached) as i32 > 0;
    let as_it_should =
        matches!(result, Err(WaitError::TimedOut { seqno, reached }) if incomplete(seqno, reached));
    wrong_unless(as_it_should, || format!("{result:?}"))?;
    wrong_unless((deadline..deadline + SLACK_NS).contains(&now), || {
        format!("ended at {now}, the deadline was {deadline}")
    })
}

pub(super) fn late_csb<K: Kernel, B: Bus>(bench: &Bench<K, B>) -> Outcome {
    let mut context = bench.context(bench.first_engine())?;
    for _ in 0..40 {
        bench.submit(&mut context, RequestSpec::default())?;
        bench.until("the driver is idle", || bench.driver.is_idle())?;
        // Until the entries that came late have come: a ring of six that is read ahead of them mixes old and new.
        bench.driver.kernel().sleep_until(bench.now() + 100_000);
    }
    let seen = bench.driver.counters();
    wrong_unless(seen.csb_mmio_entries > 0, || format!("no entry was that late: {seen:?}"))
}

pub(super) fn ring_size<K: Kernel, B: Bus>(bench: &Bench<K, B>) -> Outcome {
    for pages in [0, 513] {
        let refused = bench.driver.context_create(bench.first_engine(), pages).err();
        wrong_unless(matches!(refused, Some(DriverError::RingSize { .. })), || {
            format!("{pages}: {refused:?}")
        })?;
    }
    Ok(())
}
