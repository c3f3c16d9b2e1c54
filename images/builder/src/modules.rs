//! The kernel modules of an image: which, in what order, decompressed.
//!
//! Dependencies are read from the modules themselves (section `.modinfo`). A package that was unpacked but not
//! installed has no `modules.dep`: depmod writes it during installation.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use object::{Object as _, ObjectSection as _};
use walkdir::WalkDir;

use crate::{Error, Kernel};

/// What a guest needs to reach the device and to report: names with their parameters.
///
/// `allow_unsafe_interrupts` lets vfio work where the emulated IOMMU does not remap interrupts.
pub const WANTED_MODULES: [(&str, &str); 5] = [
    ("virtio_pci", ""),
    ("virtio_console", ""),
    ("uio_pci_generic", ""),
    ("vfio_iommu_type1", "allow_unsafe_interrupts=1"),
    ("vfio_pci", ""),
];

/// One module, ready for `finit_module`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Module {
    /// Name with underscores.
    pub name: String,
    /// Parameters for loading.
    pub parameters: String,
    /// The ELF object, decompressed.
    pub object: Vec<u8>,
}

/// The modules of an image.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModuleSet {
    /// In loading order: each after all that it depends on.
    pub modules: Vec<Module>,
    /// Wanted, but built into the kernel.
    pub built_in: BTreeSet<String>,
    /// Wanted, but neither there nor built in.
    pub missing: BTreeSet<String>,
}

impl ModuleSet {
    /// True if the kernel has it, as a module of this set or built in.
    #[must_use]
    pub fn provides(&self, name: &str) -> bool {
        self.built_in.contains(name) || self.modules.iter().any(|module| module.name == name)
    }
}

/// Collects `wanted` modules of a kernel and what they depend on. A wanted module that the kernel lacks is not
/// an error here: it is listed in [`ModuleSet::missing`].
///
/// # Errors
/// [`Error`] when a module cannot be read or decompressed, or a dependency is missing.
pub fn collect(kernel: &Kernel, wanted: &[(&str, &str)]) -> Result<ModuleSet, Error> {
    let Some(directory) = &kernel.modules else {
        // Nothing is known of what is built in.
        let missing = wanted.iter().map(|(name, _)| canonical(name)).collect();
        return Ok(ModuleSet { missing, ..ModuleSet::default() });
    };
    let mut collector = Collector {
        files: module_files(directory)?,
        built_in: built_in(directory)?,
        set: ModuleSet::default(),
        visited: BTreeSet::new(),
    };
    for (name, parameters) in wanted {
        let name = canonical(name);
        if collector.built_in.contains(&name) {
            collector.set.built_in.insert(name);
        } else if collector.files.contains_key(&name) {
            collector.add(&name, parameters)?;
        } else {
            collector.set.missing.insert(name);
        }
    }
    Ok(collector.set)
}

struct Collector {
    files: BTreeMap<String, PathBuf>,
    built_in: BTreeSet<String>,
    set: ModuleSet,
    visited: BTreeSet<String>,
}

impl Collector {
    /// Adds a module after its dependencies.
    fn add(&mut self, name: &str, parameters: &str) -> Result<(), Error> {
        if self.built_in.contains(name) || !self.visited.insert(name.to_owned()) {
            return Ok(());
        }
        let Some(path) = self.files.get(name).cloned() else {
            return Err(Error::content(
                Path::new(name),
                "this module is needed by another one, but the modules directory does not hold it",
            ));
        };
        let object = read_module(&path)?;
        for dependency in dependencies(&path, &object)? {
            self.add(&dependency, "")?;
        }
        self.set.modules.push(Module { name: name.to_owned(), parameters: parameters.to_owned(), object });
        Ok(())
    }
}

/// Modules are named with underscores, their files sometimes with dashes.
fn canonical(name: &str) -> String {
    name.replace('-', "_")
}

/// Name before `.ko`, and whether the file name is a module's at all.
fn module_name(file: &str) -> Option<String> {
    let (name, rest) = file.split_once(".ko")?;
    (rest.is_empty() || rest.starts_with('.')).then(|| canonical(name))
}

fn module_files(directory: &Path) -> Result<BTreeMap<String, PathBuf>, Error> {
    let mut files = BTreeMap::new();
    for entry in WalkDir::new(directory.join("kernel")).sort_by_file_name() {
        let entry = entry.map_err(|error| Error::content(directory, error.to_string()))?;
        if let Some(name) = module_name(&entry.file_name().to_string_lossy()) {
            files.insert(name, entry.into_path());
        }
    }
    Ok(files)
}

fn built_in(directory: &Path) -> Result<BTreeSet<String>, Error> {
    let path = directory.join("modules.builtin");
    let text = fs::read_to_string(&path).map_err(Error::file("reading", &path))?;
    Ok(text.lines().filter_map(|line| module_name(line.rsplit('/').next()?)).collect())
}

fn read_module(path: &Path) -> Result<Vec<u8>, Error> {
    let bytes = fs::read(path).map_err(Error::file("reading", path))?;
    let compressed = |error: String| Error::content(path, format!("cannot be decompressed: {error}"));
    let mut object = Vec::new();
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("ko") => object = bytes,
        Some("xz") => lzma_rs::xz_decompress(&mut bytes.as_slice(), &mut object)
            .map_err(|error| compressed(error.to_string()))?,
        Some("zst") => {
            let mut decoder = ruzstd::decoding::StreamingDecoder::new(bytes.as_slice())
                .map_err(|error| compressed(error.to_string()))?;
            decoder.read_to_end(&mut object).map_err(|error| compressed(error.to_string()))?;
        }
        _ => return Err(compressed("only .ko, .ko.xz and .ko.zst are known; decompress it first".into())),
    }
    Ok(object)
}

/// The modules that must be loaded first, from `depends=` in `.modinfo`.
fn dependencies(path: &Path, object: &[u8]) -> Result<Vec<String>, Error> {
    let fail = |error: object::Error| Error::content(path, format!("is no kernel module: {error}"));
    let file = object::File::parse(object).map_err(fail)?;
    let Some(section) = file.section_by_name(".modinfo") else {
        return Err(Error::content(path, "is no kernel module: it has no section .modinfo"));
    };
    let info = section.data().map_err(fail)?;
    let text = info.split(|byte| *byte == 0).find_map(|field| field.strip_prefix(b"depends="));
    let text = String::from_utf8_lossy(text.unwrap_or_default());
    Ok(text.split(',').filter(|name| !name.is_empty()).map(canonical).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_yield_module_names() {
        assert_eq!(module_name("vfio-pci.ko.xz").as_deref(), Some("vfio_pci"));
        assert_eq!(module_name("uio.ko").as_deref(), Some("uio"));
        assert_eq!(module_name("modules.builtin"), None);
        assert_eq!(module_name("x.kotlin"), None);
    }

    #[test]
    fn a_kernel_without_modules_directory_misses_everything() {
        let kernel = Kernel { vmlinuz: "/x".into(), modules: None, release: "1".into() };
        let set = collect(&kernel, &WANTED_MODULES).unwrap();
        assert_eq!(set.missing.len(), WANTED_MODULES.len());
        assert!(!set.provides("virtio_pci"));
    }

    #[test]
    fn a_built_in_module_is_provided_and_an_absent_one_is_missing() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("kernel")).unwrap();
        fs::write(root.path().join("modules.builtin"), "kernel/drivers/virtio/virtio_pci.ko\n").unwrap();
        let kernel =
            Kernel { vmlinuz: "/x".into(), modules: Some(root.path().to_owned()), release: "1".into() };
        let set = collect(&kernel, &[("virtio-pci", ""), ("uio", "")]).unwrap();
        assert!(set.provides("virtio_pci"));
        assert_eq!(set.missing, BTreeSet::from(["uio".to_owned()]));
    }

    #[test]
    fn a_file_that_is_no_elf_is_refused_with_its_name() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("kernel")).unwrap();
        fs::write(root.path().join("modules.builtin"), "").unwrap();
        fs::write(root.path().join("kernel/uio.ko"), "rubbish").unwrap();
        let kernel =
            Kernel { vmlinuz: "/x".into(), modules: Some(root.path().to_owned()), release: "1".into() };
        let error = collect(&kernel, &[("uio", "")]).unwrap_err().to_string();
        assert!(error.contains("uio.ko"), "{error}");
    }
}
