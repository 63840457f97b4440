"""The accelerations under MuJoCo's soft constraints, and their exact derivatives.

    min over a of  (a - a0)^T M (a - a0) / 2 + s(J a - aref),   M a0 = tau

is convex. At its minimum r(a) = M a - tau - J^T f(J a - aref) = 0 with f = -ds. Every scalar row is
a clamped spring, f = clip(-D x, low, high): equality (-inf, inf), friction loss (-loss, loss),
limit or edge of a pyramid (0, inf). An elliptic cone couples the rows of a contact.

Newton's method takes a fixed number of iterations, each with an exact line search. A CPU, which
need not know its launches in advance, stops at the iteration that has found the minimum. The
derivative is that of the implicit function, da = -H^-1 dr at fixed a, with H the Hessian at the
solution; no factor, loop or search is differentiated.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from jaxgpu.inputs.fields import pytree, size, static

from ..motion.inertia import HIGHEST
from . import factor
from .cones import Cone

# Number of line-search points along a Newton step; most searches end at the first one, 1. The slope
# is piecewise linear with springs only (STRAIGHT), and curved with elliptic cones (BENT).
LINEAR_POINTS, CURVED_POINTS = 3, 4


@pytree
class DofRows:
    """Rows that act on one dof each: friction loss, then limits of hinges, slides."""

    at: tuple[int, ...] = static()  # [n] dofs
    losses: int = size(least=0)  # number of friction-loss rows
    sign: Array  # [n]
    aref: Array  # [n]
    D: Array  # [n], zero where the row is inactive
    low: Array  # [n] minimum force
    high: Array  # [n] maximum force

    def mul_jac_vec(self, a: Array) -> Array:
        """Return J a [n]."""
        return self.sign * a[np.array(self.at, int)]


@pytree
class DenseRows:
    """Rows over all dofs: equalities, rows of tendons, limits of balls."""

    J: Array  # [n, V]
    aref: Array  # [n]
    D: Array  # [n], zero where the row is inactive
    low: Array  # [n] minimum force
    high: Array  # [n] maximum force

    def mul_jac_vec(self, a: Array) -> Array:
        """Return J a [n]."""
        return jnp.einsum("nv,v->n", self.J, a, precision=HIGHEST)


@pytree
class Problem:
    """The convex problem that is minimised by the accelerations."""

    M: Array  # [V, V] mass matrix
    tau: Array  # [V] all forces except constraint forces
    single: DofRows
    dense: DenseRows
    cones: tuple[Cone, ...]  # contacts, one cone for each condim


@functools.partial(jax.custom_jvp, nondiff_argnums=(2,))
def solve(problem: Problem, start: Array, iterations: int) -> Array:
    """Return the accelerations [V] at the minimum, after Newton iterations from `start`."""

    def solve_fixed(problem: Problem, start: Array) -> Array:
        return lax.fori_loop(0, iterations, lambda _, a: _newton_iteration(problem, a)[0], start)

    def solve_adaptive(problem: Problem, start: Array) -> Array:
        def iterate(at: Any) -> Any:
            return at[0] + 1, *_newton_iteration(problem, at[1])

        is_unfinished = lambda at: (at[0] < iterations) & ~at[2]
        return lax.while_loop(is_unfinished, iterate, (0, start, jnp.zeros((), bool)))[1]

    return lax.platform_dependent(problem, start, cpu=solve_adaptive, default=solve_fixed)


def _newton_iteration(problem: Problem, a: Array) -> tuple[Array, Array]:
    """Run one Newton iteration; return its result and whether it is the minimum.

    It is if the full step takes no row to another linear piece of its force, where the problem is
    quadratic. With elliptic cones the squared Newton decrement must be at rounding level, too.
    """
    gradient, H = _residual_and_hessian(problem, a)
    step = -factor.cho_solve(factor.cholesky(H), gradient)
    t, settled = _line_search(problem, a, step)
    better = a + t * step
    if any(cone.round for cone in problem.cones):
        left = -jnp.sum(gradient * step)
        whole = jnp.sum(a * _apply_mass_matrix(H, a)) + jnp.sum(jnp.abs(step * problem.tau))
        settled &= left <= jnp.finfo(a.dtype).eps * whole
    # Where rounding has made the quadratic model singular, keep the last finite point.
    finite = jnp.all(jnp.isfinite(better))
    return jnp.where(finite, better, a), settled | ~finite


@solve.defjvp
def _solve_jvp(iterations: int, primals: Any, tangents: Any) -> tuple[Array, Array]:
    problem, start = primals
    a = solve(problem, start, iterations)
    moved = jax.jvp(lambda p: residual(p, a), (problem,), (tangents[0],))[1]
    return a, -factor.solve(_residual_and_hessian(problem, a)[1], moved)


def _apply_mass_matrix(M: Array, a: Array) -> Array:
    """Return M a [V]."""
    return jnp.einsum("vw,w->v", M, a, precision=HIGHEST)


def residual(problem: Problem, a: Array) -> Array:
    """Return M a - tau - J^T f [V]."""
    return _apply_mass_matrix(problem.M, a) - problem.tau - forces(problem, a)


def forces(problem: Problem, a: Array) -> Array:
    """Return J^T f [V], the constraint forces on the dofs."""
    single, dense = problem.single, problem.dense
    out = (
        jnp.zeros_like(a).at[np.array(single.at, int)].add(single.sign * _row_forces(single, a)[0])
    )
    out = out + jnp.einsum("nv,n->v", dense.J, _row_forces(dense, a)[0], precision=HIGHEST)
    for cone in problem.cones:
        out = out + cone.mul_jac_t_vec(cone.forces(cone.mul_jac_vec(a) - cone.aref))
    return out


def cost(problem: Problem, a: Array) -> Array:
    """Return the objective [] without its constant a0^T M a0 / 2."""
    total = jnp.sum(a * (0.5 * _apply_mass_matrix(problem.M, a) - problem.tau))
    for rows in (problem.single, problem.dense):
        x = rows.mul_jac_vec(a) - rows.aref
        f, _ = _row_forces(rows, a)
        acts = rows.D > 0
        total = total - jnp.sum(f * x + jnp.where(acts, f * f / jnp.where(acts, 2 * rows.D, 1), 0))
    return total + sum(cone.cost(cone.mul_jac_vec(a) - cone.aref) for cone in problem.cones)


def _row_forces(rows: DofRows | DenseRows, a: Array) -> tuple[Array, Array]:
    """Return the forces [n] of scalar rows, and D where they are not clamped, else 0."""
    return _clamp_spring(rows, rows.mul_jac_vec(a) - rows.aref)


def _clamp_spring(rows: DofRows | DenseRows, x: Array) -> tuple[Array, Array]:
    raw = -rows.D * x
    free = (raw > rows.low) & (raw < rows.high)
    return jnp.clip(raw, rows.low, rows.high), jnp.where(free, rows.D, 0)


def _residual_and_hessian(problem: Problem, a: Array) -> tuple[Array, Array]:
    """Return the residual [V] and the Hessian [V, V]."""
    single, dense = problem.single, problem.dense
    out = _apply_mass_matrix(problem.M, a) - problem.tau
    at = np.array(single.at, int)
    f, d = _row_forces(single, a)
    out = out.at[at].add(-single.sign * f)
    H = problem.M.at[at, at].add(d)
    if dense.J.shape[0]:
        f, d = _row_forces(dense, a)
        out = out - jnp.einsum("nv,n->v", dense.J, f, precision=HIGHEST)
        H = H + jnp.einsum("nv,n,nw->vw", dense.J, d, dense.J, precision=HIGHEST)
    for cone in problem.cones:
        x = cone.mul_jac_vec(a) - cone.aref
        out = out - cone.mul_jac_t_vec(cone.forces(x))
        bent = jnp.einsum("ckl,clv->ckv", cone.curvature(x), cone.J, precision=HIGHEST)
        H = H + jnp.einsum("ckv,ckw->vw", cone.J, bent, precision=HIGHEST)
    return out, H


def _line_search(problem: Problem, a: Array, step: Array) -> tuple[Array, Array]:
    """Return the length to go along `step`, and whether a full step switches no row.

    The search ends where the slope, which only grows, is zero. Newton's method finds the zero
    between the closest points that are known to be before and behind it, exactly if no row
    switches. Rows and M are multiplied by the step once.

    The force of friction loss goes from one bound to the other within a short part of the step.
    Newton's method would jump over it from both sides forever, so the rows that switch before the
    zero are found first.
    """
    inertia = _apply_mass_matrix(problem.M, step)
    slope0 = jnp.sum(inertia * a) - jnp.sum(step * problem.tau)
    square = jnp.sum(inertia * step)
    x, y, low, high = _scaled_springs(problem, a, step)
    round_cones = [cone for cone in problem.cones if cone.round]
    start = [cone.mul_jac_vec(a) - cone.aref for cone in round_cones]
    way = [cone.mul_jac_vec(step) for cone in round_cones]

    def cone_force(t: Array) -> Array:
        each = zip(round_cones, start, way)
        return sum((cone.project_force(p + t * q, q) for cone, p, q in each), jnp.zeros_like(t))

    def slope(t: Array, of_round: Array) -> Array:
        return slope0 + t * square - jnp.sum(jnp.clip(-x - t * y, low, high) * y) - of_round

    def bound_masks(raw: Array) -> tuple[Array, Array]:
        return raw <= low, raw >= high

    one = jnp.ones_like(square)
    before, behind = 0 * one, jnp.inf * one
    two_sided = problem.single.losses, problem.single.D.size, problem.dense.D.size
    if two_sided[0] or two_sided[2]:
        at = np.r_[: two_sided[0], two_sided[1] : two_sided[1] + two_sided[2]]
        least, most = (jnp.broadcast_to(end, x.shape)[at] for end in (low, high))
        ends = jnp.concatenate([-least - x[at], -most - x[at]]) / jnp.tile(y[at], 2)
        ahead = jnp.isfinite(ends) & (ends > 0)
        ends = jnp.where(ahead, ends, 0)
        g = jax.vmap(lambda t: slope(t, cone_force(t)))(ends)
        before = jnp.max(jnp.where(ahead & (g < 0), ends, 0))
        behind = jnp.min(jnp.where(ahead & (g >= 0), ends, jnp.inf))
    middle = jnp.where(jnp.isfinite(behind), (before + behind) / 2, 2 * before)
    t = jnp.where((before < one) & (one < behind), one, middle)
    for _ in range(CURVED_POINTS if round_cones else LINEAR_POINTS):
        below, above = bound_masks(-x - t * y)
        of_round, bend = jax.jvp(cone_force, (t,), (one,))
        g = slope(t, of_round)
        rise = square + jnp.sum(jnp.where(below | above, 0, y * y)) - bend
        before, behind = jnp.where(g < 0, t, before), jnp.where(g < 0, behind, t)
        end = t - g / jnp.where(rise > 0, rise, 1)
        inside = jnp.where(g < 0, end < behind, end > before)
        middle = jnp.where(jnp.isfinite(behind), (before + behind) / 2, 2 * before)
        t = jnp.where(inside, end, middle)
    same = jnp.all(jnp.stack([a == b for a, b in zip(bound_masks(-x), bound_masks(-x - y))]))
    for cone, p, q in zip(round_cones, start, way):
        same &= jnp.all(cone.zones(p) == cone.zones(p + q))
    return t, same


def _scaled_springs(
    problem: Problem, a: Array, step: Array
) -> tuple[Array, Array, Array | float, Array | float]:
    """Return x, its change [n], minimum and maximum force of clamped springs and pyramid edges.

    They are scaled to a stiffness of one. The forces are between zero and infinity if no row can
    both push and pull, as in most robots.
    """
    single, dense = problem.single, problem.dense
    pull = bool(single.losses or dense.J.shape[0])
    parts = []
    for rows in (single, dense):
        acts = rows.D > 0
        root = jnp.where(acts, jnp.sqrt(jnp.where(acts, rows.D, 1)), 0)
        ends = [jnp.where(acts, end / jnp.where(acts, root, 1), 0) for end in (rows.low, rows.high)]
        parts.append(
            (root * (rows.mul_jac_vec(a) - rows.aref), root * rows.mul_jac_vec(step), *ends)
        )
    for cone in problem.cones:
        if not cone.round:
            root = jnp.sqrt(cone.D)[:, None]
            x, y = cone.edges(cone.mul_jac_vec(a) - cone.aref), cone.edges(cone.mul_jac_vec(step))
            x, y = (root * x).ravel(), (root * y).ravel()
            parts.append((x, y, jnp.zeros_like(x), jnp.full_like(x, jnp.inf)))
    x, y, low, high = (jnp.concatenate(each) for each in zip(*parts))
    return (x, y, low, high) if pull else (x, y, 0.0, jnp.inf)
