"""Trainings on one and eight devices: equal results, one reduction per minibatch, resuming.

Every learner has 16 environments, two per device. Sums over devices differ from those of one device
by rounding, which a few updates enlarge: by a thousandth at most.
"""

import collections
from dataclasses import replace
from typing import Any

import conformance
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rl_pictures import CNN, PRIVATE, Pointer

from jaxgpu import rl
from jaxgpu.devices import mesh
from jaxgpu.evolution.single import SNES
from jaxgpu.inputs.fields import pytree, size
from jaxgpu.rl import devices, loops
from jaxgpu.runs.checkpoint import CheckpointError

SMALL: dict[str, Any] = {"num_envs": 16, "num_steps": 4, "hidden_sizes": (8,)}
ONCE: dict[str, Any] = {"update_epochs": 2, "num_minibatches": 1}
# Gradients are not clipped, so that a sum instead of a mean is eight times as long.
PPO = rl.PPO(max_grad_norm=np.inf, **SMALL, **ONCE)
CARTPOLE, PENDULUM = rl.make("cartpole"), rl.make("pendulum")
SCALED = replace(PPO, normalize_reward=True, adaptive_lr=True)
CASES = {
    "PPO, pictures": (Pointer(), replace(PPO, network=CNN, **PRIVATE)),
    "RecurrentPPO": (PENDULUM, rl.RecurrentPPO(SCALED, hidden_size=8)),
    "PQN": (CARTPOLE, rl.PQN(hold=0.5, max_grad_norm=np.inf, **SMALL, **ONCE)),
    "SHAC": (
        PENDULUM,
        rl.SHAC(reset_prob=0.3, critic_iterations=2, max_grad_norm=np.inf, **SMALL),
    ),
    "SAC": (
        PENDULUM,
        rl.SAC(
            gradient_steps=2, batch_size=16, buffer_size=100, start_steps=80.0, hold=0.5, **SMALL
        ),
    ),
    "ES": (CARTPOLE, rl.ES(SNES(16), max_steps=20)),
}
EIGHT = mesh.make_mesh(8)
KEY = jax.random.key(0)


@pytest.mark.slow
@pytest.mark.parametrize("env, learner", CASES.values(), ids=CASES)
def test_eight_devices_learn_what_one_does(env, learner):
    """Compare Adam's moments too: they show a gradient's length, which its steps hide."""
    few = {"xla_backend_optimization_level": 0}  # each runs three times
    init = jax.jit(lambda key: learner.init(env, key, 10), compiler_options=few)
    update = jax.jit(lambda state, key: learner.update(env, state, key), compiler_options=few)
    spread = jax.jit(devices.shard_update(learner, env, EIGHT), compiler_options=few)
    one = init(KEY)
    eight = jax.device_put(one, devices.shardings(one, EIGHT))
    for i in range(3):
        one, eight = (f(x, jax.random.key(i)) for f, x in ((update, one), (spread, eight)))
    for (at, a), b in zip(jax.tree.leaves_with_path(one), jax.tree.leaves(eight), strict=True):
        np.testing.assert_allclose(b, a, rtol=1e-3, atol=1e-5, err_msg=jax.tree_util.keystr(at))
        if (
            b.sharding.is_fully_replicated
        ):  # replicated leaves stay bitwise identical on all devices
            for piece in b.addressable_shards:
                np.testing.assert_array_equal(piece.data, b.addressable_shards[0].data)
    if not isinstance(learner, rl.ES):
        assert len(eight.env_state.episode_return.sharding.device_set) == 8


def collectives(program, times=1):
    """Count the collective operations of a program by type and shape."""
    found = collections.Counter()
    for e in program.eqns:
        if e.primitive.name in ("psum", "all_gather", "all_to_all", "ppermute", "reduce_scatter"):
            found[f"{e.primitive.name} {e.invars[0].aval.str_short(short_dtypes=True)}"] += times
        turns = e.params["length"] if e.primitive.name == "scan" else 1
        for inside in jax.tree.leaves(list(e.params.values())):
            inside = getattr(inside, "jaxpr", inside)
            if hasattr(inside, "eqns"):
                found += collectives(inside, times * turns)
    return found


def test_a_minibatch_is_an_eighth_and_has_one_reduction():
    """A rollout has three small ones: for the report, and for the normalization."""
    learner = rl.PPO(update_epochs=3, num_minibatches=4, **SMALL)
    state = jax.eval_shape(lambda key: learner.init(CARTPOLE, key, 10), KEY)
    traced = jax.make_jaxpr(devices.shard_update(learner, CARTPOLE, EIGHT))(state, KEY)
    weights = sum(leaf.size for leaf in jax.tree.leaves(state.params))
    assert collectives(traced.jaxpr) == {
        "psum f32[4]": 1,
        "all_gather f32[2,4]": 1,
        "all_gather f32[2,12]": 1,
        f"psum f32[{weights}]": 12,
    }
    text = str(traced)  # a device plays two of 16 environments, and learns from 2 of 16 rows
    assert "f32[4,2,4]" in text and "f32[4,16,4]" not in text
    assert "f32[2,4]" in text and "f32[16,4]" not in text.partition("shard_map")[2]


def test_seeds_have_nothing_to_do_with_each_other():
    """A sweep on a mesh has no collective, even in the loops that last for the slowest seed."""
    task = loops._make_task(PPO, CARTPOLE)
    keys = jax.random.split(KEY, 8)
    states = jax.eval_shape(lambda keys: loops._init_seeds(None, task, keys, np.int32(4)), keys)
    sweep = lambda states: loops._update_seeds(EIGHT, PPO, CARTPOLE, 2, 8, states, KEY)
    assert not collectives(jax.make_jaxpr(sweep)(states).jaxpr)
    measure_states = lambda states: loops._measure_seeds(EIGHT, loops._report, states)
    assert not collectives(jax.make_jaxpr(measure_states)(states).jaxpr)
    compiled = jax.jit(measure_states).lower(states).compile().as_text()
    assert "all-" not in compiled


@pytest.mark.slow
def test_a_spread_training_resumes_to_the_bit_on_the_same_mesh(tmp_path):
    """Use JAX's own mesh, whose axes are explicit. A mesh of one device is one device."""
    learner = rl.PPO(update_epochs=2, num_minibatches=2, **SMALL)
    go = lambda steps, **how: rl.train(CARTPOLE, learner, KEY, steps * 64, **how)
    eight = jax.make_mesh((8,), ("envs",))
    whole = go(6, mesh=eight)
    go(3, mesh=eight, out=tmp_path, schedule=6 * 64)
    resumed = go(6, mesh=jax.make_mesh((8,), ("envs",)), out=tmp_path, resume=True)
    conformance.assert_same(resumed.state, whole.state)
    conformance.assert_same(resumed.history, whole.history)
    assert resumed.state.env_state.observation.sharding.num_devices == 8
    assert resumed.timing.compile == 0  # a mesh of the same devices is the same
    for other in (None, mesh.make_mesh(4)):
        with pytest.raises(CheckpointError, match="another step"):
            go(6, mesh=other, out=tmp_path, resume=True)
    conformance.assert_same(go(3, mesh=mesh.make_mesh(1)).state, go(3).state)
    score = rl.evaluate(CARTPOLE, whole.policy, KEY, 2, 5)
    assert (score.episode_length == 5).all()


@pytree
class Walk:
    """A learner of one number: a random step, then more until the number is at least 0.5."""

    steps_per_update: int = size(default=1, least=1)

    def init(self, env, key, num_updates=None):
        """Return a random number."""
        return jax.random.normal(key)

    def update(self, env, x, key):
        """Return a number of at least 0.5."""
        next_loop = lambda loop: (loop[0] + 1, jax.random.normal(jax.random.fold_in(key, loop[0])))
        return jax.lax.while_loop(lambda loop: loop[1] < 0.5, next_loop, (0, x - 1.0))[1]


@pytest.mark.slow
def test_spread_seeds_draw_what_they_draw_together(tmp_path):
    """Results are bitwise equal, also when resumed, since nothing is summed over the seeds."""
    keys = jax.random.split(KEY, 16)
    go = lambda parts, **how: rl.sweep(CARTPOLE, Walk(), keys, parts, 2, measure=jnp.sin, **how)
    one, eight = go(3), go(3, mesh=EIGHT)
    go(2, mesh=EIGHT, out=tmp_path, schedule=6)
    for other in (eight, go(3, mesh=EIGHT, out=tmp_path, resume=True, schedule=6)):
        np.testing.assert_array_equal(other.history, one.history)
        np.testing.assert_array_equal(other.state, one.state)
        assert other.state.sharding.shard_shape((16,)) == (2,)
    assert len(np.unique(one.state)) == 16 and (np.asarray(one.state) > 0.5).all()


def assert_refused(learner, kind, match, env=CARTPOLE, over=EIGHT):
    with pytest.raises(kind, match=match):
        rl.train(env, learner, KEY, 100_000, mesh=over)


def test_what_cannot_be_shared_out_is_refused_in_one_sentence():
    torn = "over a mesh of 8 devices; it must be a multiple of them; give 16, or fewer devices"
    assert_refused(replace(PPO, num_envs=12), ValueError, f"PPO: num_envs=12 {torn}")
    assert_refused(rl.SAC(batch_size=12), ValueError, f"SAC: batch_size=12 {torn}", PENDULUM)
    assert_refused(rl.ES(SNES(12)), ValueError, f"ES: algorithm.batch_size=12 {torn}")
    assert_refused(
        rl.RecurrentPPO(replace(PPO, num_envs=12)), ValueError, "RecurrentPPO: num_envs=12"
    )
    many = replace(PPO, num_minibatches=16)
    assert_refused(many, ValueError, "sharded over 8 devices; choose a divisor of 8")
    assert_refused(
        replace(CASES["PQN"][1], num_minibatches=16), ValueError, "choose a divisor of 8"
    )
    assert_refused(
        rl.RecurrentPPO(replace(PPO, num_minibatches=4)), ValueError, "choose a divisor of 2"
    )
    assert_refused(PPO, TypeError, "train: mesh=3; it must be a mesh", over=3)
    assert_refused(PPO, ValueError, "has the axes a, b", over=jax.make_mesh((4, 2), ("a", "b")))
    with pytest.raises(
        ValueError, match="sweep: 6 keys over a mesh of 8 devices; the keys must be"
    ):
        rl.sweep(CARTPOLE, PPO, jax.random.split(KEY, 6), 1, 1, mesh=EIGHT)
    assert_refused(Own(), TypeError, "train: Own has no check_devices, so it cannot shard")


class Own:
    """A learner without support for several devices."""

    steps_per_update = 1
