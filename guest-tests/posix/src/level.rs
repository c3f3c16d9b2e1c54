//! How high the calling thread runs: `preempt_count` of the model.
//!
//! User space cannot mask interrupts (CLI under iopl(3) is emulated as a NOP). To a *thread* on the same CPU
//! that makes no difference as long as the section runs above it: so every section in which a kernel would not
//! be preempted (irq-off, bh-off, hardirq, softirq) runs at SCHED_FIFO 99. This is a model: real interrupts of
//! the host or guest kernel still come in.

use std::cell::Cell;

use crate::Policy;
use crate::sched::{IRQ_OFF_PRIORITY, get_raw, set_policy, set_raw};

/// Kernel's numbers of policy and priority.
type Base = (libc::c_int, libc::c_int);

/// What the calling thread is in the middle of.
#[derive(Debug, Clone, Copy, Default)]
struct Me {
    /// Nested raised sections of any kind.
    raised: u32,
    /// Nested irq-off sections.
    irq_off: u32,
    /// Nested bh-off sections.
    bh_off: u32,
    /// In an interrupt handler.
    hardirq: bool,
    /// Running bottom halves.
    softirq: bool,
    /// Where to return to; unknown until the first raise.
    base: Option<Base>,
}

thread_local! {
    static ME: Cell<Me> = const {
        Cell::new(Me { raised: 0, irq_off: 0, bh_off: 0, hardirq: false, softirq: false, base: None })
    };
}

fn update<R>(change: impl FnOnce(&mut Me) -> R) -> R {
    ME.with(|cell| {
        let mut me = cell.get();
        let result = change(&mut me);
        cell.set(me);
        result
    })
}

/// Forgets the policy to return to, because the thread was given another one.
pub(crate) fn forget_base() {
    update(|me| me.base = None);
}

/// Nesting that [`Section`] counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// `local_irq_save`.
    IrqOff,
    /// `local_bh_disable`.
    BhOff,
    /// An interrupt handler: irq-off as well.
    Hardirq,
    /// Bottom halves being run.
    Softirq,
    /// No more than the priority: the span around sections that follow each other without coming down.
    Span,
}

/// What [`Section::enter`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Raise {
    /// The thread was as high already.
    NotNeeded,
    /// It was raised now, and will be lowered at the end of the section.
    Done,
    /// The kernel refused: the section is not what it claims to be.
    Refused,
}

/// A section of code at [`IRQ_OFF_PRIORITY`], until dropped.
#[derive(Debug)]
pub(crate) struct Section {
    kind: Kind,
    /// What the raise came to.
    pub raise: Raise,
    /// No section of this kind around it (for [`Kind::IrqOff`]: interrupts were on).
    pub outermost_of_kind: bool,
    /// No raised section of any kind around it.
    pub outermost: bool,
    /// A thread that sits in a section belongs there.
    not_send: std::marker::PhantomData<*const ()>,
}

impl Section {
    /// Enters a section. With `priorities` off, only the nesting is counted.
    pub fn enter(kind: Kind, priorities: bool) -> Self {
        let outermost = ME.get().raised == 0;
        let raise = if outermost && priorities { raise() } else { Raise::NotNeeded };
        let outermost_of_kind = update(|me| {
            me.raised += 1;
            match kind {
                Kind::IrqOff => {
                    me.irq_off += 1;
                    me.irq_off == 1
                }
                Kind::BhOff => {
                    me.bh_off += 1;
                    me.bh_off == 1
                }
                Kind::Hardirq => {
                    me.irq_off += 1;
                    !std::mem::replace(&mut me.hardirq, true)
                }
                Kind::Softirq => !std::mem::replace(&mut me.softirq, true),
                Kind::Span => me.raised == 1,
            }
        });
        Self { kind, raise, outermost_of_kind, outermost, not_send: std::marker::PhantomData }
    }
}

impl Drop for Section {
    fn drop(&mut self) {
        let base = update(|me| {
            me.raised -= 1;
            match self.kind {
                Kind::IrqOff => me.irq_off -= 1,
                Kind::BhOff => me.bh_off -= 1,
                Kind::Hardirq => {
                    me.irq_off -= 1;
                    me.hardirq = !self.outermost_of_kind;
                }
                Kind::Softirq => me.softirq = !self.outermost_of_kind,
                Kind::Span => {}
            }
            me.base
        });
        if self.raise == Raise::Done
            && let Some((policy, priority)) = base
        {
            // Giving up privilege is never refused.
            let _ = set_raw(policy, priority);
        }
    }
}

fn raise() -> Raise {
    let base = match ME.get().base {
        Some(base) => base,
        None => match get_raw() {
            Ok(base) => {
                update(|me| me.base = Some(base));
                base
            }
            Err(_) => return Raise::Refused,
        },
    };
    if base == (libc::SCHED_FIFO, libc::c_int::from(IRQ_OFF_PRIORITY)) {
        return Raise::NotNeeded;
    }
    match set_policy(Policy::Fifo(IRQ_OFF_PRIORITY)) {
        Ok(()) => Raise::Done,
        Err(_) => Raise::Refused,
    }
}

/// `in_interrupt()`: in a handler, in a bottom half, or in a bh-off section.
pub(crate) fn in_interrupt() -> bool {
    let me = ME.get();
    me.hardirq || me.softirq || me.bh_off > 0
}

/// `irqs_disabled()`.
pub(crate) fn irqs_off() -> bool {
    ME.get().irq_off > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_nest_and_leave_nothing_behind() {
        let outer = Section::enter(Kind::BhOff, false);
        assert!(outer.outermost && in_interrupt() && !irqs_off());
        {
            let inner = Section::enter(Kind::IrqOff, false);
            assert!(!inner.outermost && inner.outermost_of_kind && irqs_off());
            let again = Section::enter(Kind::IrqOff, false);
            assert!(!again.outermost_of_kind);
        }
        assert!(!irqs_off());
        drop(outer);
        assert!(!in_interrupt());
    }

    #[test]
    fn a_panic_in_a_section_still_ends_it() {
        let _ = std::panic::catch_unwind(|| {
            let _section = Section::enter(Kind::Hardirq, false);
            std::panic::resume_unwind(Box::new(()));
        });
        assert!(!in_interrupt() && !irqs_off());
    }
}
