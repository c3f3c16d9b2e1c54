//! The host distribution's kernels, through apt: downloaded and unpacked, never installed.
//!
//! Mirrors, keys and suites are the host's own. When the host's package lists do not know the kernel (a fresh
//! container has none) or are too old for its mirror, lists are fetched into the cache, so that nothing on the
//! host changes and root is not needed.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::kernel::{Flavour, Kernel, modules_directory, release_of};
use crate::{Error, Say};

const KERNEL_FILE: &str = "kernel.json";

/// A distribution whose package names are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Distribution {
    Debian,
    Ubuntu,
}

/// What os-release says.
#[derive(Debug, PartialEq, Eq)]
struct Host {
    distribution: Distribution,
    /// For example `debian-12`.
    label: String,
}

/// One package that apt could download.
#[derive(Debug, PartialEq, Eq)]
struct Package {
    name: String,
    version: String,
    depends: String,
    bytes: u64,
}

pub(crate) fn fetch(flavour: Flavour, cache: &Path, say: &Say<'_>) -> Result<Kernel, Error> {
    if std::env::consts::ARCH != "x86_64" {
        return Err(Error::Architecture { found: std::env::consts::ARCH });
    }
    let host = host()?;
    let place = cache.join(format!("{}-{flavour}", host.label));
    if let Some(kernel) = cached(&place) {
        return Ok(kernel);
    }
    fs::create_dir_all(cache).map_err(Error::file("creating", cache))?;
    let (apt, packages) = match resolve(&Apt::host(), host.distribution, flavour)? {
        Some(packages) => (Apt::host(), packages),
        None => refreshed(cache, host.distribution, flavour, say)?,
    };
    // Beside its final place, so that renaming it there is one step: what is in the cache is complete.
    let scratch = tempfile::tempdir_in(cache).map_err(Error::file("creating a directory in", cache))?;
    if let Err(error) = download(&apt, &packages, scratch.path(), say) {
        if apt.private() {
            return Err(error);
        }
        // Old lists name versions that the mirror has dropped.
        let (apt, packages) = refreshed(cache, host.distribution, flavour, say)?;
        download(&apt, &packages, scratch.path(), say)?;
    }
    let root = unpack(scratch.path(), say)?;
    let kernel = locate(&root)?;
    let text = serde_json::to_string_pretty(&kernel).unwrap_or_default();
    fs::write(root.join(KERNEL_FILE), text).map_err(Error::file("writing", &root))?;
    if let Err(source) = fs::rename(&root, &place) {
        // Another process may have been faster.
        return cached(&place).ok_or(Error::File { what: "moving to", path: place, source });
    }
    cached(&place).ok_or_else(|| Error::content(&place, "was removed while it was being filled"))
}

/// The kernel in a cache folder. Paths inside are relative to it, so the cache may move.
fn cached(place: &Path) -> Option<Kernel> {
    let text = fs::read_to_string(place.join(KERNEL_FILE)).ok()?;
    let mut kernel: Kernel = serde_json::from_str(&text).ok()?;
    kernel.vmlinuz = place.join(kernel.vmlinuz);
    kernel.modules = kernel.modules.map(|modules| place.join(modules));
    kernel.vmlinuz.is_file().then_some(kernel)
}

fn host() -> Result<Host, Error> {
    let text = ["/etc/os-release", "/usr/lib/os-release"]
        .iter()
        .find_map(|path| fs::read_to_string(path).ok())
        .unwrap_or_default();
    parse_host(&text)
}

fn parse_host(os_release: &str) -> Result<Host, Error> {
    let value = |key: &str| {
        let line = os_release.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix('='));
        line.map(|value| value.trim_matches('"').to_owned()).unwrap_or_default()
    };
    let id = value("ID");
    let like = value("ID_LIKE");
    let mut families = std::iter::once(id.as_str()).chain(like.split_whitespace());
    let distribution = families.find_map(|family| match family {
        "debian" => Some(Distribution::Debian),
        "ubuntu" => Some(Distribution::Ubuntu),
        _ => None,
    });
    let version = value("VERSION_ID");
    match distribution {
        Some(distribution) => Ok(Host { distribution, label: format!("{id}-{version}") }),
        None if id.is_empty() => Err(Error::UnknownDistribution { found: "an unknown system".into() }),
        None => Err(Error::UnknownDistribution { found: id }),
    }
}

fn meta_package(distribution: Distribution, flavour: Flavour) -> &'static str {
    match (distribution, flavour) {
        (Distribution::Debian, Flavour::Cloud) => "linux-image-cloud-amd64",
        (Distribution::Debian, Flavour::Rt) => "linux-image-rt-amd64",
        (Distribution::Ubuntu, Flavour::Cloud) => "linux-image-virtual",
        (Distribution::Ubuntu, Flavour::Rt) => "linux-image-realtime",
    }
}

/// The packages with image and modules, or None when these lists do not know the flavour.
fn resolve(apt: &Apt, distribution: Distribution, flavour: Flavour) -> Result<Option<Vec<Package>>, Error> {
    let Some(meta) = apt.show(meta_package(distribution, flavour))? else {
        return Ok(None);
    };
    let Some(image) = image_dependency(&meta.depends) else {
        return Ok(None);
    };
    let Some(image) = apt.show(&image)? else {
        return Ok(None);
    };
    let mut packages = Vec::new();
    if distribution == Distribution::Ubuntu {
        // Ubuntu keeps modules apart; uio and vfio are in the second package, which some flavours lack.
        let release = image.name.trim_start_matches("linux-image-");
        for name in [format!("linux-modules-{release}"), format!("linux-modules-extra-{release}")] {
            packages.extend(apt.show(&name)?);
        }
    }
    packages.push(image);
    Ok(Some(packages))
}

/// The first `linux-image-…` among dependencies, without its version.
fn image_dependency(depends: &str) -> Option<String> {
    depends
        .split([',', '|'])
        .filter_map(|one| one.split_whitespace().next())
        .find(|name| name.starts_with("linux-image-"))
        .map(str::to_owned)
}

/// Fetches package lists into the cache and resolves with them.
fn refreshed(
    cache: &Path,
    distribution: Distribution,
    flavour: Flavour,
    say: &Say<'_>,
) -> Result<(Apt, Vec<Package>), Error> {
    let apt = Apt::with_lists_in(&cache.join("apt"))?;
    say("fetching package lists (into the cache; the host's are not touched)");
    run(apt.command("apt-get").args(["--quiet", "update"]))?;
    match resolve(&apt, distribution, flavour)? {
        Some(packages) => Ok((apt, packages)),
        None => Err(Error::NoPackage { package: meta_package(distribution, flavour).to_owned() }),
    }
}

fn download(apt: &Apt, packages: &[Package], directory: &Path, say: &Say<'_>) -> Result<(), Error> {
    for Package { name, version, bytes, .. } in packages {
        say(&format!("downloading {name} {version} ({} MB)", bytes / 1_000_000));
        let package = format!("{name}={version}");
        run(apt.command("apt-get").args(["--quiet", "download", &package]).current_dir(directory))?;
    }
    Ok(())
}

fn unpack(directory: &Path, say: &Say<'_>) -> Result<std::path::PathBuf, Error> {
    let root = directory.join("root");
    fs::create_dir(&root).map_err(Error::file("creating", &root))?;
    for entry in fs::read_dir(directory).map_err(Error::file("listing", directory))?.flatten() {
        if entry.path().extension().is_some_and(|extension| extension == "deb") {
            say(&format!("unpacking {}", entry.file_name().to_string_lossy()));
            run(Command::new("dpkg-deb").arg("-x").arg(entry.path()).arg(&root))?;
        }
    }
    Ok(root)
}

/// Finds the files of an unpacked kernel; the paths are relative to `root`.
fn locate(root: &Path) -> Result<Kernel, Error> {
    let boot = root.join("boot");
    let vmlinuz = fs::read_dir(&boot)
        .map_err(Error::file("listing", &boot))?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("vmlinuz-")))
        .ok_or_else(|| Error::content(&boot, "the kernel package holds no vmlinuz"))?;
    let release = release_of(&vmlinuz)?;
    let modules = modules_directory(root, &release)?;
    let relative = |path: &Path| path.strip_prefix(root).unwrap_or(path).to_owned();
    Ok(Kernel { vmlinuz: relative(&vmlinuz), modules: Some(relative(&modules)), release })
}

/// apt with the host's configuration, and perhaps package lists of our own.
struct Apt {
    options: Vec<String>,
}

impl Apt {
    fn host() -> Self {
        Self { options: Vec::new() }
    }

    fn with_lists_in(directory: &Path) -> Result<Self, Error> {
        let (lists, archives) = (directory.join("lists"), directory.join("cache"));
        for path in [lists.join("partial"), archives.join("archives/partial")] {
            fs::create_dir_all(&path).map_err(Error::file("creating", &path))?;
        }
        // apt takes a relative path as relative to its own directories.
        let absolute = |path: &Path| fs::canonicalize(path).map_err(Error::file("resolving", path));
        let options = vec![
            format!("Dir::State::Lists={}", absolute(&lists)?.display()),
            format!("Dir::Cache={}", absolute(&archives)?.display()),
            // As root, apt would download as a user that may not enter the cache.
            "APT::Sandbox::User=root".to_owned(),
        ];
        Ok(Self { options })
    }

    fn private(&self) -> bool {
        !self.options.is_empty()
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command.env("LC_ALL", "C").env("DEBIAN_FRONTEND", "noninteractive");
        for option in &self.options {
            command.args(["-o", option]);
        }
        command
    }

    /// What apt knows of the candidate version, or None when it knows nothing.
    fn show(&self, name: &str) -> Result<Option<Package>, Error> {
        let output = self
            .command("apt-cache")
            .args(["--no-all-versions", "show", name])
            .output()
            .map_err(|source| Error::Start { program: "apt-cache".into(), source })?;
        Ok(parse_show(&String::from_utf8_lossy(&output.stdout)))
    }
}

fn parse_show(text: &str) -> Option<Package> {
    let field = |key: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(": "))?;
        Some(line.trim().to_owned())
    };
    Some(Package {
        name: field("Package")?,
        version: field("Version")?,
        depends: field("Depends").unwrap_or_default(),
        bytes: field("Size").and_then(|size| size.parse().ok()).unwrap_or(0),
    })
}

fn run(command: &mut Command) -> Result<(), Error> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|source| Error::Start { program: program.clone(), source })?;
    if output.status.success() {
        return Ok(());
    }
    let words = command.get_args().map(|word| word.to_string_lossy());
    let command = std::iter::once(program.into()).chain(words).collect::<Vec<_>>().join(" ");
    let stderr = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = stderr.trim().lines().collect();
    Err(Error::Command { command, stderr: lines[lines.len().saturating_sub(4)..].join(" / ") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn os_release_of_debian_ubuntu_and_a_derivative_is_understood() {
        let debian = parse_host("PRETTY_NAME=\"Debian 12\"\nVERSION_ID=\"12\"\nID=debian\n").unwrap();
        assert_eq!(debian, Host { distribution: Distribution::Debian, label: "debian-12".into() });
        let ubuntu = parse_host("ID=ubuntu\nID_LIKE=debian\nVERSION_ID=\"24.04\"").unwrap();
        assert_eq!(ubuntu.distribution, Distribution::Ubuntu);
        let mint = parse_host("ID=linuxmint\nID_LIKE=\"ubuntu debian\"\nVERSION_ID=\"22\"").unwrap();
        assert_eq!(mint.distribution, Distribution::Ubuntu);
    }

    #[test]
    fn another_distribution_is_refused_with_its_name_and_the_way_out() {
        let error = parse_host("ID=fedora\nVERSION_ID=44").unwrap_err().to_string();
        assert!(error.contains("fedora") && error.contains("--kernel FILE --modules DIR"), "{error}");
    }

    #[test]
    fn the_record_of_a_meta_package_yields_its_image() {
        let record = "Package: linux-image-cloud-amd64\nVersion: 6.1.192-3\nSize: 1496\n\
                      Depends: linux-image-6.1.0-57-cloud-amd64 (= 6.1.192-3)\nDescription: x\n";
        let package = parse_show(record).unwrap();
        assert_eq!((package.version.as_str(), package.bytes), ("6.1.192-3", 1496));
        assert_eq!(image_dependency(&package.depends).unwrap(), "linux-image-6.1.0-57-cloud-amd64");
        assert_eq!(parse_show(""), None);
    }
}
