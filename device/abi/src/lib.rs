//! gen9 register, descriptor, command and wire definitions shared by device and driver.
