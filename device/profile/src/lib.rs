//! Delay profiles: TOML in, seeded samples out.
