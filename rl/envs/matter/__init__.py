"""Tasks of handling liquids and solids: the tool is led, matter follows its laws."""

from jaxgpu.rl.envs.matter.pouring import Pour, pouring
from jaxgpu.rl.envs.matter.task import Matter

__all__ = ["Matter", "Pour", "pouring"]
