"""Thirty changes of each one-call form: a user's change, and text of the error it must cause.

A change is a pair: values over those of `experiments.BASE`, and a part of the error message.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxgpu.evolution import Real
from tests.helpers.experiments import BASE, LOSS, Climb

type Change = tuple[dict[str, Any], str]


def function_changes(form: str, part: str, at: str) -> list[Change]:
    """Return the changes of a user function: of all that it reads, calls and is."""
    body = BASE[form][part].get("body", LOSS)
    return [
        ({part: {"target": 0.75}}, f"{at}.target was 0.5, is 0.75"),  # in the closure
        ({part: {"offset": 0.5}}, f"{at}.OFFSET was 0.25, is 0.5"),  # a global of the module
        ({part: {"inner": "1.25 * x"}}, f"{at} was made.<locals>.loss, code "),  # called
        ({part: {"body": body.replace("sum", "max")}}, f"{at} was made.<locals>.loss, code "),
        ({part: {"power": 4}}, f"{at}.power was 2, is 4"),  # a default argument
        ({part: {"scale": 2.0}}, f"{at}.scale was 1.0, is 2.0"),
    ]


def value_changes(*rows: tuple[str, Any, str]) -> list[Change]:
    """Return changes of one value each."""
    return [({name: value}, said) for name, value, said in rows]


KEYS = value_changes(
    ("seed", 1, "with another key: key was key<threefry2x32> uint32[2] "),
    ("impl", "rbg", "with a key of another type: key was key<threefry2x32> uint32[2] "),
)
_RUN = value_changes(
    ("rate", 0.2, "rate was 0.1, is 0.2"),
    ("rate", np.float32(0.1), "rate was 0.1, is 0.1 (float32)"),
    ("rate", np.array([0.1, 0.1, 0.2]), "rate was 0.1, is float64[3] 0.1 0.1 0.2"),
    ("sigma", 0.0, "noise.sigma was 0.1, is 0.0"),
    ("sigma", 0.1 + 1e-9, "noise.sigma was 0.1, is 0.100000001"),
    ("kind", "uniform", "noise.kind was 'normal', is 'uniform'"),
    ("rounds", 3, "rounds was 2, is 3"),
    ("class", Climb, "spec was Walk, is Climb"),
    ("x", (0.1, 0.2, 0.4), "start['x'] was float32[3] 0.1 0.2 0.3, is float32[3] 0.1 0.2 0.4"),
    ("x", (0.3, 0.2, 0.1), "start['x'] was float32[3] 0.1 0.2 0.3, is float32[3] 0.3 0.2 0.1"),
    ("x", (0.1, 0.2), "start['x'] was float32[3] 0.1 0.2 0.3, is float32[2] 0.1 0.2"),
    ("n", 1, "start['n'] was 0 (int32), is 1 (int32)"),
    ("dtype", "float64", "start['x'] was float32[3] 0.1 0.2 0.3, is float64[3] 0.1 0.2 0.3"),
    ("dtype", "float16", "start['x'] was float32[3] 0.1 0.2 0.3, is float16[3] "),
    ("more", {"m": jnp.ones(2)}, "start['m'] was missing, is float32[2] 1.0 1.0"),
    ("measure", False, "measure was made.<locals>.loss, code"),
)
_SEARCH = value_changes(
    ("sigma", 0.3, "spec.sigma was 0.2, is 0.3"),
    ("sigma", 0.2 + 1e-9, "spec.sigma was 0.2, is 0.200000001"),
    ("start", 0.5, "spec.start was 0.8, is 0.5"),
    ("factor", "cholesky", "spec.factor was 'eigenvectors', is 'cholesky'"),
    ("size", 12, "spec.pop_size was 8, is 12"),
    ("algorithm", "sep", "spec was CMAES, is SepCMAES"),
    ("algorithm", "swarm", "spec was CMAES, is PSO"),
    ("algorithm", "nsga2", "spec was CMAES, is NSGA2"),
    ("seed", 1, "another key: key was key<threefry2x32> uint32[2] "),
    ("measure", False, "measure.f was made.<locals>.loss, code"),
)
_SPACE = value_changes(
    ("low", 0.2, "space.a.lower was 0.1 (float32), is 0.2 (float32)"),
    ("high", 5.0, "space.a.upper was 4.0 (float32), is 5.0 (float32)"),
    ("log", True, "space.a.logarithmic was False, is True"),
    ("variable", "integer", "space.a was Real, is Integer"),
    ("variable", "array", "space.a.lower was 0.1 (float32), is float32[2] 0.1 0.1"),
    ("side", 2.0, "space.b.upper was 1.0 (float32), is 2.0 (float32)"),
    ("more", {"c": Real(0.0, 1.0)}, "space.c was missing, is Real"),
    ("list", True, "space"),
)
_BOX = value_changes(
    ("low", 0.2, "box.lower was float32[3] 0.1 0.1 0.1, is float32[3] 0.2 0.2 0.2"),
    ("low", np.array([0.1, 0.1, 0.2]), "box.lower was float32[3] 0.1 0.1 0.1, is float32[3]"),
    ("high", 5.0, "box.upper was float32[3] 4.0 4.0 4.0, is float32[3] 5.0 5.0 5.0"),
    ("high", np.array([4.0, 4.0, 5.0]), "box.upper was float32[3] 4.0 4.0 4.0, is float32[3]"),
    ("dimension", 4, "box.lower was float32[3] 0.1 0.1 0.1, is float32[4]"),
    ("high", 4.1, "box.upper was float32[3] 4.0 4.0 4.0, is float32[3] 4.1 4.1 4.1"),
)
_STARS = value_changes(
    ("eta", 0.2, "steps.eta was 0.02 (float64), is 0.2 (float64)"),
    ("eta", 0.02 + 1e-9, "steps.eta was 0.02 (float64), is 0.020000001 (float64)"),
    ("softening", 0.05, "steps.softening was 0.01 (float64), is 0.05 (float64)"),
    ("interval", 0.25, "steps.interval was 0.125 (float64), is 0.25 (float64)"),
    ("close", 0.2, "pairing.close was 0.1 (float64), is 0.2 (float64)"),
    ("weak", 1e-5, "pairing.weak was 1e-06 (float64), is 1e-05 (float64)"),
    ("slots", 4, "pairing.slots was 0, is 4"),
    ("tile", 4, "steps.tile was 16, is 4"),
    ("draw", 1, "start.points was float64[6, 8] "),
    ("longest", 3, "steps.longest was 2, is 3"),
    ("sixth", True, "steps was Hermite, is Hermite6"),
    ("edge", 10.0, "edge was 20.0 (float64), is 10.0 (float64)"),
    ("edge", np.inf, "edge was 20.0 (float64), is inf (float64)"),
    ("unbound", False, "unbound was True (bool), is False (bool)"),
    ("tracers", 6, "start.bodies.tracers.x was float64[6, 4] "),
    ("light", {"x": 0.1}, "start.bodies.tracers.x was float64[6, 4] "),
    ("light", {"v": 0.1}, "start.bodies.tracers.x was float64[6, 4] "),
    ("x", 1e-9, "start.bodies.stars.x was float64[6, 8] "),
    ("v", 0.1, "start.bodies.stars.x was float64[6, 8] "),
    ("m1", 0.1, "start.bodies.pairs.m was float64[8] "),
    ("turned", True, "start.bodies.stars.x was float64[6, 8] "),
    ("stretch", 1.5, "start.bodies.stars.x was float64[6, 8] "),
    ("count", 9, "start.bodies.stars.x was float64[6, 8] "),
    ("measure", False, "measure was _measured, is Cluster.measure"),
)
_PLANETS = value_changes(
    ("gm", 2e-3, "gm was float64[3] 1.0 0.001 0.002, is float64[3] 1.0 0.002 0.002"),
    ("far", 0.0, "gm was float64[3] 1.0 0.001 0.002, is float64[3] 1.0 0.001 0.0"),
    ("x", 1e-9, "start.x was float64[3, 3] "),
    ("v", 0.1, "start.v was float64[3, 3] "),
    ("turned", True, "gm was float64[3] 1.0 0.001 0.002, is float64[3] 1.0 0.002 0.001"),
    ("count", 2, "gm was float64[3] 1.0 0.001 0.002, is float64[2] 1.0 0.001"),
    ("dtype", "float32", "gm was float64[3] 1.0 0.001 0.002, is float32[3] 1.0 0.001 0.002"),
    ("class", "map", "spec was Planetary, is WisdomHolman"),
    ("control", {"tolerance": 1e-4}, "control.tolerance was 1e-05, is 0.0001"),
    ("control", {"convergence": 1e-7}, "control.convergence was 1e-08, is 1e-07"),
    ("control", {"iterations": 4}, "control.iterations was 3, is 4"),
    ("control", {"deepest": 10}, "control.deepest was 12, is 10"),
    ("control", {"tile": 1}, "control.tile was 512, is 1"),
    ("dt", 0.25, "dt was 0.125, is 0.25"),
    ("dt", -0.125, "dt was 0.125, is -0.125"),
    ("dt", 0.125 + 1e-9, "dt was 0.125, is 0.125000001"),
    ("light", 2e4, "light was 10000.0, is 20000.0"),
    ("light", np.inf, "light was 10000.0, is inf"),
    ("substeps", 3, "substeps was 2, is 3"),
    ("iterations", 4, "iterations was 3, is 4"),
    ("tracers", 1, "start"),
    ("tracers", 0, "start"),
    ("tracer", 0.2, "start"),
    ("measure", "", "measure was made.<locals>.loss, code"),
)
_MATTER = value_changes(
    ("place", 0.5, "start.bodies[0]"),
    ("points", 1, "start.bodies[0]"),
    ("dtype", "float64", "scene.bodies[0].x was float32[2, 2] 0.4 0.5 0.6 0.52, is float64"),
    ("material", "solid", "bodies[0].material was Liquid, is NeoHookean"),
    ("bulk", 2e3, "bodies[0].material.bulk_modulus was 1000.0, is 2000.0"),
    ("viscosity", 0.2, "bodies[0].material.viscosity was 0.1, is 0.2"),
    ("tension", 0.1, "bodies[0].material.tension was 0.0, is 0.1"),
    ("exponent", 1.0, "bodies[0].material.exponent was 7.0, is 1.0"),
    ("volume", 9e-3, "bodies[0].volume was 0.01, is 0.009"),
    ("density", 900.0, "bodies[0].density was 1000.0, is 900.0"),
    ("v", 0.1, "bodies[0].v was 0.0, is 0.1"),
    ("capacity", 50, "bodies[0].capacity was 40, is 50"),
    ("young", 2e4, "bodies[1].material.young was 10000.0, is 20000.0"),
    ("radius", 0.06, "colliders[0].shape.radius was 0.05, is 0.06"),
    ("speed", 0.2, "colliders[0].v"),
    ("friction", 0.2, "colliders[0].friction was 0.1, is 0.2"),
    ("between", 0.03, "sources[0].interval was 0.02, is 0.03"),
    ("turned", True, "bodies[0].material was Liquid, is NeoHookean"),
    ("bodies", 1, "bodies was tuple of 2, is tuple of 1"),
    ("cells", 12, "grid.cells[1] was 10, is 12"),
    ("faces", ("stick", "slip"), "grid.faces[0] was 'slip', is 'stick'"),
    ("gravity", -1.0, "gravity[1] was -9.8, is -1.0"),
    ("tools", 0, "colliders was tuple of 1, is tuple of 0"),
    ("dt", 0.0005, "substeps was 10, is 20"),
    ("every", 0.02, "substeps was 10, is 20"),
    ("measure", False, "measure.measure was made.<locals>.loss, code"),
)
_LEARN = value_changes(
    ("env", {"gravity": 3.0}, "env.gravity was 9.8, is 3.0"),
    ("env", {"cart_mass": 2.0}, "env.cart_mass was 1.0, is 2.0"),
    ("env", {"half_length": 0.4}, "env.half_length was 0.5, is 0.4"),
    ("env", {"max_steps": 100}, "env.max_steps was 500, is 100"),
    ("env", {"masked": True}, "env.masked was False, is True"),
    ("learner", "pqn", "learner was PPO, is PQN"),
    ("envs", 4, "learner.num_envs was 2, is 4"),
    ("steps", 8, "learner.num_steps was 4, is 8"),
    ("hidden", (8,), "learner.hidden_sizes[0] was 4, is 8"),
    ("gamma", 0.9, "learner.gamma was 0.99, is 0.9"),
    ("anneal", False, "learner.anneal_lr was True, is False"),
    ("rate", 2e-3, "learner.learning_rate was 0.001, is 0.002"),
    ("rate", 1.000000001e-3, "learner.learning_rate was 0.001, is 0.001000000001"),
    ("clip", 0.3, "learner.clip_eps was 0.2, is 0.3"),
    ("entropy", 0.0, "learner.ent_coef was 0.01, is 0.0"),
    ("norm", np.inf, "learner.max_grad_norm was 0.5, is inf"),
    ("epochs", 2, "learner.update_epochs was 1, is 2"),
    ("parts", 2, "learner.num_minibatches was 1, is 2"),
    ("adaptive", True, "learner.adaptive_lr was False, is True"),
    ("schedule", 8, "schedule"),
    ("measure", False, "measure"),
)
_TRAIN = value_changes(
    ("task", "mountain-car", "env was CartPole, is MountainCar"),
)
_SWEEP = value_changes(
    ("seeds", 3, "seeds was 2, is 3"),
    ("every", 2, "every was 1, is 2"),
)
_PLAN = value_changes(
    ("rate", 0.1, "step_size was -0.4, is -0.1"),
    ("rate", 0.400001, "step_size was -0.4, is -0.400001"),
    ("b1", 0.8, "b1 was 0.9, is 0.8"),
    ("eps", 1e-6, "eps was 1e-08, is 1e-06"),
    ("planner", "sgd", "optimiser"),
    ("planner", "momentum", "optimiser"),
    ("planner", "mppi", "spec was Descent, is MPPI"),
    ("planner", "cem", "spec was Descent, is CEM"),
    ("low", -0.5, "low was -1.0, is -0.5"),
    ("high", 0.5, "high was 1.0, is 0.5"),
    ("high", np.float32(1.0), "high was 1.0, is 1.0 (float32)"),
    ("length", 4, "start.actions was float32[3, 1] 0.0 0.0 0.0, is float32[4, 1] "),
    ("width", 2, "start.actions was float32[3, 1] 0.0 0.0 0.0, is float32[3, 2] "),
    ("dtype", "float64", "start.actions was float32[3, 1] 0.0 0.0 0.0, is float64[3, 1] "),
    ("action", 0.1, "start.actions was float32[3, 1] 0.0 0.0 0.0, is float32[3, 1] 0.0 0.1 0.0"),
    ("measure", False, "measure was made.<locals>.loss, code"),
)
_FIT = value_changes(
    ("draw", 1, "x was float32[40, 3] "),
    ("draw", 2, "x was float32[40, 3] "),
    ("x", 0.1, "x was float32[40, 3] "),
    ("x", 1e-5, "x was float32[40, 3] "),
    ("flip", -1.0, "x was float32[40, 3] "),
    ("turned", True, "x was float32[40, 3] "),
    ("shift", 0.1, "x was float32[40, 3] "),
    ("shift", -1e-5, "x was float32[40, 3] "),
    ("count", 39, "x was float32[40, 3] "),
    ("count", 41, "x was float32[40, 3] "),
    ("count", 80, "x was float32[40, 3] "),
    ("dimension", 2, "x was float32[40, 3] "),
    ("dimension", 4, "x was float32[40, 3] "),
    ("dtype", "float64", "x was float32[40, 3] "),
    ("dtype", "float16", "x was float32[40, 3] "),
    ("dtype", "bfloat16", "x was float32[40, 3] "),
    ("components", 1, "start.mixture"),
    ("components", 3, "start.mixture"),
    ("components", 4, "start.mixture"),
    ("hard", True, "hard was False, is True"),
    ("seed", 1, "start.mixture"),
    ("seed", 7, "start.mixture"),
    ("impl", "rbg", "start.mixture"),
    ("measure", False, "measure was made.<locals>.loss, code"),
)
_TWO = {"objectives": 2, "algorithm": "nsga2"}
CHANGES: dict[str, list[Change]] = {
    "run": [
        *function_changes("run", "f", "loss"),
        *function_changes("run", "m", "measure"),
        *KEYS,
        *_RUN,
    ],
    "minimize": [
        *function_changes("minimize", "f", "problem.function"),
        *function_changes("minimize", "m", "measure.f"),
        *_SEARCH,
        *_SPACE,
    ],
    "protocol.run": [
        *function_changes("protocol.run", "f", "problem.function.loss"),
        *function_changes("protocol.run", "m", "measure.f"),
        *_SEARCH,
        *_BOX,
        *KEYS[1:],
        (_TWO, "problem.objectives was 1, is 2"),
    ],
    "evolve": [*function_changes("evolve", "m", "measure.measure"), *_STARS],
    "integrate": [*function_changes("integrate", "m", "measure"), *_PLANETS],
    "simulate": [*function_changes("simulate", "m", "measure.measure"), *_MATTER],
    "train": [*function_changes("train", "m", "measure"), *KEYS, *_LEARN, *_TRAIN],
    "sweep": [*function_changes("sweep", "m", "measure.measure"), *KEYS, *_LEARN, *_SWEEP],
    "plan": [*function_changes("plan", "f", "loss"), *function_changes("plan", "m", "measure")]
    + [*KEYS, *_PLAN],
    "fit_mixture": [*function_changes("fit_mixture", "m", "measure"), *_FIT],
}
