"""The wheel, installed with only the packages that it requires, in a new environment.

Versions are those of `requirements.lock`.
"""

import os
import re
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

from tests.trust import licences

ROOT = Path(__file__).parents[2]
EXTRAS = ("matplotlib", "jinja2", "av", "onnxruntime", "safetensors", "trimesh", "mujoco", "pytest")


def measure() -> dict:
    """Install it, run the first steps of a README reader, and return the results to record."""
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as at:
        wheel = build_wheel(Path(at))
        python = install(wheel, Path(at))
        checks = run_checks(python, Path(at))
        size = wheel.stat().st_size
        packages = len(_stdout(python, "-m", "pip", "list", "--format=freeze").splitlines()) - 1
    failed = sum(not good for good in checks.values())
    counts = {"checks": len(checks), "failed": failed, "packages beside pip": packages}
    counts["kB of the wheel"] = round(size / 1000)
    seconds = round(time.perf_counter() - began)
    return {"counts": counts, "checks": checks, "failed": failed, "seconds": seconds}


def build_wheel(at: Path) -> Path:
    """Build the wheel of this tree."""
    command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "-o", at / "dist"]
    subprocess.run([*command, ROOT], check=True, capture_output=True)
    (wheel,) = (at / "dist").glob("*.whl")
    return wheel


def install(wheel: Path, at: Path) -> Path:
    """Return the interpreter of a new environment with the wheel and its requirements."""
    subprocess.run([sys.executable, "-m", "venv", at / "venv"], check=True)
    python = at / "venv" / "bin" / "python"
    limits = at / "constraints.txt"
    lock = (ROOT / "requirements.lock").read_text()
    limits.write_text("\n".join(re.findall(r"^\w[\w.-]*==[^\s;]+", lock, re.MULTILINE)))
    command = [python, "-m", "pip", "install", "-q", "--only-binary", ":all:", "-c", limits, wheel]
    subprocess.run(command, check=True, cwd=at, env=_clean_environment())
    return python


def run_checks(python: Path, at: Path) -> dict[str, bool]:
    """Return the checks of the environment and their results."""
    example = re.search(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    (value,) = re.findall(r"# \(([\d.]+), ", example[1])
    command = python.with_name("jaxgpu")
    packages = _stdout(python, "-m", "pip", "list", "--format=freeze").lower()
    first = _stdout(python, "-c", example[1])
    numbers = re.findall(r"\d+\.\d+", first)
    run = subprocess.run(
        [command, "run", "directions", "--out", at / "out"],
        cwd=at,
        env=_clean_environment(),
        capture_output=True,
        text=True,
    )
    said = run.stderr.strip().splitlines()
    with zipfile.ZipFile(next((at / "dist").glob("*.whl"))) as archive:
        names = archive.namelist()
    shipped = [f"jaxgpu/{name.removeprefix('jaxgpu/')}" for name in licences.rows()]
    return {
        "no package of an extra is there": not any(f"{e}==" in packages for e in EXTRAS),
        "LICENSE and NOTICE are in it": sum(n.endswith(("/LICENSE", "/NOTICE")) for n in names)
        == 2,
        "its data are in it": set(shipped) <= set(names),
        "README's first example": bool(numbers) and abs(float(numbers[0]) - float(value)) < 0.1,
        "jaxgpu list": "solar-system" in _stdout(command, "list"),
        "jaxgpu run says in one sentence what it misses": run.returncode == 2
        and len(said) == 1
        and 'pip install "jaxgpu[' in said[0],
    }


def _stdout(*command) -> str:
    done = subprocess.run(
        command, capture_output=True, text=True, env=_clean_environment(), cwd="/"
    )
    return done.stdout if done.returncode == 0 else ""


def _clean_environment() -> dict[str, str]:
    """Return the environment variables, except any that could add another Python's packages."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
