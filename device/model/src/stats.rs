//! Counters of the model.

macro_rules! stats {
    ($($(#[$doc:meta])* $field:ident = $name:literal,)*) => {
        /// Counters since power-on. A reset of the GPU keeps them.
        #[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
        pub struct Stats { $($(#[$doc])* pub $field: u64,)* }

        impl Stats {
            /// Every counter with its name.
            pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$(($name, self.$field)),*].into_iter()
            }
        }
    };
}

stats! {
    /// Register and GGTT writes taken.
    mmio_writes = "mmio-writes",
    /// ELSP submissions (fourth writes).
    submissions = "submissions",
    /// Submissions accepted.
    accepted = "accepted",
    /// CSB entries published.
    csb_events = "csb-events",
    /// Lite restores.
    lite_restores = "lite-restores",
    /// Contexts preempted by another one.
    preemptions = "preemptions",
    /// Contexts that ran to their tail.
    completions = "completions",
    /// Commands executed, skipped ones included.
    commands = "commands",
    /// MI_USER_INTERRUPT and notify bits.
    user_interrupts = "user-interrupts",
    /// Interrupt messages.
    interrupts = "interrupts",
    /// Semaphore waits that blocked.
    semaphore_blocks = "semaphore-blocks",
    /// Engine resets.
    resets = "resets",
    /// Protocol violations.
    violations = "violations",
}
