//! The 64-bit context descriptor that ELSP takes (gen8 to gen10; `lrc_descriptor`, `intel_lrc.h`).

/// Low-dword bit 0: the element holds a context.
pub const VALID: u32 = 1 << 0;
/// Low-dword bit 1: restore the page directory even if the context seems to be resident.
pub const FORCE_PD_RESTORE: u32 = 1 << 1;
/// Low-dword bit 2: reload the whole context image even on a lite restore.
pub const FORCE_RESTORE: u32 = 1 << 2;
/// Position of the addressing mode (bits 4:3).
pub const ADDRESSING_MODE_SHIFT: u32 = 3;
/// Mask of the addressing mode, before the shift.
pub const ADDRESSING_MODE_MASK: u32 = 3;
/// Addressing mode "legacy 32-bit PPGTT".
pub const LEGACY_32B: u32 = 1;
/// Addressing mode "legacy 64-bit PPGTT" (four levels).
pub const LEGACY_64B: u32 = 3;
/// Low-dword bit 8: privileged.
pub const PRIVILEGE: u32 = 1 << 8;
/// LRCA: GGTT page address of the context image, bits 31:12.
pub const LRCA_MASK: u32 = 0xffff_f000;
/// Context id: bits 52:32, so 21 bits of the high dword.
pub const CONTEXT_ID_MASK: u32 = 0x001f_ffff;

/// A descriptor, taken apart without changing a bit of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Hash)]
pub struct Descriptor {
    /// Low dword: flags and LRCA.
    pub lo: u32,
    /// High dword: context id; the part above [`CONTEXT_ID_MASK`] must be zero.
    pub hi: u32,
}

impl Descriptor {
    /// The empty element.
    pub const NULL: Self = Self { lo: 0, hi: 0 };

    /// A valid descriptor as i915 builds it for a gen9 part with four-level PPGTT.
    #[must_use]
    pub const fn new(lrca: u32, context_id: u32) -> Self {
        Self {
            lo: (lrca & LRCA_MASK) | (LEGACY_64B << ADDRESSING_MODE_SHIFT) | PRIVILEGE | VALID,
            hi: context_id & CONTEXT_ID_MASK,
        }
    }

    /// Whether the element holds a context.
    #[must_use]
    pub const fn is_valid(self) -> bool {
        self.lo & VALID != 0
    }

    /// GGTT address of the context image.
    #[must_use]
    pub const fn lrca(self) -> u32 {
        self.lo & LRCA_MASK
    }

    /// Context id as CSB entries report it.
    #[must_use]
    pub const fn context_id(self) -> u32 {
        self.hi
    }

    /// Whether the image must be reloaded.
    #[must_use]
    pub const fn force_restore(self) -> bool {
        self.lo & FORCE_RESTORE != 0
    }

    /// The same descriptor with [`FORCE_RESTORE`] set.
    #[must_use]
    pub const fn with_force_restore(self) -> Self {
        Self { lo: self.lo | FORCE_RESTORE, hi: self.hi }
    }
}
