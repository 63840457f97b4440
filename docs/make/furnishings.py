"""Write rl/envs/rearrange/data/furnishings.json, statistics of households, from procthor's tables.

    python docs/make/furnishings.py FOLDER

FOLDER is the unpacked wheel of `procthor` 0.0.1.dev2 (Apache-2.0): `procthor/databases` with the
sizes of assets, their rooms, the objects on them and their groups, and
`procthor/generation/room_specs.py` with the room layouts. Nothing of it is imported or run.
procthor's frame is left-handed: x right, y up, z ahead; here x is right, y ahead and z up.
"""

import ast
import json
import sys
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parents[2] / "rl/envs/rearrange/data/furnishings.json"
ROOMS = ("Kitchen", "LivingRoom", "Bedroom", "Bathroom")
FLAGS = {
    "corner": "inCorner",
    "edge": "onEdge",
    "middle": "inMiddle",
    "floor": "onFloor",
    "many": "multiplePerRoom",
    "carried": "isPickupable",
}
SOURCE = "procthor 0.0.1.dev2, Apache-2.0, doi:10.48550/arXiv.2206.06994"


def millimetres(box, axes):
    return [round(1000 * box[k]) for k in axes]


def sizes(assets):
    """Return width, depth and height of every training asset, mm, without duplicates."""
    found = {}
    for name, held in assets.items():
        usual = [a for a in held if a["split"] in ("train", None)] or held
        found[name] = sorted({tuple(millimetres(a["boundingBox"], "xzy")) for a in usual})
    return found


def holes(table):
    """Return width and height of the holes of doors, double doors and windows, mm."""
    found = {"door": [], "double": [], "window": []}
    for name, hole in sorted(table.items()):
        kind = "window" if name.startswith("Window") else "door"
        kind = "double" if "Double" in name else kind
        size = {k: hole["max"][k] - hole["min"][k] for k in "xy"}
        found[kind].append(millimetres(size, "xy"))
    return found


def group(name, table, boxes):
    """Return a group of assets: each member's sizes, and its placement relative to its parent."""
    parents = {}

    def collect_parents(nodes, parent):
        for node in nodes:
            parents[str(node["instanceId"])] = parent
            collect_parents(node.get("children", []), str(node["instanceId"]))

    collect_parents(table["treeData"], None)
    order = list(parents)
    members = []
    for key in order:
        data = table["assetMetadata"][key]
        place, (kind, ids) = data["position"], next(iter(data["assetIds"].items()))
        usual = [boxes[i] for i in ids if boxes[i]["split"] in ("train", None)]
        size = {tuple(millimetres(one["boundingBox"], "xzy")) for one in usual}
        member = {"type": kind, "like": data["name"], "sizes": sorted(size)}
        if parents[key] is not None:
            member |= {
                "parent": order.index(parents[key]),
                "anchor": place["relativeAnchorToParent"],
                "above": place["verticalAlignment"] == "above",
                "align": [place["xAlignment"], place["zAlignment"]],
                "offset": [round(1000 * place[k]) for k in "xz"],
            }
        member |= {"turn": data["rotation"], "spread": data["randomness"]["dtheta"]}
        members.append(member)
    about = table["groupProperties"]
    rooms = [room for room in ROOMS if about["roomWeights"][room[0].lower() + room[1:] + "s"]]
    where = [spot for spot in ("corner", "edge", "middle") if about["location"][spot]]
    return {"name": name, "rooms": rooms, "where": where, "members": members}


def plans(source):
    """Return the room layouts: name, weight, and a tree of area fractions with rooms as leaves."""

    def tree(call):
        given: dict[Any, Any] = {word.arg: word.value for word in call.keywords}
        share = given["ratio"].value
        if call.func.id == "LeafRoom":
            return [share, given["room_type"].value]
        return [share, [tree(child) for child in given["children"].elts]]

    found = []
    for call in ast.walk(ast.parse(source)):
        if isinstance(call, ast.Call) and getattr(call.func, "id", "") == "RoomSpec":
            given: dict[Any, Any] = {word.arg: word.value for word in call.keywords}
            rooms = [tree(child) for child in given["spec"].elts]
            found.append(
                {
                    "name": given["room_spec_id"].value,
                    "weight": given["sampling_weight"].value,
                    "rooms": rooms,
                }
            )
    return found


def make_statistics(folder):
    """Return all statistics as one JSON value."""
    base = Path(folder) / "procthor"
    read = lambda name: json.loads((base / "databases" / name).read_text())
    assets, placed = read("asset-database.json"), read("placement-annotations.json")
    boxes = {a["assetId"]: a for held in assets.values() for a in held}
    files = sorted((base / "databases/asset_groups").glob("*.json"))
    receptacles = read("receptacles.json")
    return {
        "source": SOURCE,
        "sizes": sizes(assets),
        "rooms": {
            room: {t: placed[f"in{room}s"][t] for t in assets if placed[f"in{room}s"].get(t)}
            for room in ROOMS
        },
        "flags": {k: [t for t in assets if placed[v].get(t)] for k, v in FLAGS.items()},
        "odds": {
            base: {child: round(held["p"], 4) for child, held in children.items()}
            for base, children in receptacles.items()
        },
        "holes": holes(read("wall-holes.json")),
        "groups": [group(f.stem, json.loads(f.read_text()), boxes) for f in files],
        "plans": plans((base / "generation/room_specs.py").read_text()),
    }


if __name__ == "__main__":
    text = json.dumps(make_statistics(sys.argv[1]), separators=(",", ":"))
    TARGET.write_text(text.replace('],"', '],\n"').replace('},"', '},\n"') + "\n")
    print(TARGET, TARGET.stat().st_size)
