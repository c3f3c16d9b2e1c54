//! Statistics of A/B comparisons.
