"""Results of `jaxgpu.load` for folders, in a process without the script.

It imports none of the helpers that ran the forms.
"""

import json
from pathlib import Path

import jax
import numpy as np

import jaxgpu
from jaxgpu.inputs import arguments

# the part of a folder's state or history that a form returns, if not all
STATES = {"minimize": "state", "protocol.run": "state"}
HISTORIES = {"simulate": "measured"}
# the class of a spec, or of its parts by name
SPECS = {
    "run": "SimpleNamespace",  # the class is in the script
    "minimize": {"spec": "CMAES", "problem": "Problem", "mesh": "NoneType"},
    "protocol.run": {"spec": "CMAES", "problem": "Problem", "mesh": "NoneType"},
    "evolve": "Cluster",
    "integrate": "Planetary",
    "simulate": "Frames",
    "train": {"learner": "PPO", "env": "CartPole"},
    "sweep": {
        "mesh": "NoneType",
        "learner": "PPO",
        "env": "CartPole",
        "every": "int",
        "seeds": "int",
    },
    "plan": {"self": "Descent", "loss": "Missing"},
    "fit_mixture": {"x": "ndarray", "hard": "bool"},
}


def report(at: str, names: list[str]) -> None:
    """Print for each folder why it does not hold the form's result, or "" if it does."""
    print(json.dumps({name: fault(name, Path(at)) for name in names}))


def fault(name: str, at: Path) -> str:
    """Return why a folder is loaded incorrectly: its state, history or spec."""
    saved = jaxgpu.load(at / name)
    state = getattr(saved.state, STATES[name]) if name in STATES else saved.state
    history = getattr(saved.history, HISTORIES[name]) if name in HISTORIES else saved.history
    tree = str(jax.tree.structure(state))
    if tree != (want := (at / f"{name}.txt").read_text()):
        return f"the state is {tree}, not {want}"
    leaves = jax.tree.leaves((state, history))
    plain = [jax.random.key_data(leaf) if arguments.is_key(leaf) else leaf for leaf in leaves]
    with np.load(at / f"{name}-left.npz") as returned:
        kinds = [(a.dtype, a.shape, a.tobytes()) for a in (returned[i] for i in returned)]
    if kinds != [(a.dtype, a.shape, a.tobytes()) for a in map(np.asarray, plain)]:
        return "the state or the history has other bits"
    kind = lambda thing: type(thing).__name__
    spec = saved.spec
    found = {k: kind(v) for k, v in spec.items()} if isinstance(spec, dict) else kind(spec)
    return "" if found == SPECS[name] else f"the spec is {found}, not {SPECS[name]}"
