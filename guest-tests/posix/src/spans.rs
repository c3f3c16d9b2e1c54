//! What the sections cost: counts, totals, longest, and the sum of squares that predicts a probe's extra mean.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Statistics of one kind of span. Times are nanoseconds.
#[derive(Debug, Default)]
pub(crate) struct Span {
    count: AtomicU64,
    total_ns: AtomicU64,
    longest_ns: AtomicU64,
    squares_ns2: AtomicU64,
}

impl Span {
    pub fn add(&self, ns: u64) {
        self.count.fetch_add(1, Relaxed);
        self.total_ns.fetch_add(ns, Relaxed);
        self.longest_ns.fetch_max(ns, Relaxed);
        self.squares_ns2.fetch_add(ns.saturating_mul(ns), Relaxed);
    }

    fn snapshot(&self) -> SpanStats {
        SpanStats {
            count: self.count.load(Relaxed),
            total_ns: self.total_ns.load(Relaxed),
            longest_ns: self.longest_ns.load(Relaxed),
            squares_ns2: self.squares_ns2.load(Relaxed),
        }
    }
}

/// Statistics of one kind of span.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SpanStats {
    /// Number of spans.
    pub count: u64,
    /// Sum of their lengths in nanoseconds.
    pub total_ns: u64,
    /// Longest in nanoseconds.
    pub longest_ns: u64,
    /// Sum of the squares of their lengths in ns². A probe with random phase sees, on average, this divided by
    /// twice the observed time: λ·E\[L²\]/2.
    pub squares_ns2: u64,
}

/// Counters of one CPU.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub irq_off: Span,
    pub raised: Span,
    pub raises: AtomicU64,
    pub refused: AtomicU64,
    pub softirq_passes: AtomicU64,
    pub ksoftirqd_wakes: AtomicU64,
    pub at_bh_enable: AtomicU64,
    pub at_irq_exit: AtomicU64,
    pub in_ksoftirqd: AtomicU64,
    pub interrupts: AtomicU64,
}

/// What the modelled CPU did since it was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuStats {
    /// Sections with interrupts off, handlers included: outermost spans only.
    pub irq_off: SpanStats,
    /// Spans at [`crate::IRQ_OFF_PRIORITY`] of any kind (irq-off, bh-off, handler with its bottom halves): what
    /// keeps a probe off the CPU. Spans of different threads may follow each other without a gap.
    pub raised: SpanStats,
    /// Times a thread had to be raised by a system call.
    pub raises: u64,
    /// Times the kernel refused that; anything but 0 makes the run worthless.
    pub refused: u64,
    /// Rounds through the pending tasklets.
    pub softirq_passes: u64,
    /// Times ksoftirqd was woken.
    pub ksoftirqd_wakes: u64,
    /// Tasklet bodies run at bh-enable.
    pub at_bh_enable: u64,
    /// Tasklet bodies run at irq exit.
    pub at_irq_exit: u64,
    /// Tasklet bodies run in ksoftirqd.
    pub in_ksoftirqd: u64,
    /// Interrupts handled.
    pub interrupts: u64,
}

impl Counters {
    pub fn snapshot(&self) -> CpuStats {
        CpuStats {
            irq_off: self.irq_off.snapshot(),
            raised: self.raised.snapshot(),
            raises: self.raises.load(Relaxed),
            refused: self.refused.load(Relaxed),
            softirq_passes: self.softirq_passes.load(Relaxed),
            ksoftirqd_wakes: self.ksoftirqd_wakes.load(Relaxed),
            at_bh_enable: self.at_bh_enable.load(Relaxed),
            at_irq_exit: self.at_irq_exit.load(Relaxed),
            in_ksoftirqd: self.in_ksoftirqd.load(Relaxed),
            interrupts: self.interrupts.load(Relaxed),
        }
    }
}

impl CpuStats {
    /// The counters by name, as they stand in results: `cpu-` and what it is, `-ns` for nanoseconds.
    #[must_use]
    pub fn to_map(&self) -> BTreeMap<String, u64> {
        [
            ("cpu-irq-off-sections", self.irq_off.count),
            ("cpu-irq-off-total-ns", self.irq_off.total_ns),
            ("cpu-irq-off-longest-ns", self.irq_off.longest_ns),
            ("cpu-raised-sections", self.raised.count),
            ("cpu-raised-total-ns", self.raised.total_ns),
            ("cpu-raised-longest-ns", self.raised.longest_ns),
            ("cpu-raised-squares-ns2", self.raised.squares_ns2),
            ("cpu-priority-raises", self.raises),
            ("cpu-priority-refused", self.refused),
            ("cpu-softirq-passes", self.softirq_passes),
            ("cpu-ksoftirqd-wakes", self.ksoftirqd_wakes),
            ("cpu-bottom-halves-at-bh-enable", self.at_bh_enable),
            ("cpu-bottom-halves-at-irq-exit", self.at_irq_exit),
            ("cpu-bottom-halves-in-ksoftirqd", self.in_ksoftirqd),
            ("cpu-interrupts", self.interrupts),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }
}
