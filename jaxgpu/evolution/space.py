"""Search spaces: pytrees of variables, and the points that decision vectors encode."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from jaxgpu.inputs.fields import pytree
from jaxgpu.runs.fresh_calls import fresh_traces

from .problem import Box, Problem, box, call_objective, check_outcome
from .stochastic import NoisyProblem, Objective
from .variables import Boolean, Categorical, Integer, Permutation, Real

VARIABLES = (Real, Integer, Categorical, Boolean, Permutation)


def _variables(space: Any) -> tuple[list[Any], Any]:
    """Return the variables of a space as a list, and the pytree structure that holds them."""
    found, tree = jax.tree.flatten(space, is_leaf=lambda node: isinstance(node, VARIABLES))
    for one in found:
        if not isinstance(one, VARIABLES):
            names = ", ".join(kind.__name__ for kind in VARIABLES)
            raise TypeError(f"space: {one!r} is not a variable; it must be one of {names}")
        one.check()
    if not found:
        raise ValueError("space: it holds no variable; give at least one")
    return found, tree


def dimension(space: Any) -> int:
    """Return the number of coordinates of the unit box that encode a space.

    >>> dimension({"rate": Real(0.0, 1.0), "kind": Categorical(3), "order": Permutation(4)})
    8
    """
    return sum(one.size() for one in _variables(space)[0])


def decode(space: Any, u: Array) -> Any:
    """Return the point of the space that u [D] in the unit box encodes.

    >>> space = {"n": Integer(1, 4), "flag": Boolean()}
    >>> {k: v.item() for k, v in decode(space, jnp.array([0.9, 0.6])).items()}
    {'flag': True, 'n': 3}
    """
    found, tree = _variables(space)
    sizes = [one.size() for one in found]
    if u.shape != (sum(sizes),):
        raise ValueError(f"decode: u has shape {list(u.shape)}; the space takes [{sum(sizes)}]")
    values, at = [], 0
    for one, count in zip(found, sizes):
        values.append(one.decode(u[at : at + count]))
        at += count
    return jax.tree.unflatten(tree, values)


def identifier(space: Any, u: Array) -> Array:
    """Return an identifier [K] uint32 of the point that u [D] encodes; equal only for equal points.

    >>> u = jnp.array([[0.1, 0.9], [0.2, 0.8], [0.9, 0.1]])  # the first two encode the same order
    >>> print(jax.vmap(lambda u: identifier(Permutation(2), u))(u).tolist())
    [[0, 1], [0, 1], [1, 0]]
    """
    return jnp.concatenate([_to_words(leaf) for leaf in jax.tree.leaves(decode(space, u))])


def _to_words(value: Array) -> Array:
    """Return the bits of an array as uint32 words [W], the same for 0 and -0."""
    if value.dtype == bool:
        return value.astype(jnp.uint32).ravel()
    value = jnp.where(value == 0, jnp.zeros_like(value), value)  # -0 is 0
    if value.dtype.itemsize < 4:
        value = value.astype(jnp.float32)
    return lax.bitcast_convert_type(value, jnp.uint32).ravel()


@pytree
class Encoding:
    """Map from the decision vectors of a box to the points of a space, whose bounds are leaves."""

    space: Any  # pytree of variables

    def decode(self, u: Array) -> Any:
        """Return the point of the space that u [D] encodes."""
        return decode(self.space, u)

    def identifier(self, u: Array) -> Array:
        """Return an identifier [K] uint32 of the point, equal only for equal points."""
        return identifier(self.space, u)


def problem(function: Any, space: Any, at_once: int | None = None) -> Problem | NoisyProblem:
    """Return the problem of minimising a function over a space, on the unit box.

    Args:
        function: maps one point to its objective, a scalar, or objectives [m], or a pair of them
            and the total violation; or an `Objective` of such points.
        space: pytree of variables.
        at_once: number of candidates of an `Objective` evaluated per batch.

    Raises:
        TypeError: JAX cannot trace the function, or it does not return real numbers.
        ValueError: its output has the wrong shape; bounds are reversed or not numbers; `at_once` is
            given but the function is not an `Objective`.
    """
    if not callable(function) and not isinstance(function, Objective):
        raise TypeError(
            f"problem: function={function!r}; it must be a function of one point of the space"
        )
    found, tree = _variables(space)
    fixed = [one.as_arrays() if isinstance(one, Real | Integer) else one for one in found]
    plain = box(0.0, 1.0, sum(one.size() for one in fixed))
    unit = Box(plain.lower, plain.upper, Encoding(jax.tree.unflatten(tree, fixed)))
    if isinstance(function, Objective):
        key, state = jax.random.key(0), function.init()
        f = jax.eval_shape(lambda x: _sample_objectives(unit, function, x, key, state), unit.lower)
        return NoisyProblem(unit, function, f.shape[0], at_once)
    if at_once is not None:
        raise ValueError(
            f"problem: at_once={at_once} with a function; it must be None except for an Objective; "
            "wrap a function of a point and a key in evolution.NoisyFunction(function)"
        )
    made = Problem(unit, function)
    with fresh_traces(_outcome, made, unit.lower):
        f, _ = _outcome.eval_shape(made, unit.lower)
    return Problem(unit, function, f.shape[0])


def _sample_objectives(box: Box, objective: Objective, x: Array, key: Array, state: Any) -> Array:
    """Return the objectives [m] at a vector of the box; the caller needs only their number."""
    out = call_objective(objective.evaluate, box.encoding.decode(x), key, state)
    f = out[0] if isinstance(out, tuple) and out else out
    return check_outcome(f, None, x.dtype)[0]


# jitted only for its cache: a function is traced once, however often it is minimised
_outcome = jax.jit(Problem.outcome)
