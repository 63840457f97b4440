"""Camera images of simple solids against independent exact geometry in float64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxgpu.geometry import sdf
from jaxgpu.geometry.solids import Boxes, Planes, Rods, Solids
from jaxgpu.render import Camera, camera_images, depth_image, nearest_boxes, trace

UP = (0.0, 0.0, 1.0)
FAR = 40.0


def random_turns(rng, n, general):
    """Sample angles [n], or quaternions [n, 4] of any length."""
    return rng.normal(size=(n, 4)) if general else rng.uniform(-4, 4, n)


def matrices(turn):
    """Return rotation matrices [n, 3, 3] in float64, by Rodrigues' formula or by the plane's."""
    turn = np.asarray(turn, float)
    if turn.ndim == 1:
        c, s, o = np.cos(turn), np.sin(turn), np.zeros_like(turn)
        return np.stack([[c, -s, o], [s, c, o], [o, o, o + 1]]).transpose(2, 0, 1)
    q = turn / np.linalg.norm(turn, axis=1, keepdims=True)
    w, v = q[:, 0], q[:, 1:]
    K = np.zeros((len(q), 3, 3))
    K[:, 0, 1], K[:, 0, 2], K[:, 1, 2] = -v[:, 2], v[:, 1], -v[:, 0]
    K -= K.transpose(0, 2, 1)
    return np.eye(3) + 2 * w[:, None, None] * K + 2 * K @ K


def scene(seed, n=30, general=False, dtype=np.float32):
    """Place random boxes about a camera at the origin; none of them contains it."""
    rng = np.random.default_rng(seed)
    way = rng.normal(size=(n, 3))
    centre = way / np.linalg.norm(way, axis=1, keepdims=True) * rng.uniform(2.5, 9, (n, 1))
    half = rng.uniform(0.05, 0.9, (n, 3))
    return Boxes(*(jnp.asarray(a, dtype) for a in (centre, half, random_turns(rng, n, general))))


def camera(size=24, target=(1.0, 0.3, -0.2)):
    return Camera((0.0, 0.0, 0.0), target, UP, angle=1.2, width=size + 3, height=size)


def directions(camera):
    """Return unit vectors of all pixels [H W, 3] and their forward components, in float64."""
    eye, target, up = (np.asarray(a, float) for a in (camera.eye, camera.target, camera.up))
    ahead = (target - eye) / np.linalg.norm(target - eye)
    right = np.cross(ahead, up) / np.linalg.norm(np.cross(ahead, up))
    down = np.cross(ahead, right)
    f = camera.height / 2 / np.tan(camera.angle / 2)
    v, u = np.mgrid[: camera.height, : camera.width] + 0.5
    a, b = (u - camera.width / 2) / f, (v - camera.height / 2) / f
    d = a[..., None] * right + b[..., None] * down + ahead
    d = d.reshape(-1, 3)
    size = np.linalg.norm(d, axis=1)
    return d / size[:, None], 1 / size


def face_hits(boxes, d):
    """Return distances [P, N] to boxes, by their six faces in float64; inf for a miss."""
    R, c, h = matrices(boxes.turn), np.asarray(boxes.centre, float), np.asarray(boxes.half, float)
    best = np.full((len(d), len(c)), np.inf)
    for axis in range(3):
        for side in (-1, 1):
            normal = side * R[:, :, axis]
            middle = c + normal * h[:, axis, None]
            with np.errstate(divide="ignore", invalid="ignore"):
                t = np.sum(normal * middle, 1) / (d @ normal.T)
            x = np.einsum("nji,pnj->pni", R, t[..., None] * d[:, None] - middle)
            others = [i for i in range(3) if i != axis]
            on = np.all(np.abs(x[..., others]) <= h[:, others], -1) & (t > 0)
            best = np.where(on & (t < best), t, best)
    return best


@pytest.mark.parametrize("general", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_depth_of_boxes_is_that_of_their_faces(general, dtype):
    with jax.enable_x64(dtype == np.float64):
        look, worst, wrong = camera(), [], 0
        drawn = jax.jit(lambda boxes: depth_image(look, Solids(boxes), far=FAR))
        for seed in range(5):
            boxes = scene(seed, general=general, dtype=dtype)
            d, ahead = directions(look)
            true = np.minimum(face_hits(boxes, d).min(1) * ahead, FAR)
            got = np.asarray(drawn(boxes), float).ravel()
            assert drawn(boxes).dtype == dtype
            hit = (true < FAR) == (got < FAR)
            wrong += np.sum(~hit)
            worst.append(np.abs(got - true)[hit])
        # A float32 ray of 10 m has an error of 1e-6 m; at a slanted surface the slope amplifies it.
        limit = 1e-5 if dtype == np.float32 else 1e-12
        assert np.quantile(np.concatenate(worst), 0.999) < limit
        assert wrong <= (2 if dtype == np.float32 else 0)  # pixels on an edge


def test_the_number_of_a_solid_and_its_normal():
    look, boxes = camera(40), scene(3, 60, general=True)
    seen = camera_images(look, Solids(boxes), far=FAR)
    d, _ = directions(look)
    t = face_hits(boxes, d)
    index = np.where(np.isfinite(t.min(1)), t.argmin(1), -1)
    same = np.asarray(seen.index).ravel() == index
    assert same.mean() > 0.999
    # A face's normal is constant over its pixels: compare it with differences of positions.
    x = np.stack([np.asarray(a) for a in look.unproject(seen.depth)], -1)
    across = np.cross(x[1:, :-1] - x[:-1, :-1], x[:-1, 1:] - x[:-1, :-1])
    across /= np.linalg.norm(across, axis=-1, keepdims=True)
    n, number = np.asarray(seen.normal), np.asarray(seen.index)
    flat = (number[1:, :-1] == number[:-1, :-1]) & (number[:-1, 1:] == number[:-1, :-1])
    flat &= (n[1:, :-1] == n[:-1, :-1]).all(-1) & (n[:-1, 1:] == n[:-1, :-1]).all(-1)
    flat &= number[:-1, :-1] >= 0
    assert flat.sum() > 200
    close = np.abs(np.sum(across * n[:-1, :-1], -1))[flat]
    assert np.quantile(close, 0.05) > 1 - 1e-4  # places are off by 1e-6 of steps of 0.1 m
    assert np.all(np.sum(n.reshape(-1, 3) * d, 1)[index >= 0] <= 1e-6)  # it faces the eye


@pytest.mark.slow
def test_capsules_balls_and_planes_agree_with_marching_along_their_distance():
    look = Camera((4.0, 0.3, 0.5), (0.0, 0.0, 0.0), UP, angle=0.6, width=32, height=28)
    row = lambda *a: jnp.array([a])
    ends = jnp.array([[0.2, -0.4, -0.7], [0.2, -0.4, 0.5]])
    rods = Rods(
        start=jnp.stack([ends[0], jnp.array([0.1, 0.9, 0.2])]),
        end=jnp.stack([ends[1], jnp.array([0.1, 0.9, 0.2])]),
        radius=jnp.array([0.3, 0.35]),
    )
    absent = Boxes(row(0.0, 0.0, 0.0), -jnp.ones((1, 3)), jnp.zeros(1))
    seen = camera_images(look, Solids(absent, rods), far=20.0)
    still = jnp.array([1.0, 0.0, 0.0, 0.0])
    walk = lambda shape, x: jax.jit(lambda: trace(look, shape, x, still, far=20.0)[0])()
    pill, ball = walk(sdf.Capsule(0.6, 0.3), ends.mean(0)), walk(sdf.Ball(0.35), rods.start[1])
    true = np.minimum(np.minimum(pill, ball), 20.0)
    hit = (true < 20) & (np.asarray(seen.depth) < 20)
    # Marching ends within 1e-4 of `far` of the surface, which is more along a slanted ray.
    assert hit.sum() > 60 and np.quantile(np.abs(true - seen.depth)[hit], 0.9) < 1e-3
    assert np.mean((true < 20) != (np.asarray(seen.depth) < 20)) < 0.01  # rays that graze
    assert set(np.unique(seen.index)) == {-1, 1, 2}
    x = np.stack([np.asarray(a) for a in look.unproject(seen.depth)], -1)
    away = x - np.asarray(rods.start[1])
    two = np.asarray(seen.index) == 2
    np.testing.assert_allclose(np.asarray(seen.normal)[two], away[two] / 0.35, atol=2e-5)
    floor = Planes(row(0.0, 0.0, 1.0), jnp.array([-1.0]))
    low = np.asarray(depth_image(look, Solids(absent, planes=floor), far=20.0)).ravel()
    d, ahead = directions(look)
    down = d[:, 2] < -0.05
    np.testing.assert_allclose(low[down], np.minimum(-1.5 / d[down, 2] * ahead[down], 20), 1e-5)
    assert np.all(low[d[:, 2] > 0] == 20)


def test_nothing_is_seen_of_a_box_from_inside_of_it_nor_of_rows_that_are_not_there():
    look = camera(9, target=(1.0, 0.0, 0.0))
    one = jnp.ones((1, 3))
    around = Boxes(0 * one, 2 * one, jnp.zeros(1))
    assert np.all(np.asarray(depth_image(look, Solids(around), far=7.0)) == 7.0)
    behind = jnp.array([[0.0, 0, 0], [5.0, 0, 0], [3.0, 0, 0]])
    half = jnp.array([[2.0, 2, 2], [0.5, 9, 9], [-1.0, -1, -1]])
    seen = camera_images(look, Solids(Boxes(behind, half, jnp.zeros(3))), far=7.0)
    np.testing.assert_allclose(seen.depth, 4.5, rtol=1e-6)
    assert np.all(np.asarray(seen.index) == 1)


def test_rays_along_faces_and_edges_are_no_nan():
    # The middle ray is parallel to four faces, and in the second case lies in the plane of one.
    look = camera(9, target=(1.0, 0.0, 0.0))
    for height, half in ((0.0, 0.5), (0.5, 0.5), (0.5 + 1e-7, 0.5)):
        box = Boxes(jnp.array([[3.0, 0.0, height]]), half * jnp.ones((1, 3)), jnp.zeros(1))
        seen = camera_images(look, Solids(box), far=9.0)
        assert np.all(np.isfinite(seen.depth)) and np.all(np.isfinite(seen.normal))
        pull = jax.grad(lambda box: jnp.sum(depth_image(look, Solids(box), far=9.0)))(box)
        assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(pull))
    on_its_axis = Rods(jnp.array([[2.0, 0, 0]]), jnp.array([[4.0, 0, 0]]), jnp.array([0.25]))
    away = Boxes(jnp.zeros((1, 3)), -jnp.ones((1, 3)), jnp.zeros(1))
    seen = camera_images(camera(9, (1.0, 0.0, 0.0)), Solids(away, on_its_axis), far=9.0)
    assert float(np.min(seen.depth)) == pytest.approx(1.75, abs=0.05)


@pytest.mark.slow
def test_slopes_by_the_poses_of_boxes_and_camera_are_those_of_differences():
    with jax.enable_x64(True):
        boxes = scene(8, 40, general=True, dtype=np.float64)
        rods = Rods(*(jnp.asarray(a) for a in ([[3.0, 1, -1]], [[3.0, 1, 1]], [0.6])))
        eye, target = jnp.zeros(3), jnp.array([1.0, 0.2, 0.0])

        def mean(boxes, rods, eye, target):
            look = Camera(eye, target, UP, angle=1.1, width=7, height=6)
            return depth_image(look, Solids(boxes, rods), far=FAR)

        given = (boxes, rods, eye, target)
        rng = np.random.default_rng(0)
        way = jax.tree.map(lambda a: jnp.asarray(rng.normal(size=a.shape)), given)
        mean_at = lambda h: mean(*jax.tree.map(lambda a, b: a + h * b, given, way))
        drawn = jax.jit(mean_at)
        step = 1e-6  # of 1 m: the error of differences is 1e-12 by curvature, 1e-9 by rounding
        middle = (drawn(step) - drawn(-step)) / (2 * step)
        slope = jax.jit(lambda: jax.jvp(mean_at, (0.0,), (1.0,))[1])()
        smooth = np.abs(middle) < 1e3  # no edge passes the ray within the step
        assert smooth.all() and (np.abs(middle) > 1e-3).sum() > 10
        np.testing.assert_allclose(slope, middle, rtol=1e-5, atol=1e-6)
        back = jax.jit(jax.grad(lambda *a: jnp.sum(mean(*a)), argnums=(0, 1, 2, 3)))(*given)
        along = sum(jnp.vdot(a, b) for a, b in zip(jax.tree.leaves(back), jax.tree.leaves(way)))
        np.testing.assert_allclose(along, jnp.sum(slope), rtol=1e-10)


@pytest.mark.slow
def test_views_of_a_batch_are_those_one_by_one():
    many = [scene(seed, 20) for seed in range(3)]
    stacked = jax.tree.map(lambda *a: jnp.stack(a), *many)
    look = camera(12)
    depth_of = lambda boxes: depth_image(look, Solids(boxes), far=FAR)
    together = jax.jit(jax.vmap(depth_of))(stacked)
    for boxes, image in zip(many, together):
        np.testing.assert_array_equal(image, jax.jit(depth_of)(boxes))
    pull = jax.jit(jax.grad(lambda s: jnp.sum(jax.vmap(depth_of)(s))))(stacked)
    # The pixels of a box move with its centre, so their gradient is zero for hidden boxes.
    index = jax.vmap(lambda boxes: camera_images(look, Solids(boxes), far=FAR).index)
    seen = np.asarray(jax.jit(index)(stacked))
    for k in range(3):
        hidden = np.setdiff1d(np.arange(20), np.unique(seen[k]))
        assert not np.any(pull.centre[k, hidden]) and np.any(pull.centre[k])


def test_accelerators_programs_find_the_same_as_the_processors():
    """Compare the CPU program with the GPU's, whose last launch is not full, and with the TPU's."""
    from jaxgpu.render import casting, sensors

    look = camera(20)

    @jax.jit
    def all_forms(solids):
        eye = sensors.camera_rays(look, solids)
        index = [casting.first_index, casting.cast_blocks_index, casting.cast_all_index]
        far = [casting.first_distance, casting.cast_blocks, casting.cast_all]
        return [f(solids, eye) for f in index], [f(solids, eye) for f in far]

    for general in (False, True):
        index, far = all_forms(Solids(scene(1, 50, general=general)))
        for other, way in zip(index[1:], far[1:]):
            np.testing.assert_array_equal(index[0], other)
            np.testing.assert_allclose(far[0], way, rtol=1e-6)


def test_a_short_list_says_what_it_lost():
    boxes, look = scene(4, 80), camera(24)
    whole = np.asarray(depth_image(look, Solids(boxes), far=FAR))
    short = nearest_boxes(look, boxes, 80, far=FAR)
    assert int(short.lost) == 0
    np.testing.assert_array_equal(depth_image(look, Solids(short.boxes), far=FAR), whole)
    few = nearest_boxes(look, boxes, 5, far=FAR)
    assert int(few.lost) == int((short.index >= 0).sum()) - 5 > 0
    assert np.all(np.asarray(depth_image(look, Solids(few.boxes), far=FAR)) >= whole)


def test_what_is_picked_and_shaded():
    boxes = scene(5, 30)
    seen = camera_images(camera(16), Solids(boxes), far=FAR)
    labels = seen.pixel_values(jnp.arange(100, 130))
    index = np.asarray(seen.index)
    np.testing.assert_array_equal(labels, np.where(index >= 0, 100 + index, -1))
    picture = seen.render(jnp.ones((30, 3)) * 0.5)
    assert picture.shape == (16, 19, 3)
    assert 0 <= float(picture.min()) and float(picture.max()) <= 1


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda b: Boxes(b.centre[:, :2], b.half, b.turn), "Boxes.centre has shape"),
        (lambda b: Boxes(b.centre, b.half.at[0, 0].set(jnp.nan), b.turn), "Boxes.half=nan"),
        (lambda b: Boxes(b.centre, b.half, b.turn[:3]), "all fields must have the same number"),
        (lambda b: Boxes(b.centre[:0], b.half[:0], b.turn[:0]), "half size -1"),
    ],
)
def test_wrong_boxes_are_refused(change, said):
    with pytest.raises(ValueError, match=said):
        depth_image(camera(4), Solids(change(scene(0, 5))))


def test_colours_that_are_not_those_of_the_solids_are_refused():
    box = Boxes(jnp.zeros((2, 3)), jnp.ones((2, 3)), jnp.zeros(2))
    seen = camera_images(Camera((4.0, 0, 0), (0, 0, 0), (0, 0, 1), width=2, height=2), Solids(box))
    with pytest.raises(
        ValueError, match=r"CameraImages.render: colour has shape \[3, 3\]; it must be \[2"
    ):
        seen.render(jnp.ones((3, 3)))
    with pytest.raises(
        ValueError, match=r"CameraImages.pixel_values: values has shape \[1\]; it must be \[2"
    ):
        seen.pixel_values(jnp.zeros(1))
