//! Making hostile things out of bytes: registers, addresses, values, command programs.
//!
//! Most of what comes out is close to right. Pure noise is refused at the first check and tests nothing behind it.

pub mod bus;
pub mod door;
pub mod guest;
pub mod lab;
pub mod layout;
pub mod memory;
pub mod pick;
pub mod program;
