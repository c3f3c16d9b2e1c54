//! Experiment: what does GPU submission do to an RT thread on the same CPU?.

fn main() {}
