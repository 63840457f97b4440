"""A small scene with any field changed, and the assertion that it is rejected."""

import dataclasses
import re

import pytest

from jaxgpu.physics.continuum import Body, Grid, NeoHookean, Scene, fill_box

GRID = Grid(0.1, (10, 10))
BODY = Body(fill_box((0.3, 0.3), (0.7, 0.7), 0.05), NeoHookean(1e4), 0.05**2)


def assert_refused(scene, words):
    """Assert that `prepare` rejects the scene in one sentence that contains these words."""
    with pytest.raises((ValueError, TypeError), match=re.escape(words)) as caught:
        scene.prepare()
    assert "\n" not in str(caught.value) and "; " in str(caught.value)


def change_body(**fields):
    return Scene((dataclasses.replace(BODY, **fields),), GRID)
