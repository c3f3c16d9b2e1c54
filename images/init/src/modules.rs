//! Loading the kernel modules that the initramfs brings.

use std::ffi::CString;
use std::fs::{self, File};
use std::io;

use execlab_init::MODULES_PATH;
use rustix::io::Errno;

/// Loads every module of [`MODULES_PATH`] in the order of the file.
///
/// A module that does not load is reported and passed over: a kernel may lack it and yet have all that the
/// test needs, and the test says precisely what it misses.
pub fn load_all() {
    let list = match fs::read_to_string(MODULES_PATH) {
        Ok(list) => list,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return,
        Err(error) => {
            println!("execlab-init: reading {MODULES_PATH}: {error}");
            return;
        }
    };
    for line in list.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let (path, parameters) = line.split_once(' ').unwrap_or((line, ""));
        if let Err(error) = load(path, parameters) {
            println!("execlab-init: module {path}: {error}");
        }
    }
}

fn load(path: &str, parameters: &str) -> io::Result<()> {
    let file = File::open(path)?;
    let parameters = CString::new(parameters)?;
    match rustix::system::finit_module(&file, &parameters, 0) {
        // Already loaded, or built in under the same name.
        Ok(()) | Err(Errno::EXIST) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
