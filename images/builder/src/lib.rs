//! Guest kernels and initramfs images.
