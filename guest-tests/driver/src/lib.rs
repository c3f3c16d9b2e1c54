//! An i915-shaped execlists driver, generic over kernel and bus.
