"""Values agree with independent implementations; fronts and corners are exact."""

import jax.numpy as jnp
import numpy as np
import pytest
from conformance import check

from jaxgpu.evolution.lattice import das_dennis
from jaxgpu.evolution.problem import evaluate
from jaxgpu.evolution.problems import dtlz, engineering, zdt

ANGULAR = [dtlz.dtlz2, dtlz.dtlz3, dtlz.dtlz4, dtlz.dtlz5, dtlz.dtlz6, dtlz.convex_dtlz2]
SEPARATE = [zdt.zdt1, zdt.zdt2, zdt.zdt3, zdt.zdt4, zdt.zdt6]

# the suite's own program at three points (see `points`)
ENGINEERING = {
    "four_bar_truss": [
        [1880.4311498591114, 0.024388827098799463],
        [2660.1104729139, 0.013728785129805923],
        [2184.5206955347526, 0.028791434984172443],
    ],
    "disc_brake": [
        [1.04446634762372, 6.9689265806075475, 6.4815072013009],
        [4.6776041755600835, 1.8293124663656661, 0.0],
        [3.389602140634379, 2.518119785530118, 0.0],
    ],
    "car_crash": [
        [1673.8411911830976, 8.95024885466999, 0.09388722875006926],
        [1692.2226573848739, 9.669904391696836, 0.12492560871886552],
        [1680.4230286128263, 8.91048475548655, 0.1188563302622568],
    ],
    "rocket_injector": [
        [0.7396300284756648, 0.1373404495552963, 0.23113992442868303],
        [0.27076607943748904, 0.6493126174537766, 0.5514760643503731],
        [0.2677370012958309, 0.7295350182462835, 0.061064234556468575],
    ],
    "car_side_impact": [
        [24.527153557572674, 4.390525928696413, 11.804574903490213, 2.9148330108781995],
        [32.294184426385854, 3.8059703796684845, 12.257407996009476, 0.0],
        [29.397480831488366, 4.041771635243332, 12.482169596962041, 2.9859692133070435],
    ],
}

# pymoo 0.6.2 at the middle row of `points`: objectives and total violation
PYMOO = {
    "zdt1": [0.6884467305709401, 3.324864980568956, 0.0],
    "zdt2": [0.6884467305709401, 5.129910015893494, 0.0],
    "zdt3": [0.6884467305709401, 3.0804389761788977, 0.0],
    "zdt4": [0.8158535541215322, 174.959933233912, 0.0],
    "zdt6": [0.9999561044662016, 8.194016414993062, 0.0],
    "dtlz1": [
        0.6999972334807091,
        0.11641720786855354,
        297.3082489232369,
        67.28976899097424,
        25.372872520086194,
        0.0,
    ],
    "dtlz2": [
        0.10962049531410933,
        0.12491687454006119,
        0.7613532238822958,
        0.2206467316325779,
        1.7911806173025007,
        0.0,
    ],
    "dtlz3": [
        49.18030842336778,
        56.04289963806266,
        341.5746869448535,
        98.99129066333947,
        803.598040206602,
        0.0,
    ],
    "dtlz4": [
        1.965780403308685,
        7.020865364077308e-27,
        1.2581649168253397e-06,
        9.033581403604911e-76,
        6.330495936265179e-14,
        0.0,
    ],
    "dtlz5": [
        0.230650512366618,
        0.24590389188386702,
        0.6096987675471505,
        0.412993486857531,
        1.7911806173025007,
        0.0,
    ],
    "dtlz6": [
        0.7016992710434472,
        0.7892825367325605,
        3.7947187928731685,
        1.333344548234907,
        9.196761968894835,
        0.0,
    ],
    "dtlz7": [
        0.6153851114812539,
        0.38367755426188344,
        0.997209935789211,
        0.9808353387762301,
        31.425510717902355,
        0.0,
    ],
    "c1_dtlz1": [126.14255374070672, 105.89709808006499, 86.04224771248946, 606.4830498290258],
    "c2_dtlz2": [0.3886302995493202, 0.02052166049679976, 1.7083060794808123, 0.49315215050681915],
    "c3_dtlz4": [
        1.752074287656809,
        1.1348843041026653e-147,
        5.731086059834396e-07,
        0.23255892263264277,
    ],
    "convex_dtlz2": [0.022811121060695754, 1.7735767791363445e-07, 2.918309661191103, 0.0],
    "inverted_dtlz1": [191.93934579255443, 212.18480145319614, 232.0396518207717, 0.0],
}


def points(problem, count=3):
    lower, upper = np.asarray(problem.box.lower, float), np.asarray(problem.box.upper, float)
    return lower + np.random.default_rng(0).random((count, len(lower))) * (upper - lower)


@pytest.mark.parametrize("name", ENGINEERING)
def test_engineering_problems_match_the_suite(x64, name):
    problem = getattr(engineering, name)()
    got, _ = evaluate(problem, jnp.asarray(points(problem)))
    np.testing.assert_allclose(got, ENGINEERING[name], rtol=1e-12)


@pytest.mark.parametrize("name", PYMOO)
def test_test_problems_match_pymoo(x64, name):
    make = getattr(zdt if name.startswith("zdt") else dtlz, name)
    special = name not in {f"dtlz{i}" for i in range(1, 8)}
    problem = make() if name.startswith("zdt") else make(3 if special else 5)
    f, violation = evaluate(problem, jnp.asarray(points(problem)))
    want = np.array(PYMOO[name])
    np.testing.assert_allclose(f[1], want[:-1], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(violation[1], want[-1], rtol=1e-12)


@pytest.mark.parametrize("make", ANGULAR)
def test_no_corner_of_the_box_has_a_negative_objective_in_float32(make):
    problem = make(3)
    corners = np.stack(np.meshgrid([0.0, 1.0], [0.0, 1.0], indexing="ij"), -1).reshape(-1, 2)
    x = np.concatenate([corners, np.full((4, len(problem.box.lower) - 2), 0.9)], axis=1)
    f = np.asarray(evaluate(problem, jnp.float32(x))[0])
    assert f.min() >= 0
    # where g > 0 the point is beyond the front: no objective gains from that
    assert (f[0] >= 0).all() and f[0].max() > 1


@pytest.mark.parametrize("m", [2, 7])
def test_fronts_are_where_they_should_be(x64, m):
    rng = np.random.default_rng(m)

    def norm(f):
        return np.sqrt((f**2).sum(1))

    for make, size in (
        (dtlz.dtlz1, lambda f: f.sum(1) / 0.5),
        (dtlz.dtlz2, norm),
        (dtlz.dtlz3, norm),
        (dtlz.dtlz4, norm),
    ):
        problem = make(m)
        x = np.full((20, len(problem.box.lower)), 0.5)
        x[:, : m - 1] = rng.random((20, m - 1))
        f = np.asarray(evaluate(problem, jnp.asarray(x))[0])
        np.testing.assert_allclose(size(f), 1, rtol=1e-13)


@pytest.mark.slow
def test_conforms():
    for problem in (dtlz.c2_dtlz2(3), zdt.zdt4()):
        x = jnp.float32(points(problem, 4))
        check(lambda x, problem=problem: evaluate(problem, x), x, differentiable=(0,))


def test_failed_evaluations_are_infinitely_bad():
    f, violation = evaluate(zdt.zdt1(3), jnp.array([[0.1, 0.2, jnp.nan], [0.1, 0.2, 0.3]]))
    assert np.isinf(f[0]).all() and np.isinf(violation[0])
    assert np.isfinite(f[1]).all() and violation[1] == 0


def test_wrong_sizes_are_named():
    with pytest.raises(ValueError, match="1 objectives, 6 variables"):
        dtlz.dtlz2(1, 6)
    with pytest.raises(ValueError, match="at least|>= 1 division"):
        das_dennis(3)
