"""Short text messages between the processes of one run.

They use the service of `jax.distributed`, apart from the traffic of the devices, so a thread may
send messages (about checkpoints) while the devices compute. Every process must make the same calls
on a topic in the same order.
"""

import hashlib
import itertools
import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
from jax._src import distributed  # the client has no public name; Orbax takes it from here too

from .arrays import named_sharding, spans

_BARRIER_TIMEOUT = 86_400_000  # ms; if a process has ended, `watchdog` ends those that wait for it

_turns: defaultdict[tuple[tuple[int, ...], str], Iterator[int]] = defaultdict(itertools.count)


@dataclass(frozen=True)
class Group:
    """Processes that advance one run together. A single process exchanges no messages.

    >>> Group().alone, Group((0, 2, 5), number=2).rank
    (True, 1)
    """

    members: tuple[int, ...] = (0,)  # process indices in the job, ascending
    number: int = 0  # index of this process

    @property
    def alone(self) -> bool:
        """True if there is a single process."""
        return len(self.members) == 1

    @property
    def rank(self) -> int:
        """Position of this process among the members."""
        return self.members.index(self.number)

    @property
    def first(self) -> bool:
        """True if this process shows the progress and writes the common files."""
        return self.rank == 0

    def exchange(self, topic: str, said: str) -> list[str]:
        """Return the text of each process, in the order of the members."""
        if self.alone:
            return [said]
        turn, name = self.turn(topic), f"{self.name}/{topic}"
        # two rooms suffice: when one is reused, all processes have left it and entered the other
        room = f"{name}/{turn % 2}/"
        publish(f"{room}{self.rank:06d}", said)
        client().wait_at_barrier(name, _BARRIER_TIMEOUT, list(self.members))
        return [text for _, text in sorted(client().key_value_dir_get(room))]

    def turn(self, topic: str) -> int:
        """Return how often this topic was used before; the count is equal in every process."""
        return next(_turns[self.members, topic])

    @property
    def name(self) -> str:
        """Prefix of the keys of its messages, short for any number of members."""
        return f"jaxgpu/{hashlib.sha256(repr(self.members).encode()).hexdigest()[:16]}"

    def broadcast(self, topic: str, value: Any) -> Any:
        """Return the value of the first process, which JSON can hold."""
        return value if self.alone else json.loads(self.exchange(topic, json.dumps(value))[0])

    def any_process(self, topic: str, flag: bool) -> bool:
        """Return True if `flag` is set in at least one process."""
        return flag if self.alone else "1" in self.exchange(topic, str(int(flag)))

    def agree(self, facts: dict[str, Any]) -> None:
        """Raise if the processes do not run the same program: all `facts` must be equal.

        Raises:
            ValueError: the first difference, the same one in every process.
        """
        if self.alone:
            return
        said = [json.loads(text) for text in self.exchange("facts", json.dumps(facts))]
        for number, other in zip(self.members, said):
            for what, value in said[0].items():
                if other.get(what) != value:
                    raise ValueError(
                        f"run: {what} is {str(other.get(what))[:40]} in process {number} and "
                        f"{str(value)[:40]} in process {self.members[0]}; start the same program "
                        "with the same values in every process"
                    )


ALONE = Group()


def sharding_group(tree: Any) -> Group:
    """Return the processes over which a pytree is sharded; `ALONE` if it is one.

    Raises:
        ValueError: this process holds no part of them.
        TypeError: an array that spans several processes is not on a mesh.

    >>> import jax.numpy as jnp
    >>> sharding_group({"x": jnp.zeros(3)}) == ALONE
    True
    """
    spread = [leaf for leaf in jax.tree.leaves(tree) if spans(leaf)]
    if not spread:
        return ALONE
    places = [device for leaf in spread for device in named_sharding(leaf).device_set]
    members, number = sorted({device.process_index for device in places}), jax.process_index()
    if number not in members:
        raise ValueError(
            f"run: process {number} holds no part of a state on the devices of processes "
            f"{', '.join(map(str, members))}; use a mesh of all devices, mesh.make_mesh()"
        )
    return Group(tuple(members), number)


def is_leader() -> bool:
    """Return True if this process writes the common files of its job: process 0, or the only one.

    It does not start a backend.

    >>> is_leader()  # in a program that has not joined others
    True
    """
    return distributed.global_state.process_id == 0


def publish(key: str, text: str) -> None:
    """Publish a text under a key that every process of the job can read."""
    client().key_value_set(key, text, allow_overwrite=True)


def client() -> Any:
    """Return the client of the service that carries messages between the processes."""
    return distributed.global_state.client
