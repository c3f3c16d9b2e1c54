//! Running the one program, and reaping whatever else ends meanwhile.

use std::process::Command;

use execlab_init::{BootPlan, GuestExit, RESULTS_FD, RESULTS_FD_ENV, ResultsChannel};
use rustix::process::{Pid, WaitOptions};

use crate::Error;

/// Runs the program of the plan to its end.
pub fn run(plan: &BootPlan) -> Result<GuestExit, Error> {
    let Some((program, arguments)) = plan.argv.split_first() else {
        return Ok(GuestExit::Code(0));
    };
    let mut command = Command::new(program);
    command.args(arguments).env("PATH", execlab_init::BIN_DIR).envs(&plan.env);
    if plan.results != ResultsChannel::None {
        command.env(RESULTS_FD_ENV, RESULTS_FD.to_string());
    }
    let child = command.spawn().map_err(|error| Error::Spawn(program.clone(), error))?;
    let wanted = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    loop {
        // Orphans become children of PID 1, hence any child, not only ours.
        let status = match rustix::process::wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if Some(pid) == wanted => status,
            Ok(_) | Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(Error::Wait(program.clone(), error.into())),
        };
        if let Some(code) = status.exit_status() {
            return Ok(GuestExit::Code(code));
        }
        if let Some(signal) = status.terminating_signal() {
            return Ok(GuestExit::Signal(signal));
        }
    }
}
