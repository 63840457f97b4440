"""Videos of images: GIF through Pillow, MP4 through PyAV."""

import io
from fractions import Fraction
from typing import Any

import numpy as np

from jaxgpu.inputs import ranges
from jaxgpu.inputs.explanations import explain_errors
from jaxgpu.inputs.extras import extra


@explain_errors
def gif(images: Any, seconds: float = 0.05, inks: Any = None) -> bytes:
    """Encode images [T, H, W, 3], in 0 ... 1 or 8-bit, as a GIF that repeats without end.

    Args:
        images: the frames.
        seconds: duration of each frame.
        inks: colours [K, 3] in 0 ... 1, K <= 6, of which 42 shades each are the video's palette;
            by default the palette is made from three frames. It preserves the colours of a scene
            that has few, while a palette made from frames would be spent on the grey of the floor.
    Raises:
        ValueError: images have another shape.
        ModuleNotFoundError: the extra `viz` is not installed.

    >>> gif(np.zeros((2, 4, 4, 3)))[:6]
    b'GIF89a'
    """
    Image = extra("PIL.Image", "viz", "gif")
    images = _to_frames("gif", images, seconds)
    if inks is None:  # one palette for all frames, from the first, a middle and the last one
        sample = np.concatenate([images[0], images[len(images) // 2], images[-1]])
        palette, dither = Image.fromarray(sample).quantize(255, dither=Image.Dither.NONE), None
    else:
        palette, dither = Image.new("P", (1, 1)), Image.Dither.NONE
        palette.putpalette(_shades(inks).ravel().tolist())
    options = {} if dither is None else {"dither": dither}
    frames = [Image.fromarray(i).quantize(palette=palette, **options) for i in images]
    file = io.BytesIO()
    duration = round(1000 * float(seconds))
    frames[0].save(
        file, format="GIF", save_all=True, append_images=frames[1:], duration=duration, loop=0
    )
    return file.getvalue()


def _shades(inks: Any) -> np.ndarray:
    """Return 42 shades of each ink, from black, 8-bit [42 K, 3]."""
    inks = ranges.numbers("gif: inks", inks, ("K", 3), least=0, most=1)
    if not 1 <= len(inks) <= 6:
        raise ValueError(f"gif: inks has {len(inks)} colours; it must have 1 to 6")
    levels = np.linspace(0, 1, 42)[:, None]
    return np.concatenate([np.outer(levels, 255 * ink) for ink in np.asarray(inks)]).astype(
        np.uint8
    )


@explain_errors
def mp4(images: Any, seconds: float = 0.05) -> bytes:
    """Encode images [T, H, W, 3], in 0 ... 1 or 8-bit, as H.264, which browsers play.

    Args:
        images: an odd height or width is cropped by a pixel, as chroma has half the resolution.
        seconds: duration of each image.
    Raises:
        ValueError: images have another shape.
        ModuleNotFoundError: the extra `viz` is not installed.

    >>> film = mp4(np.zeros((4, 16, 16, 3)))
    >>> film[4:8]
    b'ftyp'
    """
    av = extra("av", "viz", "mp4")
    images = _to_frames("mp4", images, seconds)
    height, width = (n // 2 * 2 for n in images.shape[1:3])
    if not height * width:
        raise ValueError(f"mp4: images have shape {list(images.shape)}; H and W must be 2 or more")
    file = io.BytesIO()
    with av.open(file, "w", format="mp4") as container:
        rate = Fraction(1 / seconds).limit_denominator(1000)
        stream = container.add_stream("libx264", rate=rate, options={"crf": "18"})
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        for image in images[:, :height, :width]:
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(image), format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return file.getvalue()


def _to_frames(name: str, images: Any, seconds: float) -> np.ndarray:
    """Check images and return them as 8-bit, [T, H, W, 3]."""
    ranges.numbers(f"{name}: seconds", seconds, (), above=0, unit="s")
    images = np.asarray(ranges.numbers(f"{name}: images", images))
    if images.ndim != 4 or images.shape[-1] != 3 or len(images) == 0:
        raise ValueError(
            f"{name}: images have shape {list(images.shape)}; they must be [T, H, W, 3], T >= 1"
        )
    if images.dtype != np.uint8:
        ranges.numbers(f"{name}: images", images, least=0, most=1)
        images = np.round(255 * images).astype(np.uint8)
    return images
