"""Learned policies without their training: saved, loaded, exported, and invalid files."""

import contextlib
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax.traverse_util import unflatten_dict
from forgery import seal, take_apart
from rl_pictures import LEARNERS as SEEING
from rl_pictures import Pointer
from rl_probe import waves
from safetensors.flax import load_file

from jaxgpu import rl
from jaxgpu.runs import checkpoint
from jaxgpu.runs.checkpoint import CheckpointError

KEY = jax.random.key(0)
BALANCE = jax.tree_util.Partial(lambda x: (x[2] + x[3] > 0).astype(int))
LEARNERS = {
    "PPO": ("cartpole", rl.PPO(hidden_sizes=(4,))),
    "RecurrentPPO": ("cartpole-masked", rl.RecurrentPPO(rl.PPO(), hidden_size=4)),
    "PQN": ("cartpole", rl.PQN(hidden_sizes=(4,))),
    "SAC": ("pendulum", rl.SAC(hidden_sizes=(4,), buffer_size=8)),
    "DAgger": ("cartpole", rl.DAgger(BALANCE, hidden_sizes=(4,))),
    "KickstartedPPO": ("cartpole", rl.KickstartedPPO(teacher=BALANCE, hidden_sizes=(4,))),
    "SHAC": ("pendulum", rl.SHAC(hidden_sizes=(4,))),
}


def fill_policy(env, learner):
    """Return a policy whose weights give different actions for different observations."""
    like = jax.eval_shape(lambda key: learner.init(env, key), KEY)
    zeros = jax.tree.map(lambda x: jnp.zeros(x.shape, x.dtype), like.obs_stats)
    stats = replace(zeros, count=jnp.ones(()), square=jax.tree.map(lambda x: x + 2, zeros.square))
    return learner.policy(env, SimpleNamespace(params=waves(like.params, 0.4), obs_stats=stats))


def make_policy(name):
    """Return a policy and some observations [8, ...]."""
    task, learner = LEARNERS[name]
    env = rl.make(task)
    seen = 4 * np.random.default_rng(0).normal(size=(8, *env.observation_space.shape))
    return fill_policy(env, learner), seen.astype(np.float32)


def run_policy(policy, seen):
    """Return the actions; a policy with a memory starts from a carry that is not zero."""
    if isinstance(policy, rl.RecurrentPolicy):
        carry = jnp.linspace(-1, 1, policy.carry.size)
        return jax.jit(jax.vmap(lambda x: policy.act(carry, x)))(seen)
    return jax.jit(jax.vmap(policy))(seen)


@pytest.mark.parametrize("name", LEARNERS)
def test_a_policy_is_saved_and_loaded_by_itself(name, tmp_path):
    policy, seen = make_policy(name)
    policy.save(tmp_path / "policy.npz")
    again = rl.load_policy(tmp_path / "policy.npz")
    assert type(again) is type(policy)
    actions = run_policy(policy, seen)
    for a, b in zip(
        jax.tree.leaves(actions), jax.tree.leaves(run_policy(again, seen)), strict=True
    ):
        np.testing.assert_array_equal(a, b)
    assert len(np.unique(np.asarray(jax.tree.leaves(actions)[-1]))) > 1


@pytest.mark.parametrize("name", ["PPO", "RecurrentPPO", "SAC"])
def test_an_exported_policy_acts_alike_on_any_number_of_observations(name):
    """Serialize and read it again, for three platforms, with a symbolic number of observations."""
    policy, seen = make_policy(name)
    program = jax.export.deserialize(policy.export().serialize())
    assert set(program.platforms) == {"cpu", "cuda", "tpu"}
    for count in (1, 8):
        if name == "RecurrentPPO":
            carry = jnp.tile(jnp.linspace(-1, 1, policy.carry.size), (count, 1))
            found, (_, expected) = (
                program.call(carry, seen[:count])[1],
                run_policy(policy, seen[:count]),
            )
        else:
            found, expected = program.call(seen[:count]), run_policy(policy, seen[:count])
        np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize("task", ["cartpole", "pendulum"])
def test_an_evolved_policy_is_saved_and_exported(task, tmp_path):
    env = rl.make(task)
    policies = rl.PolicyObjective(env, (4,))
    policy = policies.policy(jnp.linspace(-1, 1, policies.weights), policies.init())
    seen = np.random.default_rng(0).normal(size=(8, *env.observation_space.shape))
    seen = seen.astype(np.float32)
    policy.save(tmp_path / "policy.npz")
    wanted = run_policy(policy, seen)
    assert len(np.unique(wanted)) > 1
    np.testing.assert_array_equal(run_policy(rl.load_policy(tmp_path / "policy.npz"), seen), wanted)
    np.testing.assert_allclose(policy.export(("cpu",)).call(seen), wanted, rtol=1e-6)


@pytest.mark.slow
def test_a_policy_that_sees_pictures_needs_nothing_that_the_critic_alone_sees(tmp_path):
    """Saved, in another process and exported, it needs neither critic weights nor the goal."""
    env, learner = Pointer(), SEEING["PPO"]
    policy = fill_policy(env, learner)
    seen = jax.vmap(lambda key: env.reset(key)[1])(jax.random.split(KEY, 5))
    whole = jax.jit(jax.vmap(policy))(seen)
    less = {name: seen[name] for name in ("eye", "place")}
    np.testing.assert_array_equal(jax.jit(jax.vmap(policy))(less), whole)
    assert not [name for name in policy.params["params"] if name.startswith("critic")]
    np.testing.assert_allclose(policy.export(("cpu",)).call(less), whole, rtol=1e-6)
    policy.save(tmp_path / "policy.npz")
    np.savez(tmp_path / "seen.npz", **less)
    script = """if True:
        import sys, jax, numpy as np
        from jaxgpu import rl
        policy = rl.load_policy(sys.argv[1] + "/policy.npz")
        seen = dict(np.load(sys.argv[1] + "/seen.npz"))
        np.save(sys.argv[1] + "/actions.npy", jax.jit(jax.vmap(policy))(seen))
    """
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True)
    np.testing.assert_allclose(np.load(tmp_path / "actions.npy"), whole, rtol=1e-6)


class Own(nn.Module):
    """A user's own network."""

    @nn.compact
    def __call__(self, x):
        return nn.Dense(3)(x)


def test_a_network_of_ones_own_is_known_where_its_module_is_trusted(tmp_path, monkeypatch):
    env, learner = rl.make("cartpole"), rl.PPO(network=Own(), hidden_sizes=(4,))
    policy, seen = fill_policy(env, learner), np.ones((1, 4), np.float32)
    policy.save(tmp_path / "policy.npz")
    again = rl.load_policy(tmp_path / "policy.npz", trusted=(sys.modules[__name__],))
    np.testing.assert_array_equal(run_policy(again, seen), run_policy(policy, seen))
    monkeypatch.delattr(sys.modules[__name__], "Own")
    for trusted in ((), (__name__,)):
        with pytest.raises(CheckpointError, match="learnt by .*test_policies.Own, which is not kn"):
            rl.load_policy(tmp_path / "policy.npz", trusted=trusted)


def evil_objects(mark):
    """Return structures that once ran a command when a policy was read or called."""
    touch = {"partial": {"named": "posix:system"}, "args": [f"touch {mark}"], "named": []}
    fields = [["module_ref", touch], ["hash_key", 0]]
    proxy = {"type": "flax.linen.transforms:_HashableProxy", "fields": fields}
    write = {"type": "types:SimpleNamespace", "fields": [["write", {"named": "posix:system"}]]}
    printed = {"partial": {"named": "builtins:print"}, "args": [f"touch {mark}"]}
    printed["named"] = [["file", write]]
    recurrent = {"type": "jaxgpu.rl.policies:RecurrentPolicy"}
    box = {"type": "jaxgpu.rl.spaces:Box", "fields": []}
    save = {"partial": {"method": "save", "of": box}, "args": [str(mark)], "named": []}
    return {
        "a property": {"method": "module", "of": proxy},
        "a function": touch,
        "a print to a command": recurrent | {"fields": [["carry", 0], ["act", printed]]},
        "a method that writes": recurrent | {"fields": [["carry", 0], ["act", save]]},
    }


@pytest.mark.parametrize("place", ["learner", "action_space", "obs_stats", "network"])
@pytest.mark.parametrize("how", evil_objects(""))
def test_a_command_in_a_policy_is_not_run(how, place, tmp_path):
    """The policy is rejected when read, or fails when called, for a command in any field."""
    file, mark = tmp_path / "policy.npz", tmp_path / "PWNED"
    policy, seen = make_policy("PPO")
    policy.save(file)
    header, members = take_apart(file)
    fields = {row[0]: row for row in header["meta"]["tree"]["fields"]}
    inside = {row[0]: row for row in fields["learner"][1]["fields"]}
    (fields | inside)[place][1] = evil_objects(mark)[how]
    seal(file, header, members)
    with contextlib.suppress(CheckpointError, TypeError, AttributeError, ValueError):
        rl.load_policy(file)(seen[0])
    assert not mark.exists()


def test_what_is_no_learner_does_not_act(tmp_path):
    policy, _ = make_policy("PPO")
    replace(policy, learner=policy.action_space).save(tmp_path / "policy.npz")
    with pytest.raises(CheckpointError, match="learner=a value of type Discrete; it must be a l"):
        rl.load_policy(tmp_path / "policy.npz")


def test_wrong_files_are_named(tmp_path):
    text, other, folder = (Path(tmp_path, name) for name in ("a.txt", "b.npz", "c"))
    text.write_text("a policy " * 40)
    checkpoint.save(other, {"x": np.zeros(3)})
    folder.mkdir()
    for path, said in (
        (text, "damaged or not a jaxgpu checkpoint"),
        (other, r"holds a checkpoint that is not a policy; write one by policy.save\(path\)"),
        (folder, "no such checkpoint"),
        (tmp_path / "none.npz", "no such checkpoint"),
    ):
        with pytest.raises(CheckpointError, match=f"{path.name}: {said}"):
            rl.load_policy(path)
    policy, _ = make_policy("PPO")
    policy.save(other)
    data = bytearray(other.read_bytes())
    data[len(data) // 2] ^= 1
    other.write_bytes(data)
    with pytest.raises(CheckpointError, match="damaged or not"):
        rl.load_policy(other)


@pytest.mark.parametrize("name", ["PPO", "SAC", "RecurrentPPO"])
def test_weights_alone_go_through_safetensors(name, tmp_path):
    policy, seen = make_policy(name)
    policy.save_weights(tmp_path / "policy.safetensors")
    flat = load_file(tmp_path / "policy.safetensors")
    found = unflatten_dict(flat, sep=".")
    learnt = policy.act if name == "RecurrentPPO" else policy
    assert any(word.startswith("params.") and word.endswith(".kernel") for word in flat)
    np.testing.assert_array_equal(flat["obs_stats.square"], learnt.obs_stats.square)
    zeros = jax.tree.map(jnp.zeros_like, learnt.params)
    for params in (zeros, {"params": found["params"]}):
        again = replace(learnt, params=params)
        again = replace(policy, act=again) if name == "RecurrentPPO" else again
        same = jax.tree.map(np.array_equal, run_policy(again, seen), run_policy(policy, seen))
        assert all(jax.tree.leaves(same)) == (params is not zeros)
    assert [file.name for file in tmp_path.iterdir()] == ["policy.safetensors"]


def test_an_extra_that_is_not_there_is_named(tmp_path, monkeypatch):
    policy, _ = make_policy("PPO")
    monkeypatch.setitem(sys.modules, "safetensors", None)
    monkeypatch.delitem(sys.modules, "safetensors.flax", raising=False)
    with pytest.raises(ModuleNotFoundError) as missed:
        policy.save_weights(tmp_path / "policy.safetensors")
    assert str(missed.value).endswith('needs safetensors; pip install "jaxgpu[studies]"')
    assert not list(tmp_path.iterdir())


def test_a_function_of_ones_own_is_not_saved(tmp_path):
    swing = rl.RecurrentPolicy(jnp.int32(0), lambda carry, seen: (1 - carry, carry))
    with pytest.raises(TypeError, match="save_weights: act=.*; it must be that of a learner's pol"):
        swing.save_weights(tmp_path / "policy.safetensors")
    with pytest.raises(TypeError, match="save: act=.*; it must be that of a learner's policy"):
        swing.save(tmp_path / "policy.npz")
    with pytest.raises(TypeError, match="export: act=.*; it must be that of a learner's policy"):
        swing.export()
