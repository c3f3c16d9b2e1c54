//! Per-process address translation, as a context's image describes it.

use execlab_abi::lab::Violation;
use execlab_abi::ppgtt::{ADDR_MASK, PAGE_2M, PRESENT, VA_MASK, level_shift};

use crate::Env;
use crate::error::{Fault, low};

/// Where a context's page tables start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tables {
    /// Four levels from this PML4 (addressing mode "legacy 64-bit").
    Pml4(u64),
    /// Page directories of 1 GiB each, PDP0 first (addressing mode "legacy 32-bit").
    Pdps([u64; 4]),
}

impl Tables {
    /// The guest-physical address behind `va`. Walks memory each time: there is no TLB to go stale.
    pub(crate) fn translate<E: Env>(&self, va: u64, env: &mut E) -> Result<u64, Fault> {
        let va = va & VA_MASK;
        let (mut table, top) = match self {
            Self::Pml4(root) => (*root, 3),
            Self::Pdps(pdps) => match usize::try_from(va >> level_shift(2)).ok().and_then(|n| pdps.get(n)) {
                Some(pdp) => (*pdp, 1),
                None => return Err(fault(va, 2, 0)),
            },
        };
        for level in (0..=top).rev() {
            let shift = level_shift(level);
            let at = (table & ADDR_MASK) + ((va >> shift) & 0x1ff) * 8;
            let entry = env.read_u64(at).map_err(|_| fault(va, level, 0))?;
            if entry & PRESENT == 0 {
                return Err(fault(va, level, low(entry)));
            }
            if level == 1 && entry & PAGE_2M != 0 {
                let within = (1 << shift) - 1;
                return Ok((entry & ADDR_MASK & !within) | (va & within));
            }
            table = entry;
        }
        Ok((table & ADDR_MASK) | (va & 0xfff))
    }
}

/// The violation for a walk of `va` that ended at `level`.
pub(crate) const fn fault(va: u64, level: u32, entry: u32) -> Fault {
    Fault::new(Violation::UnmappedPpgtt, low(va), [low(va), low(va >> 32), level, entry])
}
