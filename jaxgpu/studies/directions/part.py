"""One part of the study's report."""

from dataclasses import dataclass, field

from jaxgpu.report import Figure, Headline, Table
from jaxgpu.runs.loop import Timing


@dataclass(frozen=True)
class Part:
    """Contribution of one question to the report."""

    figures: list[Figure]
    tables: list[Table]
    findings: list[str]
    timing: dict[str, Timing] = field(default_factory=dict)
    headlines: list[Headline] = field(default_factory=list)
