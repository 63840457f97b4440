"""Star clusters: block steps of order four and six, regularised pairs, tracers, escapes.

Read `cluster` (the one call, `evolve`, and who escapes), `hermite` and `hermite6` (what a block
does), `blocks` (the block structure of time), `scheduler` (who is due), `at_once` (blocks on GPUs,
by `rows`), `tracers` and `close_encounters` (bodies without mass), and the room `binary`
(regularised pairs). `checks` holds arguments to what they must be; `centres` makes bodies of bound
pairs, `escape` notes who left.
"""

from .blocks import Pairing
from .cluster import Cluster, Evolution, evolve
from .escape import Escapes
from .hermite import Hermite
from .hermite6 import Hermite6
from .tracers import Tracers

__all__ = [
    "Cluster",
    "Escapes",
    "Evolution",
    "Hermite",
    "Hermite6",
    "Pairing",
    "Tracers",
    "evolve",
]
