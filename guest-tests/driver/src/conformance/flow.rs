//! Requests that go through.

use alloc::format;

use super::{Bench, Outcome, wrong_unless};
use crate::RequestSpec;
use crate::bus::Bus;
use crate::kernel::Kernel;

pub(super) fn single<K: Kernel, B: Bus>(bench: &Bench<K, B>) -> Outcome {
    for engine in &bench.engines {
        let mut context = bench.context(*engine)?;
        let seqno = bench.submit(&mut context, RequestSpec::default())?;
        bench.wait(&context, seqno)?;
        let retired = context.retire();
        wrong_unless(retired == 1, || format!("{}: {retired} requests retired, not 1", engine.name()))?;
    }
    Ok(())
}

pub(super) fn batch<K: Kernel, B: Bus>(bench: &Bench<K, B>) -> Outcome {
    let batch = bench.driver.batch_create(0)?;
    for engine in &bench.engines {
        let mut context = bench.context(*engine)?;
        for _ in 0..3 {
            let seqno = bench.submit(&mut context, RequestSpec { batch: Some(batch.address()) })?;
            bench.wait(&context, seqno)?;
        }
    }
    Ok(())
}

pub(super) fn batch_length<K: Kernel, B: Bus>(bench: &Bench<K, B>) -> Outcome {
    const BUSY_NS: u32 = 30_000;
    let batch = bench.driver.batch_create(BUSY_NS)?;
    let mut context = bench.context(bench.first_engine())?;
    let start = bench.now();
    let seqno = bench.submit(&mut context, RequestSpec { batch: Some(batch.address()) })?;
    bench.wait(&context, seqno)?;
    let took = bench.now() - start;
    wrong_unless(took >= u64::from(BUSY_NS), || format!("complete after {took} ns"))
}

pub(super) fn flood<K: Kernel, B: Bus>(bench: &Bench<K, B>) -> Outcome {
    // Longer than a submission takes on a slow machine: the engine must lag behind, or there is nothing to restore.
    let batch = bench.driver.batch_create(100_000)?;
    let mut context = bench.context(bench.first_engine())?;
    for _ in 0..2000 {
        bench.submit(&mut context, RequestSpec { batch: Some(batch.address()) })?;
    }
    bench.drain(core::slice::from_mut(&mut context))?;
    let seen = bench.driver.counters();
    wrong_unless(seen.csb_lite_restores > 10, || format!("few lite restores: {seen:?}"))?;
    wrong_unless(seen.elsp_writes <= seen.submissions, || format!("more ELSP writes than requests: {seen:?}"))
}

/// Neither before anybody waited nor after the last waiter has gone.
pub(super) fn no_waiter<K: Kernel, B: Bus>(bench: &Bench<K, B>) -> Outcome {
    let mut waits = 0;
    for engine in &bench.engines {
        let mut context = bench.context(*engine)?;
        for _ in 0..2 {
            for _ in 0..200 {
                bench.submit(&mut context, RequestSpec::default())?;
            }
            bench.drain(core::slice::from_mut(&mut context))?;
            bench.until("the driver is idle", || bench.driver.is_idle())?;
            let seen = bench.driver.counters();
            wrong_unless(seen.user_interrupts <= waits, || {
                format!("{waits} requests had a waiter: {seen:?}")
            })?;
            let seqno = bench.submit(&mut context, RequestSpec::default())?;
            bench.wait(&context, seqno)?;
            waits += 1;
        }
    }
    let seen = bench.driver.counters();
    wrong_unless(seen.context_switch_interrupts > 0, || format!("no context-switch interrupt: {seen:?}"))
}

/// Waiters that come sooner and later relative to the completion. A wake-up that is lost in between would make the
/// wait last to its deadline, which is far away.
pub(super) fn wait_race<K: Kernel, B: Bus>(bench: &Bench<K, B>) -> Outcome {
    let mut context = bench.context(bench.first_engine())?;
    for round in 0..200 {
        let seqno = bench.submit(&mut context, RequestSpec::default())?;
        bench.driver.kernel().spend(round * 100);
        let start = bench.now();
        bench.wait(&context, seqno)?;
        let took = bench.now() - start;
        wrong_unless(took < super::PATIENCE_NS / 2, || format!("round {round}: woken after {took} ns only"))?;
    }
    Ok(())
}
