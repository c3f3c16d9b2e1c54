//! `execlab bench`: the doorbell's path beside floors of the same run, and the model alone.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use execlab_launch::{DeviceConfig, DeviceProcess, Interrupt, WorkDir};

use crate::cli::BenchArgs;
use crate::out::Json;
use crate::prepare;
use crate::workspace::{cargo, run};

/// Measures with each way of waiting, natively, then the model alone.
///
/// # Errors
/// When a measurement cannot be made.
pub fn bench(root: &Path, args: &BenchArgs, interrupt: &Interrupt) -> Result<()> {
    let mut json = Json::open(args.json.as_deref())?;
    let device = prepare::device(root)?;
    prepare::say("building the benchmarks");
    let program = prepare::host_program(root, "execlab-bench", "execlab-bench")?.get_program().to_owned();
    let work = WorkDir::create()?;
    let mut results = serde_json::Map::new();
    for wait in ["poll", "sleep"] {
        let config = DeviceConfig {
            binary: device.clone(),
            socket: work.join(&format!("device-{wait}")),
            profile: Some("instant".to_owned()),
            wait: Some(wait.to_owned()),
            cpu: Some(1),
            ..DeviceConfig::default()
        };
        let device = DeviceProcess::start(&config, interrupt)?;
        let file = work.join(&format!("{wait}.json"));
        let mut command = Command::new(&program);
        command.arg("doorbell").arg("--socket").arg(device.socket());
        command
            .args(["--rounds", &args.rounds.to_string(), "--json"])
            .arg(&file)
            .stdout(json.stdout_of_children());
        run(command)?;
        let text =
            std::fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        results.insert(format!("doorbell-{wait}"), serde_json::from_str(&text)?);
    }
    json.print("The model alone:\n")?;
    let mut model = cargo(root, &["bench", "--quiet", "--package", "execlab-model"]);
    model.stdout(json.stdout_of_children());
    run(model)?;
    json.write(&results)
}
