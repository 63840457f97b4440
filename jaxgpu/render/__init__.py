"""Pictures of matter and tools, drawn on the device and without a display.

image = picture(Camera(eye, target), x, colour, Look(radius), floor=0.0)    # [H, W, 3]
index, depth = nearest(camera, x, radius)         # which particle each pixel shows, how far ahead
depth = soft_depth(camera, x, radius, far=3.0, blur=0.01)     # smooth in x: for inverse problems
open("film.gif", "wb").write(gif(images))         # or mp4(images)
"""

from .camera import Camera
from .film import gif, mp4, picture, points
from .shade import Look
from .splat import nearest, soft_depth
from .trace import trace

__all__ = ["Camera", "Look", "gif", "mp4", "nearest", "picture", "points", "soft_depth", "trace"]
