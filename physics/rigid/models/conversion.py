"""Conversion of MuJoCo's compiled model to a `Mechanism`: same numbers, grouped by element."""

from dataclasses import fields as fields_of
from typing import Any

import jax.numpy as jnp
import numpy as np

from ..collision.kernels import GEOM_TYPES
from . import height_fields, hulls, mechanism, sdf_fields
from .layout import Layout
from .pairs import geom_types, group_pairs
from .sensors import sensors

JOINTS = ("free", "ball", "slide", "hinge")
EQUALITIES = ("connect", "weld", "joint", "tendon")
DYNAMICS = ("none", "integrator", "filter", "filterexact")
INTEGRATORS = ("euler", "rk4", "implicit", "implicitfast")
FLAGS = """constraint equality frictionloss limit contact spring damper gravity clampctrl warmstart
filterparent actuation refsafe sensor midphase eulerdamp autoreset nativeccd island
multiccd""".split()


def convert_model(m: Any, sizes: dict[str, Any], sdf: Any, dtype: Any) -> dict[str, Any]:
    """Return the fields of a `Mechanism` from a compiled MuJoCo model; `sizes` go to the layout."""
    cast = lambda x: jnp.asarray(np.array(x), dtype)
    layout = _layout(m, sdf_fields.field_indices(m, sdf), sizes)
    return dict(
        layout=layout,
        option=_option(m, cast),
        bodies=_read_fields(mechanism.Bodies, m, "body", cast, invweight="invweight0"),
        joints=_read_fields(mechanism.Joints, m, "jnt", cast),
        freedoms=_read_fields(mechanism.Dofs, m, "dof", cast, invweight="invweight0"),
        geoms=_geoms(m, layout, sdf, dtype, cast),
        pairs=_read_fields(mechanism.Pairs, m, "pair", cast),
        sites=_read_fields(mechanism.Sites, m, "site", cast),
        tendons=_tendons(m, cast),
        equalities=_read_fields(mechanism.Equalities, m, "eq", cast),
        actuators=_read_fields(
            mechanism.Actuators,
            m,
            "actuator",
            cast,
            gear=cast(m.actuator_gear[:, 0]),
            gainprm=cast(_affine_coefficients(m.actuator_gaintype, m.actuator_gainprm)),
            biasprm=cast(_affine_coefficients(m.actuator_biastype, m.actuator_biasprm, nothing=0)),
            dynprm=cast(m.actuator_dynprm[:, 0]),
        ),
        qpos0=cast(m.qpos0),
        qpos_spring=cast(m.qpos_spring),
        keyframes={m.key(i).name or str(i): cast(m.key_qpos[i]) for i in range(m.nkey)},
    )


def _read_fields(kind: Any, m: Any, prefix: str, cast: Any, **known: Any) -> Any:
    """Return one group of parameters: MuJoCo's `<prefix>_<name>`, except those in `known`.

    An entry of `known` is a value, or the name of the field in MuJoCo.
    """
    names = {field.name: known.get(field.name, field.name) for field in fields_of(kind)}
    read = lambda x: cast(getattr(m, f"{prefix}_{x}")) if isinstance(x, str) else x
    return kind(**{name: read(x) for name, x in names.items()})


def _geoms(m: Any, layout: Layout, sdf: Any, dtype: Any, cast: Any) -> mechanism.Geoms:
    return _read_fields(
        mechanism.Geoms,
        m,
        "geom",
        cast,
        hulls=cast(hulls.hull_vertices(m, layout.geom_hull)),
        fields=sdf_fields.make_fields(m, sdf, dtype),
        heights=height_fields.read_heights(m, layout.geom_ground, cast),
        fluid=cast(m.geom_fluid[list(layout.geom_wet)]),
    )


def _affine_coefficients(kinds: np.ndarray, prm: np.ndarray, nothing: int = -1) -> np.ndarray:
    """Return constant, length and velocity coefficients [U, 3] of gains or biases by type."""
    out = np.array(prm[:, :3])
    for row, kind in zip(out, kinds):
        if kind == nothing:
            row[:] = 0
        elif nothing < 0 and kind == 0:  # a fixed gain
            row[1:] = 0
    return out


def _option(m: Any, cast: Any) -> mechanism.Option:
    o = m.opt
    return mechanism.Option(
        timestep=cast(o.timestep),
        gravity=cast(o.gravity),
        wind=cast(o.wind),
        density=cast(o.density),
        viscosity=cast(o.viscosity),
        impratio=cast(o.impratio),
    )


def _tendons(m: Any, cast: Any) -> mechanism.Tendons:
    weight = np.zeros((m.ntendon, m.nv))
    for tendon in range(m.ntendon):
        for k in range(m.tendon_adr[tendon], m.tendon_adr[tendon] + m.tendon_num[tendon]):
            weight[tendon, m.jnt_dofadr[m.wrap_objid[k]]] += m.wrap_prm[k]
    return _read_fields(
        mechanism.Tendons,
        m,
        "tendon",
        cast,
        weight=cast(weight),
        invweight="invweight0",
        solref_limit="solref_lim",
        solimp_limit="solimp_lim",
        solref_friction="solref_fri",
        solimp_friction="solimp_fri",
    )


def _layout(m: Any, field: tuple[int, ...], sizes: dict[str, Any]) -> Layout:
    to_ints = lambda x: tuple(int(i) for i in x)
    kinds = [JOINTS[i] for i in m.jnt_type]
    springy = (s > 0 and k in ("ball", "free") for s, k in zip(m.jnt_stiffness, kinds))
    disabled = frozenset(f for i, f in enumerate(FLAGS) if m.opt.disableflags & (1 << i))
    fluid = m.opt.density > 0 or m.opt.viscosity > 0
    has = {"fluid": fluid, "gravcomp": bool(np.any(m.body_gravcomp))}
    wet = (m.geom_fluid[:, 0] > 0) & (m.body_mass[m.geom_bodyid] > 1e-15) & fluid
    by_joint = [i in (0, 1) for i in m.actuator_trntype]
    trn = m.actuator_trnid[:, 0]
    limits = (m.actuator_ctrllimited, m.actuator_forcelimited, m.actuator_actlimited)
    groups = group_pairs(m, field) if "contact" not in disabled else ()
    which = hulls.hull_indices(m, groups)
    return Layout(
        body_parent=to_ints(m.body_parentid),
        body_root=to_ints(m.body_rootid),
        body_weld=to_ints(m.body_weldid),
        body_mocap=to_ints(m.body_mocapid),
        sliding=to_ints(np.flatnonzero(m.body_simple == 2)),
        joint_kind=tuple(kinds),
        joint_body=to_ints(m.jnt_bodyid),
        joint_limited=tuple(bool(x) for x in m.jnt_limited),
        joint_springy=tuple(bool(x) for x in springy),
        geom_kind=tuple(geom_types(m, field)),
        geom_body=to_ints(m.geom_bodyid),
        geom_hull=which,
        geom_field=field,
        geom_ground=height_fields.field_indices(m, groups),
        geom_priority=to_ints(m.geom_priority),
        groups=groups,
        geom_wet=to_ints(np.flatnonzero(wet)),
        site_body=to_ints(m.site_bodyid),
        site_kind=tuple(GEOM_TYPES[i] for i in m.site_type),
        rubbing=to_ints(np.flatnonzero(m.dof_frictionloss > 0)),
        tendon_rubbing=to_ints(np.flatnonzero(m.tendon_frictionloss > 0)),
        tendon_limited=to_ints(np.flatnonzero(m.tendon_limited)),
        equality_kind=tuple(EQUALITIES[i] for i in m.eq_type),
        equality_first=to_ints(m.eq_obj1id),
        equality_second=to_ints(m.eq_obj2id),
        equality_active=tuple(bool(x) for x in m.eq_active0),
        motor_joint=tuple(int(i) if j else -1 for i, j in zip(trn, by_joint)),
        motor_tendon=tuple(-1 if j else int(i) for i, j in zip(trn, by_joint)),
        motor_dynamics=tuple(DYNAMICS[i] for i in m.actuator_dyntype),
        motor_early=tuple(bool(x) for x in m.actuator_actearly),
        motor_limited=tuple((bool(u), bool(f), bool(a)) for u, f, a in zip(*limits)),
        sensors=sensors(m),
        integrator=INTEGRATORS[m.opt.integrator],
        cone=("pyramidal", "elliptic")[m.opt.cone],
        disabled=disabled,
        **sizes,
        has=frozenset(name for name, there in has.items() if there),
        names=_names(m),
    )


def _names(m: Any) -> tuple[tuple[str, tuple[str, ...]], ...]:
    counts = {
        "body": m.nbody,
        "joint": m.njnt,
        "geom": m.ngeom,
        "site": m.nsite,
        "tendon": m.ntendon,
        "actuator": m.nu,
        "sensor": m.nsensor,
        "key": m.nkey,
    }
    of = {kind: getattr(m, kind) for kind in counts}
    return tuple((kind, tuple(of[kind](i).name for i in range(n))) for kind, n in counts.items())
