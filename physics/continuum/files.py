"""Files of a state's particles: PLY through trimesh, VTU through PyEVTK, and NPZ for NumPy."""

from pathlib import Path

import numpy as np

from jaxgpu.inputs.extras import extra

from .particles import State


def write(path: str | Path, state: State) -> None:
    """Write positions, velocities and the body index of all filled slots to a file.

    Args:
        path: ends in .npz, .vtu (for ParaView; needs the extra `files`) or .ply (for viewers, with
            a colour per body instead of velocities; needs the extra `mesh`). In the last two, 2-D
            positions have z = 0.
        state: as returned by `Scene.step`; on the host only.
    Raises:
        ValueError: the path has another ending.
        ModuleNotFoundError: the extra is not installed.

    >>> import jax.numpy as jnp, tempfile
    >>> from jaxgpu.physics.continuum import Body, Grid, Liquid, Scene
    >>> state = Scene((Body(jnp.ones((2, 2)), Liquid(), 1e-4),), Grid(0.2, (9, 9))).init()
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(f"{folder}/drop.npz", state)
    ...     np.load(f"{folder}/drop.npz")["x"].shape
    (2, 2)
    """
    path = Path(path)
    filled = [np.asarray(body.active) for body in state.bodies]
    x = np.concatenate([np.asarray(b.x)[keep] for b, keep in zip(state.bodies, filled)])
    v = np.concatenate([np.asarray(b.v)[keep] for b, keep in zip(state.bodies, filled)])
    body = np.repeat(np.arange(len(filled)), [keep.sum() for keep in filled])
    if path.suffix == ".npz":
        np.savez(path, x=x, v=v, body=body, t=np.asarray(state.t))
        return
    flat = np.zeros((len(x), 3 - x.shape[1]), x.dtype)
    x, v = np.hstack([x, flat]), np.hstack([v, flat])
    if path.suffix == ".ply":
        trimesh = extra("trimesh", "mesh", f"write: {path.name}")
        colours = np.array([[70, 120, 200], [230, 215, 190], [210, 110, 60], [90, 150, 90]])
        cloud = trimesh.PointCloud(x, colours[body % len(colours)])
        path.write_bytes(bytes(cloud.export(file_type="ply")))
    elif path.suffix == ".vtu":
        vtk = extra("pyevtk.hl", "files", f"write: {path.name}")
        data = {"velocity": _contiguous_columns(v), "body": body.astype(np.int32)}
        vtk.pointsToVTK(str(path.with_suffix("")), *_contiguous_columns(x), data=data)
    else:
        raise ValueError(f"write: {path.name}; the name must end in .npz, .ply or .vtu")


def _contiguous_columns(a: np.ndarray) -> tuple[np.ndarray, ...]:
    return tuple(np.ascontiguousarray(column) for column in a.T)
