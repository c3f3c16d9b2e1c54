//! An i915-shaped execlists driver, generic over what a kernel gives it ([`kernel::Kernel`]) and how it reaches
//! its device ([`bus::Bus`]).
#![no_std]

extern crate alloc;

pub mod bus;
pub mod kernel;
