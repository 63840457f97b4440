"""Images and videos, rendered on the device and without a display.

image = picture(Camera(eye, target), x, colour, Look(radius), floor=0.0)    # [H, W, 3] of particles
image = Capsules(start, end, radius, colour, floor, tile).picture(camera)      # of capsules
index, depth = nearest(camera, x, radius)               # the particle in each pixel, and its depth
depth = soft_depth(camera, x, radius, far=3.0, blur=0.01)     # smooth in x: for inverse problems
open("video.gif", "wb").write(gif(images))         # or mp4(images)

Read `camera` first, then `splat` (the visible ball of each pixel), `shading` (light), `ground` (the
floor, with shadows), `sphere_tracing` (rays against shapes) and `particles`, which combines them;
`capsules` and `video` are independent. `casting` finds the first solid along rays, and `sensors`
simulates robot cameras that see these solids. `view` is an interactive 3-D page, `object_views`
makes such a view of a state, a run or a robot, and `palette` is the common style of all figures.
"""

from .camera import Camera
from .capsules import Capsules
from .object_views import show
from .particles import Balls, Scene, picture
from .sensors import CameraImages, NearestBoxes, camera_images, depth_image, nearest_boxes
from .shading import ParticleStyle
from .sphere_tracing import trace
from .splat import nearest_ball, soft_depth
from .video import gif, mp4
from .view import Points, Rods, Surface, View

__all__ = [
    "Balls",
    "Camera",
    "Capsules",
    "ParticleStyle",
    "NearestBoxes",
    "Points",
    "Rods",
    "Scene",
    "CameraImages",
    "Surface",
    "View",
    "depth_image",
    "gif",
    "mp4",
    "nearest_ball",
    "nearest_boxes",
    "picture",
    "show",
    "camera_images",
    "soft_depth",
    "trace",
]
