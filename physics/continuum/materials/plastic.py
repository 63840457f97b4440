"""Plastic solids: metals (von Mises), sand (Drucker-Prager) and snow.

All store the elastic part F_e of the deformation. A trial F_e is returned to the yield surface in
principal stretches. In 2-D strain is plane but flow is not: the elastic stretch out of the plane is
stored too, so that a 2-D body yields as a 3-D one does.

Von Mises and Drucker-Prager use the Hencky energy, tau = 2 mu e + lambda tr(e) with e = ln s:
Klar, Gast, Pradhana, Fu, Schroeder, Jiang & Teran (2016), doi:10.1145/2897824.2925906, section 4
and supplement. The volume correction of Drucker-Prager is by Tampubolon et al. (2017),
doi:10.1145/3072959.3073651, section 4.3. Its friction at a shear rate is the mu(I) law of Jop,
Forterre & Pouliquen (2006), doi:10.1038/nature04801, solved within a step after Dunatunga & Kamrin
(2015), doi:10.1017/jfm.2015.383, section 4. Snow is by Stomakhin, Schroeder, Chai, Teran & Selle
(2013), doi:10.1145/2461912.2461948, sections 4 and 5.
"""

import jax.numpy as jnp
from jax import Array

from jaxgpu.geometry.vectors import Mat, Vec, dot, identity
from jaxgpu.inputs.fields import number, pytree, static

from .elastic import deform, lame, p_wave_speed
from .spectral import spectral

_MIN_STRETCH = 1e-3  # minimum stretch in a logarithm, so that inverted particles recover


@pytree
class PlasticState:
    """Internal variables of a plastic solid."""

    F: Mat  # D x D arrays [C, P] elastic deformation gradient
    out_of_plane: Vec  # 3 - D arrays [C, P] elastic stretch out of the plane
    history: Array  # [C, P] history variable of the material; see its docstring


@pytree
class VonMises:
    """Metal-like solid: elastic up to deviatoric stress sqrt(2/3) (yield + hardening * strain).

    `history` is the plastic strain, the accumulated sqrt(2/3) |de_p|.
    """

    young: Array | float = number(default=1e5, above=0, unit="Pa", one=True)  # [] E
    poisson: Array | float = number(default=0.3, above=-1, below=0.5, one=True)  # []
    yield_stress: Array | float = number(
        default=1e3, least=0, unit="Pa", one=True
    )  # [] uniaxial tension
    hardening: Array | float = number(default=0.0, least=0, unit="Pa", one=True)  # []

    def rest(self, like: Array, d: int) -> PlasticState:
        """Return F_e = I and no plastic strain."""
        return _rest_state(like, d, 0)

    def stress(self, internal: PlasticState, gradient: Mat, dt) -> tuple[PlasticState, Mat]:
        """Return state and Kirchhoff stress [Pa] after a step with this velocity gradient [1/s]."""
        parameters = (*lame(self.young, self.poisson), self.yield_stress, self.hardening)
        return _return_map(_von_mises, internal, gradient, dt, parameters)

    def sound_speed(self, density) -> Array | float:
        """Return the speed of pressure waves, m/s."""
        return p_wave_speed(self.young, self.poisson, density)

    def kinematic_viscosity(self, density) -> Array | float:
        """Return zero: there is no viscosity."""
        return 0.0


@pytree
class DruckerPrager:
    """Dry sand: shear stress limited in proportion to pressure, and no tension.

    The cone meets Mohr-Coulomb's pyramid in triaxial compression, as is usual in 3-D. If `plane` is
    set it does so in plane strain at constant volume, which is the choice for 2-D: there the first
    cone is far too strong (its 30 degrees act like 44). In simple shear the ratio of shear stress
    to pressure is then sin phi, so phi = arcsin(tan(angle of repose)). `history` is the volume, as
    ln J, that was gained while the sand was separated; it is given back before pressure builds up.

    With `grain`, friction grows with the shear rate r at the pressure p, as the ratio

        mu(I) = mu(0) + friction_rise / (inertial_number / I + 1),  I = r d / sqrt(p / rho_s)

    of |dev tau| / sqrt(2) to p, whose mu(0) is the cone's; the defaults are those of glass beads.
    """

    young: Array | float = number(default=1e6, above=0, unit="Pa", one=True)  # [] E
    poisson: Array | float = number(default=0.3, above=-1, below=0.5, one=True)  # []
    # phi
    friction_angle: Array | float = number(
        # []
        default=0.5236,
        least=0,
        below=1.5708,
        unit="rad",
        one=True,
    )
    plane: bool = static(default=False)  # fit the cone to plane strain
    # [] diameter d of a grain; None for friction that does not depend on the rate
    grain: Array | float | None = number(default=None, above=0, unit="m", one=True, none=True)  # []
    grain_density: Array | float = number(
        default=2500.0, above=0, unit="kg/m^3", one=True
    )  # [] rho_s
    # mu at the highest rates minus mu(0); at I_0 half of the rise is reached
    friction_rise: Array | float = number(default=0.26, least=0, one=True)  # []
    inertial_number: Array | float = number(default=0.279, above=0, one=True)  # [] I_0

    def rest(self, like: Array, d: int) -> PlasticState:
        """Return F_e = I and no gained volume."""
        return _rest_state(like, d, 0)

    def stress(self, internal: PlasticState, gradient: Mat, dt) -> tuple[PlasticState, Mat]:
        """Return state and Kirchhoff stress [Pa] after a step with this velocity gradient [1/s]."""
        sine = jnp.sin(jnp.asarray(self.friction_angle))
        # |dev tau| <= -slope tr tau
        slope = 2**0.5 / 3 * sine if self.plane else (2 / 3) ** 0.5 * 2 * sine / (3 - sine)
        parameters = (*lame(self.young, self.poisson), slope)
        if self.grain is not None:
            # I_0 / I = pause sqrt(p) / |plastic strain| of the step
            pause = self.inertial_number * dt / (self.grain * (2 * self.grain_density) ** 0.5)
            parameters = (*parameters, self.friction_rise, pause)
        return _return_map(_drucker_prager, internal, gradient, dt, parameters)

    def sound_speed(self, density) -> Array | float:
        """Return the speed of pressure waves, m/s."""
        return p_wave_speed(self.young, self.poisson, density)

    def kinematic_viscosity(self, density) -> Array | float:
        """Return zero: there is no viscosity."""
        return 0.0


@pytree
class Snow:
    """Fixed corotated solid with limited stretches that hardens where it is compacted.

    `history` is the plastic volume ratio J_p; both moduli grow as exp(hardening (1 - J_p)).
    """

    young: Array | float = number(default=1.4e5, above=0, unit="Pa", one=True)  # [] E
    poisson: Array | float = number(default=0.2, above=-1, below=0.5, one=True)  # []
    # stretches remain between 1 - theta_c and 1 + theta_s
    compression: Array | float = number(default=2.5e-2, least=0, below=1, one=True)  # [] theta_c
    stretch: Array | float = number(default=7.5e-3, least=0, one=True)  # [] theta_s
    hardening: Array | float = number(default=10.0, least=0, one=True)  # [] xi

    def rest(self, like: Array, d: int) -> PlasticState:
        """Return F_e = I and J_p = 1."""
        return _rest_state(like, d, 1)

    def stress(self, internal: PlasticState, gradient: Mat, dt) -> tuple[PlasticState, Mat]:
        """Return state and Kirchhoff stress [Pa] after a step with this velocity gradient [1/s]."""
        parameters = (
            *lame(self.young, self.poisson),
            self.compression,
            self.stretch,
            self.hardening,
        )
        return _return_map(_snow, internal, gradient, dt, parameters)

    def sound_speed(self, density) -> Array | float:
        """Return the speed of pressure waves in snow compacted by a tenth, m/s."""
        return p_wave_speed(self.young * jnp.exp(0.1 * self.hardening), self.poisson, density)

    def kinematic_viscosity(self, density) -> Array | float:
        """Return zero: there is no viscosity."""
        return 0.0


def _rest_state(like: Array, d: int, history: int) -> PlasticState:
    one = jnp.ones_like(like)
    return PlasticState(F=identity(like, d), out_of_plane=(one,) * (3 - d), history=history * one)


def _return_map(
    law, internal: PlasticState, gradient: Mat, dt, parameters
) -> tuple[PlasticState, Mat]:
    """Return the state after a trial step and the return map of `law`, and Kirchhoff stress."""
    trial = deform(internal.F, gradient, dt)
    f, tau, (out, history) = spectral(
        law, trial, (internal.out_of_plane, internal.history, parameters)
    )
    return PlasticState(F=f, out_of_plane=out, history=history), tau


def _log_stretches(s: Vec, out: Vec) -> Vec:
    """Return all three log stretches, bounded below so that they are finite."""
    return tuple(jnp.log(jnp.maximum(x, _MIN_STRETCH)) for x in (*s, *out))


def _invariants(e: Vec) -> tuple[Array, Array]:
    """Return the trace, and the norm of the deviator with zero derivative at zero."""
    total = e[0] + e[1] + e[2]
    dev = tuple(x - total / 3 for x in e)
    square = dot(dev, dev)
    sheared = square > 0
    return total, jnp.where(sheared, jnp.sqrt(jnp.where(sheared, square, 1)), 0)


def _hencky_result(e: Vec, total: Array, d: int, mu, lam, history):
    """Return stretches, stress and internal variables for elastic log strains e with this trace."""
    stretches = tuple(jnp.exp(x) for x in e)
    tau = tuple(2 * mu * x + lam * total for x in e[:d])
    return stretches[:d], tau, (stretches[d:], history)


def _von_mises(s: Vec, at: Vec, state):
    out, strain, (mu, lam, yielding, hardening) = state
    total, size = _invariants(_log_stretches(at, out))
    root = (2 / 3) ** 0.5
    excess = 2 * mu * size - root * (yielding + hardening * strain)
    flow = jnp.maximum(excess, 0) / (2 * mu + 2 / 3 * hardening)  # |plastic strain| of the step
    keep = 1 - flow / jnp.where(size > 0, size, 1)
    e = tuple(keep * (x - total / 3) + total / 3 for x in _log_stretches(s, out))
    return _hencky_result(e, total, len(s), mu, lam, strain + root * flow)


def _drucker_prager(s: Vec, at: Vec, state):
    out, gained, (mu, lam, slope, *rate) = state
    e, e_at = (tuple(x + gained / 3 for x in _log_stretches(a, out)) for a in (s, at))
    total, size = _invariants(e_at)
    apart = total >= 0
    # maximum |dev e| that the cone allows at this pressure
    most = -slope * (3 * lam + 2 * mu) / (2 * mu) * total
    if rate:
        pressure = jnp.where(apart, 1, -(lam + 2 / 3 * mu) * total)
        most = _friction_at_rate(jnp.maximum(size, most), most, pressure, mu, rate)
    keep = jnp.where(size > most, most / jnp.where(size > 0, size, 1), 1)
    e = tuple(jnp.where(apart, 0, keep * (x - total / 3) + total / 3) for x in e)
    left = jnp.where(apart, 0, total)
    return _hencky_result(e, left, len(s), mu, lam, jnp.where(apart, total, 0))


def _friction_at_rate(size, most, pressure, mu, rate):
    """Return |dev e| <= size as allowed by friction at the step's rate of plastic strain.

    It is x = most + rise (size - x) / (size - x + lag): the smaller root of a quadratic.
    """
    rise, lag = rate[0] * pressure / (2**0.5 * mu), rate[1] * jnp.sqrt(pressure)
    fast = most + rise
    root = jnp.sqrt((size - fast + lag) ** 2 + 4 * lag * rise)
    return 2 * (fast * size + most * lag) / (fast + size + lag + root)


def _snow(s: Vec, at: Vec, state):
    out, packed, (mu, lam, compression, stretch, hardening) = state
    limit_stretches = lambda a: tuple(jnp.clip(x, 1 - compression, 1 + stretch) for x in (*a, *out))
    volume = lambda a: a[0] * a[1] * a[2]
    kept, j = limit_stretches(s), volume(limit_stretches(at))
    packed = packed * (volume((*at, *out)) / j)
    harder = jnp.exp(hardening * (1 - packed))
    tau = tuple(harder * (2 * mu * (x - 1) * x + lam * (j - 1) * j) for x in kept)  # corotated
    return kept[: len(s)], tau[: len(s)], (kept[len(s) :], packed)
