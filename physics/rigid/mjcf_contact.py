"""Which geoms of a model would collide in MuJoCo: contact is not computed from a file.

Its rules (manual of MuJoCo, "Collision detection: Selection"): a pair collides if the `contype` of
one shares a bit with the `conaffinity` of the other, unless both are fixed to each other, or to a
body and the body that it hangs on; what is fixed to the world collides with all that moves.
"""

from dataclasses import dataclass, field
from xml.etree.ElementTree import Element

import numpy as np

from .mjcf_attributes import numbers


@dataclass
class Geoms:
    """What can touch: of each geom its label, its link (-1 the world) and its bits."""

    labels: list[str] = field(default_factory=list)  # names for messages, one a geom
    bits: list[tuple[int, int, int]] = field(default_factory=list)  # link, contype, conaffinity

    def add(self, geom: Element, body: Element, link: int) -> None:
        """Take in a geom of `body`, which moves with `link`."""
        contype, conaffinity = (
            int(numbers(geom, name, [1], 1, least=0)[0]) for name in ("contype", "conaffinity")
        )
        name = geom.get("name") or body.get("name")
        self.labels.append(f"{name!r}" if name else f"number {len(self.labels)}")
        self.bits.append((link, contype, conaffinity))

    def refuse_contact(self, above: dict[int, int], filter_parent: bool) -> None:
        """Raise for the first pair that would collide; `above` gives the link a link hangs on."""
        if len(self.bits) < 2:
            return
        kinds, first = np.unique(np.array(self.bits), axis=0, return_index=True)
        link, contype, conaffinity = kinds.T
        touching = (contype[:, None] & conaffinity) | (conaffinity[:, None] & contype)
        touching = (touching != 0) & (link[:, None] != link)
        if filter_parent:
            parent = np.array([above.get(i, -2) for i in link])
            hung = (parent[:, None] == link) & (link >= 0)
            touching &= ~(hung | hung.T)
        if touching.any():
            a, b = (self.labels[first[i]] for i in np.argwhere(touching)[0])
            raise ValueError(
                f"from_mjcf: the geoms {a} and {b} can collide, and contact of geoms is not "
                'computed; set contype="0" conaffinity="0", or <flag contact="disable"/>, or leave '
                "contact out with ignore=('contact',)"
            )
