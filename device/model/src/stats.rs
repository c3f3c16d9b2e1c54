//! Counters.

macro_rules! stats {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Counters since the model was made; a reset does not clear them.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        pub struct Stats {
            $($(#[$doc])* pub $name: u64,)*
        }

        impl Stats {
            /// Every counter with its name, in declaration order.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name),)*].into_iter()
            }
        }
    };
}

stats! {
    /// MMIO writes, GGTT entries included.
    mmio_writes,
    /// ELSP submissions taken (well formed, and legal at that time).
    submissions,
    /// CSB events written.
    csb_events,
    /// Of these: idle→active.
    csb_idle_active,
    /// Of these: complete with element switch.
    csb_element_switch,
    /// Of these: complete with active→idle.
    csb_active_idle,
    /// Of these: preempted by another context.
    csb_preempted,
    /// Of these: lite restores.
    csb_lite_restore,
    /// CSB entries that became visible after their index.
    csb_late,
    /// CSB entries written over one that the driver had not read.
    csb_overruns,
    /// Commands executed, in rings and batches.
    commands,
    /// Batches entered.
    batches,
    /// Post-sync and immediate stores executed.
    stores,
    /// Semaphore waits that had to wait.
    semaphore_waits,
    /// User interrupts raised by commands, masked ones included.
    user_interrupts,
    /// Engine interrupts that reached IIR.
    engine_interrupts,
    /// MSI edges.
    interrupts,
    /// Context images read.
    context_restores,
    /// Context images written.
    context_saves,
    /// Protocol violations.
    violations,
    /// Violations that stopped an engine.
    hangs,
    /// Engine resets by GDRST.
    resets,
    /// Times an engine's command budget ran out within one call.
    deferrals,
}
