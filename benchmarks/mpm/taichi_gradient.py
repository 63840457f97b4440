"""Value and gradient of the benchmark's MLS-MPM in Taichi, computed as in FluidLab.

The particles of every step are stored, but not the grids: the reverse pass recomputes each step's
grid before it runs the adjoint kernels. Liquid and neo-Hookean only, because Taichi's derivative of
the singular value decomposition is wrong at rest. One thread.
"""

from collections.abc import Callable

import numpy as np
import taichi as ti

from benchmarks.mpm import taichi_solver
from benchmarks.mpm.work import DENSITY, DT, GRAVITY, KINDS, STEPS, Work, constants, start

NAME = f"{taichi_solver.NAME}, value and gradient"


@ti.data_oriented
class _TaichiSolver:
    def __init__(self, work: Work):
        self.work, self.kind, n = work, KINDS[work.material], work.particles
        self.mu, self.lam, self.volume, _, self.dx = constants(work)
        self.bulk, self.mass, self.nodes = work.young, self.volume * DENSITY, work.nodes
        kept, grid = (STEPS + 1, n), (work.nodes,) * 3
        vector = lambda shape: ti.Vector.field(3, ti.f32, shape, needs_grad=True)
        number = lambda shape: ti.field(ti.f32, shape, needs_grad=True)
        self.x, self.v, self.J = vector(kept), vector(kept), number(kept)
        self.C, self.F = (ti.Matrix.field(3, 3, ti.f32, kept, needs_grad=True) for _ in range(2))
        self.momentum, self.velocity, self.weight = vector(grid), vector(grid), number(grid)
        self.loss = number(())

    def run(self, back: bool) -> dict[str, float]:
        n = self.work.particles
        self.begin(start(self.work), np.eye(3, dtype=np.float32))
        for t in range(STEPS):
            self.forward(t)
        self.loss[None] = 0
        self.measure()
        if not back:
            return {"loss": self.loss[None] / n}
        for field in (self.x, self.v, self.J, self.C, self.F):
            field.grad.fill(0)
        self.loss.grad[None] = 1
        self.measure.grad()
        for t in reversed(range(STEPS)):
            self.clear_grid()
            self.p2g(t)
            self.update_grid()
            self.clear_gradients()
            self.g2p.grad(t)
            self.update_grid.grad()
            self.p2g.grad(t)
        slope = self.v.grad.to_numpy()[0].sum(0) / n
        return {"loss": self.loss[None] / n, "d loss / d v_y": slope[1]}

    def forward(self, t: int) -> None:
        self.clear_grid()
        self.p2g(t)
        self.update_grid()
        self.g2p(t)

    @ti.kernel
    def begin(self, x: ti.types.ndarray(), one: ti.types.ndarray()):
        for p in range(self.work.particles):
            for i in ti.static(range(3)):
                self.x[0, p][i] = x[p, i]
                for j in ti.static(range(3)):
                    self.F[0, p][i, j] = one[i, j]
            self.v[0, p], self.J[0, p] = ti.Vector([0.5, 0.0, 0.0]), 1.0
            self.C[0, p] = ti.Matrix.zero(ti.f32, 3, 3)

    @ti.kernel
    def clear_grid(self):
        for i in ti.grouped(self.weight):
            self.weight[i] = 0
            self.momentum[i] = ti.Vector.zero(ti.f32, 3)
            self.velocity[i] = ti.Vector.zero(ti.f32, 3)

    @ti.kernel
    def clear_gradients(self):
        for i in ti.grouped(self.weight):
            self.weight.grad[i] = 0
            self.momentum.grad[i] = ti.Vector.zero(ti.f32, 3)
            self.velocity.grad[i] = ti.Vector.zero(ti.f32, 3)

    @ti.kernel
    def p2g(self, t: ti.i32):
        for p in range(self.work.particles):
            X = self.x[t, p] * self.nodes
            base = int(X - 0.5)
            f = X - base
            w = [0.5 * (1.5 - f) ** 2, 0.75 - (f - 1) ** 2, 0.5 * (f - 0.5) ** 2]
            one, tau = ti.Matrix.identity(ti.f32, 3), ti.Matrix.zero(ti.f32, 3, 3)
            if ti.static(self.kind == 0):
                J = self.J[t, p] * (1 + DT * self.C[t, p].trace())
                self.J[t + 1, p] = J
                tau = one * (self.bulk * (J - 1))
            else:
                F = (one + DT * self.C[t, p]) @ self.F[t, p]
                self.F[t + 1, p] = F
                tau = self.mu * (F @ F.transpose()) + one * (
                    self.lam * ti.log(F.determinant()) - self.mu
                )
            A = self.mass * self.C[t, p] - DT * self.volume * 4 * self.nodes**2 * tau
            for o in ti.static(ti.grouped(ti.ndrange(3, 3, 3))):
                weight = w[o.x].x * w[o.y].y * w[o.z].z
                self.momentum[base + o] += weight * (
                    self.mass * self.v[t, p] + A @ ((o - f) * self.dx)
                )
                self.weight[base + o] += weight * self.mass

    @ti.kernel
    def update_grid(self):
        for i in ti.grouped(self.weight):
            if self.weight[i] > 0:
                v = self.momentum[i] / self.weight[i]
                v.y += DT * GRAVITY
                for d in ti.static(range(3)):
                    if i[d] < 3 and v[d] < 0:
                        v[d] = 0
                    if i[d] > self.nodes - 4 and v[d] > 0:
                        v[d] = 0
                self.velocity[i] = v

    @ti.kernel
    def g2p(self, t: ti.i32):
        for p in range(self.work.particles):
            X = self.x[t, p] * self.nodes
            base = int(X - 0.5)
            f = X - base
            w = [0.5 * (1.5 - f) ** 2, 0.75 - (f - 1) ** 2, 0.5 * (f - 0.5) ** 2]
            v, C = ti.Vector.zero(ti.f32, 3), ti.Matrix.zero(ti.f32, 3, 3)
            for o in ti.static(ti.grouped(ti.ndrange(3, 3, 3))):
                g = w[o.x].x * w[o.y].y * w[o.z].z * self.velocity[base + o]
                v += g
                C += 4 * self.nodes * g.outer_product(o - f)
            self.v[t + 1, p], self.C[t + 1, p] = v, C
            self.x[t + 1, p] = self.x[t, p] + DT * v

    @ti.kernel
    def measure(self):
        for p in range(self.work.particles):
            off = self.x[STEPS, p] - 0.3
            self.loss[None] += off.dot(off)


def program(work: Work) -> Callable[[], dict[str, float]]:
    """Return a function without arguments that computes value and gradient."""
    made = _TaichiSolver(work)
    return lambda: made.run(True)
