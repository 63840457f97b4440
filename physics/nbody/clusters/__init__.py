"""Star clusters: block steps of order four and six, regularised pairs, tracers, escapes.

Read `cluster` (the function `evolve`, and escapes), `hermite` and `hermite6` (a block of each
order), `blocks` (the block time steps), `scheduler` (which bodies are due), `full_blocks` (blocks
on GPUs, by `rows`), `tracers` and `close_encounters` (bodies without mass), and the package
`binary` (regularised pairs). `checks` validates arguments; `multiples` merges bound pairs into
single bodies, `escape` records escapes.
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
