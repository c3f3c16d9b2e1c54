//! A simulated machine: CPUs, a kernel's scheduling, and time that is computed.
//!
//! Behind the driver's [`Kernel`](execlab_driver::kernel::Kernel) and [`Threads`](execlab_driver::kernel::Threads)
//! stands a discrete-event simulation on one OS thread. The same machine, seed and code give the same run bit for bit
//! on any host.
//!
//! ```
//! use execlab_driver::kernel::{Kernel as _, Policy, Thread as _, Threads as _};
//! use execlab_sim::{Machine, Sim};
//!
//! let machine = Machine::builtin("kbl-2018").ok_or("no such machine")?;
//! let mut sim = Sim::new(&machine, 1);
//! let kernel = sim.kernel();
//! let late_ns = sim.run(move || {
//!     let inside = kernel.clone();
//!     let probe = kernel.spawn("probe", 0, Policy::Fifo(98), move || {
//!         let deadline = inside.now() + 100_000;
//!         inside.sleep_until(deadline);
//!         inside.now() - deadline
//!     });
//!     probe.ok().and_then(|probe| probe.join())
//! })?;
//! assert!(late_ns.is_some_and(|ns| (1_000..100_000).contains(&ns)));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod choice;
mod core;
mod coroutine;
mod costs;
mod cpu;
pub mod device;
mod devices;
mod error;
mod events;
pub mod experiment;
pub mod explore;
mod idle;
mod irq;
mod kernel;
mod lock;
pub mod machine;
mod sched;
mod sim;
mod softirq;
mod switch;
mod thread;
pub mod trace;
mod wait;
mod word;

pub use choice::Perturb;
pub use devices::Device;
pub use error::SimError;
pub use kernel::SimKernel;
pub use lock::SimLock;
pub use machine::{Machine, MachineError};
pub use sim::Sim;
pub use thread::SimThread;
pub use wait::SimWaitQueue;
