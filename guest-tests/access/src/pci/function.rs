//! A PCI function as sysfs shows it: finding, taking, giving back.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use execlab_abi::wire::{PCI_DEVICES, PCI_VENDOR};

use super::capabilities::{self, CONFIG_SIZE, Places};
use crate::Error;

const DEVICES: &str = "/sys/bus/pci/devices";

/// A PCI function.
#[derive(Debug)]
pub(crate) struct Function {
    path: PathBuf,
    address: String,
    /// The kernel driver that had it, by name.
    owner: Option<String>,
}

/// The functions with one of the wire's ids, in the order of [`PCI_DEVICES`], then of addresses.
pub(crate) fn find() -> Result<Vec<Function>, Error> {
    let mut found = Vec::new();
    let entries = fs::read_dir(DEVICES).map_err(|source| Error::Pci {
        address: DEVICES.into(),
        what: "listing PCI functions; is sysfs mounted?".into(),
        source,
    })?;
    for entry in entries.flatten() {
        let path = entry.path();
        let ids = (read_id(&path, "vendor"), read_id(&path, "device"));
        let (Some(vendor), Some(device)) = ids else { continue };
        if vendor != PCI_VENDOR {
            continue;
        }
        if let Some(rank) = PCI_DEVICES.iter().position(|id| *id == device) {
            let address = entry.file_name().to_string_lossy().into_owned();
            let owner = link_name(&path.join("driver"));
            found.push((rank, Function { path, address, owner }));
        }
    }
    found.sort_by(|(a, f), (b, g)| (a, &f.address).cmp(&(b, &g.address)));
    Ok(found.into_iter().map(|(_, function)| function).collect())
}

fn read_id(path: &Path, file: &str) -> Option<u16> {
    let text = fs::read_to_string(path.join(file)).ok()?;
    u16::from_str_radix(text.trim().strip_prefix("0x")?, 16).ok()
}

/// Last component of what a symbolic link points to.
fn link_name(path: &Path) -> Option<String> {
    Some(fs::read_link(path).ok()?.file_name()?.to_string_lossy().into_owned())
}

impl Function {
    /// PCI address, for example `0000:00:03.0`.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// The sysfs folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Name of a disk of this function that is mounted or swapped to: such a function is no execlab device.
    pub(crate) fn disk_in_use(&self) -> Option<String> {
        let used: Vec<String> = ["/proc/mounts", "/proc/swaps"]
            .iter()
            .filter_map(|file| fs::read_to_string(file).ok())
            .flat_map(|text| text.lines().filter_map(first_word).collect::<Vec<_>>())
            .collect();
        let virtio = fs::read_dir(&self.path).ok()?.flatten();
        let disks = virtio.filter_map(|entry| fs::read_dir(entry.path().join("block")).ok());
        disks
            .flat_map(Iterator::flatten)
            .map(|disk| disk.file_name().to_string_lossy().into_owned())
            .find(|disk| used.iter().any(|device| device.starts_with(&format!("/dev/{disk}"))))
    }

    /// Gives the function to the kernel driver `driver`, taking it from another one if need be.
    pub(crate) fn bind(&self, driver: &str) -> Result<(), Error> {
        if link_name(&self.path.join("driver")).as_deref() == Some(driver) {
            return Ok(());
        }
        self.unbind()?;
        self.set_override(driver)?;
        self.probe(driver)?;
        match link_name(&self.path.join("driver")) {
            Some(bound) if bound == driver => Ok(()),
            _ => Err(self.unusable(format!(
                "the kernel's driver {driver} did not take it; is the module loaded{}?",
                if driver == super::VFIO_PCI { ", and an IOMMU on (intel_iommu=on)" } else { "" }
            ))),
        }
    }

    /// Gives the function back to whom it belonged. Failures leave it without a driver, and are no news to
    /// somebody who just could not use it.
    pub(crate) fn give_back(&self) {
        let _ = self.unbind();
        let _ = self.set_override("\n");
        if let Some(owner) = &self.owner {
            let _ = self.probe(owner);
        }
    }

    fn unbind(&self) -> Result<(), Error> {
        let file = self.path.join("driver/unbind");
        if !file.exists() {
            return Ok(());
        }
        self.write(&file, &self.address, "taking it from its kernel driver; are you root?")
    }

    fn set_override(&self, driver: &str) -> Result<(), Error> {
        self.write(&self.path.join("driver_override"), driver, "setting driver_override; are you root?")
    }

    fn probe(&self, driver: &str) -> Result<(), Error> {
        let what = format!("binding it to {driver}; is the module loaded?");
        self.write(Path::new("/sys/bus/pci/drivers_probe"), &self.address, &what)
    }

    fn write(&self, file: &Path, text: &str, what: &str) -> Result<(), Error> {
        fs::write(file, text).map_err(|source| self.error(what, source))
    }

    /// Opens a file of the sysfs folder for reading and writing.
    pub(crate) fn open(&self, name: &str) -> Result<File, Error> {
        let open = OpenOptions::new().read(true).write(true).open(self.path.join(name));
        open.map_err(|source| self.error(&format!("opening {name}; are you root?"), source))
    }

    /// Where the virtio registers lie.
    pub(crate) fn places(&self) -> Result<Places, Error> {
        let mut config = [0; CONFIG_SIZE];
        self.open("config")?
            .read_exact_at(&mut config, 0)
            .map_err(|source| self.error("reading the configuration space; are you root?", source))?;
        capabilities::parse(&config).map_err(|why| self.unusable(why.into()))
    }

    pub(crate) fn error(&self, what: &str, source: io::Error) -> Error {
        Error::Pci { address: self.address.clone(), what: what.into(), source }
    }

    pub(crate) fn unusable(&self, why: String) -> Error {
        Error::Unusable { address: self.address.clone(), why }
    }
}

fn first_word(line: &str) -> Option<String> {
    line.split_whitespace().next().map(str::to_owned)
}
