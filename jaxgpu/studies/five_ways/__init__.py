"""PPO, SHAC, ES, gradient descent and CEM pour one glass, at equal simulated seconds."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu import rl
from jaxgpu.inputs.fields import size
from jaxgpu.report import Report
from jaxgpu.studies import SeededOptions, seed_count

from .findings import make_report
from .gradient_quality import quality
from .gradients import Probe, random_plans, run_probe
from .methods import BLOCKS, DISCOUNT
from .race import Budget, Setup, run_race
from .task import Sloshing, sloshing

NOISE = 0.3, 0.95  # of the plans at which gradients are evaluated: deviation, correlation in time
UNSEEN = 16  # number of new initial states


@dataclass(frozen=True)
class Options(SeededOptions):
    """Options of the study."""

    episodes: int = size(default=128, least=32, most=1_000_000)
    """Episodes per seed at which all methods are compared, a multiple of 32."""
    longer: int = size(default=4, least=1, most=1000)
    """Factor on the episodes of methods without gradients, whose episodes cost less."""
    seeds: int = seed_count(default=5, least=2)
    """Seeds per method; at least 2, for intervals."""
    plans: int = size(default=8, least=2, most=10_000)
    """Random plans at which the quality of gradients is measured."""
    size: str = "coarse"
    """Size of the task: coarse or small (two-dimensional), or full (three-dimensional)."""

    def __post_init__(self):
        super().__post_init__()
        if self.episodes % max(BLOCKS.values()):
            raise ValueError(f"episodes: {self.episodes}; must be a multiple of 32")
        if self.size not in ("coarse", "small", "full"):
            raise ValueError(f"size: {self.size!r}; must be coarse, small or full")


def study(options: Options, out: Path, resume: bool) -> Report:
    """Run all methods, evaluate gradients window by window, and report the results."""
    env = make_task(options.size)
    field = Setup.create(env, options.seeds, UNSEEN, options.seed)
    budget = Budget(options.episodes, options.longer)
    race = run_race(field, budget, known_plans(env), options.seed, out, resume)
    key = jax.random.key(options.seed)
    probe = make_probe(env, key, options.plans)
    seen = run_probe(probe, key, out / "gradients", resume)
    found = quality(jax.tree.map(lambda a: a[1:], seen.history), len(probe.windows))
    return make_report(options, env, race, np.asarray(probe.windows).tolist(), found, seen.timing)


def make_task(name: str) -> Sloshing:
    """Return the task of a size; 8 observed particles of each liquid are enough."""
    plain: Any = rl.make("matter/pouring", size=name, observed_particles=8)
    return sloshing(plain)


def make_probe(env: Any, key: Array, plans: int) -> Probe:
    """Return a probe with windows of 1, 2, 4, ... frames and the full episode, at random plans."""
    windows = [2**i for i in range(env.max_steps.bit_length()) if 2**i < 0.75 * env.max_steps]
    start_key, plan_key = jax.random.split(jax.random.fold_in(key, 1))
    states = jax.vmap(env.reset)(jax.random.split(start_key, plans))[0]
    return Probe(
        env,
        states,
        random_plans(env, plan_key, plans, *NOISE),
        jnp.array([*windows, env.max_steps]),
        discount=DISCOUNT,
    )


def known_plans(env: Sloshing) -> dict[str, Array]:
    """Return corrections that give the first guess, holding still, and a manual plan.

    The manual plan tilts by 86 degrees in 0.4 s, waits for 0.46 s and rotates back.
    """
    guess = env.first_guess()
    turn = np.zeros(guess.shape, np.float32)
    turn[:20, 2], turn[43:63, 2] = -0.94, 0.94
    return {"first guess": 0 * guess, "holding still": -guess, "by hand": jnp.asarray(turn) - guess}
