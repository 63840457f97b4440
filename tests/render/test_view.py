"""Views: one HTML page for points, capsules and triangles, and the display of each object type."""

import base64
import html
import json
import re
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxgpu
from jaxgpu.evolution.population import Population
from jaxgpu.physics import rigid
from jaxgpu.physics.continuum import Body, Grid, Liquid, Scene
from jaxgpu.physics.nbody.clusters import cluster
from jaxgpu.physics.nbody.planets.planetary import Planetary
from jaxgpu.render import Capsules, Points, View, show
from jaxgpu.runs.loop import run

RANDOM = np.random.default_rng(3)


def page_data(view):
    """Return the data that the page passes to its program."""
    return json.loads(re.search(r'<script type="application/json">(.*?)</script>', view.page())[1])


def decode(data, part):
    """Return positions [T, N, 3] as the program decodes them, nan for absent points."""
    words = np.frombuffer(base64.b64decode(part["data"]), "<u2")
    words = words.reshape(part["frames"], part["count"], 3).astype(float)
    low, high = np.array(data["low"]), np.array(data["high"])
    return np.where(words == 65535, np.nan, low + words / 65534 * (high - low))


def test_a_page_holds_the_places_to_a_part_in_65534_of_its_box():
    x = RANDOM.normal(size=(7, 30, 3))
    data = page_data(show(x, times=np.arange(7) / 2))
    box = np.array(data["high"]) - data["low"]
    got = decode(data, data["points"][0]["x"])
    assert data["times"] == [0, 0.5, 1, 1.5, 2, 2.5, 3]
    np.testing.assert_allclose(got, x, atol=0.51 * box.max() / 65534 + 1e-5 * np.abs(x).max())


def test_a_page_is_small_loads_nothing_and_cannot_be_broken_out_of():
    page = View((Points("</script><img src=x>", np.zeros((1, 4, 3))),)).page()
    assert len(page) < 300_000 and page.count("</script>") == 2
    assert "default-src 'none'" in page and not re.search(r"""(src|href)=["']|https?:""", page)
    assert "\\u003c/script>" in page


def test_a_page_leaves_the_wheel_and_the_finger_to_the_page_around():
    page = show(np.eye(3)).page()
    assert "touch-action:pan-y" in page and "if (!e.ctrlKey) return;" in page
    assert all(key in page for key in ("ArrowLeft", "ArrowUp", '"+"', '" "'))


def test_a_notebook_shows_the_page_in_a_frame_of_its_own():
    view = show(np.eye(3))
    shown = view._repr_html_()
    assert shown.startswith('<iframe sandbox="allow-scripts"')
    assert html.unescape(re.search('srcdoc="([^"]*)"', shown)[1]) == view.page()


def test_views_are_written_to_files(tmp_path):
    file = show(np.eye(3)).save(tmp_path / "eye.html")
    assert file.read_text() == show(np.eye(3)).page()


def test_too_many_points_and_moments_are_thinned_and_that_is_said():
    data = page_data(
        show({"dust": RANDOM.normal(size=(250, 500, 3)), "gas": RANDOM.normal(size=(50_000, 3))})
    )
    assert [(p["x"]["frames"], p["x"]["count"]) for p in data["points"]] == [(84, 500), (1, 16_667)]
    assert data["note"] == "Shows one in 3 of 250 moments. Shows one in 3 of 50000 gas."


def test_one_that_is_far_out_does_not_make_the_rest_small():
    x = RANDOM.normal(size=(500, 3))
    x[7] = 1e4
    data = page_data(show(x))
    assert max(data["high"]) < 20
    got = decode(data, data["points"][0]["x"])[0]
    assert np.isnan(got[7]).all() and np.isfinite(np.delete(got, 7, 0)).all()


def test_stars_tracers_and_planets_are_shown_without_the_escaped():
    x = RANDOM.normal(size=(3, 3))
    none, one = (SimpleNamespace(gone=np.array(gone)) for gone in ([0, 0, 0], [0, 1, 0]))
    bodies = {"x": x, "tracer_x": 2 * x, "stars_gone": none, "gone": one}
    seen = cluster.State.view(SimpleNamespace(**bodies))
    np.testing.assert_array_equal(seen["stars"], x)
    assert np.isnan(seen["tracers"][1]).all()
    np.testing.assert_array_equal(seen["tracers"][[0, 2]], 2 * x[[0, 2]])
    assert repr(show(SimpleNamespace(view=lambda: seen))) == (
        "View of 3 points 'stars', 3 points 'tracers'; 1 moment"
    )
    spec = Planetary(gm=jnp.array([1.0, 1e-3]), dt=0.1, light=jnp.inf)
    here = spec.init(jnp.array([[0.0, 0, 0], [1, 0, 0]]), jnp.array([[0.0, 0, 0], [0, 1, 0]]))
    assert repr(show([here, here])) == "View of 2 points 'bodies'; 2 moments"


def test_matter_is_shown_where_its_slots_are_filled():
    body = Body(jnp.array([[0.5, 0.25], [0.5, 0.75], [0.25, 0.5]]), Liquid(), volume=1e-2)
    data = page_data(show(Scene((body,), Grid(0.1, (10, 10))).init()))
    got = decode(data, data["points"][0]["x"])[0]
    seen = got[np.isfinite(got).all(1)]
    np.testing.assert_allclose(seen[:, :2], body.x, atol=1e-4)
    assert data["points"][0]["name"] == "body 1" and len(got) == 8


def test_arms_and_mechanisms_are_shown_at_all_their_states():
    ends = lambda x: Capsules(0 * x, x, jnp.ones(1), jnp.ones((1, 3)), 0.0, 1.0)
    env = SimpleNamespace(
        scene=lambda angle: ends(jnp.stack([jnp.cos(angle), jnp.sin(angle), 1])[None])
    )
    data = page_data(show(env, jnp.array([0.0, jnp.pi / 2])))
    got = decode(data, data["rods"][0]["end"])[:, 0]
    np.testing.assert_allclose(got, [[1, 0, 1], [0, 1, 1]], atol=1e-4)
    assert data["rods"][0]["colour"] == ["#ffffff"]
    lines = np.zeros((1, 2, 3)), np.full((1, 2, 3), 5.0)
    assert page_data(show({"arm": lines}))["rods"][0]["radius"] == [0.06, 0.06]  # of an extent of 5
    assert page_data(show(ends(jnp.ones((1, 3)))))["rods"][0]["end"]["frames"] == 1


@pytest.mark.slow
def test_bodies_go_from_joint_to_joint():
    rod = '<joint axis="0 1 0"/><geom type="capsule" size=".05" fromto="0 0 0 0 0 -1"/>'
    text = f'<body>{rod}<body pos="0 0 -1">{rod}</body></body>'
    model = rigid.load(f"<mujoco><worldbody>{text}</worldbody></mujoco>")
    states = jax.jit(jax.vmap(model.init))(np.array([[0, 0], [0.5, 0]], np.float32))
    links = page_data(show(model, states))["rods"]
    assert (links[0]["start"]["frames"], links[0]["start"]["count"]) == (2, 4)


def test_a_front_is_shown_by_its_feasible_members_on_axes_of_their_own():
    f = jnp.array([[1.0, 200], [2, 100], [0, 0]])
    data = page_data(show(Population(jnp.zeros((3, 1)), f, jnp.array([0.0, 0, 1]))))
    assert data["axes"] == ["f1", "f2", "f3"] and data["points"][0]["x"]["count"] == 2
    named = show(SimpleNamespace(f=np.eye(3)), axes=("mass", "force", "speed"))
    assert page_data(named)["axes"] == ["mass", "force", "speed"]


def test_a_run_is_shown_by_the_positions_in_its_history():
    done = run(lambda x: x + 1, jnp.zeros((2, 3)), 4, measure=lambda x: {"x": x})
    assert show(done).moments == 5
    mesh = SimpleNamespace(vertices=np.eye(3), faces=np.array([[0, 1, 2]]))
    assert page_data(show(mesh))["surfaces"][0]["faces"] == [0, 1, 2]


@pytest.mark.parametrize(
    "x, given, sentence",
    [
        (np.zeros((4, 5)), {}, r"show: x has shape \[4, 5\]; it must be \[N, 3\] or \[T, N, 3\]"),
        ({"a": np.zeros((0, 3))}, {}, r"a has shape \[0, 3\]"),
        (np.full((2, 3), np.nan), {}, "show: x=.*; it must be .*finite"),
        ("stars", {}, "show: x='stars'; it must be points, a state or a run"),
        (np.eye(3), {"times": [1.0, 2.0]}, "times has 2 moments and x has 1; give as many"),
        (np.eye(3), {"up": "x"}, "up='x'; it must be"),
        (np.eye(3), {"axes": ("a", "b")}, "it must be three names"),
        (np.eye(3), {"states": 3.0}, "ndarray has no method `scene`"),
        (SimpleNamespace(f=np.zeros((2, 4))), {}, "two or three objectives"),
        ({"a": np.zeros((2, 1, 3)), "b": np.zeros((3, 1, 3))}, {}, r"arrays of \[2, 3\] moments"),
    ],
)
def test_what_cannot_be_shown_gets_a_sentence(x, given, sentence):
    with pytest.raises((TypeError, ValueError), match=sentence):
        show(x, **given)


def test_show_is_at_the_front_door():
    assert jaxgpu.show is show
