"""Descriptions of a file's sensors: type, object, reference frame and width."""

from dataclasses import dataclass
from typing import Any

# sensor types by MuJoCo's number; other types are not supported
SENSOR_TYPES = {
    0: "touch",
    1: "accelerometer",
    2: "velocimeter",
    3: "gyro",
    4: "force",
    5: "torque",
    9: "jointpos",
    10: "jointvel",
    11: "tendonpos",
    12: "tendonvel",
    13: "actuatorpos",
    14: "actuatorvel",
    15: "actuatorfrc",
    16: "jointactuatorfrc",
    18: "ballquat",
    19: "ballangvel",
    26: "framepos",
    27: "framequat",
    28: "framexaxis",
    29: "frameyaxis",
    30: "framezaxis",
    31: "framelinvel",
    32: "frameangvel",
    33: "framelinacc",
    34: "frameangacc",
    35: "subtreecom",
    36: "subtreelinvel",
    37: "subtreeangmom",
    45: "clock",
}
OBJECT_TYPES = {1: "body", 2: "xbody", 5: "geom", 6: "site"}  # types of objects with a frame
SITE_SENSORS = frozenset("accelerometer velocimeter gyro force torque touch".split())  # at a site


@dataclass(frozen=True)
class Sensor:
    """One sensor; if it is not supported, the reason."""

    kind: str  # type, as in MJCF
    of: str  # object type: body (inertial frame), xbody, geom, site; empty if it needs no frame
    at: int  # index of the body, site, joint, tendon or actuator
    ref: str  # object type of the reference frame, as `of`; empty for the world
    ref_at: int  # index of the reference object
    width: int  # number of values
    cutoff: float  # bound on the magnitude of values; zero for no bound
    positive: bool  # whether only the upper bound applies
    refused: str  # why it is not supported; empty if it is


def sensors(m: Any) -> tuple[Sensor, ...]:
    """Return the sensors of a compiled MuJoCo model, in its order."""
    return tuple(_describe_sensor(m, i) for i in range(m.nsensor))


def _describe_sensor(m: Any, i: int) -> Sensor:
    number, of, ref = int(m.sensor_type[i]), int(m.sensor_objtype[i]), int(m.sensor_reftype[i])
    kind = SENSOR_TYPES.get(number, "")
    framed = kind.startswith("frame")
    refused = ""
    if not kind:
        refused = f"a sensor of MuJoCo's kind {number}"
    elif framed and of not in OBJECT_TYPES:
        refused = f"{kind} of a camera"
    elif framed and ref and ref not in OBJECT_TYPES:
        refused = f"{kind} in the frame of a camera"
    elif kind in ("force", "torque") and (m.eq_type < 2).any():
        refused = f"{kind} where an equality holds bodies together"
    return Sensor(
        kind=kind,
        of=OBJECT_TYPES.get(of, "") if framed or kind in SITE_SENSORS else "",
        at=int(m.sensor_objid[i]),
        ref=OBJECT_TYPES.get(ref, "") if framed else "",
        ref_at=int(m.sensor_refid[i]),
        width=int(m.sensor_dim[i]),
        cutoff=float(m.sensor_cutoff[i]),
        positive=int(m.sensor_datatype[i]) == 1,
        refused=refused,
    )
