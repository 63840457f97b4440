"""What the processes of one run tell each other: short texts.

They go through the service of `jax.distributed`, beside the devices' own traffic, so a thread may
talk (of checkpoints) while the devices compute. Every process must make the same calls on a topic
in the same order.
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

from .arrays import named, spans

_PATIENCE = 86_400_000  # ms; who waits for a process that has ended is ended by `watch`

_turns: defaultdict[tuple[tuple[int, ...], str], Iterator[int]] = defaultdict(itertools.count)


@dataclass(frozen=True)
class Group:
    """Processes that advance one run together. A process that is alone asks nobody.

    >>> Group().alone, Group((0, 2, 5), number=2).rank
    (True, 1)
    """

    members: tuple[int, ...] = (0,)  # their numbers in the job, rising
    number: int = 0  # of this one

    @property
    def alone(self) -> bool:
        """Whether nothing has to be agreed upon."""
        return len(self.members) == 1

    @property
    def rank(self) -> int:
        """The place of this process among them."""
        return self.members.index(self.number)

    @property
    def first(self) -> bool:
        """Whether this process speaks for all: it shows the progress and writes what is common."""
        return self.rank == 0

    def exchange(self, topic: str, said: str) -> list[str]:
        """What each process says, in their order."""
        if self.alone:
            return [said]
        turn, name = self.turn(topic), f"{self.name}/{topic}"
        # two rooms are enough: a room is used again when all have left it, and entered the other
        room = f"{name}/{turn % 2}/"
        tell(f"{room}{self.rank:06d}", said)
        client().wait_at_barrier(name, _PATIENCE, list(self.members))
        return [text for _, text in sorted(client().key_value_dir_get(room))]

    def turn(self, topic: str) -> int:
        """How often this topic came up before: the same number in every process."""
        return next(_turns[self.members, topic])

    @property
    def name(self) -> str:
        """Where its members leave what they say; short, of however many they are."""
        return f"jaxgpu/{hashlib.sha256(repr(self.members).encode()).hexdigest()[:16]}"

    def decided(self, topic: str, value: Any) -> Any:
        """What the first process says, a value that JSON can hold; alone, the value itself."""
        return value if self.alone else json.loads(self.exchange(topic, json.dumps(value))[0])

    def somewhere(self, topic: str, flag: bool) -> bool:
        """Whether it is so in one of them at least."""
        return flag if self.alone else "1" in self.exchange(topic, str(int(flag)))

    def agree(self, facts: dict[str, Any]) -> None:
        """Refuse processes that do not run the same; `facts` are what must be equal.

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
                        "with the same numbers in every process"
                    )


ALONE = Group()


def joined(tree: Any) -> Group:
    """The processes over which the arrays of a pytree are spread; `ALONE` where it is one.

    Raises:
        ValueError: this process holds no part of them.
        TypeError: an array in several processes that is not on a mesh.

    >>> import jax.numpy as jnp
    >>> joined({"x": jnp.zeros(3)}) == ALONE
    True
    """
    spread = [leaf for leaf in jax.tree.leaves(tree) if spans(leaf)]
    if not spread:
        return ALONE
    places = [device for leaf in spread for device in named(leaf).device_set]
    members, number = sorted({device.process_index for device in places}), jax.process_index()
    if number not in members:
        raise ValueError(
            f"run: process {number} holds no part of a state on the devices of processes "
            f"{', '.join(map(str, members))}; take a mesh of all devices, mesh.devices()"
        )
    return Group(tuple(members), number)


def leads() -> bool:
    """Whether this process writes what is common to its job: process 0, or the only one.

    It starts no backend.

    >>> leads()  # in a program that has not joined others
    True
    """
    return distributed.global_state.process_id == 0


def tell(key: str, text: str) -> None:
    """Leave a text where every process of the job finds it."""
    client().key_value_set(key, text, allow_overwrite=True)


def client() -> Any:
    """The service through which the processes of the job speak."""
    return distributed.global_state.client
