"""Particles of a state on disk: PLY for viewers, through trimesh, and NPZ for NumPy."""

from pathlib import Path

import numpy as np

from jaxgpu.physics.continuum.scene import State, positions, velocities


def write(path: str | Path, state: State) -> None:
    """Positions of all filled slots (NPZ: velocities too), with the number of their body.

    Args:
        path: ends in .ply (needs the extra `mesh`; 2-D lies in z = 0) or .npz.
        state: as `step` gives it; on the host only.
    Raises:
        ValueError: another ending.

    >>> import jax.numpy as jnp, tempfile
    >>> from jaxgpu.physics.continuum import Body, Grid, Liquid, Scene, init
    >>> state = init(Scene((Body(jnp.ones((2, 2)), Liquid(), 1e-4),), Grid(0.2, (9, 9))))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write(f"{folder}/drop.npz", state)
    ...     np.load(f"{folder}/drop.npz")["x"].shape
    (2, 2)
    """
    path = Path(path)
    x = np.concatenate([positions(body) for body in state.bodies])
    body = np.repeat(np.arange(len(state.bodies)), [len(positions(b)) for b in state.bodies])
    if path.suffix == ".npz":
        v = np.concatenate([velocities(body) for body in state.bodies])
        np.savez(path, x=x, v=v, body=body, t=np.asarray(state.t))
    elif path.suffix == ".ply":
        import trimesh

        flat = np.zeros((len(x), 3 - x.shape[1]), x.dtype)
        colours = np.array([[70, 120, 200], [230, 215, 190], [210, 110, 60], [90, 150, 90]])
        cloud = trimesh.PointCloud(np.hstack([x, flat]), colours[body % len(colours)])
        path.write_bytes(bytes(cloud.export(file_type="ply")))
    else:
        raise ValueError(f"write: {path.name}; the name must end in .ply or .npz")
