//! Commands per second of the model alone.
fn main() {}
