//! A program for the guest that behaves as its first argument says. Built with bare rustc by `tests/boot.rs`.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::FromRawFd;

const PROGRESS: &str = r#"{"type":"progress","done":0,"total":1,"what":"hello from the guest"}"#;

fn main() {
    let number = std::env::var("EXECLAB_RESULTS_FD").expect("the results channel");
    // SAFETY: PID 1 gives this descriptor to us alone.
    let mut results = unsafe { File::from_raw_fd(number.parse().expect("a number")) };
    println!("behave: on the console");
    match std::env::args().nth(1).as_deref() {
        Some("finish") => {
            // Larger than any queue on the way, to see that nothing is lost and nothing blocks.
            for _ in 0..3000 {
                writeln!(results, "{PROGRESS}").expect("writing results");
            }
            writeln!(results, r#"{{"type":"done"}}"#).expect("writing results");
            let setting = |path| std::fs::read_to_string(path).expect(path);
            assert_eq!(setting("/proc/sys/vm/nr_hugepages").trim(), "16");
            assert_eq!(setting("/proc/sys/kernel/sched_rt_runtime_us").trim(), "-1");
            println!("behave: plan is {}", setting("/execlab/plan.json"));
            println!("behave: modules {}", setting("/proc/modules").replace('\n', ";"));
        }
        Some("clock") => {
            let start = std::time::Instant::now();
            while start.elapsed().as_secs() < 5 {
                let now = start.elapsed().as_millis();
                let line = format!(r#"{{"type":"progress","done":{now},"total":5000,"what":"clock"}}"#);
                writeln!(results, "{line}").expect("writing results");
                std::thread::sleep(std::time::Duration::from_millis(500));
            }
        }
        Some("list-pci") => {
            for device in std::fs::read_dir("/sys/bus/pci/devices").expect("PCI").flatten() {
                let id = |name| std::fs::read_to_string(device.path().join(name)).unwrap_or_default();
                println!("behave: pci {}:{}", id("vendor").trim(), id("device").trim());
            }
        }
        Some("fail") => std::process::exit(7),
        Some("abort") => std::process::abort(),
        Some("panic-kernel") => {
            writeln!(results, "{PROGRESS}").expect("writing results");
            std::fs::write("/proc/sysrq-trigger", "c").expect("triggering a panic");
        }
        Some("rubbish") => {
            write!(results, "\x7fELF this is not a result\n").expect("writing results");
            hang(results);
        }
        _ => hang(results),
    }
}

fn hang(mut results: File) {
    // Nobody writes to us: this read never returns.
    let _ = results.read(&mut [0]);
}
