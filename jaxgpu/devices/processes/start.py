"""Start of a job with `jax.distributed`: processes find each other before any of them computes."""

import os
import socket
import sys
import threading
from typing import Any

import jax

from jaxgpu.inputs import arguments, ranges

from .watchdog import EXIT_CODE

_COUNT = ranges.Range(least=1, whole=True, one=True, none=True)
_NUMBER = ranges.Range(least=0, whole=True, one=True, none=True)
_TIMEOUT = ranges.Range(above=0, one=True)
_HEARTBEAT = 50  # s, timeout of JAX: above `SILENCE` of `watchdog`, below a minute
_GRACE = 60  # s; JAX's own timeout is this much later, and prints a long C++ message


def distributed(
    address: str | None = None,
    count: int | None = None,
    number: int | None = None,
    *,
    wait: float = 300.0,
) -> None:
    """Join the processes of a job; `jax.devices()` and `mesh.make_mesh()` then list all devices.

    Call it once in every process, before anything is computed or placed. Missing arguments are
    taken from the environment variables JAX_COORDINATOR_ADDRESS, JAX_NUM_PROCESSES and
    JAX_PROCESS_ID, and otherwise from the launcher, if JAX knows it: SLURM, Open MPI, a Cloud TPU,
    Kubernetes. Under SLURM and Open MPI each process then uses one GPU of its machine.

    Args:
        address: host and port at which process 0 waits for the others, "10.0.0.1:1234".
        count: number of processes in the job.
        number: index of this process, from 0.
        wait: timeout for the other processes to start, s. Then the process ends with exit code 75.

    Raises:
        ValueError, TypeError: an address without a port or with one in use, a number that is not
            below the count, or no launcher that provides the missing arguments.
        RuntimeError: JAX has computed something already, or the processes have joined already.

    >>> distributed("10.0.0.1:1234", count=2, number=2)
    Traceback (most recent call last):
    ValueError: distributed: number=2; it must be below count=2; the first process is number 0
    """
    given = address, count, number
    address = _get_from_environment(address, "JAX_COORDINATOR_ADDRESS")
    count = _get_from_environment(count, "JAX_NUM_PROCESSES", int)
    number = _get_from_environment(number, "JAX_PROCESS_ID", int)
    _check_arguments(address, count, number)
    ranges.refuse("distributed: wait", wait, _TIMEOUT)
    _check_not_started()
    if number == 0 and address is not None:
        _check_port_free(address)
    # all from the environment: the process owns its devices, and no launcher is queried
    told = None not in (address, count, number) and given == (None, None, None)
    clock = threading.Timer(float(wait), _exit_on_timeout, (float(wait),))
    clock.daemon = True
    clock.start()
    try:
        jax.distributed.initialize(
            address,
            None if count is None else int(count),
            None if number is None else int(number),
            cluster_detection_method="deactivate" if told else None,
            initialization_timeout=int(wait) + _GRACE,
            heartbeat_timeout_seconds=_HEARTBEAT,
        )
    except ValueError as error:
        raise ValueError(
            f"distributed: no launcher gives the addresses of the processes ({error}); give "
            "address=, count= and number="
        ) from None
    finally:
        clock.cancel()


def _get_from_environment(value: Any, name: str, kind: type = str) -> Any:
    """Return the argument, or the value of an environment variable if it is None."""
    said = os.environ.get(name)
    if value is not None or not said:
        return value
    try:
        return kind(said)
    except ValueError:
        raise ValueError(f"distributed: {name}={said!r}; it must be a whole number") from None


def _check_arguments(address: Any, count: Any, number: Any) -> None:
    if address is not None:
        host, _, port = arguments.word("distributed: address", address).rpartition(":")
        if not host or not port.isdecimal():
            raise ValueError(
                f"distributed: address={address!r}; it must be host:port, such as '10.0.0.1:1234'"
            )
    ranges.refuse("distributed: count", count, _COUNT)
    ranges.refuse("distributed: number", number, _NUMBER)
    if count is not None and number is not None and number >= count:
        raise ValueError(
            f"distributed: number={number}; it must be below count={count}; the first process is "
            "number 0"
        )


def _check_not_started() -> None:
    if jax.distributed.is_initialized():
        raise RuntimeError("distributed: the processes are already connected; call it once")
    # JAX raises an error by itself, but with a long message
    from jax._src import xla_bridge

    if xla_bridge.backends_are_initialized():
        raise RuntimeError(
            "distributed: JAX has already initialized its devices; call it first, before any array "
            "is created and before jax.devices()"
        )


def _check_port_free(address: str) -> None:
    """Raise if the port of process 0 is in use: JAX would crash there."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # if a job has just ended
        try:
            probe.bind(("", int(address.rpartition(":")[2])))
        except OSError as error:
            raise ValueError(
                f"distributed: address={address!r}; its port is not free ({error.strerror}); use "
                "another in all processes"
            ) from None


def _exit_on_timeout(wait: float) -> None:
    text = f"jaxgpu: not all processes connected within {wait:g} s; start all with one address"
    print(text, file=sys.stderr, flush=True)
    os._exit(EXIT_CODE)
