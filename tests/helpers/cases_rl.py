"""API cases of `jaxgpu.rl`; values inside the ranges are not run: a training takes seconds."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import optax
from api_cases import ApiCase
from cases_core import temp_folder
from cases_rearrange import make_task, task_class
from rl_learners import LEARNERS

from jaxgpu import rl
from jaxgpu.devices import mesh
from jaxgpu.rl import devices, plan, policies
from jaxgpu.rl.envs.locomotion import Robot
from jaxgpu.rl.envs.rearrange.robot import Movement, Servos

KEY = jax.random.key(0)
POLE, SWING = rl.make("cartpole"), rl.make("pendulum")
DESCENT = plan.Descent(optax.sgd(0.1))
PLANNERS = [plan.CEM(), plan.MPPI(), plan.TemporalExpansion(DESCENT), DESCENT]
# one per class, and a single robot: robots are alike, and have hundreds of numbers
ENVIRONMENTS = {
    task_class(name): name
    for name in rl.names()
    if "matter" not in name and (name == "reacher" or not issubclass(task_class(name), Robot))
}
RUN = "a run, whose loop is on the host"


def bowl(actions, frames=None):
    return jnp.sum(actions**2)


def load_zeros(path):
    """Load a policy of zeros from a file in a temporary folder."""
    like = jax.eval_shape(lambda key: rl.PQN(hidden_sizes=(2,)).init(POLE, key), KEY)
    zeros = jax.tree.map(lambda x: np.zeros(x.shape, x.dtype), (like.params, like.obs_stats))
    with temp_folder():
        policies.make_policy(rl.PQN(hidden_sizes=(2,)), POLE, *zeros).save("policy.npz")
        return rl.load_policy(path).params


CASES = [
    ApiCase(
        f"rl.train, {name}",
        lambda learner, steps, task=task: rl.train(rl.make(task), learner, KEY, steps),
        {"learner": learner, "steps": 100_000},
        refusals=True,
        host=RUN,
    )
    for name, (task, learner) in LEARNERS.items()
    if "," not in name
]
CASES += [
    ApiCase(
        f"rl.vectorize, {kind.__name__}",
        rl.vectorize,
        {"env": make_task(name), "num_envs": 2},
        refusals=True,
    )
    for kind, name in ENVIRONMENTS.items()
]
CASES += [
    ApiCase(
        f"rl.envs.rearrange.robot.{type(movement).__name__}",
        lambda movement, env=env: rl.vectorize(dataclasses.replace(env, movement=movement), 2),
        {"movement": movement},
        refusals=True,
    )
    for movement, env in (
        (Movement(), make_task("rearrange/navigate")),
        (Servos(), make_task("rearrange/mobile-pick-dynamic")),
    )
]
CASES += [
    ApiCase(
        f"rl.plan, {type(planner).__name__}",
        lambda planner, actions: plan.plan(bowl, actions, planner, 2, key=KEY).state.best.actions,
        {"planner": planner, "actions": np.full((3, 1), 0.5, np.float32)},
        refusals=True,
        right=tuple(
            f"actions: {kind}" for kind in ("zero", "negative", "wrong length", "transposed")
        ),
        host=RUN,
    )
    for planner in PLANNERS[1:2]
]
CASES += [
    ApiCase(
        f"rl.plan, {type(planner).__name__}, its numbers",
        lambda planner: plan.plan(bowl, np.zeros((3, 1), np.float32), planner, 2, key=KEY),
        {"planner": planner},
        refusals=True,
        host="" if isinstance(planner, plan.TemporalExpansion) else RUN,
    )
    for planner in PLANNERS
]
CASES += [
    ApiCase(
        "rl.evaluate",
        lambda episodes, max_steps: rl.evaluate(
            POLE, lambda x: jnp.int32(0), KEY, episodes, max_steps
        ),
        {"episodes": 2, "max_steps": 2},
    ),
]
CASES += [
    ApiCase(
        "rl.PolicyObjective",
        lambda policies, at_once: policies.problem(at_once).box.upper,
        {"policies": rl.PolicyObjective(POLE, max_steps=2), "at_once": 2},
        refusals=True,
        right=("at_once: None",),
    ),
    ApiCase(
        "rl.add_checks, Checked",
        lambda env: rl.add_checks(env).reset(KEY),
        {"env": SWING},
        refusals=True,
    ),
    ApiCase(
        "rl.sweep",
        lambda parts, every: rl.sweep(POLE, rl.PPO(), KEY[None], parts, every),
        {"parts": 1, "every": 1},
        refusals=True,
    ),
    ApiCase(
        "rl.load_policy",
        load_zeros,
        {"path": "policy.npz"},
    ),
    ApiCase(
        "rl.devices.shard_update",
        lambda mesh_: devices.shard_update(rl.PPO(), POLE, mesh_),
        {"mesh_": mesh.make_mesh(2)},
        things=("mesh_",),
    ),
]
