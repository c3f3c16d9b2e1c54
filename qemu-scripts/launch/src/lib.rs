//! Host set-up, QEMU and device process launching.
