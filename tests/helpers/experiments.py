"""Toy versions of every one-call form that writes a folder, as functions of length and values.

`run_form(name, far, values, **where)` runs a form with `BASE[name]` overridden by `values`. The
code of a user's script comes from a text that can be changed, moved to another line, and attributed
to another module.
"""

import types
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxgpu import evolution, numerics, physics, rl
from jaxgpu.inputs import fields as pytree
from jaxgpu.rl import plan as planning
from jaxgpu.runs import loop

nbody, continuum = physics.nbody, physics.continuum

SCRIPT = """
import jax.numpy as jnp

OFFSET = {offset}


def inner(x):
    return {inner}


def made(look, target):
    def loss(state, power={power}, *, scale={scale}):
        x = look(state)
        return {body}

    return loss
"""
LOSS = "scale * jnp.sum((inner(x) - target) ** power) + OFFSET"
WRITTEN = {
    "offset": 0.25,
    "inner": "1.5 * x",
    "power": 2,
    "scale": 1.0,
    "body": LOSS,
    "target": 0.5,
    "lines": 0,
    "module": "script",
}


def make_script(look: Callable[[Any], Any], **values: Any) -> Callable[[Any], Any]:
    """Return a function of a user's script whose input is `look(state)`."""
    values = WRITTEN | values
    module = types.ModuleType(values["module"])
    exec("\n" * values["lines"] + SCRIPT.format(**values), vars(module))
    return module.made(look, values["target"])


def same_value(x: Any) -> Any:
    return x


def stack_leaves(x: Any) -> Any:
    parts = [jnp.ravel(part) for part in jax.tree.leaves(x)]
    return jnp.concatenate(parts).astype(jnp.result_type(float))


@pytree.pytree
class Noise:
    sigma: Any = 0.1  # []
    kind: str = pytree.static(default="normal")


@pytree.pytree
class Walk:
    """Noisy gradient descent on a loss."""

    rate: Any = 0.1  # []
    noise: Noise = Noise()
    loss: Any = pytree.static(default=None)
    rounds: int = pytree.static(default=2)

    def step(self, state: Any, key: Any) -> Any:
        x = state["x"]
        for _ in range(self.rounds):
            x = x - self.rate * jax.grad(lambda x: self.loss({"x": x}))(x)
        draw = getattr(jax.random, self.noise.kind)
        return state | {"x": x + self.noise.sigma * draw(key, x.shape, x.dtype)}


@pytree.pytree
class Climb(Walk):
    """Noisy gradient ascent on a loss."""

    def step(self, state: Any, key: Any) -> Any:
        return Walk(-self.rate, self.noise, self.loss, self.rounds).step(state, key)


def x_of(state: Any) -> Any:
    return state["x"]


def _run(far: int, p: dict[str, Any], **where: Any) -> Any:
    loss = make_script(x_of, **p["f"])
    spec = p["class"](p["rate"], Noise(p["sigma"], p["kind"]), loss, p["rounds"])
    state = {"x": np.asarray(p["x"], p["dtype"]), "n": jnp.int32(p["n"])} | p["more"]
    measure = make_script(x_of, **p["m"]) if p["measure"] else None
    key = jax.random.key(p["seed"], impl=p["impl"])
    return loop.run(spec.step, state, far, key=key, measure=measure, **where)


def mean_of(state: Any) -> Any:
    return state.best.x if hasattr(state, "best") else state.population.x


def _search(p: dict[str, Any]) -> Any:
    if p["loaded"]:
        return p["loaded"]["spec"]
    single, multi = evolution.single, evolution.multi
    of = {
        "cma": lambda: single.CMAES(p["size"], p["sigma"], p["start"], p["factor"]),
        "sep": lambda: single.SepCMAES(p["size"], sigma=p["sigma"]),
        "swarm": lambda: single.PSO(p["size"]),
        "nsga2": lambda: multi.NSGA2(p["size"]),
    }
    return of[p["algorithm"]]()


def _minimize(far: int, p: dict[str, Any], **where: Any) -> Any:
    kinds = {
        "real": lambda: evolution.Real(p["low"], p["high"], logarithmic=p["log"]),
        "integer": lambda: evolution.Integer(int(p["low"]), int(p["high"])),
        "array": lambda: evolution.Real(np.full(2, p["low"]), p["high"], logarithmic=p["log"]),
    }
    space = {"a": kinds[p["variable"]](), "b": evolution.Real(-1.0, p["side"])} | p["more"]
    function = make_script(stack_leaves, **p["f"])
    measure = make_script(mean_of, **p["m"]) if p["measure"] else None
    return evolution.minimize(
        function,
        [part for _, part in sorted(space.items())] if p["list"] else space,
        far * p["size"],
        algorithm=_search(p),
        seed=p["seed"],
        measure=measure,
        **where,
    )


def _protocol(far: int, p: dict[str, Any], **where: Any) -> Any:
    loss = make_script(same_value, **p["f"])
    box = evolution.problem.box(p["low"], p["high"], p["dimension"])
    function = (lambda x: jnp.stack([loss(x)])) if p["objectives"] == 1 else _two_objectives(loss)
    problem = evolution.problem.Problem(box, function, p["objectives"])
    key = jax.random.key(p["seed"], impl=p["impl"])
    measure = make_script(mean_of, **p["m"]) if p["measure"] else None
    return evolution.protocol.run(_search(p), problem, key, far, measure=measure, **where)


def _two_objectives(loss: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda x: jnp.stack([loss(x), loss(x + 1)])


def stars_of(state: Any) -> Any:
    return state.points


def bodies_of(p: dict[str, Any], count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return positions, velocities and masses with one value of each changed, or reversed."""
    pick = np.random.default_rng(p["draw"])
    x, v, m = pick.normal(size=(count, 3)), 0.3 * pick.normal(size=(count, 3)), np.ones(count)
    x[1, 2] += p["x"]
    v[2, 0] += p["v"]
    m[1] += p["m1"]
    order = list(range(count))[:: -1 if p["turned"] else 1]
    return p["stretch"] * x[order], v[order], m[order] / count


def _evolve(far: int, p: dict[str, Any], **where: Any) -> Any:
    x, v, m = bodies_of(p, p["count"])
    steps = nbody.Hermite(
        eta=p["eta"],
        softening=p["softening"],
        interval=p["interval"],
        longest=p["longest"],
        bulk=p["bulk"],
        pairing=nbody.Pairing(close=p["close"], slots=p["slots"], weak=p["weak"]),
        tile=p["tile"],
    )
    if p["sixth"]:
        steps = nbody.Hermite6(softening=p["softening"], interval=p["interval"])
    spec = p["loaded"] or nbody.Cluster(steps, edge=p["edge"], unbound=p["unbound"])
    tracers = tuple(0.5 * bodies_of(p | p["light"], p["tracers"])[i] for i in (0, 1))
    measure = make_script(stars_of, **p["m"]) if p["measure"] else None
    time = far * p["interval"]
    return nbody.evolve(
        x, v, m, time, tracers=tracers, spec=spec, tolerance=np.inf, measure=measure, **where
    )


def places_of(state: Any) -> Any:
    return state.x


def _integrate(far: int, p: dict[str, Any], **where: Any) -> Any:
    x = np.array([[0.0, 0, 0], [1, 0, 0], [0, 2.1, 0]])
    v = np.array([[0.0, 0, 0], [0, 1, 0.1], [-0.7, 0, 0]])
    gm = np.array([1.0, p["gm"], p["far"]])
    x[1, 2] += p["x"]
    v[2, 0] += p["v"]
    if p["turned"]:
        x, v, gm = (a[[0, 2, 1]] for a in (x, v, gm))
    x, v, gm = (a[: p["count"]].astype(p["dtype"]) for a in (x, v, gm))
    if p["class"] == "planetary":
        control = type(nbody.Planetary(gm=gm, dt=1.0).control)(**p["control"])
        spec = nbody.Planetary(
            gm=gm,
            dt=p["dt"],
            light=p["light"],
            control=control,
            substeps=p["substeps"],
            iterations=p["iterations"],
        )
        light = np.array([[1.5, 0, 0], [0, 1.7, p["tracer"]]])[: p["tracers"]]
        tracers = tuple(
            a.astype(p["dtype"]) for a in (light, 0.6 * light[:, [1, 0, 2]] * [-1, 1, 1])
        )
        where |= {"tracers": tracers}
    else:
        spec = nbody.WisdomHolman(gm=gm, dt=p["dt"])
    spec = p["loaded"] or spec
    measure = {
        "mine": make_script(places_of, **p["m"]),
        "inertial": getattr(spec, "to_inertial", None),
    }
    with jax.enable_x64(True):
        return nbody.integrate(
            spec, x, v, far * p["dt"], measure=measure.get(p["measure"]), **where
        )


def matter_of(state: Any) -> Any:
    return state.bodies[0].x[:4]


def _simulate(far: int, p: dict[str, Any], **where: Any) -> Any:
    x = np.array([[p["place"], 0.5], [0.6, 0.52]])[: p["points"]].astype(p["dtype"])
    materials = {
        "liquid": lambda: continuum.Liquid(p["bulk"], p["viscosity"], p["tension"], p["exponent"]),
        "solid": lambda: continuum.NeoHookean(1e4),
        "corotated": lambda: continuum.Corotated(1e4),
    }
    body = continuum.Body(
        x, materials[p["material"]](), p["volume"], p["density"], p["v"], capacity=p["capacity"]
    )
    other = continuum.Body(x + np.asarray(0.15, x.dtype), continuum.NeoHookean(p["young"]), 1e-2)
    ball = continuum.sdf.Ball(p["radius"])
    tool = continuum.Collider(ball, (0.3, 0.3), v=(p["speed"], 0.0), friction=p["friction"])
    tap = continuum.Injector([[0.5, 0.8]], (0.0, -1.0), interval=p["between"])
    bodies = (body, other)[:: -1 if p["turned"] else 1][: p["bodies"]]
    scene = continuum.Scene(
        bodies,
        continuum.Grid(p["dx"], (10, p["cells"]), faces=p["faces"]),
        (0.0, p["gravity"]),
        colliders=(tool,) * p["tools"],
        dt=p["dt"],
        sources=(tap,),
    )
    scene = p["loaded"].scene if p["loaded"] else scene
    measure = make_script(matter_of, **p["m"]) if p["measure"] else loop.measure_nothing
    every = p["every"]
    with jax.enable_x64(p["dtype"] == "float64"):
        return continuum.simulate(scene, far * every, frames=far, measure=measure, **where)


def episodes_of(state: Any) -> Any:
    return state.env_state.observation


def _learner(p: dict[str, Any]) -> Any:
    common = {
        "num_envs": p["envs"],
        "num_steps": p["steps"],
        "hidden_sizes": p["hidden"],
        "gamma": p["gamma"],
        "anneal_lr": p["anneal"],
    }
    if p["learner"] == "pqn":
        return rl.PQN(num_minibatches=1, **common)
    return rl.PPO(
        learning_rate=p["rate"],
        gae_lambda=p["lambda"],
        clip_eps=p["clip"],
        ent_coef=p["entropy"],
        vf_coef=p["value"],
        max_grad_norm=p["norm"],
        update_epochs=p["epochs"],
        num_minibatches=p["parts"],
        normalize_reward=p["normalize"],
        adaptive_lr=p["adaptive"],
        target_kl=p["kl"],
        **common,
    )


def _environment_and_learner(p: dict[str, Any], where: dict[str, Any]) -> tuple[Any, Any]:
    """Return the environment and the learner, and add the measure to `where`."""
    if p["measure"]:
        where["measure"] = make_script(episodes_of, **p["m"])
    if p["loaded"]:
        return p["loaded"]["env"], p["loaded"]["learner"]
    return rl.make(p["task"], **p["env"]), _learner(p)


def _train(far: int, p: dict[str, Any], **where: Any) -> Any:
    env, learner = _environment_and_learner(p, where)
    key, one = jax.random.key(p["seed"], impl=p["impl"]), learner.steps_per_update
    return rl.train(env, learner, key, far * one, schedule=p["schedule"] * one, **where)


def _sweep(far: int, p: dict[str, Any], **where: Any) -> Any:
    env, learner = _environment_and_learner(p, where)
    keys = jax.random.split(jax.random.key(p["seed"], impl=p["impl"]), p["seeds"])
    return rl.sweep(env, learner, keys, far, p["every"], schedule=p["schedule"], **where)


def actions_of(state: Any) -> Any:
    return state.best.actions


def _plan(far: int, p: dict[str, Any], **where: Any) -> Any:
    bounds = {"low": p["low"], "high": p["high"]}
    planners = {
        "sgd": lambda: planning.Descent(optax.sgd(p["rate"]), **bounds),
        "momentum": lambda: planning.Descent(optax.sgd(p["rate"], p["momentum"]), **bounds),
        "adam": lambda: planning.Descent(optax.adam(p["rate"], p["b1"], eps=p["eps"]), **bounds),
        "mppi": lambda: planning.MPPI(
            p["samples"],
            sigma=p["sigma"],
            temperature=p["temperature"],
            decay=p["decay"],
            correlation=p["correlation"],
            **bounds,
        ),
        "cem": lambda: planning.CEM(p["samples"], sigma=p["sigma"], **bounds),
    }
    actions = np.zeros((p["length"], p["width"]), p["dtype"])
    actions[1, 0] = p["action"]
    measure = {"measure": make_script(actions_of, **p["m"])} if p["measure"] else {}
    key = jax.random.key(p["seed"], impl=p["impl"])
    with jax.enable_x64(p["dtype"] == "float64"):
        loss = make_script(same_value, **p["f"])
        return planning.plan(
            loss, actions, planners[p["planner"]](), far, key=key, **measure, **where
        )


def directions_of(state: Any) -> Any:
    return state.mixture.mean_directions


def _fit_mixture(far: int, p: dict[str, Any], **where: Any) -> Any:
    pick = np.random.default_rng(p["draw"])
    x = pick.normal(size=(p["count"], p["dimension"]))
    x[3, 1] += p["x"]
    x *= p["flip"]
    x = x[:: -1 if p["turned"] else 1]
    x[:, 0] += p["shift"]
    x /= np.linalg.norm(x, axis=1, keepdims=True)
    key = jax.random.key(p["seed"], impl=p["impl"])
    measure = make_script(directions_of, **p["m"]) if p["measure"] else None
    with jax.enable_x64(p["dtype"] == "float64"):
        x = p["loaded"]["x"] if p["loaded"] else jnp.asarray(x, p["dtype"])
        return numerics.sphere.fit_mixture(
            x, p["components"], key, steps=far, hard=p["hard"], measure=measure, **where
        )


# "loaded": the spec that `jaxgpu.load` has read, with which to resume
_USERS = {
    "f": {},
    "m": {},
    "measure": True,
    "seed": 0,
    "impl": "threefry2x32",
    "loaded": None,
}
_SEARCH = _USERS | {
    "low": 0.1,
    "high": 4.0,
    "algorithm": "cma",
    "size": 8,
    "sigma": 0.2,
    "start": 0.8,
    "factor": "eigenvectors",
}
_LEARN = _USERS | {
    "task": "cartpole",
    "env": {"gravity": 9.8},
    "learner": "ppo",
    "envs": 2,
    "steps": 4,
    "hidden": (4,),
    "gamma": 0.99,
    "anneal": True,
    "rate": 1e-3,
    "lambda": 0.95,
    "clip": 0.2,
    "entropy": 0.01,
    "value": 0.5,
    "norm": 0.5,
    "epochs": 1,
    "parts": 1,
    "normalize": False,
    "adaptive": False,
    "kl": 0.01,
    "schedule": 4,
}
BASE: dict[str, dict[str, Any]] = {
    "run": _USERS
    | {"class": Walk, "rate": 0.1, "sigma": 0.1, "kind": "normal", "rounds": 2, "n": 0}
    | {"x": (0.1, 0.2, 0.3), "dtype": "float32", "more": {}},
    "minimize": _SEARCH
    | {"log": False, "variable": "real", "side": 1.0, "more": {}, "list": False},
    "protocol.run": _SEARCH | {"dimension": 3, "objectives": 1},
    "evolve": _USERS
    | {"m": {"body": f'{{"seen": {LOSS}}}'}, "draw": 0, "x": 0.0, "v": 0.0, "m1": 0.0}
    | {"turned": False, "stretch": 1.0, "count": 8, "eta": 0.02, "softening": 0.01}
    | {"interval": 0.125, "close": 0.1, "slots": 0, "weak": 1e-6, "tile": 16, "sixth": False}
    | {"longest": 2, "bulk": 256, "edge": 20.0, "unbound": True, "tracers": 4, "light": {}},
    "integrate": _USERS
    | {"gm": 1e-3, "far": 2e-3, "x": 0.0, "v": 0.0, "turned": False, "count": 3}
    | {"dtype": "float64", "class": "planetary", "control": {}, "dt": 0.125, "light": 1e4}
    | {"substeps": 2, "iterations": 3, "tracers": 2, "tracer": 0.1, "measure": "mine"},
    "simulate": _USERS
    | {"place": 0.4, "points": 2, "dtype": "float32", "material": "liquid", "bulk": 1e3}
    | {"viscosity": 0.1, "tension": 0.0, "exponent": 7.0, "volume": 1e-2, "density": 1e3}
    | {"v": 0.0, "capacity": 40, "young": 1e4, "radius": 0.05, "speed": 0.1, "friction": 0.1}
    | {"between": 0.02, "turned": False, "bodies": 2, "dx": 0.1, "cells": 10, "faces": ()}
    | {"gravity": -9.8, "tools": 1, "dt": 0.001, "every": 0.01},
    "train": _LEARN,
    "sweep": _LEARN | {"seeds": 2, "every": 1},
    "plan": _USERS
    | {
        "low": -1.0,
        "high": 1.0,
        "rate": 0.4,
        "momentum": 0.9,
        "b1": 0.9,
        "eps": 1e-8,
        "planner": "adam",
    }
    | {"samples": 8, "sigma": 0.5, "temperature": 0.1, "decay": 0.98, "correlation": 0.7}
    | {"length": 3, "width": 1, "dtype": "float32", "action": 0.0},
    "fit_mixture": _USERS
    | {"draw": 0, "count": 40, "dimension": 3, "x": 0.0, "flip": 1.0, "turned": False}
    | {"shift": 0.0, "components": 2, "hard": False, "dtype": "float32"},
}
_OF = {
    "run": _run,
    "minimize": _minimize,
    "protocol.run": _protocol,
    "evolve": _evolve,
    "integrate": _integrate,
    "simulate": _simulate,
    "train": _train,
    "sweep": _sweep,
    "plan": _plan,
    "fit_mixture": _fit_mixture,
}


def run_form(name: str, far: int, values: dict[str, Any] | None = None, **where: Any) -> Any:
    """Run a form up to `far` steps, generations, updates or intervals."""
    p = BASE[name] | (values or {})
    p |= {part: BASE[name][part] | p[part] for part in ("f", "m")}
    return _OF[name](far, p, **where)
