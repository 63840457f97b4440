"""One protocol for every algorithm, including user-defined ones."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu.devices.mesh import make_mesh
from jaxgpu.evolution import Real, minimize, protocol
from jaxgpu.evolution.multi import NSGA2, SBX, PolynomialMutation
from jaxgpu.evolution.problem import Box, Problem, box
from jaxgpu.evolution.single import CMAES, PSO, SNES
from jaxgpu.inputs.fields import pytree, size


@pytree
class Walk(protocol.Algorithm):
    """An algorithm in five lines: a random step is accepted if it improves the value."""

    step: float = 0.1
    batch_size = 1

    def init(self, key, problem):
        return jnp.full((1, 2), 0.9), jnp.full((1, 1), jnp.inf)

    def ask(self, state, key):
        return state[0] + self.step * jax.random.normal(key, state[0].shape)

    def tell(self, state, x, f, violation=None):
        return jnp.where(f < state[1], x, state[0]), jnp.minimum(f, state[1])


START = jax.jit(lambda spec, problem: spec.init(jax.random.key(0), problem))
SPHERE = Problem(box(-1.0, 1.0, 2), lambda x: jnp.sum(x * x, keepdims=True))


def test_an_algorithm_of_ones_own_is_registered_and_runs():
    run = jax.jit(lambda step, key: protocol.evolve(Walk(step), SPHERE, key, 300)[1])
    best = [run(0.1, jax.random.key(seed)) for seed in range(5)]
    assert max(best) < 0.02  # from 1.62, with steps of 0.1


def test_the_loop_on_the_host_ends_where_the_pure_one_does():
    key = jax.random.key(4)
    pure = jax.jit(lambda key: protocol.evolve(Walk(), SPHERE, key, 8))(key)
    host = protocol.run(Walk(), SPHERE, key, 8, measure=lambda state: state[1])
    np.testing.assert_allclose(host.state[0], pure[0], rtol=1e-6)
    assert host.history.shape == (9, 1, 1) and host.history[-1] == pure[1]
    assert np.isinf(host.history[0])  # before the first generation


@pytree
class Walks(Walk):
    """A variant with several steps, of which the best is kept."""

    batch_size: int = size(16)

    def ask(self, state, key):
        return state[0] + self.step * jax.random.normal(key, (self.batch_size, 2))

    def tell(self, state, x, f, violation=None):
        best = jnp.argmin(f + violation[:, None])
        return super().tell(state, x[best][None], f[best][None])


@pytest.mark.slow
def test_candidates_over_eight_devices_have_the_values_of_one(tmp_path):
    eight, key, spec = jax.make_mesh((8,), ("candidates",)), jax.random.key(4), Walks()
    bowl = Problem(box(-1.0, 1.0, 2), lambda x: (jnp.sum(x * x, keepdims=True), x[0] - 0.5))
    one = protocol.run(spec, bowl, key, 12)
    protocol.run(spec, bowl, key, 7, mesh=eight, out=tmp_path)
    many = protocol.run(spec, bowl, key, 12, mesh=eight)
    rest = protocol.run(spec, bowl, key, 12, mesh=eight, out=tmp_path, resume=True)
    assert rest.timing.compile == 0
    jax.tree.map(np.testing.assert_array_equal, rest.state, many.state)
    np.testing.assert_allclose(many.state[0], one.state[0], rtol=1e-4)
    step = jax.jit(lambda state, key: protocol.step(spec, bowl, state, key, make_mesh(8)))
    text = step.lower(jax.device_get(one.state), key).compile().as_text()
    assert len(re.findall(r" all-gather(?:-start)?\(", text)) == 1
    assert not re.search("all-reduce|all-to-all|collective-permute", text)


def test_meshes_that_do_not_divide_a_generation_are_named():
    eight = make_mesh(8)
    for call, name in ((protocol.evolve, "evolve"), (protocol.run, "run")):
        with pytest.raises(
            ValueError, match=f"{name}: mesh of 8 devices for Walks, which evaluates"
        ):
            call(Walks(batch_size=12), SPHERE, jax.random.key(0), 1, mesh=eight)
    with pytest.raises(ValueError, match="minimize: mesh of 8 devices for Restarts, which eval"):
        minimize(lambda x: x * x, Real(-1.0, 1.0), 100, mesh=eight)
    with pytest.raises(TypeError, match="minimize: mesh=8; it must be a mesh"):
        minimize(lambda x: x * x, Real(-1.0, 1.0), 100, mesh=8)


def test_what_is_no_algorithm_is_named():
    for call in (protocol.evolve, protocol.run):
        with pytest.raises(TypeError, match="str is not an algorithm; pass an instance"):
            call("nsga2", SPHERE, jax.random.key(0), 1)


@pytest.mark.parametrize(
    "box_, said",
    [
        (Box([1.0, 1.0], [0.0, 2.0]), r"Box: lower=1, upper=0 at \[0\]; lower must not be"),
        (Box([0.0, jnp.nan], [1.0, 1.0]), r"Box.lower=nan at \[1\]; it must be a finite"),
        (Box([0.0], [1.0, 1.0]), r"Box.lower has shape \[1\], Box.upper \[2\]; both must be"),
        (Box(0.0, 1.0), r"Box.lower has shape \[\], Box.upper \[\]; both must be"),
        (Box([0.0], [jnp.inf]), r"Box.upper=inf at \[0\]; it must be a finite"),
    ],
)
def test_a_box_that_is_none_is_refused_by_every_algorithm(box_, said):
    problem, key = Problem(box_, lambda x: x, 2), jax.random.key(0)
    with pytest.raises(ValueError, match=f"^init: .*{said}"):
        NSGA2().init(key, problem)
    with pytest.raises(ValueError, match=f"^evolve: .*{said}"):
        protocol.evolve(NSGA2(), problem, key, 2)


@pytest.mark.slow
def test_whole_bounds_are_bounds():
    problem = Problem(Box([0, -1], [1, 3]), lambda x: x[:1])
    state = protocol.evolve(PSO(4), problem, jax.random.key(0), 2)
    assert state.x.dtype == jnp.float32 and np.isfinite(state.best.f)


def test_what_is_told_without_violations_is_feasible():
    """Pass a vector of values, too, which suffices for one objective."""
    spec = CMAES(4)
    state, x = START(spec, SPHERE), np.ones((4, 2), np.float32)
    known = protocol.check_tell(spec, state, x, np.arange(4.0), None)
    same = protocol.check_tell(spec, state, x, np.arange(4.0)[:, None], np.zeros(4))
    for a, b, want in zip(known, same, (x, np.arange(4.0)[:, None], np.zeros(4))):
        np.testing.assert_array_equal(a, want)
        np.testing.assert_array_equal(b, want)


@pytest.mark.slow
def test_values_from_outside_are_told_as_they_come():
    """NumPy, [N] for one objective, no violations, NaN: as from a laboratory or a C program."""
    spec = SNES(6)
    state, ask, tell = START(spec, SPHERE), jax.jit(SNES.ask), jax.jit(SNES.tell)
    for i in range(3):
        x = np.asarray(ask(spec, state, jax.random.key(i)), np.float64)
        f = (x**2).sum(1)
        f[0] = np.nan
        state = tell(spec, state, x, f)
    assert np.isfinite(state.best.f) and np.isfinite(state.mean).all()


def test_values_of_another_shape_are_named():
    spec, problem = NSGA2(pop_size=8), Problem(box(0.0, 1.0, 3), lambda x: x[:2], 2)
    state = START(spec, problem)
    x = np.asarray(state.population.x)
    for f, violation, said in (
        (x[:, 0], None, r"tell: f has shape \[8, 1\]; it must be \[8, 2\]"),
        (x, None, r"tell: f has shape \[8, 3\]; it must be \[8, 2\]"),
        (x[:, :2].astype(np.complex64), None, "tell: f is of type complex64; it must be real"),
        (x[:, :2], x[:, :2], r"tell: violation has shape \[8, 2\]; it must be \[8\]"),
    ):
        with pytest.raises((TypeError, ValueError), match=said):
            spec.tell(state, x, f, violation)
    with pytest.raises(ValueError, match=r"tell: x has shape \[7, 3\]; ask returned \[8, 3\]"):
        spec.tell(state, x[:7], x[:7, :2])


def test_numbers_of_a_spec_are_held_against_their_ranges():
    key, problem = jax.random.key(0), Problem(box(0.0, 1.0, 3), lambda x: x[:2], 2)
    for operators, said in (
        ({"crossover": SBX(prob=1.5)}, "NSGA2: SBX.prob=1.5; it must be"),
        (
            {"mutation": PolynomialMutation(jnp.nan)},
            "NSGA2: PolynomialMutation.eta=nan; it must be",
        ),
        (
            {"mutation": PolynomialMutation(prob=4.0)},
            "NSGA2: PolynomialMutation.prob=4; it must be",
        ),
    ):
        with pytest.raises(ValueError, match=said):
            NSGA2(8, **operators).init(key, problem)
