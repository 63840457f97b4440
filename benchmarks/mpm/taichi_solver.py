"""The benchmark's MLS-MPM in Taichi, in its fastest form for one thread.

Loops over particles are serial, so that additions on the grid are not atomic: atomics would cost
more than half of Taichi's time.
"""

from collections.abc import Callable

import numpy as np
import taichi as ti

from benchmarks.mpm.work import DENSITY, DT, GRAVITY, KINDS, STEPS, Work, constants, start

NAME = f"taichi {'.'.join(map(str, ti.__version__))}, serial"

ti.init(arch=ti.cpu, cpu_max_num_threads=1, log_level=ti.ERROR, fast_math=True)


@ti.data_oriented
class _TaichiSolver:
    def __init__(self, work: Work):
        self.work, self.kind, n = work, KINDS[work.material], work.particles
        self.mu, self.lam, self.volume, self.slope, self.dx = constants(work)
        self.bulk, self.mass, self.nodes = work.young, self.volume * DENSITY, work.nodes
        self.x, self.v = (ti.Vector.field(3, ti.f32, n) for _ in range(2))
        self.C, self.F = (ti.Matrix.field(3, 3, ti.f32, n) for _ in range(2))
        self.J = ti.field(ti.f32, n)
        self.momentum = ti.Vector.field(3, ti.f32, (work.nodes,) * 3)
        self.weight = ti.field(ti.f32, (work.nodes,) * 3)

    def run(self) -> dict[str, float]:
        n = self.work.particles
        self.x.from_numpy(start(self.work))
        self.v.from_numpy(np.tile(np.float32([0.5, 0, 0]), (n, 1)))
        self.C.fill(0)
        self.F.from_numpy(np.tile(np.eye(3, dtype=np.float32), (n, 1, 1)))
        self.J.fill(1)
        for _ in range(STEPS):
            self.clear_grid()
            self.p2g()
            self.update_grid()
            self.g2p()
        ti.sync()
        return {"height": self.x.to_numpy()[:, 1].mean(), "speed": self.v.to_numpy()[:, 1].mean()}

    @ti.kernel
    def clear_grid(self):
        for i in ti.grouped(self.weight):
            self.weight[i] = 0
            self.momentum[i] = ti.Vector.zero(ti.f32, 3)

    @ti.func
    def stress(self, p):
        one, tau = ti.Matrix.identity(ti.f32, 3), ti.Matrix.zero(ti.f32, 3, 3)
        if ti.static(self.kind == 0):
            self.J[p] *= 1 + DT * self.C[p].trace()
            tau = one * (self.bulk * (self.J[p] - 1))
        else:
            F = (one + DT * self.C[p]) @ self.F[p]
            if ti.static(self.kind == 1):
                tau = self.mu * (F @ F.transpose()) + one * (
                    self.lam * ti.log(F.determinant()) - self.mu
                )
            else:
                U, S, V = ti.svd(F)
                if ti.static(self.kind == 2):
                    J = S.determinant()
                    tau = 2 * self.mu * (F - U @ V.transpose()) @ F.transpose()
                    tau += one * (self.lam * J * (J - 1))
                else:
                    e = ti.Vector([ti.log(ti.max(S[i, i], 1e-4)) for i in ti.static(range(3))])
                    total = e.sum()
                    dev = e - total / 3
                    size = dev.norm(1e-10)
                    most = -self.slope * (3 * self.lam + 2 * self.mu) / (2 * self.mu) * total
                    if total > 0:
                        e = ti.Vector([0.0, 0.0, 0.0])
                    elif size > most:
                        e = dev * (most / size) + total / 3
                    A, T = ti.Matrix.zero(ti.f32, 3, 3), ti.Matrix.zero(ti.f32, 3, 3)
                    for i in ti.static(range(3)):
                        A[i, i] = ti.exp(e[i])
                        T[i, i] = 2 * self.mu * e[i] + self.lam * e.sum()
                    F, tau = U @ A @ V.transpose(), U @ T @ U.transpose()
            self.F[p] = F
        return tau

    @ti.kernel
    def p2g(self):
        ti.loop_config(serialize=True)
        for p in range(self.work.particles):
            X = self.x[p] * self.nodes
            base = int(X - 0.5)
            f = X - base
            w = [0.5 * (1.5 - f) ** 2, 0.75 - (f - 1) ** 2, 0.5 * (f - 0.5) ** 2]
            A = self.mass * self.C[p] - DT * self.volume * 4 * self.nodes**2 * self.stress(p)
            for o in ti.static(ti.grouped(ti.ndrange(3, 3, 3))):
                weight = w[o.x].x * w[o.y].y * w[o.z].z
                self.momentum[base + o] += weight * (
                    self.mass * self.v[p] + A @ ((o - f) * self.dx)
                )
                self.weight[base + o] += weight * self.mass

    @ti.kernel
    def update_grid(self):
        for i in ti.grouped(self.weight):
            if self.weight[i] > 0:
                self.momentum[i] /= self.weight[i]
            self.momentum[i].y += DT * GRAVITY
            for d in ti.static(range(3)):
                if i[d] < 3 and self.momentum[i][d] < 0:
                    self.momentum[i][d] = 0
                if i[d] > self.nodes - 4 and self.momentum[i][d] > 0:
                    self.momentum[i][d] = 0

    @ti.kernel
    def g2p(self):
        ti.loop_config(serialize=True)
        for p in range(self.work.particles):
            X = self.x[p] * self.nodes
            base = int(X - 0.5)
            f = X - base
            w = [0.5 * (1.5 - f) ** 2, 0.75 - (f - 1) ** 2, 0.5 * (f - 0.5) ** 2]
            v, C = ti.Vector.zero(ti.f32, 3), ti.Matrix.zero(ti.f32, 3, 3)
            for o in ti.static(ti.grouped(ti.ndrange(3, 3, 3))):
                g = w[o.x].x * w[o.y].y * w[o.z].z * self.momentum[base + o]
                v += g
                C += 4 * self.nodes * g.outer_product(o - f)
            self.v[p], self.C[p] = v, C
            self.x[p] += DT * v


def program(work: Work) -> Callable[[], dict[str, float]]:
    """Return a function without arguments that runs the work."""
    return _TaichiSolver(work).run
