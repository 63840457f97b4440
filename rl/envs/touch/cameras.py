"""Camera images of a tactile task: from within the pads' gels, and from the wrist.

Gel images are rendered by `env.sensor`, a `physics.touch.GelSight`, at the center of each pad's
face. Columns go from the palm to the fingertip, rows across the finger, so that one pad sees
the other's image upside down. The wrist camera looks from next to the palm past the part to the
fixture. Its field of view is 75 degrees as in TacSL, where it has colours and no depth.
"""

import jax.numpy as jnp
import numpy as np
from jax import Array

from jaxgpu.geometry import rotations
from jaxgpu.geometry.solids import Boxes, Planes, Solids
from jaxgpu.physics import touch
from jaxgpu.physics.touch import Grasp, GraspState
from jaxgpu.physics.touch.optics import CAMERA_SIZE
from jaxgpu.render import Camera, depth_image, trace

GEL = ("gelsight_mini", 60, 80)  # the sensor, and rows and columns of its images
PIXELS, FAR = 64, 0.3  # width and height of the wrist's image; m, maximum depth
EYE, AIM = (0.07, 0.0, 0.05), (0.0, 0.0, -0.06)  # m from the center between the pads
ANGLE = np.pi * 75 / 180
STEPS = 32  # along a ray
PAD = (0.010, 0.002, 0.013)  # m, half sizes of a pad along the hand's axes
# Frames of the gel images in the hand's: normal of the pad, palm to tip, and across.
FACES = ((1, (0.5, 0.5, 0.5, -0.5)), (-1, (0.5, -0.5, 0.5, 0.5)))


def pixel_points(sensor: touch.GelSight) -> Array:
    """Return the points of the pad's face at the sensor's pixels, [H W, 3] m, row by row."""
    high, wide = sensor.gel.shape
    pixel_centers = lambda n, full: (np.arange(n) + 0.5) / n * full - 0.5 * full
    x, y = np.meshgrid(pixel_centers(wide, CAMERA_SIZE[1]), pixel_centers(high, CAMERA_SIZE[0]))
    flat = np.stack([x.ravel(), y.ravel(), 0 * x.ravel()], 1)
    return sensor.pixel * jnp.asarray(flat, sensor.gel.dtype)


def gel_images(sensor: touch.GelSight, grasp: Grasp, scene: GraspState) -> Array:
    """Return images of the gels of both pads, [H, W, 6] in 0 ... 1, three colors per pad."""
    points = pixel_points(sensor)
    part = jnp.stack(rotations.rotate_inverse(scene.hand_quat, tuple(scene.part - scene.hand)))
    turn = rotations.product(_inverse(scene.hand_quat), scene.part_quat)
    seen = []
    for side, face in FACES:
        frame = jnp.asarray(face, part.dtype)
        arm = part.at[1].add(-side * scene.opening)
        pos = jnp.stack(rotations.rotate_inverse(frame, tuple(arm)))
        quat = rotations.unit(jnp.stack(rotations.product(_inverse(frame), turn)))
        height = touch.heights(grasp.part.shape, points, pos, quat)
        seen.append(sensor.image(height.reshape(sensor.gel.shape)))
    return jnp.concatenate(seen, -1)


def wrist_image(grasp: Grasp, scene: GraspState) -> Array:
    """Return the depth image of the wrist's camera, [64, 64, 1], as a fraction of `FAR`."""
    dtype = scene.hand.dtype
    camera = wrist_camera(scene)
    upright = jnp.zeros(4, dtype).at[0].set(1)
    shapes = (
        (grasp.part.shape, scene.part, scene.part_quat),
        (grasp.fixture.shape, scene.fixture, upright),
    )
    depth = depth_image(camera, _pads_and_table(scene), far=FAR)
    for shape, pos, quat in shapes:
        ahead, _ = trace(camera, shape, pos, quat, far=FAR, steps=STEPS)
        depth = jnp.minimum(depth, ahead)
    return (depth / FAR)[..., None]


def wrist_camera(scene: GraspState) -> Camera:
    """Return the camera at the wrist of a hand."""
    axes = rotations.matrix(scene.hand_quat)
    to_world = lambda v: scene.hand + jnp.stack(rotations.rotate(scene.hand_quat, v))
    return Camera(
        eye=to_world(EYE),
        target=to_world(AIM),
        up=jnp.stack([row[2] for row in axes]),
        angle=ANGLE,
        width=PIXELS,
        height=PIXELS,
    )


def _pads_and_table(scene: GraspState) -> Solids:
    """Return both pads as boxes, and the plane z = 0."""
    dtype = scene.hand.dtype
    centres = []
    for side in (1, -1):
        own = (0 * scene.opening, side * (scene.opening + PAD[1]), 0 * scene.opening)
        centres.append(scene.hand + jnp.stack(rotations.rotate(scene.hand_quat, own)))
    half = jnp.broadcast_to(jnp.asarray(PAD, dtype)[None], (2, 3))
    pads = Boxes(jnp.stack(centres), half, jnp.stack([scene.hand_quat] * 2))
    table = Planes(jnp.array([[0.0, 0.0, 1.0]], dtype), jnp.zeros(1, dtype))
    return Solids(pads, planes=table)


def _inverse(quat: Array) -> Array:
    """Return the inverse of a rotation."""
    return quat * jnp.array([1, -1, -1, -1], quat.dtype)
