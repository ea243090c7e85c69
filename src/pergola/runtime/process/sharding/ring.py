"""The labels by which the sharder and the shards of a ring agree which shard owns an object."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

_PREFIX: Final = "alpha.sharding.timebertt.dev/"
RING_LABEL: Final = f"{_PREFIX}controllerring"
"""The label of a shard's Lease; its value is the name of the ring."""


class Assignment(Enum):
    """The owner of an object, as this shard sees it.

    Attributes:
        HERE: this shard.
        DRAINING: this shard, until it has acknowledged that the object moves.
        ELSEWHERE: another shard, or none.
    """

    HERE = "here"
    DRAINING = "draining"
    ELSEWHERE = "elsewhere"


@dataclass(frozen=True, slots=True)
class Share:
    """The objects of a ring that are assigned to one shard.

    Attributes:
        ring: the name of the ControllerRing.
        shard: the name of the shard, which is that of its Lease.
    """

    ring: str
    shard: str

    @property
    def shard_label(self) -> str:
        """The label that names the shard of an object."""
        return f"shard.{_PREFIX}{self.ring}"

    @property
    def drain_label(self) -> str:
        """The label that tells a shard to give up an object; its value has no meaning."""
        return f"drain.{_PREFIX}{self.ring}"

    @property
    def selector(self) -> str:
        """The label selector of the shard's objects."""
        return f"{self.shard_label}={self.shard}"

    def assignment(self, labels: Mapping[str, str]) -> Assignment:
        """Return the assignment of an object with these labels."""
        if labels.get(self.shard_label) != self.shard:
            return Assignment.ELSEWHERE
        return Assignment.DRAINING if self.drain_label in labels else Assignment.HERE
