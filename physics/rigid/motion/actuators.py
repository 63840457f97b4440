"""Actuators: from controls and activations to forces on joints.

force = clip(gain(l, l') u + bias(l, l')), with u the control or the activation and l the length of
the actuator: gear times the joint's coordinate or the tendon's length.
"""

import jax.numpy as jnp
import numpy as np
from jax import Array

from ..models.mechanism import Mechanism
from .forces import coordinates
from .forces import tendon_lengths as tendons
from .inertia import HIGHEST


def moment_arms(model: Mechanism) -> Array:
    """Return the moment arms [U, V]: derivatives of actuator lengths by dofs."""
    layout = model.layout
    joint, tendon = np.array(layout.motor_joint, int), np.array(layout.motor_tendon, int)
    at = np.where(joint >= 0, layout.dofadr[joint], -1) if layout.nv else joint
    unit = np.arange(layout.nv)[None] == at[:, None]
    rows = jnp.asarray(unit, model.qpos0.dtype)
    if (tendon >= 0).any():
        rows = jnp.where((tendon >= 0)[:, None], model.tendons.weight[np.maximum(tendon, 0)], rows)
    return rows * model.actuators.gear[:, None]


def actuation(
    model: Mechanism, qpos: Array, qvel: Array, act: Array, ctrl: Array
) -> tuple[Array, Array, Array]:
    """Return actuator forces [U], activation rates [A] and derivatives [U] of force by velocity."""
    layout, motors = model.layout, model.actuators
    if not layout.nu or "actuation" in layout.disabled:
        zero = jnp.zeros(layout.nu, qvel.dtype)
        return zero, jnp.zeros_like(act), zero
    limited = np.array(layout.motor_limited, bool).reshape(-1, 3)
    clamp = limited[:, 0] & ("clampctrl" not in layout.disabled)
    ctrl = jnp.where(clamp, jnp.clip(ctrl, *motors.ctrlrange.T), ctrl)
    rate, driven = _activation_rates(model, act, ctrl)
    arm = moment_arms(model)
    length = actuator_lengths(model, qpos)
    speed = jnp.einsum("uv,v->u", arm, qvel, precision=HIGHEST)
    reads = jnp.stack([jnp.ones_like(length), length, speed], 1)
    gain = jnp.sum(motors.gainprm * reads, 1)
    force = gain * driven + jnp.sum(motors.biasprm * reads, 1)
    slope = motors.gainprm[:, 2] * driven + motors.biasprm[:, 2]
    low, high = motors.forcerange.T
    clipped = limited[:, 1] & ((force < low) | (force > high))
    force = jnp.where(limited[:, 1], jnp.clip(force, low, high), force)
    slope = jnp.where(clipped, 0, slope)
    return force, rate, slope


def actuator_lengths(model: Mechanism, qpos: Array) -> Array:
    """Return the lengths [U] of the actuators."""
    layout = model.layout
    joint, tendon = np.array(layout.motor_joint, int), np.array(layout.motor_tendon, int)
    at = np.where(joint >= 0, layout.dofadr[joint], 0)
    length = jnp.where(joint >= 0, coordinates(model, qpos)[at], 0)
    if (tendon >= 0).any():
        pulled = tendons(model, qpos)[np.maximum(tendon, 0)]
        length = jnp.where(tendon >= 0, pulled, length)
    return model.actuators.gear * length


def _activation_rates(model: Mechanism, act: Array, ctrl: Array) -> tuple[Array, Array]:
    """Return the rates [A] of the activations, and the input [U] to each actuator's gain."""
    layout, motors = model.layout, model.actuators
    kept = np.array([kind != "none" for kind in layout.motor_dynamics])
    if not kept.any():
        return jnp.zeros_like(act), ctrl
    own = np.flatnonzero(kept)
    filters = np.array([layout.motor_dynamics[i] != "integrator" for i in own])
    slow = jnp.maximum(motors.dynprm[own], 1e-15)
    rate = jnp.where(filters, (ctrl[own] - act) / slow, ctrl[own])
    early = np.array([layout.motor_early[i] for i in own])
    shown = jnp.where(early, next_activation(model, act, rate), act)
    return rate, ctrl.at[own].set(shown)


def next_activation(model: Mechanism, act: Array, rate: Array) -> Array:
    """Return the activations [A] one step later."""
    layout, motors, h = model.layout, model.actuators, model.option.timestep
    own = np.array([i for i, kind in enumerate(layout.motor_dynamics) if kind != "none"], int)
    exact = np.array([layout.motor_dynamics[i] == "filterexact" for i in own], bool)
    slow = jnp.maximum(motors.dynprm[own], 1e-15)
    reach = jnp.where(exact, slow * -jnp.expm1(-h / slow), h)
    later = act + rate * reach
    limited = np.array([layout.motor_limited[i][2] for i in own], bool)
    return jnp.where(limited, jnp.clip(later, *motors.actrange[own].T), later)
