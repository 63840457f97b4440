"""Stochastic objectives with a state: their samples, their state, and their memory use."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu.devices.mesh import make_mesh
from jaxgpu.evolution import (
    Integer,
    NoisyFunction,
    NoisyProblem,
    Objective,
    Real,
    box,
    minimize,
    protocol,
)
from jaxgpu.evolution.single import SNES
from jaxgpu.inputs.fields import pytree, size

KEY = jax.random.key(7)


@pytree
class Walks(protocol.Algorithm):
    """A random search that tries several steps from the best point so far."""

    batch_size: int = size(8)

    def init(self, key, problem):
        return jnp.zeros((1, 2)), jnp.full((1, 2), jnp.inf)

    def ask(self, state, key):
        return state[0] + 0.2 * jax.random.normal(key, (self.batch_size, 2))

    def tell(self, state, x, f, violation=None):
        best = jnp.argmin(f[:, 0] + violation)
        better = f[best, 0] < state[1][0, 0]
        keep = lambda new, old: jnp.where(better, new[best][None], old)
        return keep(x, state[0]), keep(f, state[1])


@pytree
class Noisy(Objective):
    """A noisy sphere; its state has the count, mean and squared deviations of all samples."""

    noise: float = 0.5
    width: int = size(3)
    bad: float = np.inf  # beyond which there is no value

    def init(self):
        return {"count": jnp.int32(0), "mean": jnp.zeros(self.width), "square": jnp.zeros(())}

    def evaluate(self, x, key, state):
        seen = x[0] + self.noise * jax.random.normal(key, (self.width,))
        f = jnp.stack([jnp.sum(x * x) + jnp.sum(seen), jnp.sum((x - 1) ** 2)])
        f = jnp.where(x[0] > self.bad, jnp.nan, f) + 0.01 * state["mean"][0]
        return f, x[0] - 0.5, seen

    def update(self, state, seen):
        new, old, middle = seen.shape[0], state["count"].astype(seen.dtype), jnp.mean(seen, 0)
        shift, share = middle - state["mean"], new / (old + new)
        spread = jnp.sum((seen - middle[None]) ** 2) + jnp.sum(shift**2) * old * share
        mean = state["mean"] + shift * share
        return {"count": state["count"] + new, "mean": mean, "square": state["square"] + spread}


def problem(**given):
    spec = {name: given.pop(name) for name in ("noise", "width", "bad") if name in given}
    return NoisyProblem(box(-1.0, 1.0, 2), Noisy(**spec), 2, **given)


def test_all_candidates_of_a_generation_have_one_draw():
    """Compare with a NumPy loop over the candidates, with the random numbers of the key."""
    x = jax.random.uniform(jax.random.key(1), (5, 2), minval=-1)
    made = problem()
    f, violation, _ = jax.jit(made.evaluate)(x, KEY, made.init())
    drawn = 0.5 * np.asarray(jax.random.normal(KEY, (3,)))
    for row, values, broken in zip(np.asarray(x), f, violation):
        want = [np.sum(row**2) + np.sum(row[0] + drawn), np.sum((row - 1) ** 2)]
        np.testing.assert_allclose(values, want, rtol=1e-5, atol=1e-6)
        assert broken == max(row[0] - np.float32(0.5), 0)


def test_candidates_may_have_draws_of_their_own():
    x = jnp.zeros((4, 2))
    made = problem(common=False, at_once=3)
    f, _, state = jax.jit(made.evaluate)(x, KEY, made.init())
    keys = jax.random.split(KEY, 4)
    want = [np.sum(0.5 * np.asarray(jax.random.normal(key, (3,)))) for key in keys]
    np.testing.assert_allclose(f[:, 0], want, rtol=1e-5)
    assert state["count"] == 4 and len(set(want)) == 4


@pytest.mark.slow
def test_what_is_known_is_of_all_that_was_seen():
    """Compare with NumPy over five generations, whose candidates are computed separately."""
    spec, made, rows = Walks(), problem(), []
    search = protocol.init_search(spec, made, KEY)
    step = jax.jit(lambda search, key: protocol.advance_search(spec, made, search, key))
    asked = jax.jit(lambda state, key: (spec.ask(state, key), jax.random.normal(key, (3,))))
    for i in range(5):
        key = jax.random.fold_in(KEY, i)
        ask, draw = jax.random.split(key)
        x, drawn = np.asarray(asked(search.state, ask)[0]), asked(search.state, draw)[1]
        rows.append(x[:, :1] + 0.5 * np.asarray(drawn))
        search = step(search, key)
    rows = np.concatenate(rows).astype(np.float64)
    assert search.objective["count"] == len(rows) == 40 and search.failed == 0
    np.testing.assert_allclose(search.objective["mean"], rows.mean(0), rtol=1e-5)
    np.testing.assert_allclose(search.objective["square"], 40 * rows.var(0).sum(), rtol=1e-5)


@pytest.mark.slow
def test_the_loops_end_at_one_state():
    spec, made = Walks(), problem()
    host = protocol.run(spec, made, KEY, 6)
    loops = protocol.search, protocol.evolve
    pure, state = jax.jit(lambda key: [loop(spec, made, key, 6) for loop in loops])(KEY)
    np.testing.assert_array_equal(pure.state[0], state[0])
    for one, other in zip(
        jax.tree.leaves((host.state, host.objective)), jax.tree.leaves((pure.state, pure.objective))
    ):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_neither_the_number_at_once_nor_that_of_devices_says_what_comes():
    x, made = jax.random.uniform(KEY, (24, 2), minval=-1), problem()
    whole = jax.jit(made.evaluate)(x, KEY, made.init())
    for count in (6, 7):  # one divides 24
        parts = jax.jit(problem(at_once=count).evaluate)(x, KEY, made.init())
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-6), parts, whole)
    spec = Walks(16)
    made = problem(common=False, at_once=1)
    one = protocol.run(spec, made, KEY, 5)
    many = protocol.run(spec, made, KEY, 5, mesh=make_mesh(8))
    both = (one.state, one.objective), (many.state, many.objective)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), *both)


def test_what_crosses_is_the_values_and_what_was_seen():
    spec, made = Walks(16), problem()
    search = protocol.init_search(spec, made, KEY)
    step = jax.jit(
        lambda search, key: protocol.advance_search(spec, made, search, key, make_mesh(8))
    )
    text = step.lower(search, KEY).compile().as_text()
    assert 1 <= len(re.findall(r" all-gather(?:-start)?\(", text)) <= 3
    assert not re.search("all-reduce|all-to-all|collective-permute", text)


@pytree
class Walker(Objective):
    """A simulation of 50 steps of 512 numbers, whose value is one number."""

    def evaluate(self, x, key, state):
        weights = jax.random.normal(key, (512, 2))
        start = jnp.dot(weights, x, precision="highest")
        move = lambda v, _: (jnp.sin(v + jnp.roll(v, 1)), None)
        return jnp.sum(jax.lax.scan(move, start, length=50)[0]), None, start[:2]


def test_a_hundred_thousand_walks_take_the_memory_of_a_thousand_and_of_what_they_tell():
    def temporary(count, at_once):
        made = NoisyProblem(box(-1.0, 1.0, 2), Walker(), at_once=at_once)
        call = jax.jit(made.evaluate).lower(jnp.zeros((count, 2)), KEY, ())
        return call.compile().memory_analysis().temp_size_in_bytes

    thousand = temporary(1000, None)
    told = 100_000 * 4 * (2 + 1 + 1 + 2)  # x, f, violation and what is seen
    assert thousand > 1000 * 512 * 4
    assert temporary(100_000, 1000) <= 1.1 * thousand + 2 * told


def test_a_folder_keeps_what_is_known_and_knows_the_objective(tmp_path):
    spec, lone = Walks(), problem()
    protocol.run(spec, lone, KEY, 4, out=tmp_path)
    rest = protocol.run(spec, lone, KEY, 9, out=tmp_path, resume=True)
    whole = protocol.run(spec, lone, KEY, 9)
    assert rest.timing.steps == 5
    both = (rest.state, rest.objective), (whole.state, whole.objective)
    jax.tree.map(np.testing.assert_array_equal, *both)
    with pytest.raises(ValueError, match="problem.objective.noise was 0.5, is 0.25"):
        protocol.run(spec, problem(noise=0.25), KEY, 9, out=tmp_path, resume=True)


def test_numbers_that_are_none_are_counted_and_never_known():
    made = problem(bad=0.0)
    x = jnp.array([[-0.5, 0.0], [0.5, 0.0], [-0.2, 0.1]])
    evaluate = jax.jit(made.evaluate)
    f, violation, state = evaluate(x, KEY, made.init())
    assert np.isinf(f[1]).all() and violation[1] == np.inf and np.isfinite(f[::2]).all()
    assert state["count"] == 3
    before = made.init() | {"count": jnp.int32(2)}
    _, _, after = evaluate(x.at[0].set(jnp.nan), KEY, before)
    jax.tree.map(np.testing.assert_array_equal, after, before)
    assert protocol.run(Walks(), made, KEY, 3).failed > 0


@pytest.mark.slow
def test_minimize_takes_an_objective_of_points_of_a_space():
    misfit = lambda p: (p["a"] - 1) ** 2 + (p["n"].astype(jnp.float32) - 3) ** 2
    rate = NoisyFunction(lambda p, key: misfit(p) + 0.01 * jax.random.normal(key))
    found = minimize(
        rate, {"a": Real(-3.0, 3.0), "n": Integer(0, 9)}, 3000, algorithm=SNES(8), at_once=5
    )
    assert abs(found.x["a"] - 1) < 0.2 and found.x["n"] == 3 and found.objective == ()


def test_seeds_are_a_batch_axis():
    spec, made = Walks(), problem()
    search = jax.jit(jax.vmap(lambda key: protocol.search(spec, made, key, 3)))
    ends = search(jax.random.split(KEY, 3))
    assert ends.objective["mean"].shape == (3, 3) and (ends.objective["count"] == 24).all()


@pytree
class Wrong(Objective):
    """An objective that returns the given output."""

    out: tuple = ()

    def evaluate(self, x, key, state):
        return self.out


def test_what_is_no_objective_is_named():
    stochastic = lambda of, m=1, **given: NoisyProblem(box(-1.0, 1.0, 2), of, m, **given)
    x = jnp.zeros((4, 2))
    for made, said in (
        (
            stochastic(Wrong((1.0, 0.0))),
            r"evaluate returns a tuple of 2; it must be \(f, violation, see",
        ),
        (
            stochastic(Wrong((x, None, ()))),
            r"objective: f has shape \[4, 2\]; it must be a scalar or",
        ),
        (stochastic(Noisy(), 1), "the objective returns 2 objectives; the problem declares 1"),
        (
            stochastic(NoisyFunction(lambda x, key: x if x[0] > 0 else -x)),
            "objective: JAX cannot trace it",
        ),
    ):
        with pytest.raises((TypeError, ValueError), match=said):
            protocol.search(SNES(4), made, KEY, 2)
    with pytest.raises(TypeError, match="run: NoisyProblem.objective is a function; it must be an"):
        protocol.run(SNES(4), stochastic(lambda x, key: x), KEY, 2)
    with pytest.raises(ValueError, match="at_once=5 with a function; it must be None except for"):
        minimize(jnp.sum, Real(jnp.zeros(2), 1.0), 100, at_once=5)
    with pytest.raises(ValueError, match="at_once"):
        protocol.run(SNES(4), stochastic(Noisy(), 2, at_once=0), KEY, 2)
    with pytest.raises(TypeError, match="step: problem is a Stochastic, whose objective has a"):
        protocol.step(SNES(4), problem(), None, KEY)
    with pytest.raises(ValueError, match=r"evaluate: x has shape \[4, 3\]; it must be \[N, 2\]"):
        problem().evaluate(jnp.zeros((4, 3)), KEY, Noisy().init())


@pytree
class Growing(Noisy):
    """An objective whose state grows with each update."""

    def update(self, state, seen):
        return state | {"square": seen}


def test_a_state_that_changes_its_shape_is_named():
    made = NoisyProblem(box(-1.0, 1.0, 2), Growing(), 2)
    with pytest.raises(TypeError, match=r"objective: update changes \['square'\] float32\[\] to"):
        protocol.run(Walks(), made, KEY, 2)
