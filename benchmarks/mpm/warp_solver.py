"""The benchmark's MLS-MPM in Warp, whose CPU back end runs on one thread."""

from collections.abc import Callable

import numpy as np
import warp as wp

from benchmarks.mpm.work import DENSITY, DT, GRAVITY, KINDS, STEPS, Work, constants, start

NAME = f"warp {wp.config.version}"
vec3, mat33 = wp.vec3, wp.mat33

wp.config.quiet = True
wp.init()
wp.set_device("cpu")


@wp.struct
class Numbers:
    """Constants that every kernel needs."""

    nodes: int
    kind: int
    inv: float
    mu: float
    lam: float
    bulk: float
    mass: float
    volume: float
    dt: float
    g: float


@wp.func
def weights(f: vec3) -> mat33:
    o, q, r = vec3(1.5) - f, f - vec3(1.0), f - vec3(0.5)
    a, b, c = wp.cw_mul(o, o) * 0.5, vec3(0.75) - wp.cw_mul(q, q), wp.cw_mul(r, r) * 0.5
    return wp.matrix_from_rows(a, b, c)


@wp.func
def stress(F: mat33, J: float, n: Numbers) -> mat33:
    one = wp.identity(n=3, dtype=float)
    if n.kind == 0:
        return one * (n.bulk * (J - 1.0))
    if n.kind == 1:
        return n.mu * (F * wp.transpose(F)) + one * (n.lam * wp.log(wp.determinant(F)) - n.mu)
    U, S, V = mat33(), vec3(), mat33()
    wp.svd3(F, U, S, V)
    volume = S[0] * S[1] * S[2]
    R = U * wp.transpose(V)
    return 2.0 * n.mu * (F - R) * wp.transpose(F) + one * (n.lam * volume * (volume - 1.0))


@wp.kernel
def p2g(
    x: wp.array(dtype=vec3), v: wp.array(dtype=vec3), C: wp.array(dtype=mat33),
    F: wp.array(dtype=mat33), J: wp.array(dtype=float), momentum: wp.array(dtype=vec3),
    weight: wp.array(dtype=float), n: Numbers,
):  # fmt: skip
    p = wp.tid()
    X = x[p] * n.inv
    bx, by, bz = int(X[0] - 0.5), int(X[1] - 0.5), int(X[2] - 0.5)
    f = X - vec3(float(bx), float(by), float(bz))
    w = weights(f)
    if n.kind == 0:
        J[p] = J[p] * (1.0 + n.dt * wp.trace(C[p]))
    else:
        F[p] = F[p] + n.dt * (C[p] * F[p])
    A = n.mass * C[p] - (n.dt * n.volume * 4.0 * n.inv * n.inv) * stress(F[p], J[p], n)
    for i in range(3):
        for j in range(3):
            for k in range(3):
                here = w[i, 0] * w[j, 1] * w[k, 2]
                arm = (vec3(float(i), float(j), float(k)) - f) / n.inv
                at = ((bx + i) * n.nodes + by + j) * n.nodes + bz + k
                wp.atomic_add(momentum, at, here * (n.mass * v[p] + A * arm))
                wp.atomic_add(weight, at, here * n.mass)


@wp.kernel
def update_grid(momentum: wp.array(dtype=vec3), weight: wp.array(dtype=float), n: Numbers):
    t = wp.tid()
    if weight[t] > 0.0:
        u = momentum[t] / weight[t] + vec3(0.0, n.dt * n.g, 0.0)
        at = vec3(
            float(t / (n.nodes * n.nodes)), float((t / n.nodes) % n.nodes), float(t % n.nodes)
        )
        for d in range(3):
            if at[d] < 3.0:
                u[d] = wp.max(u[d], 0.0)
            if at[d] > float(n.nodes) - 4.0:
                u[d] = wp.min(u[d], 0.0)
        momentum[t] = u


@wp.kernel
def g2p(
    x: wp.array(dtype=vec3), v: wp.array(dtype=vec3), C: wp.array(dtype=mat33),
    momentum: wp.array(dtype=vec3), n: Numbers,
):  # fmt: skip
    p = wp.tid()
    X = x[p] * n.inv
    bx, by, bz = int(X[0] - 0.5), int(X[1] - 0.5), int(X[2] - 0.5)
    f = X - vec3(float(bx), float(by), float(bz))
    w = weights(f)
    u, B = vec3(0.0), mat33(0.0)
    for i in range(3):
        for j in range(3):
            for k in range(3):
                at = ((bx + i) * n.nodes + by + j) * n.nodes + bz + k
                g = momentum[at] * (w[i, 0] * w[j, 1] * w[k, 2])
                u = u + g
                B = B + wp.outer(g, vec3(float(i), float(j), float(k)) - f)
    v[p] = u
    C[p] = B * (4.0 * n.inv)
    x[p] = x[p] + u * n.dt


def program(work: Work) -> Callable[[], dict[str, float]]:
    """Return a function without arguments that runs the work."""
    n, count = Numbers(), work.particles
    n.nodes, n.kind, n.inv, n.dt, n.g = (
        work.nodes,
        KINDS[work.material],
        float(work.nodes),
        DT,
        GRAVITY,
    )
    n.mu, n.lam, n.volume, _, _ = constants(work)
    n.bulk, n.mass = work.young, n.volume * DENSITY
    first = start(work)
    momentum = wp.zeros(work.nodes**3, dtype=vec3)
    weight = wp.zeros(work.nodes**3, dtype=float)

    def run() -> dict[str, float]:
        x = wp.array(first, dtype=vec3, copy=True)
        v = wp.full(count, vec3(0.5, 0.0, 0.0), dtype=vec3)
        C, F = wp.zeros(count, dtype=mat33), wp.full(count, mat33(*np.eye(3).ravel()), dtype=mat33)
        J = wp.full(count, 1.0, dtype=float)
        for _ in range(STEPS):
            momentum.zero_()
            weight.zero_()
            wp.launch(p2g, dim=count, inputs=[x, v, C, F, J, momentum, weight, n])
            wp.launch(update_grid, dim=work.nodes**3, inputs=[momentum, weight, n])
            wp.launch(g2p, dim=count, inputs=[x, v, C, momentum, n])
        return {"height": x.numpy()[:, 1].mean(), "speed": v.numpy()[:, 1].mean()}

    return run
