"""The registry of the package: every public name, and the rules that it must obey.

Functions are registered as API cases (`cases_<package>.py`); specs, environments, learners and
algorithms in the tables of `steppers.py`. `tests/core/test_conformance.py` tests all of them:
registration is not optional, and a missing public name fails.

A case that takes arrays is a *program*: it is tested in float32 and float64, under `jit`, `vmap`
and export, unless its field `host` gives a reason; a traceable one may not have that field.
"""

import importlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import conformance
import jax
import jax.numpy as jnp
import numpy as np
from api_cases import ApiCase, as_users, cheap_programs, split

TABLES = sorted(file.stem for file in Path(__file__).parent.glob("cases_*.py"))
CASES: list[ApiCase] = [door for table in TABLES for door in importlib.import_module(table).CASES]
OURS = {f"jit({d.name.rpartition('.')[2]})" for d in CASES}  # programs of public functions
TABLE_OF = {d.name: table for table in TABLES for d in importlib.import_module(table).CASES}
# cases for which a rule takes more than 1.5 s
SLOW = {
    "hostile input": [
        "evolution.NoisyFunction, NoisyProblem.evaluate",
        "evolution.indicators.expected_utility",
        "evolution.indicators.hypervolume",
        "evolution.indicators.hypervolume_by_rays",
        "evolution.multi.RVEA.init",
        "evolution.pareto.crowding_distance",
        "evolution.pareto.is_non_dominated",
        "evolution.pareto.ranks",
        "evolution.search",
        "evolution.single.LSHADE",
        "evolution.single.Restarts",
        "numerics.Mixture.log_prob",
        "numerics.Mixture.em_step",
        "numerics.VonMisesFisher.entropy",
        "numerics.VonMisesFisher.fit",
        "numerics.VonMisesFisher.from_mean",
        "numerics.VonMisesFisher.kl_divergence",
        "numerics.VonMisesFisher.log_prob",
        "numerics.fit_mixture",
        "numerics.iv_ratio",
        "numerics.iv_ratio_inverse",
        "numerics.kv_ratio",
        "numerics.log_hyp0f1",
        "numerics.log_iv",
        "numerics.log_ive",
        "numerics.log_kv",
        "numerics.log_kve",
        "numerics.matern",
        "numerics.sphere.sampling.sample_vmf",
        "numerics.spherical_kmeans",
        "physics.nbody.Planetary.init",
        "physics.nbody.WisdomHolman.init",
        "physics.nbody.encounters.log_stars",
        "physics.nbody.evolve",
        "physics.nbody.integrate",
        "physics.nbody.kepler.drift",
        "physics.nbody.lagrangian_radii",
        "physics.nbody.masses.quantile",
        "physics.nbody.measure.budget",
        "physics.nbody.measure.class_radii",
        "physics.nbody.add_companions",
        "physics.nbody.virialize",
        "physics.rigid.Model.sensors",
        "physics.rigid.Model.step",
        "physics.rigid.inverse_dynamics",
        "physics.rigid.sensors.contact_forces",
        "physics.touch.Grasp.step",
        "render.nearest_ball",
        "render.picture",
        "render.soft_depth",
        "render.trace",
    ],
    "run again": [
        "numerics.fit_mixture",
        "physics.continuum.rollout",
        "physics.continuum.simulate",
        "physics.nbody.evolve",
        "physics.nbody.integrate",
    ],
    "traced": [
        "physics.nbody.Hermite.init",
        "physics.nbody.potentials.Cusp",
        "physics.nbody.potentials.MiyamotoNagai",
        "physics.nbody.potentials.NavarroFrenkWhite",
        "physics.rigid.Model.step",
        "physics.rigid.sensors.contact_forces",
        "physics.touch.Grasp.step",
    ],
    "run": [
        "evolution.indicators.expected_utility",
        "evolution.search",
        "numerics.Mixture.log_prob",
        "numerics.Mixture.em_step",
        "numerics.VonMisesFisher.entropy",
        "numerics.VonMisesFisher.kl_divergence",
        "numerics.VonMisesFisher.log_prob",
        "numerics.iv_ratio",
        "numerics.iv_ratio_inverse",
        "numerics.log_hyp0f1",
        "numerics.log_iv",
        "numerics.log_ive",
        "numerics.log_kv",
        "numerics.log_kve",
        "numerics.matern",
        "numerics.spherical_kmeans",
        "physics.nbody.kepler.drift",
        "physics.nbody.king",
        "physics.nbody.potentials.Cusp",
        "physics.nbody.potentials.MiyamotoNagai",
        "physics.nbody.potentials.NavarroFrenkWhite",
        "physics.nbody.potentials.PointMass",
        "physics.nbody.tide.Origin",
        "physics.rigid.Model.sensors",
        "physics.rigid.Model.step",
        "physics.rigid.inverse_dynamics",
        "physics.rigid.jacobian",
        "physics.rigid.mass_matrix",
        "physics.rigid.sensors.contact_forces",
        "physics.touch.Grasp.step",
        "render.picture",
    ],
}


# cases that cannot be called twice: one changes a class, one has no valid call
ONCE = "pytree.pytree", "mesh.replicate: mesh"

# maximum programs of a first call, for cases that also compute with their arguments
FIRST = {
    "evolution.problems.knapsack, Sacks": 40,
    "evolution.problems.car_cab": 24,
    "evolution.problems.scale_objectives": 32,
    "physics.touch.taxels": 16,
    "rl.envs.rearrange.robot.Servos": 40,
}


def assert_needs_host(door: ApiCase) -> None:
    """Assert that a case with a reason in `host` really needs the values of its arrays."""
    arrays, others = split(door, door.good)
    assert arrays, f"{door.name}: takes no arrays; leave its field `host` out"
    try:
        with jax.enable_x64(door.wide), as_users():
            jax.eval_shape(lambda arrays: door.call(**arrays, **others), arrays)
    except Exception:
        return
    raise AssertionError(f"{door.name}: can be traced; leave its field `host` out")


def cast(tree: Any, dtype: Any) -> Any:
    """Return a pytree with every floating array and Python float as an array of `dtype`."""

    def cast_leaf(leaf: Any) -> Any:
        if isinstance(leaf, float):
            return np.asarray(leaf, dtype)
        floating = hasattr(leaf, "dtype") and jnp.issubdtype(leaf.dtype, jnp.floating)
        return np.asarray(leaf).astype(dtype) if floating else leaf

    return jax.tree.map(cast_leaf, tree)


def program(door: ApiCase, dtype: Any) -> tuple[Any, Any]:
    """Return a case as a function of its arrays under `jit`, and these arrays in `dtype`."""
    arrays, others = split(door, door.good)
    return jax.jit(lambda arrays: door.call(**arrays, **others)), cast(arrays, dtype)


def check_trace(door: ApiCase) -> None:
    """Assert that the case is one portable program in each precision.

    Arrays of a dtype return as arrays of that dtype: no accidental float64, none lost. Other data
    of a case (a problem, a field) keep their own dtype, and if that is float32 the result may be
    float32. The 64-bit program is traced while the 32-bit one is alive: see `steppers.check_trace`.
    """
    kept = []
    for dtype in (np.float32, np.float64):
        name, wide = np.dtype(dtype).name, np.dtype(dtype) == np.float64
        with jax.enable_x64(wide), as_users():
            f, arrays = program(door, dtype)
            traced = f.trace(arrays)
            kept.append(traced)
            conformance.check_jaxpr(traced.jaxpr, beyond=wide and door.beyond)
            if wide == door.wide:
                conformance.assert_exports(f, arrays)
        held = {
            str(a.dtype) for a in traced.jaxpr.consts if hasattr(a, "dtype") and _is_floating(a)
        }
        found = {str(leaf.dtype) for leaf in jax.tree.leaves(traced.out_info) if _is_floating(leaf)}
        assert found <= {name, *held}, f"{door.name}: {found} out of {name}"


def check_run(door: ApiCase) -> None:
    """Assert that outside `jit` a case compiles few programs, and none again with new specs.

    `vmap` must return the same values, independent of its other lane.
    """
    arrays, others = split(door, door.good)
    arrays = cast(arrays, np.float64 if door.wide else np.float32)
    with jax.enable_x64(door.wide), as_users(), cheap_programs():
        with conformance.programs() as seen:
            want = door.call(**_reconstruct(arrays), **others)
        ours = [name for name in seen if name in OURS]
        few = len(ours) <= 4 and len(seen) <= FIRST.get(door.name, 12)
        assert few, f"{door.name}: its first call compiled {len(seen)}, {seen}"
        with conformance.programs() as seen:
            door.call(**_reconstruct(arrays), **others)
        assert not seen, f"{door.name}: its second call compiled {seen}"
        vmapped = jax.jit(jax.vmap(lambda arrays: door.call(**arrays, **others)))
        one, two = arrays, jax.tree.map(_perturb, arrays)
        for i, lanes in enumerate([(one, two), (two, one)]):
            got = vmapped(jax.tree.map(_stack, *lanes))
            conformance.assert_same(conformance.take_copy(got, i), want, door.rtol)


def check_rerun(door: ApiCase) -> None:
    """Call a case that is not a program twice, and assert that the second call compiles nothing."""
    with jax.enable_x64(door.wide), as_users(), cheap_programs():
        door.call(**door.good)
        with conformance.programs() as seen:
            door.call(**door.good)
        assert not seen, f"{door.name}: its second call compiled {seen}"


def _reconstruct(tree: Any) -> Any:
    """Return the same arrays in reconstructed containers and specs."""
    leaves, structure = jax.tree.flatten(tree)
    return jax.tree.unflatten(structure, leaves)


def check_dtypes(door: ApiCase) -> None:
    """Assert that a Python float next to 32-bit arrays changes no dtype if 64 bits are enabled."""
    good = {k: v for k, v in door.good.items() if k not in (*door.things, *door.free)}
    found = []
    with jax.enable_x64(True), as_users(), cheap_programs():
        for number in (float, np.float32):
            given = jax.tree.map(partial(_to_float32, number), good)
            answer = jax.tree.leaves(door.call(**door.good | given))
            found.append([getattr(leaf, "dtype", float) for leaf in answer])
    pairs = [pair for pair in zip(*found) if pair[0] is not float]  # returned unchanged
    other = [pair for pair in pairs if pair[0] != pair[1]]
    assert not other, f"{door.name}: dtypes of floats, and of float32: {other}"


def has_numbers_and_arrays(door: ApiCase) -> bool:
    """Return whether it takes numbers as well as floating-point arrays."""
    good = [v for k, v in door.good.items() if k not in (*door.things, *door.free)]
    real = [x for x in jax.tree.leaves(good) if hasattr(x, "dtype") and _is_floating(x)]
    arrays = [x for x in real if x.ndim]
    return bool(arrays) and any(map(_is_number, jax.tree.leaves(good)))


def _is_number(leaf: Any) -> bool:
    return isinstance(leaf, float) or (
        hasattr(leaf, "dtype") and not leaf.ndim and _is_floating(leaf)
    )


def _to_float32(number: Callable[[Any], Any], leaf: Any) -> Any:
    if _is_number(leaf):
        return number(leaf)
    return np.asarray(leaf, np.float32) if hasattr(leaf, "dtype") and _is_floating(leaf) else leaf


def _stack(a: Any, b: Any) -> Any:
    return (jnp if isinstance(a, jax.Array) else np).stack([a, b])


def _perturb(leaf: Any) -> Any:
    """Return different values close to the given ones."""
    return leaf * leaf.dtype.type(1.0625) if _is_floating(leaf) else leaf


def _is_floating(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jnp.floating)


RULES: dict[str, Callable[[ApiCase], None]] = {"traced": check_trace, "run": check_run}
