"""Boxes in space against frames by SciPy, and the counts of solids of each type."""

import jax
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from jaxgpu.geometry import solids
from jaxgpu.geometry.solids import ABSENT_DEPTH, Boxes, Planes, Rods, Solids

RNG = np.random.default_rng(4)
BOXES = Boxes(*(RNG.uniform(0.1, 1, (5, 3)).astype(np.float32) for _ in range(2)), np.ones(5))
RODS = Rods(np.zeros((3, 3)), np.ones((3, 3)), np.array([0.1, -1.0, 0.1]))
PLANES = Planes(np.eye(3)[:2], np.zeros(2))


@pytest.mark.parametrize(
    ("given", "counts"),
    [
        ((), (5, 0, 0)),
        ((RODS,), (5, 3, 0)),
        ((None, PLANES), (5, 0, 2)),
        ((RODS, PLANES), (5, 3, 2)),
    ],
)
def test_solids_are_counted_by_their_kinds(given, counts):
    assert Solids(BOXES, *given).counts == counts


@pytest.mark.parametrize("general", [False, True])
def test_distances_and_frames_of_boxes(general):
    """One box is absent: it is infinitely far, and stored as a point a long way below."""
    turn = RNG.normal(size=(5, 4) if general else 5)
    quaternions = (
        turn if general else np.stack([np.cos(turn / 2), *np.zeros((2, 5)), np.sin(turn / 2)], 1)
    )
    frames = Rotation.from_quat(quaternions, scalar_first=True)
    half = BOXES.half.copy()
    half[3, 1] = -1
    boxes = Boxes(BOXES.centre, half, turn.astype(np.float32))
    x = np.array([1.5, -0.7, 0.4], np.float32)

    @jax.jit
    def evaluate(boxes, x):
        axes, away = boxes.axes(), tuple(x[i] - boxes.centre[:, i] for i in range(3))
        inner = solids.to_box_frame(axes, away)
        return (
            boxes.is_present,
            boxes.distance(x),
            inner,
            solids.to_world_frame(axes, inner),
            boxes.hide_absent(),
        )

    there, distance, inner, outer, kept = evaluate(boxes, x)
    away = x - BOXES.centre
    local = frames.inv().apply(away)
    want = np.linalg.norm(np.maximum(np.abs(local) - half, 0), axis=1)
    want[3] = np.inf
    np.testing.assert_array_equal(there, np.arange(5) != 3)
    np.testing.assert_allclose(distance, want, rtol=1e-5)
    np.testing.assert_allclose(np.stack(inner, 1), local, atol=2e-6)
    np.testing.assert_allclose(np.stack(outer, 1), away, atol=2e-6)
    assert kept.centre[3].tolist() == [0, 0, -ABSENT_DEPTH] and not kept.half[3].any()
    np.testing.assert_array_equal(np.delete(kept.centre, 3, 0), np.delete(BOXES.centre, 3, 0))
