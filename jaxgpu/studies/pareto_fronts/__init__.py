"""Pareto fronts of real designs and of DTLZ2 by NSGA-III, against pymoo at equal evaluations."""

from dataclasses import dataclass
from pathlib import Path

import jax
import numpy as np

from jaxgpu.devices import memory
from jaxgpu.inputs.fields import size
from jaxgpu.report import Figure, Headline, Report, Table, figure
from jaxgpu.runs.loop import Run
from jaxgpu.studies import SeededOptions, seed_count, shared_parts

from . import pictures, races

# Measured bytes: for XLA to compile a race, and per seed in the largest race, DTLZ2. Races run
# sequentially; the memory of the last one is checked before the first.
COMPILED, SEED = 460_000_000, 52_500


@dataclass(frozen=True)
class Options(SeededOptions):
    """Options of the study."""

    generations: int = size(default=250, least=50, most=250)
    """Generations of 92 members; a multiple of 5, at most the 250 of pymoo's stored runs."""
    seeds: int = seed_count(default=11, least=3)
    """Seeds per problem, all in one program; at least 3, for quartiles."""

    def __post_init__(self):
        super().__post_init__()
        if self.generations % races.EVERY:
            raise ValueError(
                f"generations: {self.generations}; must be a multiple of {races.EVERY}, 50 to 250"
            )


def study(options: Options, out: Path, resume: bool) -> Report:
    """Run every race and compare hypervolumes and fronts with pymoo's."""
    memory.check_size("pareto-fronts", COMPILED + SEED * options.seeds)
    runs = {
        name: races.race(name, options.seeds, options.generations, options.seed, out / name, resume)
        for name in races.RACES
    }
    peers = {name: races.peer(name) for name in races.RACES}
    volumes = {name: one.history[1:].T for name, one in runs.items()}  # [seeds, measurements]
    steps = options.generations // races.EVERY
    rows = [row(name, volumes[name], peers[name].volumes[:, :steps]) for name in races.RACES]
    share = [f"{ours[2] / theirs[2]:.3f}" for ours, theirs in rows]
    spent = options.generations * races.MEMBERS
    drawing = pictures.volumes(
        [races.RACES[name].title for name in runs],
        list(volumes.values()),
        [peers[name].volumes[:, :steps] for name in runs],
        races.MEMBERS * races.EVERY,
    )
    return Report(
        "Pareto fronts of engineering designs",
        f"Car side impact, rocket injector and DTLZ2, {options.seeds} runs of NSGA-III each, "
        f"{spent} evaluations per run: the median hypervolume is {', '.join(share[:-1])} and "
        f"{share[-1]} times that of pymoo's NSGA-III.",
        figures=[
            *(front_view(name, runs[name], volumes[name], peers[name]) for name in runs),
            figure(
                drawing,
                f"Hypervolume against evaluations: medians and quartiles over {options.seeds} "
                f"seeds of jaxgpu and {rows[0][1][-1]} of pymoo. Objectives are scaled to the "
                "range of pymoo's fronts; the reference point is 1.1 in each.",
            ),
        ],
        tables=[table(rows, spent)],
        headlines=[
            Headline(
                f"{races.RACES[name].title}: median hypervolume relative to pymoo's",
                float(ours[2] / theirs[2]),
                f"1 is pymoo 0.6.2, {theirs[-1]} seeds against {ours[-1]}",
                digits=4,
            )
            for name, (ours, theirs) in zip(runs, rows)
        ],
        **shared_parts(options, runs, FINDINGS, CITATIONS),
    )


def table(rows: list[tuple[list, list]], spent: int) -> Table:
    """Return a table of our and pymoo's hypervolumes per problem."""
    return Table(
        f"Hypervolume after {spent} evaluations",
        ["problem", "program", "median", "lower quartile", "upper quartile", "worst", "seeds"],
        [line for pair in rows for line in pair],
    )


def row(name: str, ours: np.ndarray, theirs: np.ndarray) -> tuple[list, list]:
    """Return the two table rows of a problem."""

    def line(by: str, volumes: np.ndarray) -> list:
        low, half, high = (float(q) for q in np.percentile(volumes[:, -1], [25, 50, 75]))
        return [name, by, half, low, high, float(volumes[:, -1].min()), len(volumes)]

    return line("jaxgpu", ours), line("pymoo 0.6.2", theirs)


def front_view(name: str, run: Run, volumes: np.ndarray, peer: races.Peer) -> Figure:
    """Return the fronts of both programs in one view, each from the seed with the median volume."""
    which = races.median_seed(volumes)
    members = jax.tree.map(np.asarray, run.state.population)
    ours = races.front(members, which)
    about = races.RACES[name]
    return pictures.fronts(
        about.axes,
        ours,
        peer.front,
        f"{about.title}: non-dominated front of the run with the median volume, {len(ours)} "
        f"points, and pymoo's, {len(peer.front)}. Drag to rotate; point at a design to read its "
        "objectives.",
    )


FINDINGS = [
    "Both run NSGA-III with 91 directions, 92 members and the same crossover. Mutation rates (on "
    "average one variable per child; pymoo's default is 0.9), normalisation and random numbers "
    "differ.",
    "pymoo's runs are stored with the package; `python docs/make/pareto_fronts.py` repeats them.",
]

CITATIONS = [
    "Deb & Jain (2014), doi:10.1109/TEVC.2013.2281535: NSGA-III",
    "Tanabe & Ishibuchi (2020), doi:10.1016/j.asoc.2020.106078: the designs (CRE31, RE37)",
    "Deb, Thiele, Laumanns & Zitzler (2005), doi:10.1007/1-84628-137-7_6: DTLZ2",
    "Blank & Deb (2020), doi:10.1109/ACCESS.2020.2990567: pymoo",
]
