"""Time integrators: MuJoCo's Euler, RK4 and implicitfast."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxgpu.geometry import rotations

from .constraints.factor import solve
from .forward import Dynamics, State, dynamics
from .models.mechanism import Mechanism
from .motion import actuators, fluid
from .motion.inertia import HIGHEST, bias, motion
from .motion.poses import cross, quat_mul


def step(model: Mechanism, state: State, ctrl: Array, force: Array) -> State:
    """Return the state after one step."""
    return step_and_look(model, state, ctrl, force, lambda d: None)[0]


def step_and_look[Look](
    model: Mechanism,
    state: State,
    ctrl: Array,
    force: Array,
    look: Callable[[Dynamics], Look],
) -> tuple[State, Look]:
    """Return the state after one step, and `look` of the dynamics that the step evaluates last.

    MuJoCo's mjData has the same dynamics after a step: for RK4 those of the fourth stage, else
    those at the beginning of the step.
    """
    if model.layout.integrator == "rk4":
        return _runge_kutta(model, state, ctrl, force, look)
    d = dynamics(model, state, ctrl, force)
    implicit = _implicit_derivative(model, d)
    qacc = d.qacc
    if implicit is not None:
        inertia = jnp.einsum("vw,w->v", d.M, qacc, precision=HIGHEST)
        qacc = solve(d.M + model.option.timestep * implicit, inertia)
        if model.layout.integrator == "implicitfast":
            qacc = _solve_gyroscopic(model, state, d, implicit, inertia, qacc)
    speed = state.qvel + model.option.timestep * qacc
    return advance(model, state, d.rate, qacc, speed, d.qacc, d.beyond), look(d)


def _implicit_derivative(model: Mechanism, d: Dynamics) -> Array | None:
    """Return minus the velocity derivative [V, V] of the implicit forces, or None."""
    layout = model.layout
    damping = jnp.diag(model.freedoms.damping)
    damped = "damper" not in layout.disabled
    if layout.integrator == "euler":
        return damping if damped and "eulerdamp" not in layout.disabled else None
    total = damping if damped else jnp.zeros_like(d.M)
    if layout.element_names("tendon") and damped:
        t = model.tendons
        total = total + jnp.einsum("tv,t,tw->vw", t.weight, t.damping, t.weight, precision=HIGHEST)
    if "fluid" in layout.has and not {"spring", "damper"} <= layout.disabled:
        total = total + fluid.resistance(model, d.where, d.motion)
    if layout.nu:
        arm = actuators.moment_arms(model)
        total = total - jnp.einsum("uv,u,uw->vw", arm, d.slope, arm, precision=HIGHEST)
    # As in MuJoCo, entries remain only where one dof moves the other, as in the mass matrix.
    return jnp.where(layout.ancestor_dofs | layout.ancestor_dofs.T, total, 0)


def _solve_gyroscopic(
    model: Mechanism, state: State, d: Dynamics, implicit: Array, inertia: Array, qacc: Array
) -> Array:
    """Return accelerations [V] with implicit gyroscopic forces on free bodies without children.

    The rows of such a body are coupled to no others, so its nonsymmetric matrix is 6 by 6.
    """
    lone = model.layout.lone_dofs
    if not lone.size:
        return qacc
    at = lone[:, None] + np.arange(6)
    gyroscopic = lambda v: bias(model, motion(model, d.where, v), v)
    seeds = np.zeros((3, model.layout.nv))
    for k in range(3):
        seeds[k, lone + 3 + k] = 1
    spin_derivative = lambda seed: jax.jvp(gyroscopic, (state.qvel,), (seed,))[1][at]  # [n, 6]
    columns = jax.vmap(spin_derivative, out_axes=2)(jnp.asarray(seeds, qacc.dtype))  # [n, 6, 3]
    slopes = jnp.concatenate([jnp.zeros_like(columns), columns], 2)
    select_blocks = lambda a: a[at[:, :, None], at[:, None]]
    block = select_blocks(d.M) + model.option.timestep * (slopes + select_blocks(implicit))
    return qacc.at[at].set(jnp.linalg.solve(block, inertia[at][..., None])[..., 0])


def advance(
    model: Mechanism,
    state: State,
    rate: Array,
    qacc: Array,
    qvel: Array,
    warm: Array,
    beyond: Array,
) -> State:
    """Return the state after a step with accelerations `qacc`; `qvel` moves the coordinates."""
    h = model.option.timestep
    act = actuators.next_activation(model, state.act, rate) if state.act.size else state.act
    return replace(
        state,
        qpos=integrate_pos(model, state.qpos, qvel, h),
        qvel=state.qvel + h * qacc,
        act=act,
        time=state.time + h,
        warm=warm,
        overflow=state.overflow + beyond,
    )


def integrate_pos(model: Mechanism, qpos: Array, qvel: Array, h: Array) -> Array:
    """Return the coordinates [Q] after moving with the velocities [V] for the time `h`."""
    layout = model.layout
    out = qpos
    one = np.flatnonzero([kind in ("hinge", "slide") for kind in layout.joint_kind])
    if one.size:
        out = out.at[layout.qposadr[one]].add(h * qvel[layout.dofadr[one]])
    for kind, skip in (("ball", 0), ("free", 3)):
        own = layout.kinds(kind)
        if not own.size:
            continue
        at, to = layout.qposadr[own], layout.dofadr[own]
        if skip:
            along = np.arange(3)[:, None]
            out = out.at[at + along].add(h * qvel[to + along])
        fours, threes = at + skip + np.arange(4)[:, None], to + skip + np.arange(3)[:, None]
        turn = jnp.stack(rotations.from_rotvec(h * qvel[threes]))
        out = out.at[fours].set(rotations.unit(quat_mul(rotations.unit(qpos[fours]), turn)))
    return out


_STAGES = ((0.0, 1 / 6), (0.5, 1 / 3), (0.5, 1 / 3), (1.0, 1 / 6))


def _runge_kutta(
    model: Mechanism, state: State, ctrl: Array, force: Array, look: Callable[[Dynamics], Any]
) -> tuple[State, Any]:
    """Advance by classic RK4; rotations follow the Runge-Kutta-Munthe-Kaas method.

    Munthe-Kaas (1999), doi:10.1016/S0168-9274(98)00030-0: at a stage that is rotated from the start
    by a rotation vector, the angular velocity is converted to the rate of that vector.
    """
    h = model.option.timestep
    none = jnp.zeros_like(state.qvel)
    begin = none, none, jnp.zeros_like(state.act)

    def stage(known: tuple, place: Array) -> tuple[tuple, Any]:
        (speed, qacc, rate), total, warm, beyond = known
        reach, share = place
        away = reach * h * speed
        at = replace(
            state,
            qpos=integrate_pos(model, state.qpos, away, jnp.ones_like(h)),
            qvel=state.qvel + reach * h * qacc,
            act=state.act + reach * h * rate,
            warm=warm,
        )
        d = dynamics(model, at, ctrl, force)
        rates = _to_vector_rates(model, at.qvel, away), d.qacc, d.rate
        total = tuple(old + share * new for old, new in zip(total, rates))
        return (rates, total, d.qacc, beyond + d.beyond), look(d)

    places = jnp.asarray(_STAGES, state.qvel.dtype)
    start = begin, begin, state.warm, jnp.zeros_like(state.overflow)
    (_, (qvel, qacc, rate), warm, beyond), looks = lax.scan(stage, start, places)
    last = jax.tree.map(lambda each: each[-1], looks)
    return advance(model, state, rate, qacc, qvel, warm, beyond), last


def _to_vector_rates(model: Mechanism, qvel: Array, away: Array) -> Array:
    """Convert angular velocities in `qvel` [V] to rates of the rotation vectors in `away` [V]."""
    layout = model.layout
    for kind, skip in (("ball", 0), ("free", 3)):
        own = layout.kinds(kind)
        if own.size:
            at = layout.dofadr[own] + skip + np.arange(3)[:, None]
            u, w = away[at], qvel[at]
            uw = cross(u, w)
            square = jnp.sum(u * u, 0)
            turning = square > 1e-6
            half = 0.5 * jnp.sqrt(jnp.where(turning, square, 1))
            # (1 - h cot h) / 4 h^2 with h half the angle; its series for small angles
            bend = jnp.where(
                turning,
                (1 - half / jnp.tan(half)) / jnp.where(turning, square, 1),
                1 / 12 + square / 720,
            )
            qvel = qvel.at[at].set(w + 0.5 * uw + bend[None] * cross(u, uw))
    return qvel
