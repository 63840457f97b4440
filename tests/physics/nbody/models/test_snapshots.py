"""dat.10 files: bitwise round trips, Fortran's formats, and errors for invalid files."""

import numpy as np
import pytest

from jaxgpu.physics.nbody.models import snapshots


def test_comes_back_to_the_bit(tmp_path):
    random = np.random.default_rng(0)
    x, v = random.normal(size=(2, 50, 3)) * 10.0 ** random.integers(-9, 9, (2, 50, 3))
    m = random.random(50)
    m[7] = 0
    snapshots.write(tmp_path / "dat.10", x, v, m)
    again = snapshots.read(tmp_path / "dat.10")
    for got, want in zip(again, (x, v, m), strict=True):
        np.testing.assert_array_equal(got, want)
    assert [file.name for file in tmp_path.iterdir()] == ["dat.10"]


def test_reads_what_mcluster_and_fortran_write(tmp_path):
    text = "  0.0025\t-1.5 2.0e-01  3 0.1 0.2 -0.3\n\n 1.0D-03 0 0 0 1.5d0 0 0\n"
    (tmp_path / "fort.10").write_text(text)
    x, v, m = snapshots.read(tmp_path / "fort.10")
    np.testing.assert_array_equal(m, [0.0025, 0.001])
    np.testing.assert_array_equal(np.append(x[0], v[0]), [-1.5, 0.2, 3, 0.1, 0.2, -0.3])
    assert v[1, 0] == 1.5


@pytest.mark.parametrize("line", ["1 2 3", "1 0 0 0 0 0 x", "1 0 0 0 0 0 nan", "-1 0 0 0 0 0 0"])
def test_a_wrong_line_is_named(tmp_path, line):
    (tmp_path / "f").write_text(f"1 0 0 0 0 0 0\n{line}\n")
    with pytest.raises(ValueError, match="f, line 2: .*; must be m x y z vx vy vz"):
        snapshots.read(tmp_path / "f")


def test_nothing_to_read_or_to_write(tmp_path):
    (tmp_path / "f").write_text("\n")
    with pytest.raises(ValueError, match="f: no stars"):
        snapshots.read(tmp_path / "f")
    with pytest.raises(ValueError, match=r"write: x \[2, 3\], v \[2, 3\], m \[3\]; must"):
        snapshots.write(tmp_path / "f", np.zeros((2, 3)), np.zeros((2, 3)), np.ones(3))
    with pytest.raises(ValueError, match="write: a number is not finite"):
        snapshots.write(tmp_path / "f", np.full((1, 3), np.nan), np.ones((1, 3)), np.ones(1))
