"""Physical units against constants of the literature."""

import numpy as np
import pytest

from jaxgpu.physics.nbody import units


def test_scales_are_those_of_the_literature():
    """Check V = 0.06557 sqrt(M / R) km/s and T = 14.94 sqrt(R^3 / M) Myr (Aarseth 2003, eq. 7.4).

    The product of the two is a parsec to 0.2 % only: Aarseth's constants are older.
    """
    scale = units.Scale(mass=5000.0, length=1.3)
    assert abs(scale.velocity / (0.06557 * np.sqrt(5000 / 1.3)) - 1) < 5e-4
    assert abs(scale.time / (14.94 * np.sqrt(1.3**3 / 5000)) - 1) < 2.5e-3
    # One km/s for one Myr in pc, from the IAU parsec and Julian years.
    np.testing.assert_allclose(scale.velocity * scale.time * 1.022712165045695, 1.3, rtol=1e-12)
    with pytest.raises(ValueError, match="Scale: mass=-1; it must be .* above 0, in solar"):
        units.Scale(mass=-1, length=1.0)
