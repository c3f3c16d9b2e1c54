//! What PID 1 of the guest and its starter agree on.
//!
//! Both sides use these names and formats; nothing else is shared. The starter puts files into the initramfs
//! and reads one line of the console; PID 1 (the binary of this crate) does the reverse.

mod exit;
mod plan;

pub use exit::GuestExit;
pub use plan::{BootPlan, ResultsChannel};

/// File in the guest with the [`BootPlan`] as JSON.
pub const BOOT_PLAN_PATH: &str = "/execlab/argv.json";

/// File in the guest with the plan of the experiment, for the test binary's `--plan`. PID 1 does not read it.
pub const TEST_PLAN_PATH: &str = "/execlab/plan.json";

/// File in the guest that lists kernel modules, one a line in loading order: a path, then parameters.
pub const MODULES_PATH: &str = "/execlab/modules";

/// Directory in the guest with the test binaries.
pub const BIN_DIR: &str = "/bin";

/// Name of the virtio-serial port that carries results.
pub const RESULTS_PORT_NAME: &str = "execlab.results";

/// File descriptor on which the test binary finds the results channel.
pub const RESULTS_FD: i32 = 3;

/// Environment variable that names [`RESULTS_FD`] to the test binary.
pub const RESULTS_FD_ENV: &str = "EXECLAB_RESULTS_FD";

/// Byte (ASCII end of transmission) that PID 1 writes on the results channel after the test binary has ended.
/// It cannot occur in JSON.
pub const END_OF_RESULTS: u8 = 0x04;

/// Beginning of the console line that PID 1 writes first; the rest is the seconds since the kernel started.
pub const STARTED_PREFIX: &str = "execlab-init: started after ";
