//! What the driver counts.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::kernel::Place;

macro_rules! counters {
    ($($(#[$doc:meta])* $field:ident = $name:literal,)*) => {
        /// Counters of a driver since it was made, as a snapshot.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub struct Counters { $($(#[$doc])* pub $field: u64,)* }

        impl Counters {
            /// Every counter with its name.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$(($name, self.$field)),*].into_iter()
            }
        }

        /// The counters themselves.
        #[derive(Debug, Default)]
        pub(crate) struct Counting { $(pub(crate) $field: Counter,)* }

        impl Counting {
            pub(crate) fn snapshot(&self) -> Counters {
                Counters { $($field: self.$field.get(),)* }
            }
        }
    };
}

counters! {
    /// Requests submitted.
    submissions = "submissions",
    /// ELSP submissions (four writes each).
    elsp_writes = "elsp-writes",
    /// Of these: with the whole image to be loaded again, because a tail did not move.
    force_restores = "force-restores",
    /// CSB events read.
    csb_events = "csb-events",
    /// Of these: idle→active. One event can be of several kinds.
    csb_idle_to_active = "csb-idle-to-active",
    /// Of these: preempted, lite restores among them.
    csb_preempted = "csb-preempted",
    /// Of these: switches to the second element.
    csb_element_switches = "csb-element-switches",
    /// Of these: active→idle.
    csb_active_to_idle = "csb-active-to-idle",
    /// Of these: lite restores.
    csb_lite_restores = "csb-lite-restores",
    /// Of these: completions.
    csb_completions = "csb-completions",
    /// CSB entries that were not visible when their index was.
    csb_late_entries = "csb-late-entries",
    /// CSB entries read from their MMIO copies: the first that did not come within 10 us, and all after it.
    csb_mmio_entries = "csb-mmio-entries",
    /// Interrupts handled.
    interrupts = "interrupts",
    /// Context-switch bits in them, per engine.
    context_switch_interrupts = "context-switch-interrupts",
    /// User-interrupt bits in them, per engine.
    user_interrupts = "user-interrupts",
    /// Bottom halves run when the submitter enabled bottom halves.
    bh_at_enable = "bh-at-enable",
    /// Bottom halves run on the way out of an interrupt.
    bh_at_irq_exit = "bh-at-irq-exit",
    /// Bottom halves run in ksoftirqd.
    bh_in_ksoftirqd = "bh-in-ksoftirqd",
    /// Length of all bottom halves, in nanoseconds of the clock.
    bh_total_ns = "bh-total-ns",
    /// The longest of them.
    bh_longest_ns = "bh-longest-ns",
    /// Irq-off sections of the driver.
    irq_off_sections = "irq-off-sections",
    /// Their length in all, in nanoseconds of the clock.
    irq_off_total_ns = "irq-off-total-ns",
    /// The longest of them.
    irq_off_longest_ns = "irq-off-longest-ns",
    /// Events that fitted no port.
    stray_events = "stray-events",
    /// Last events of a context that did not say where the engine went, or were preemptions.
    unexpected_last_events = "unexpected-last-events",
    /// Contexts that the hardware left before the seqno of their last request was visible.
    events_before_seqno = "events-before-seqno",
}

impl Counting {
    /// A bottom half ran.
    pub(crate) fn bottom_half(&self, place: Place, ns: u64) {
        match place {
            Place::BhEnable => &self.bh_at_enable,
            Place::IrqExit => &self.bh_at_irq_exit,
            Place::Ksoftirqd => &self.bh_in_ksoftirqd,
        }
        .add(1);
        self.bh_total_ns.add(ns);
        self.bh_longest_ns.max(ns);
    }

    /// Interrupts were off for `ns`.
    pub(crate) fn irq_off(&self, ns: u64) {
        self.irq_off_sections.add(1);
        self.irq_off_total_ns.add(ns);
        self.irq_off_longest_ns.max(ns);
    }
}

/// One counter. Nobody orders anything by it.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    pub(crate) fn add(&self, n: u64) {
        self.0.fetch_add(n, Ordering::Relaxed);
    }
    pub(crate) fn max(&self, value: u64) {
        self.0.fetch_max(value, Ordering::Relaxed);
    }
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
