"""MLS-MPM in 3-D compared with Taichi and Warp: the same particles, grid, materials and steps.

A cube of material at 8 particles per cell moves at 0.5 m/s under gravity for STEPS steps, in
float32, with positions in random order. All programs do the same arithmetic with the same constants
and end with the same mean height and velocity, shown next to the time. One core: run under `taskset
-c 0`. Taichi is set to one thread, and Warp's CPU back end has only one. Their programs are in
`benchmarks/mpm`; install them with `pip install taichi warp-lang`.
"""

import dataclasses
import importlib.util

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.harness import Contender, Entry
from benchmarks.mpm.work import DT, STEPS, Work, start
from jaxgpu.devices import mesh
from jaxgpu.physics.continuum import (
    Body,
    Corotated,
    DruckerPrager,
    Grid,
    Liquid,
    NeoHookean,
    Scene,
    devices,
    rollout,
)

SIZES = ((65_536, 64), (2_048, 24))  # particles, nodes along an axis


def entries() -> list[Entry]:
    """Return forward runs of every material at both sizes, then gradients at the large size."""
    made = [_forward_entry(Work(n, nodes, m)) for n, nodes in SIZES for m in _MATERIALS]
    return [*made, *(_gradient_entry(Work(*SIZES[0], m)) for m in ("liquid", "neo-hookean"))]


_MATERIALS = {
    "liquid": lambda w: Liquid(
        w.young, exponent=1.0, tension=1e9, volume_correction=None
    ),  # as in the peers' programs
    "neo-hookean": lambda w: NeoHookean(w.young, w.poisson),
    "corotated": lambda w: Corotated(w.young, w.poisson),
    "sand": lambda w: DruckerPrager(w.young, w.poisson, w.friction),
}


def scene(work: Work) -> Scene:
    """Return the scene of the work, with walls three nodes inside the grid, as the peers have."""
    dx = 1 / work.nodes
    v = jnp.array([0.5, 0.0, 0.0])
    body = Body(jnp.asarray(start(work)), _MATERIALS[work.material](work), (dx / 2) ** 3, v=v)
    grid = Grid(dx, (work.nodes - 5,) * 3, lower=(2 * dx,) * 3)
    return Scene((body,), grid, gravity=(0.0, -9.8, 0.0), dt=float(np.float32(DT)))


def _forward_entry(work: Work) -> Entry:
    ours = scene(work)

    def advance(state):
        return jax.lax.fori_loop(0, STEPS, lambda _, s: ours.step(s), state)

    contenders = [Contender(f"jaxgpu, jax {jax.__version__}", _make_run(advance, ours.init()))]
    if jax.device_count() > 1:
        two = mesh.make_mesh(2)
        share = devices.shard_frame(ours, two, STEPS)
        shared = _make_run(lambda shares: share(shares).state, devices.shard_state(ours, two))
        contenders.append(Contender("jaxgpu on two devices", shared))
    contenders += _peer_contenders(work)
    return Entry(
        f"continuum {work.material} {work.particles}/{work.nodes}^3",
        f"{STEPS} steps of MLS-MPM, float32, one core",
        contenders,
        amount=work.particles * STEPS,
        unit="particle-steps",
    )


def _make_run(go, state):
    """Return a function without arguments that computes mean height and velocity at the end."""

    @jax.jit
    def run(state):
        body = go(state).bodies[0]
        share = body.m / jnp.sum(body.m)
        height, speed = (jnp.sum(share * a[:, 1]) for a in (body.x, body.v))
        return {"height": height, "speed": speed}

    return lambda: run(state)


def _gradient_entry(work: Work) -> Entry:
    """Return an entry of value and gradient in the initial velocity, storing every step."""
    ours = scene(work)
    state = ours.init()

    @jax.jit
    def evaluate_loss(v):
        return {"loss": _loss(ours, state, v)}

    @jax.jit
    def value_and_gradient(v):
        value, slope = jax.value_and_grad(lambda v: _loss(ours, state, v))(v)
        return {"loss": value, "d loss / d v_y": slope[1]}

    v = jnp.array([0.5, 0.0, 0.0])
    _require_peers()
    from benchmarks.mpm import taichi_gradient

    return Entry(
        f"continuum value and gradient {work.material} {work.particles}/{work.nodes}^3",
        f"{STEPS} steps and their reverse, against the same steps forward",
        [
            Contender("value and gradient", lambda: value_and_gradient(v)),
            Contender("value", lambda: evaluate_loss(v)),
            Contender(taichi_gradient.NAME, taichi_gradient.program(work)),
        ],
        amount=work.particles * STEPS,
        unit="particle-steps",
        rounds=3,
    )


def _loss(ours: Scene, state, v):
    body = state.bodies[0]
    state = dataclasses.replace(state, bodies=(body.replace(v=v),))
    end, _ = rollout(ours, state, 1, substeps=STEPS, checkpoint=(0, 1))
    return jnp.sum(jnp.mean((end.bodies[0].x - 0.3) ** 2, 0))


def _require_peers() -> None:
    missing = [m for m in ("taichi", "warp") if importlib.util.find_spec(m) is None]
    if missing:
        raise SystemExit(f"continuum: {missing} are not installed; pip install taichi warp-lang")


def _peer_contenders(work: Work) -> list[Contender]:
    _require_peers()
    from benchmarks.mpm import taichi_solver, warp_solver

    made = [Contender(taichi_solver.NAME, taichi_solver.program(work))]
    if work.material != "sand":  # the Warp program has no sand
        made.append(Contender(warp_solver.NAME, warp_solver.program(work)))
    return made
