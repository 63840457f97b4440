"""Templates of furniture: each type and size supports objects where it has parts."""

import pytest

from jaxgpu.rl.envs.rearrange import templates


@pytest.mark.parametrize("kind", templates._KINDS)
def test_surfaces_lie_on_parts_and_all_lies_in_the_box(kind):
    for w, d, h in ((0.9, 0.8, 0.9), (0.4, 0.3, 0.5), (0.3, 0.6, 1.6)):
        built = templates._KINDS[kind](w, d, h)
        for x0, y0, x1, y1, z, free in built.tops:
            assert free > 0
            assert any(
                p[0] <= x0 < x1 <= p[3] and p[1] <= y0 < y1 <= p[4] and abs(p[5] - z) < 1e-9
                for p in built.parts
            ), (x0, y0, x1, y1, z)
        for x0, y0, z0, x1, y1, z1 in built.parts:
            assert -w <= x0 < x1 <= w and -d <= y0 < y1 <= d and 0 <= z0 < z1
