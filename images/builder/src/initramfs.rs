//! Packing the initramfs: newc archives that depend on their contents only.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use cpio::newc::{Builder, ModeFileType, trailer};
use execlab_init::{BOOT_PLAN_PATH, BootPlan, MODULES_PATH, ResultsChannel, TEST_PLAN_PATH};

use crate::{Error, Kernel, ModuleSet, WANTED_MODULES, collect};

/// Mount points and parents of files. The kernel makes no missing directories.
const DIRECTORIES: [&str; 8] = ["bin", "dev", "execlab", "lib", "lib/modules", "proc", "sys", "tmp"];

/// A packed initramfs with what its starter must know of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Initramfs {
    /// The archive. A multiple of 512 bytes long, so that [`plan_segment`] may follow it.
    pub bytes: Vec<u8>,
    /// The fastest results channel that this kernel has.
    pub results: ResultsChannel,
    /// Modules of [`WANTED_MODULES`] that this kernel has in no form.
    pub missing_modules: Vec<String>,
}

impl Initramfs {
    /// Packs `init` as PID 1, `binaries` (name in `/bin`, file on the host) and the modules that a guest needs.
    ///
    /// # Errors
    /// [`Error`] when a file cannot be read or a module is broken.
    pub fn build(kernel: &Kernel, init: &Path, binaries: &[(String, PathBuf)]) -> Result<Self, Error> {
        let set = collect(kernel, &WANTED_MODULES)?;
        let mut archive = Archive::default();
        for directory in DIRECTORIES {
            archive.directory(directory);
        }
        archive.program("init", init)?;
        for (name, path) in binaries {
            archive.program(&format!("bin/{name}"), path)?;
        }
        archive.modules(&set);
        // Where nothing is known of the kernel's modules, the slow channel is the safe one.
        let fast = set.provides("virtio_console") && set.provides("virtio_pci");
        Ok(Self {
            bytes: archive.pack(init)?,
            results: if fast { ResultsChannel::VirtioSerial } else { ResultsChannel::IsaSerial },
            missing_modules: set.missing.into_iter().collect(),
        })
    }
}

/// The second archive: what PID 1 does, and the plan of the experiment if there is one. Append it to
/// [`Initramfs::bytes`].
///
/// # Errors
/// [`Error`] when it cannot be packed (a plan beyond 4 GiB).
pub fn plan_segment(boot: &BootPlan, test_plan: Option<&[u8]>) -> Result<Vec<u8>, Error> {
    let mut archive = Archive::default();
    // Serialising cannot fail: the keys of its maps are strings.
    archive.file(relative(BOOT_PLAN_PATH), serde_json::to_vec_pretty(boot).unwrap_or_default());
    if let Some(plan) = test_plan {
        archive.file(relative(TEST_PLAN_PATH), plan.to_vec());
    }
    archive.pack(Path::new(BOOT_PLAN_PATH))
}

fn relative(path: &str) -> &str {
    path.trim_start_matches('/')
}

enum Content {
    Directory,
    File { mode: u32, bytes: Vec<u8> },
}

/// Entries by path: sorted, so parents precede children and equal contents give equal bytes.
#[derive(Default)]
struct Archive(BTreeMap<String, Content>);

impl Archive {
    fn directory(&mut self, path: &str) {
        self.0.insert(path.to_owned(), Content::Directory);
    }

    fn file(&mut self, path: &str, bytes: Vec<u8>) {
        self.0.insert(path.to_owned(), Content::File { mode: 0o644, bytes });
    }

    fn program(&mut self, path: &str, source: &Path) -> Result<(), Error> {
        let bytes = fs::read(source).map_err(Error::file("reading", source))?;
        self.0.insert(path.to_owned(), Content::File { mode: 0o755, bytes });
        Ok(())
    }

    fn modules(&mut self, set: &ModuleSet) {
        let mut list = String::new();
        for module in &set.modules {
            let path = format!("lib/modules/{}.ko", module.name);
            list.push_str(&format!("/{path} {}\n", module.parameters));
            self.file(&path, module.object.clone());
        }
        self.file(relative(MODULES_PATH), list.into_bytes());
    }

    /// `culprit` names the archive in an error.
    fn pack(self, culprit: &Path) -> Result<Vec<u8>, Error> {
        let mut out = Vec::new();
        for (number, (path, content)) in (1..).zip(self.0) {
            write_entry(&mut out, number, &path, &content).map_err(Error::file("packing", culprit))?;
        }
        trailer(&mut out).map_err(Error::file("packing", culprit))?;
        out.resize(out.len().next_multiple_of(512), 0);
        Ok(out)
    }
}

fn write_entry(out: &mut Vec<u8>, number: u32, path: &str, content: &Content) -> io::Result<()> {
    let entry = Builder::new(path).ino(number).mtime(0);
    match content {
        Content::Directory => {
            entry.nlink(2).mode(0o755).set_mode_file_type(ModeFileType::Directory).write(out, 0).finish()?;
        }
        Content::File { mode, bytes } => {
            let size = u32::try_from(bytes.len()).map_err(io::Error::other)?;
            let entry = entry.nlink(1).mode(*mode).set_mode_file_type(ModeFileType::Regular);
            let mut writer = entry.write(out, size);
            writer.write_all(bytes)?;
            writer.finish()?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(mut archive: &[u8]) -> Vec<String> {
        let mut names = Vec::new();
        loop {
            let reader = cpio::NewcReader::new(archive).unwrap();
            if reader.entry().is_trailer() {
                return names;
            }
            names.push(reader.entry().name().to_owned());
            archive = reader.finish().unwrap();
        }
    }

    fn built() -> Initramfs {
        let kernel = Kernel { vmlinuz: "/x".into(), modules: None, release: "1".into() };
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), b"program").unwrap();
        let binaries = [("test".to_owned(), file.path().to_owned())];
        Initramfs::build(&kernel, file.path(), &binaries).unwrap()
    }

    #[test]
    fn the_archive_holds_init_binaries_and_mount_points_in_order() {
        let names = names(&built().bytes);
        for wanted in ["init", "bin/test", "dev", "proc", "sys", "execlab/modules"] {
            assert!(names.iter().any(|name| name == wanted), "{wanted} is not among {names:?}");
        }
        assert!(names.is_sorted(), "{names:?}");
    }

    #[test]
    fn the_same_contents_give_the_same_bytes() {
        assert_eq!(built(), built());
    }

    #[test]
    fn a_kernel_of_unknown_modules_gets_the_serial_port() {
        assert_eq!(built().results, ResultsChannel::IsaSerial);
    }

    #[test]
    fn a_second_archive_begins_at_a_multiple_of_four() {
        let plan = BootPlan::new(vec!["/bin/test".into()]);
        assert_eq!(built().bytes.len() % 512, 0);
        assert_eq!(
            names(&plan_segment(&plan, Some(b"{}")).unwrap()),
            ["execlab/argv.json", "execlab/plan.json"]
        );
    }
}
