//! The words that device and driver share: gen9 registers, context descriptors, context images, CSB entries,
//! ring commands and page-table entries with the hardware's own encodings, and the wire format of the
//! vhost-user door.
//!
//! Every offset stands here once. The crate computes and stores nothing; it has no dependency and no state.
//!
//! Sources: `intel_engine_regs.h`, `intel_lrc_reg.h`, `intel_lrc.h`, `intel_gpu_commands.h`, `i915_reg.h`,
//! `intel_gt_regs.h` and `gvt/execlist.h` of Linux 6.12 for names, offsets and bit positions; the Intel
//! Programmer's Reference Manuals for Skylake/Kaby Lake use the same names.
#![no_std]

pub mod context;
pub mod csb;
pub mod descriptor;
pub mod engine;
pub mod ggtt;
pub mod gt;
pub mod guc;
pub mod irq;
pub mod lab;
pub mod mi;
pub mod mirror;
pub mod ppgtt;
pub mod ring;
pub mod wire;

/// Bytes in a page of guest memory and of the GGTT.
pub const PAGE_SIZE: u64 = 4096;

/// Size of the register part of BAR 0 in bytes; the GGTT entries lie further up, see [`ggtt::GSM_OFFSET`].
pub const MMIO_SIZE: u32 = 0x20_0000;
