//! A gen9 GPU's execlists machinery as a pure state machine.
