//! The execlab command: set up, run, compare, report.

fn main() {}
