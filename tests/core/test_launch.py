"""The launch files of the documents, read by real parsers and executed."""

import argparse
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
LAUNCH = ROOT / "docs" / "launch"

# The file may use these long options from the manual of sbatch.
SBATCH = "job-name nodes ntasks-per-node gpus-per-node cpus-per-task time signal open-mode output"


def test_the_jobset_names_what_it_uses():
    (job_set,) = yaml.safe_load_all((LAUNCH / "jobset.yaml").read_text())
    assert (job_set["apiVersion"], job_set["kind"]) == ("jobset.x-k8s.io/v1alpha2", "JobSet")
    (group,) = job_set["spec"]["replicatedJobs"]
    job = group["template"]["spec"]
    pod = job["template"]["spec"]
    (container,) = pod["containers"]
    said = {entry["name"]: entry for entry in container["env"]}
    assert said.keys() == {"JAX_COORDINATOR_ADDRESS", "JAX_NUM_PROCESSES", "JAX_PROCESS_ID"}
    name = job_set["metadata"]["name"]
    host, port = said["JAX_COORDINATOR_ADDRESS"]["value"].split(":")
    assert host == f"{name}-{group['name']}-0-0.{name}" and 1024 < int(port) < 65536
    assert int(said["JAX_NUM_PROCESSES"]["value"]) == job["completions"] == job["parallelism"]
    assert job["completionMode"] == "Indexed" and group["replicas"] == 1
    index = said["JAX_PROCESS_ID"]["valueFrom"]["fieldRef"]["fieldPath"]
    assert index == "metadata.annotations['batch.kubernetes.io/job-completion-index']"
    # A pod that fails ends the job, and the set starts all pods again.
    assert job["backoffLimit"] == 0 and pod["restartPolicy"] == "Never"
    assert job_set["spec"]["failurePolicy"]["maxRestarts"] > 0
    mounted = {mount["name"] for mount in container["volumeMounts"]}
    assert mounted == {volume["name"] for volume in pod["volumes"]}
    assert container["command"][:2] == ["python", "job.py"]


def test_the_lines_for_sbatch_are_options_of_it():
    script = (LAUNCH / "slurm.sh").read_text()
    assert subprocess.run(["bash", "-n", LAUNCH / "slurm.sh"]).returncode == 0
    lines = re.findall(r"^#SBATCH (.*)$", script, re.MULTILINE)
    first = next(i for i, line in enumerate(script.splitlines()) if line and line[0] != "#")
    assert len(lines) == sum(line.startswith("#SBATCH") for line in script.splitlines()[:first])
    parser = argparse.ArgumentParser(allow_abbrev=False, exit_on_error=False)
    parser.add_argument("--requeue", action="store_true", required=True)
    for option in SBATCH.split():
        parser.add_argument(f"--{option}", required=True)
    found = parser.parse_args(lines)
    assert found.ntasks_per_node == found.gpus_per_node  # JAX gives each process one
    assert re.fullmatch(r"TERM@\d+", found.signal) and found.open_mode == "append"


def batch(tmp_path, srun, **environment):
    """Run the batch script with these commands instead of SLURM's; return its code and output."""
    commands = {"srun": srun, "scontrol": 'echo "scontrol $*"'}
    for name, text in commands.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{text}\n")
        (tmp_path / name).chmod(0o755)
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {"PATH": path, "SLURM_JOB_ID": "7"} | environment
    command = ["bash", LAUNCH / "slurm.sh"]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("code, again", [(0, False), (1, False), (75, True), (134, True)])
def test_a_job_that_lost_a_process_goes_back_into_the_queue(tmp_path, code, again):
    found, said = batch(tmp_path, f"exit {code}")
    assert found == code and ("scontrol requeue 7" in said) == again
    assert "requeue" not in batch(tmp_path, f"exit {code}", SLURM_RESTART_COUNT="20")[1]


@pytest.mark.slow
def test_the_job_runs_as_it_is_launched(tmp_path):
    """Start two tasks as `srun` does."""
    task = f"""
export SLURM_STEP_NODELIST=127.0.0.1 SLURM_NTASKS=2 PYTHONPATH={ROOT} JAX_PLATFORMS=cpu
for number in 0 1; do
    SLURM_PROCID=$number SLURM_LOCALID=$number {sys.executable} {LAUNCH / "job.py"} 64 10 &
    tasks+=($!)
done
wait "${{tasks[0]}}" && wait "${{tasks[1]}}"
"""
    code, said = batch(tmp_path, task, SLURM_JOB_ID=str(os.getpid()))
    assert code == 0 and "2 processes, 2 devices" in said and "Run: 10 steps" in said
    assert [file.name for file in tmp_path.glob("out/*/part-*")].count("part-00001.npz") > 0
