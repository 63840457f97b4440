"""Images and videos, rendered on the device and without a display.

image = picture(Camera(eye, target), x, colour, Look(radius), floor=0.0)    # [H, W, 3] of particles
image = Capsules(start, end, radius, colour, floor, tile).picture(camera)      # of capsules
index, depth = nearest(camera, x, radius)               # the particle in each pixel, and its depth
depth = soft_depth(camera, x, radius, far=3.0, blur=0.01)     # smooth in x: for inverse problems
open("film.gif", "wb").write(gif(images))         # or mp4(images)

Read `camera` first, then `splat` (the visible ball of each pixel), `shade` (light), `ground` (the
floor, with shadows), `sphere_tracing` (rays against shapes) and `particles`, which combines them;
`capsules` and `film` are independent. `casting` finds the first solid along rays, and `sensors`
simulates robot cameras that see these solids. `view` is an interactive 3-D page, `shown` makes such
a view of a state, a run or a robot, and `palette` is the common style of all figures.
"""

from .camera import Camera
from .capsules import Capsules
from .film import gif, mp4
from .particles import Balls, Scene, picture
from .sensors import Nearest, Sight, depth_image, nearest_boxes, sight
from .shade import Look
from .shown import show
from .sphere_tracing import trace
from .splat import nearest, soft_depth
from .view import Points, Rods, Surface, View

__all__ = [
    "Balls",
    "Camera",
    "Capsules",
    "Look",
    "Nearest",
    "Points",
    "Rods",
    "Scene",
    "Sight",
    "Surface",
    "View",
    "depth_image",
    "gif",
    "mp4",
    "nearest",
    "nearest_boxes",
    "picture",
    "show",
    "sight",
    "soft_depth",
    "trace",
]
