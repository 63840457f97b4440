"""What of MuJoCo's XML is read, what is passed over, and what is refused by name.

The lists follow the schema of MuJoCo 4.0. An attribute is passed over if it changes no motion that
is computed here: looks, names, the constraint solver's settings, contact (of which `mjcf_contact`
makes sure that there is none). It is neutral at the value that says "none of it", and refused at
any other. All that is in no list is refused.
"""

from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

_TOUCH = {"contype", "conaffinity", "condim", "priority", "friction", "solmix", "solref", "solimp"}
_TOUCH |= {"margin", "gap", "surfacevel", "adhesion"}
_LOOKS = {"name", "user", "group", "rgba", "material", "castshadow"}
_SOLVER = {"impratio", "tolerance", "ls_tolerance", "noslip_tolerance", "ccd_tolerance", "cone"}
_SOLVER |= {"sleep_tolerance", "o_margin", "o_solref", "o_solimp", "o_friction", "jacobian"}
_SOLVER |= {"solver", "iterations", "ls_iterations", "noslip_iterations", "ccd_iterations"}
_SOLVER |= {"sdf_iterations", "sdf_initpoints", "actuatorgroupdisable", "magnetic", "wind"}
_PLACE = {"pos", "quat", "axisangle"}

READ = {
    "body": _PLACE,
    "joint": {"type", "pos", "axis", "range", "limited", "armature", "damping", "stiffness"}
    | {"springref"},
    "freejoint": set(),
    "inertial": _PLACE | {"mass", "diaginertia", "fullinertia"},
    "geom": _PLACE | {"type", "size", "fromto", "mass", "density"},
    "compiler": {"angle", "autolimits"},
    "option": {"gravity"},
    "flag": {"gravity", "constraint", "limit", "spring", "damper", "contact", "filterparent"},
    "worldbody": set(),
}
PASSED_OVER = {
    "body": {"name", "user", "sleep", "simple", "fuse"},
    "joint": {"name", "user", "group", "solreffriction", "solimpfriction"}
    | {"actuatorfrclimited", "actuatorfrcrange", "actuatorgravcomp"},
    "freejoint": {"name", "group"},
    "inertial": set(),
    "geom": _LOOKS | _TOUCH | {"fluidshape", "fluidcoef"},
    "compiler": {"strippath", "eulerseq", "fitaabb", "meshdir", "texturedir", "assetdir"}
    | {"discardvisual", "usethread", "fusestatic", "saveinertial", "savecompiled"}
    | {"savecanonical", "conflict", "passthrough"},
    "option": _SOLVER | {"timestep"},  # the step is `Simulation.dt`
    "flag": {"equality", "frictionloss", "clampctrl", "warmstart", "actuation", "refsafe"}
    | {"sensor", "midphase", "autoreset", "nativeccd", "island", "multiccd", "override"}
    | {"energy", "fwdinv", "invdiscrete", "diagexact", "ipc", "speculative"},
    "worldbody": set(),
}
NEUTRAL = {
    "body": {"mocap": "false", "gravcomp": "0"},
    "joint": {"ref": "0", "frictionloss": "0", "margin": "0", "springyield": "0"}
    | {"springdamper": "0 0"},
    "freejoint": {"align": "false auto"},
    "inertial": {},
    "geom": {"shellinertia": "false"},
    "compiler": {"coordinate": "local", "boundmass": "0", "boundinertia": "0"}
    | {"settotalmass": "-1", "balanceinertia": "false", "inertiafromgeom": "auto"}
    | {"inertiagrouprange": "0 5", "alignfree": "false"},
    "option": {"density": "0", "viscosity": "0", "integrator": "Euler"},
    "flag": {"eulerdamp": "enable", "sleep": "disable"},
    "worldbody": {},
}
_WEIGHTLESS = {"euler", "xyaxes", "zaxis", "mesh", "hfield", "fitscale", "shellinertia"}
_CHILDREN = {"option": {"flag"}, "compiler": {"lengthrange"}}


def hold(element: Element, has_mass: bool = True) -> None:
    """Refuse an element that says something which is neither read nor passed over.

    Args:
        element: of a tag in `READ`; its children are looked at where it is no body.
        has_mass: whether the inertia of a geom is used.
    """
    tag = element.tag
    known = READ[tag] | PASSED_OVER[tag] | (set() if has_mass else _WEIGHTLESS)
    for name, value in element.items():
        if name not in known and not _is_neutral(value, NEUTRAL[tag].get(name)):
            raise unsupported(shown(element, name), name)
    if tag not in ("body", "worldbody"):
        for child in element:
            if child.tag not in _CHILDREN.get(tag, set()):
                raise unsupported(f"<{child.tag}> in <{tag}>", child.tag)


def _is_neutral(value: str, neutral: str | None) -> bool:
    if neutral is None:
        return False
    try:
        return [float(x) for x in value.split()] == [float(x) for x in neutral.split()]
    except ValueError:
        return value in neutral.split()


def shown(element: Element, name: str) -> str:
    """The element with its name and one attribute, as it stands in the file."""
    label = element.get("name") if name != "name" else None
    label = f'name="{_short(label)}" ' if label else ""
    value = element.get(name)
    said = "" if value is None else f'{name}="{_short(value)}"'
    return f"<{element.tag} {label}{said}".strip() + ">"


def unsupported(what: str, name: str) -> ValueError:
    """The error for something that would change the motion and is not known here."""
    return ValueError(
        f"from_mjcf: {what} is not supported; remove it, or leave it out with ignore=({name!r},)"
    )


def numbers(
    element: Element,
    name: str,
    default: Any,
    count: int | tuple[int, int] | None = None,
    least: float = -np.inf,
) -> np.ndarray:
    """The finite numbers of an attribute, as many as `count` or as the default has."""
    given = element.get(name)
    if given is None:
        return np.array(default, float)
    fewest, most = (count, count) if isinstance(count, int) else count or (np.size(default),) * 2
    try:
        values = np.array([float(x) for x in given.split()])
    except ValueError:
        values = np.full(1, np.nan)
    many = "one" if most == 1 else f"{fewest}" if fewest == most else f"{fewest} to {most}"
    want = f"{many} finite number{'s' * (most > 1)}"
    want += f" of at least {least:g}" * (least > -np.inf)
    if not np.isfinite(values).all() or (values < least).any():
        raise ValueError(f"from_mjcf: {shown(element, name)} cannot be read; it must be {want}")
    if not fewest <= len(values) <= most:
        raise ValueError(
            f"from_mjcf: {shown(element, name)} has the wrong number of values, {len(values)}; "
            f"it must be {want}"
        )
    return values


def scalar(element: Element, name: str, default: float, least: float = -np.inf) -> float:
    """The finite number of an attribute."""
    return float(numbers(element, name, [default], 1, least)[0])


def word(element: Element, name: str, default: str, among: tuple[str, ...]) -> str:
    """The value of an attribute that is one of several words."""
    value = element.get(name, default)
    if value not in among:
        raise ValueError(
            f"from_mjcf: {shown(element, name)} is not a value of it; use {' or '.join(among)}"
        )
    return value


def _short(text: str) -> str:
    """Enough of a value for a sentence, on one line."""
    text = " ".join(text.split())
    return text if len(text) <= 60 else text[:57] + "..."
