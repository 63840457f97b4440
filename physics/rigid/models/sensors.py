"""The sensors of a file: what each measures, and where its numbers stand."""

from dataclasses import dataclass
from typing import Any

# by MuJoCo's number; what is not named here is not read
KINDS = {
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
OBJECTS = {1: "body", 2: "xbody", 5: "geom", 6: "site"}  # what a frame may be of
FRAMED = frozenset("accelerometer velocimeter gyro force torque touch".split())  # of a site


@dataclass(frozen=True)
class Sensor:
    """One sensor; of those that are not read, why."""

    kind: str  # as in MJCF
    of: str  # body (its centre of mass), xbody, geom, site; empty where it is plain
    at: int  # which body, site, joint, tendon or actuator
    ref: str  # in whose frame, as `of`; empty for the world
    ref_at: int  # which of those
    width: int  # numbers
    cutoff: float  # beyond which numbers are cut; zero for never
    positive: bool  # whether it is cut above alone
    refused: str  # why it is not read, empty where it is


def sensors(m: Any) -> tuple[Sensor, ...]:
    """Those of a compiled model of MuJoCo, in its order."""
    return tuple(_sensor(m, i) for i in range(m.nsensor))


def _sensor(m: Any, i: int) -> Sensor:
    number, of, ref = int(m.sensor_type[i]), int(m.sensor_objtype[i]), int(m.sensor_reftype[i])
    kind = KINDS.get(number, "")
    framed = kind.startswith("frame")
    refused = ""
    if not kind:
        refused = f"a sensor of MuJoCo's kind {number}"
    elif framed and of not in OBJECTS:
        refused = f"{kind} of a camera"
    elif framed and ref and ref not in OBJECTS:
        refused = f"{kind} in the frame of a camera"
    elif kind in ("force", "torque") and (m.eq_type < 2).any():
        refused = f"{kind} where an equality holds bodies together"
    return Sensor(
        kind=kind,
        of=OBJECTS.get(of, "") if framed or kind in FRAMED else "",
        at=int(m.sensor_objid[i]),
        ref=OBJECTS.get(ref, "") if framed else "",
        ref_at=int(m.sensor_refid[i]),
        width=int(m.sensor_dim[i]),
        cutoff=float(m.sensor_cutoff[i]),
        positive=int(m.sensor_datatype[i]) == 1,
        refused=refused,
    )
