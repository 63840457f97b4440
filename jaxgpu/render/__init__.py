"""Pictures and films, drawn on the device and without a display.

image = picture(Camera(eye, target), x, colour, Look(radius), floor=0.0)    # [H, W, 3] of particles
image = Capsules(start, end, radius, colour, floor, tile).picture(camera)      # of capsules
index, depth = nearest(camera, x, radius)         # which particle each pixel shows, how far ahead
depth = soft_depth(camera, x, radius, far=3.0, blur=0.01)     # smooth in x: for inverse problems
open("film.gif", "wb").write(gif(images))         # or mp4(images)

Read `camera` first, then `splat` (which ball a pixel shows), `shade` (light), `ground` (the floor,
with shadows), `sphere_tracing` (rays against shapes) and `particles`, which puts these together;
`capsules` stands alone, and so does `film`. `casting` finds the first solid along rays, and
`sensors` has what a robot's camera sees of them. `view` is a page to be turned by hand, `shown`
what such a page shows of a state, a run or a robot, and `palette` the one style of all figures.
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
