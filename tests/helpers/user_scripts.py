"""Steps of user scripts, and equivalent ways to start the same script again.

`python tests/helpers/user_scripts.py WAY FOLDER STEPS` resumes the step of every script in a
separate folder, and prints as JSON its history, or the reason why it did not resume.
"""

import json
import re
import sys
import types
import warnings
from pathlib import Path
from typing import Any

import numpy as np

HEAD = """
import enum, functools, logging, pathlib, threading
import jax, jax.numpy as jnp, numpy as np
"""
HOST = 'jax.pure_callback({}, jax.ShapeDtypeStruct((), "float32"), x)'

SCRIPTS = {
    "expression": "step = lambda x: 2 * x + 1",
    "loop": """
def step(x):
    def body(i, y):
        return 1.5 * y + i
    return jax.lax.fori_loop(0, 3, body, x)
""",
    "jitted": """
@jax.jit
def inner(x):
    return jnp.sin(x)
def step(x):
    return inner(x) + 1
""",
    "method": """
class Settings:
    rate = 2.0
    names = {"a", "b", "c"}
    def move(self, x):
        return x * self.rate
step = Settings().move
""",
    "enumeration": """
class Kind(enum.Enum):
    A = 2
    @property
    def twice(self):
        return 2 * self.value
def step(x):
    return x * Kind.A.twice
""",
    "closure": """
def made(a):
    table = {"a": a, "b": [1, 2]}
    def inner(x):
        return x * table["a"] + table["b"][1]
    return inner
step = made(2.0)
""",
    "partial": """
def base(k, x, *, more=3.0):
    return k * x + more
step = functools.partial(base, np.float32(2), more=1.0)
""",
    "function of the host": f"""
TABLE, WHERE = {{"k": 2.0}}, pathlib.Path("data")
def host(x):
    inner = lambda y: y * TABLE["k"]
    if str(x) in {{"a", "b", "c"}}:
        return x
    return np.float32(inner(x))
def step(x):
    return {HOST.format("host")}
""",
    "function of the host with asserts": f"""
LEAST = 0.0
def host(x):
    y = 2 * x
    assert LEAST is not None and x > LEAST, "too small"
    while y > 8:
        y = y / 2
    return np.float32(y)
def step(x):
    return {HOST.format("host")}
""",
    "object of the host": f"""
log, lock, seen = logging.getLogger("a"), threading.Lock(), []
class Watch:
    names = {{"x", "y"}}
    def __call__(self, x):
        with lock:
            seen.append(float(x))
            log.debug("seen")
        return np.float32(2 * x)
watch = Watch()
def step(x):
    return {HOST.format("watch")}
""",
    "messages": """
def step(x):
    jax.debug.print("at {}", x)
    jax.debug.callback(lambda y: None, x)
    return 2 * x
""",
    "rules": """
@jax.custom_vjp
def made(x):
    return x
def inner(x):
    return x, None
made.defvjp(inner, lambda _, t: (2 * t,))
def step(x):
    return x - 0.1 * jax.grad(lambda y: made(y) * y)(x)
""",
    "checkpointed": """
def step(x):
    policy = jax.checkpoint_policies.dots_saveable
    return jax.grad(jax.checkpoint(jnp.sin, policy=policy))(x)
""",
    "random": "step = lambda x: x + jax.random.normal(jax.random.key(3), (), x.dtype)",
    "root": """
def step(x):
    def solve(f, x):
        return jax.lax.fori_loop(0, 9, lambda i, y: y - f(y) / (2 * y), x)
    return jax.lax.custom_root(lambda z: z**2 - 2, x, solve, lambda g, y: y / g(1.0))
""",
    "optax": """
import optax
adam = optax.adam(1e-2)
step = lambda x: x + adam.update(x, adam.init(x))[0]
""",
    "flax": """
from flax import linen
class Made(linen.Module):
    count: int = 1
    @linen.compact
    def __call__(self, x):
        return linen.Dense(self.count)(x)
made = Made()
weights = made.init(jax.random.key(0), jnp.ones(1))
step = lambda x: made.apply(weights, x[None])[0]
""",
    "pallas": """
from jax.experimental import pallas
def inner(i, o):
    o[...] = 2 * i[...]
def step(x):
    shape = jax.ShapeDtypeStruct((1,), "float32")
    return pallas.pallas_call(inner, out_shape=shape, interpret=True)(x[None])[0]
""",
    "shards": """
mesh, everywhere = jax.make_mesh((1,), ("a",)), jax.sharding.PartitionSpec()
def step(x):
    inner = lambda y: 2 * y
    return jax.shard_map(inner, mesh=mesh, in_specs=everywhere, out_specs=everywhere)(x)
""",
    "file": """
WHERE = pathlib.Path(jax.__file__).parent / "py.typed"
def step(x):
    with open(WHERE) as file:
        return x * (2 + len(file.read()))
""",
}
HERE = ("as it was", "comments", "docstrings", "names", "another file", "a cell run twice", "main")


def rewrite(way: str, text: str) -> str:
    """Return the text of an equivalent script."""
    if way == "comments":
        return "# a comment\n\n\n" + text.replace(":\n", ":  # another\n").replace("\n", "\n\n")
    if way == "docstrings":
        add_docstring = lambda found: f'{found[0]}{found[1]}    """Say what it does, {{}}."""\n'
        return re.sub(r"( *)def \w+\(.*\):\n", add_docstring, text)
    if way == "names":
        for name, other in (("body", "cycle"), ("inner", "within"), ("made", "built")):
            text = re.sub(rf"\b{name}\b", other, text)
    return text


def load_step(way: str, name: str) -> Any:
    """Return the step of a script."""
    for turn in range(2 if way == "a cell run twice" else 1):
        module = types.ModuleType("__main__" if way == "main" else "script")
        before, sys.modules[module.__name__] = sys.modules.get(module.__name__), module
        file = f"/elsewhere/{name}.py" if way == "another file" else f"script-{turn}.py"
        try:
            exec(compile(HEAD + rewrite(way, SCRIPTS[name]), file, "exec"), vars(module))
        finally:
            if before is not None:
                sys.modules[module.__name__] = before
    return module.step


def resume_script(way: str, name: str, out: Path, steps: int) -> list[float] | str:
    """Return the history of a run of `steps` in total, or the error or warning of its resume."""
    from jaxgpu.runs.loop import run

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            step = load_step(way, name)
            done = run(step, np.float32(1), steps, measure=lambda x: x, out=out, resume=True)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
    return done.history.tolist()


if __name__ == "__main__":
    way, folder, steps = sys.argv[1:]
    print(json.dumps({n: resume_script(way, n, Path(folder, n), int(steps)) for n in SCRIPTS}))
