"""Steps per second of environments and learners: gymnax, gymnasium, Brax and PureJaxRL's PPO.

Needs all except the last (pip install gymnax gymnasium brax). MJX and MuJoCo are in `rigid`.
"""

from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks import rl_host
from benchmarks.harness import Contender, Entry
from benchmarks.rl_brax import Race
from benchmarks.rl_purejaxrl import ReferencePPO
from jaxgpu import rl

COPIES, STEPS, AGENTS = 2048, 200, 16
FEW, SHORT = 128, 25  # copies and steps of Brax, which does a 128th of the work
WINDOWS = 50  # windows of SHAC
UPDATES = 195  # updates of 4 copies and 128 steps: 99,840 steps
STRETCH, STRETCHES = 25, 8  # updates of 256 copies, 32 steps: 204,800 steps; more than rounds


def _make_jaxgpu_rollout(name: str, num_envs: int = COPIES) -> Callable[[Any], Any]:
    """Return mean |observation| under random actions; a constant reward would need no work."""
    env = rl.make(name)
    envs = rl.vectorize(env, num_envs)

    def run(key: Any) -> Any:
        def move(state: Any, key: Any) -> tuple[Any, Any]:
            act_key, step_key = jax.random.split(key)
            action = jax.vmap(env.action_space.sample)(jax.random.split(act_key, num_envs))
            state, out = envs.step(state, action, step_key)
            return state, jnp.mean(jnp.abs(out.final))

        return jnp.mean(jax.lax.scan(move, envs.reset(key), jax.random.split(key, STEPS))[1])

    return jax.jit(run)


def _make_gymnax_rollout(name: str) -> Callable[[Any], Any]:
    env, params = import_module("gymnax").make(name)

    def run(key: Any) -> Any:
        def move(state: Any, key: Any) -> tuple[Any, Any]:
            act_key, step_key = jax.random.split(key)
            sample = lambda key: env.action_space(params).sample(key)
            action = jax.vmap(sample)(jax.random.split(act_key, COPIES))
            step = jax.vmap(env.step, (0, 0, 0, None))
            out = step(jax.random.split(step_key, COPIES), state, action, params)
            return out[1], jnp.mean(jnp.abs(out[0]))

        start = jax.vmap(env.reset, (0, None))(jax.random.split(key, COPIES), params)[1]
        return jnp.mean(jax.lax.scan(move, start, jax.random.split(key, STEPS))[1])

    return jax.jit(run)


def _run_gymnasium() -> dict[str, float]:
    """Step gymnasium's vector of CartPole copies, in NumPy."""
    gymnasium = import_module("gymnasium")
    env = gymnasium.make_vec("CartPole-v1", COPIES, vectorization_mode="vector_entry_point")
    env.reset(seed=0)
    rng, total = np.random.default_rng(0), 0.0
    for _ in range(STEPS):
        total += np.abs(env.step(rng.integers(0, 2, COPIES))[0]).mean()
    return {"mean |observation|": total / STEPS}


def _make_brax_rollout() -> Callable[[Any], Any]:
    """Return Brax's reacher with two joints under its own wrappers, as a function of a key."""
    envs = import_module("brax.envs")
    env = envs.create("reacher", batch_size=FEW)

    def run(key: Any) -> Any:
        def move(state: Any, key: Any) -> tuple[Any, Any]:
            action = jax.random.uniform(key, (FEW, env.action_size), minval=-1.0)
            state = env.step(state, action)
            return state, jnp.mean(jnp.abs(state.obs))

        start = env.reset(key)
        return jnp.mean(jax.lax.scan(move, start, jax.random.split(key, SHORT))[1])

    return jax.jit(run)


def _shac_entry(name: str) -> Entry:
    """Return an entry of training by analytic gradients, dominated by compilation."""
    env, shac, key = rl.make(name), rl.SHAC(), jax.random.key(0)
    run = jax.jit(lambda key: rl.learn(env, shac, key, WINDOWS)[1]["episode_return"][-1])
    work = f"SHAC, {shac.num_envs} copies, {WINDOWS} windows of {shac.num_steps} steps"
    amount = float(WINDOWS * shac.steps_per_update)
    ours = Contender("jaxgpu", lambda: {"return": run(key)})
    return Entry(f"shac {name}", work, [ours], amount, "steps", rounds=3)


def _cartpole_contenders(agents: int) -> list[Contender]:
    """Return CartPole trainings with PureJaxRL's settings; answers are the last mean returns."""
    env = rl.make("cartpole")
    ppo = rl.PPO(
        learning_rate=2.5e-4,
        gamma=0.99,
        gae_lambda=0.95,
        clip_eps=0.2,
        ent_coef=0.01,
        num_envs=4,
        num_steps=128,
        update_epochs=4,
        num_minibatches=4,
    )
    keys = jax.random.split(jax.random.key(0), agents)
    ours = jax.jit(jax.vmap(lambda key: rl.learn(env, ppo, key, UPDATES)[1]))
    theirs = jax.jit(jax.vmap(ReferencePPO(num_updates=UPDATES).learn))

    def mean_last_return(reports: Any) -> Any:
        ended = reports["episodes"][:, -20:]
        total = jnp.sum(reports["episode_return"][:, -20:] * ended)
        return total / jnp.maximum(jnp.sum(ended), 1.0)

    return [
        Contender("jaxgpu", lambda: {"return": mean_last_return(ours(keys))}),
        Contender("after PureJaxRL", lambda: {"return": mean_last_return(theirs(keys))}),
    ]


def _ppo_brax_entry() -> Entry:
    """Return an entry of PPO on the kinematic arm and Brax with equal sizes, stretch by stretch."""
    env, limit = rl.make("surgical/psm-reach"), 100
    ppo = rl.PPO(
        learning_rate=1e-3, gamma=0.97, num_envs=256, num_steps=32
    )  # 4 epochs of 8 minibatches
    steps = STRETCH * ppo.steps_per_update
    race = Race(
        env,
        limit,
        steps,
        STRETCHES,
        num_envs=ppo.num_envs,
        unroll_length=ppo.num_steps,
        batch_size=ppo.num_envs // ppo.num_minibatches,
        num_minibatches=ppo.num_minibatches,
        num_updates_per_batch=ppo.update_epochs,
        learning_rate=ppo.learning_rate,
        discounting=ppo.gamma,
        gae_lambda=ppo.gae_lambda,
        clipping_epsilon=ppo.clip_eps,
        max_grad_norm=ppo.max_grad_norm,
        entropy_cost=0.0,
    )

    @jax.jit
    def train_stretch(state: Any, key: Any) -> tuple[Any, Any]:
        keys = jax.random.split(key, STRETCH)
        state, _ = jax.lax.scan(lambda s, key: (ppo.update(env, s, key), None), state, keys)
        scores = rl.evaluate(env, ppo.policy(env, state), key, 64, limit)
        return state, scores.episode_return.mean()

    now = [ppo.init(env, jax.random.key(0), STRETCH * STRETCHES)]

    def run_jaxgpu() -> dict[str, float]:
        now[0], total = train_stretch(now[0], jax.random.key(int(now[0].update)))
        return {"return": total}

    brax = Contender(f"brax {version('brax')}", race.stretch)
    work = f"PPO, 256 copies of 32 steps, 4 epochs, {STRETCH} updates, going on each round"
    return Entry(
        "ppo psm-reach",
        work,
        [Contender("jaxgpu", run_jaxgpu), brax],
        float(steps),
        "steps",
        rounds=5,
    )


def entries() -> list[Entry]:
    """Return random actions in CartPole and surgical arms, then trainings."""
    key, work = (
        jax.random.key(0),
        f"random actions, {COPIES} copies, {STEPS} steps, begun anew, each from a start of its own",
    )
    make_contender = lambda name, f: Contender(name, lambda: {"mean |observation|": f(key)})
    gymnax, amount = f"gymnax {version('gymnax')}", float(COPIES * STEPS)
    cartpole = [
        make_contender("jaxgpu", _make_jaxgpu_rollout("cartpole")),
        make_contender(gymnax, _make_gymnax_rollout("CartPole-v1")),
    ]
    cartpole.append(Contender(f"gymnasium {version('gymnasium')}", _run_gymnasium))
    near, heavy = (f"surgical/{name}" for name in ("psm-reach", "star-reach-dynamic"))
    reacher = Contender(
        f"brax {version('brax')} reacher, 2 joints",
        make_contender("", _make_brax_rollout()).run,
        part=FEW * SHORT / amount,
    )
    reaching = [make_contender("jaxgpu, 7 joints", _make_jaxgpu_rollout(heavy)), reacher]
    trained = float(UPDATES * 4 * 128)
    ppo = f"PPO on CartPole, 4 copies of 128 steps, 4 epochs, {UPDATES} updates"
    return [
        Entry("cartpole", work, cartpole, amount, "steps"),
        Entry(near, work, [make_contender("jaxgpu", _make_jaxgpu_rollout(near))], amount, "steps"),
        Entry(heavy, work, reaching, amount, "steps", rounds=3),
        Entry("ppo", ppo, _cartpole_contenders(1), trained, "steps", rounds=3),
        Entry(
            "ppo agents",
            f"{AGENTS} agents in one program, else the same",
            _cartpole_contenders(AGENTS),
            AGENTS * trained,
            "steps",
            rounds=3,
        ),
        _ppo_brax_entry(),
        *(_shac_entry(name) for name in (near, heavy)),
        *rl_host.host_entries(),
    ]
