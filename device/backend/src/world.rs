//! The model in its surroundings: everything that a posted write or a deadline touches, the rings aside.

use std::sync::Arc;

use execlab_abi::irq::BANKS;
use execlab_abi::lab::Violation;
use execlab_abi::mirror::{self, SLOTS};
use execlab_model::{Config, Gpu};
use execlab_profile::{Profile, ProfileError};
use vm_memory::GuestMemoryMmap;

use crate::clock::Clock;
use crate::door::chain::ChainError;
use crate::env::GuestEnv;
use crate::lateness::Lateness;
use crate::mirror::{PageError, RegisterPage};
use crate::settings::Settings;
use crate::timeline::NEVER;

/// Longest that deadlines are met in one go before somebody else gets the lock, in nanoseconds.
const TURN_NS: u64 = 1_000_000;

/// What the door counted for one guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DoorCounters {
    /// Chains of posted writes applied.
    pub posted_chains: u64,
    /// Control requests answered.
    pub control_requests: u64,
    /// Interrupt records delivered.
    pub interrupts_delivered: u64,
    /// Times an interrupt found no buffer and had to wait for one.
    pub interrupts_waited: u64,
    /// Chains and rings that made no sense.
    pub malformed_chains: u64,
}

/// The GPU with its memory, its register page and its clock. One mutex guards it (see [`crate::core`]).
#[derive(Debug)]
pub struct World {
    gpu: Gpu,
    memory: Arc<GuestMemoryMmap>,
    page: RegisterPage,
    interrupt: bool,
    interrupt_sequence: u64,
    profile: Profile,
    settings: Arc<Settings>,
    clock: Clock,
    lateness: Lateness,
    /// The latest deadline that was met or write that was applied: what was left of them at a pause is due at such a
    /// time, and is no deadline of its own.
    done_until: u64,
    /// What the door counted since the guest came.
    pub counters: DoorCounters,
}

impl World {
    /// A GPU after power-on, without a guest.
    #[must_use]
    pub fn new(settings: Arc<Settings>, clock: Clock, lateness: Lateness) -> Self {
        let profile = settings.profile.clone();
        Self {
            gpu: Gpu::new(Config { sampler: settings.sampler(&profile), ..Config::default() }),
            memory: Arc::new(GuestMemoryMmap::new()),
            page: RegisterPage::default(),
            interrupt: false,
            interrupt_sequence: 0,
            profile,
            settings,
            clock,
            lateness,
            done_until: 0,
            counters: DoorCounters::default(),
        }
    }

    /// Device time.
    #[inline]
    #[must_use]
    pub fn now(&self) -> u64 {
        self.clock.now()
    }

    /// The guest's memory.
    #[must_use]
    pub fn memory(&self) -> Arc<GuestMemoryMmap> {
        Arc::clone(&self.memory)
    }

    /// The front end has given new memory.
    pub fn set_memory(&mut self, memory: Arc<GuestMemoryMmap>) {
        self.memory = memory;
    }

    /// The profile in use.
    #[must_use]
    pub const fn profile(&self) -> &Profile {
        &self.profile
    }

    /// What the device was started with.
    #[must_use]
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// The model, to look at.
    #[must_use]
    pub const fn gpu(&self) -> &Gpu {
        &self.gpu
    }

    /// How late deadlines were met since the guest came.
    #[must_use]
    pub const fn lateness(&self) -> &Lateness {
        &self.lateness
    }

    fn with_env<R>(&mut self, f: impl FnOnce(&mut Gpu, &mut GuestEnv<'_>) -> R) -> R {
        let Self { gpu, memory, page, interrupt, .. } = self;
        f(gpu, &mut GuestEnv { memory, page, interrupt })
    }

    /// When something is due next, or [`NEVER`].
    #[inline]
    #[must_use]
    pub fn next_deadline(&self) -> u64 {
        self.gpu.next_deadline().unwrap_or(NEVER)
    }

    /// Executes what is due by the clock, each thing at its own due time, and records how late; `after_each` is told
    /// of each. Whether more is due already: it stops after a while so that others get their turn.
    #[inline]
    pub fn run_due(&mut self, mut after_each: impl FnMut(&mut Self)) -> bool {
        let mut began = None;
        loop {
            let deadline = self.next_deadline();
            if deadline == NEVER {
                return false;
            }
            let now = self.now();
            if deadline > now {
                return false;
            }
            if now - *began.get_or_insert(now) > TURN_NS {
                return true;
            }
            if deadline > self.done_until {
                self.lateness.record(now - deadline);
                self.done_until = deadline;
            }
            self.with_env(|gpu, env| gpu.advance(deadline, env));
            after_each(self);
        }
    }

    /// A posted write arrives at time `now`.
    #[inline]
    pub fn write(&mut self, offset: u32, value: u32, now: u64) {
        self.with_env(|gpu, env| gpu.mmio_write(offset, value, now, env));
        self.done_until = self.done_until.max(now);
    }

    /// A register's value.
    pub fn read(&mut self, offset: u32) -> u32 {
        self.run_due(|_| ());
        let now = self.now();
        self.gpu.mmio_read(offset, now)
    }

    /// The guest gave a chain on `queue` that makes no sense: counted, left in the error registers, and said on
    /// the log at the first, second, fourth, eighth… time.
    pub fn malformed(&mut self, queue: u16, error: ChainError) {
        self.counters.malformed_chains += 1;
        if self.counters.malformed_chains.is_power_of_two() {
            tracing::warn!(count = self.counters.malformed_chains, "queue {queue}: {error}");
        }
        let now = self.now();
        let words = [u32::from(queue), error as u32, 0, 0];
        self.with_env(|gpu, env| gpu.violation(Violation::BadDescriptorChain, words, now, env));
    }

    /// Whether the model has raised its interrupt since it was last taken.
    #[inline]
    #[must_use]
    pub const fn interrupt_pending(&self) -> bool {
        self.interrupt
    }

    /// Takes the pending identities out of IIR. With them comes the record's number. `None` if there are none
    /// (the guest has cleared or masked them in the meantime).
    pub fn take_interrupts(&mut self, now: u64) -> Option<([u32; BANKS], u64)> {
        self.interrupt = false;
        let iir = self.with_env(|gpu, env| gpu.take_interrupts(now, env))?;
        self.interrupt_sequence += 1;
        self.counters.interrupts_delivered += 1;
        Some((iir, self.interrupt_sequence))
    }

    /// Takes `address` for the register page and fills it; 0 takes it away.
    ///
    /// # Errors
    /// [`PageError`].
    pub fn set_register_page(&mut self, address: u64) -> Result<(), PageError> {
        self.page.set(address, &self.memory)?;
        self.fill_register_page();
        Ok(())
    }

    fn fill_register_page(&mut self) {
        if !self.page.is_set() {
            return;
        }
        let now = self.now();
        for register in (0..SLOTS).filter_map(mirror::register) {
            let value = self.gpu.mmio_read(register, now);
            self.page.store(register, value, &self.memory);
        }
    }

    /// A full reset of the GPU, as after power-on; the register page stays.
    pub fn reset(&mut self) {
        let now = self.now();
        self.with_env(|gpu, env| gpu.reset(now, env));
        self.interrupt = false;
        self.interrupt_sequence = 0;
        self.fill_register_page();
    }

    /// Changes the profile, with a full reset. The empty name means the profile that the device was started with.
    ///
    /// # Errors
    /// No profile of that name ships with the device. A guest cannot name files of the host.
    pub fn select_profile(&mut self, name: &str) -> Result<(), ProfileError> {
        self.profile = if name.is_empty() {
            self.settings.profile.clone()
        } else if let Some(profile) = Profile::builtin(name) {
            profile
        } else {
            return Err(ProfileError::Unknown {
                name: name.to_owned(),
                known: Profile::builtin_names().collect::<Vec<_>>().join(", "),
                near: None,
            });
        };
        self.power_cycle();
        self.fill_register_page();
        Ok(())
    }

    /// A new GPU with the random streams from their beginning.
    fn power_cycle(&mut self) {
        let sampler = self.settings.sampler(&self.profile);
        self.gpu = Gpu::new(Config { sampler, ..Config::default() });
        self.interrupt = false;
        self.interrupt_sequence = 0;
    }

    /// The guest has gone or was reset: everything as at the start of the process, guest memory aside.
    pub fn guest_gone(&mut self) {
        self.page.clear();
        self.profile = self.settings.profile.clone();
        self.power_cycle();
    }

    /// Begins counting for a new guest.
    pub fn clear_counts(&mut self) {
        self.counters = DoorCounters::default();
        self.lateness.clear();
    }
}
