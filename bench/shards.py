"""Estimates for shards: the memory, requests and events of each of several resource managers.

    python -m bench shards                      # an estimate for 10,000 ManagedResources
    python -m bench shards --run 10000          # so many small ones, on 1 and on 3 real shards

Only the memory of a live object is measured here, both of the shard's own and of another shard's;
the other figures are those of one ManagedResource on the page about performance.
"""

import argparse
import asyncio
import resource as system
from collections.abc import Callable, Sequence
from multiprocessing import get_context
from pathlib import Path
from typing import Final

from bench import shards_run
from bench.tables import Rows, show
from bench.writes import objects
from pergola.api import marks
from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.resource_manager.target.observed import Observed, keeper

COUNTS: Final = (1, 2, 4)
OBJECTS: Final = 10  # of a ManagedResource
_SAMPLE: Final = 2_000  # ManagedResources
_BASE_MB: Final = 62.0
_DESIRED_KB: Final = 0.98  # of an object: manifest, digests and its share of the ManagedResource
_WRITES: Final = OBJECTS + 3  # creates, the finalizer, and two writes of the status
_PER_MOVE: Final = 3 + OBJECTS  # reads and releases it; reads its Secret and objects


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("-n", type=int, default=10_000, help="ManagedResources")
    parser.add_argument("--run", type=int, default=0, help="ManagedResources of a real run")
    parser.add_argument("--shards", type=int, nargs="+", default=[1, 3], help="of a real run")
    parser.add_argument("--objects", type=int, default=2, help="of each ManagedResource of it")
    options = parser.parse_args()
    if options.run:
        found = asyncio.run(shards_run.rows(options.run, options.objects, options.shards))
        show(found, (f"{options.run:,} of {options.objects} objects", *_headings(options.shards)))
        return
    count = options.n
    # Each in a separate process, so that none reuses memory that another released.
    with get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        own, others = pool.map(kilobytes, (True, False), chunksize=1)
    rows: Rows = [("a live object, own / of another shard", f"{own:.2f} / {others:.2f} KB", "", "")]
    rows += [
        _row("ManagedResources of a shard", lambda n: f"{count // n:,}"),
        _row("memory of a shard", lambda n: f"{_memory(count, n, own, others):,.0f} MB"),
        _row("memory of all shards", lambda n: f"{n * _memory(count, n, own, others):,.0f} MB"),
        _row("requests of a shard until all is applied", lambda n: f"{_requests(count, n):,}"),
        _row("requests of the leader for Secrets", lambda _: f"{count:,}"),
        _row("events received by a shard", lambda n: f"{count * OBJECTS + 4 * count // n:,}"),
        _row("ManagedResources moved by one more shard", lambda n: f"{count // (n + 1):,}"),
        _row("requests for that, all shards", lambda n: f"{count // (n + 1) * _PER_MOVE:,}"),
    ]
    show(rows, (f"{count:,} ManagedResources, {OBJECTS} objects each", *_headings(COUNTS)))


def _headings(counts: Sequence[int]) -> list[str]:
    return [f"{count} shard{'s' if count > 1 else ''}" for count in counts]


def kilobytes(is_here: bool) -> float:
    """Return the memory of a live object, from the growth of the resident size."""
    kept: dict[Key, Observed] = {}
    before = _resident()
    for number in range(_SAMPLE):
        for obj in objects(number):
            live = _stored(obj, number)
            gvk = GroupVersionKind.of(live)
            kept[Key.of(live)] = keeper(gvk, lambda _: is_here)(live)
    return (_resident() - before) / len(kept) / 1024


def _stored(obj: JsonObject, number: int) -> JsonObject:
    metadata = {
        **obj["metadata"],
        "uid": f"{number:08x}-0000-4000-8000-{abs(hash(Key.of(obj))) % 16**12:012x}",
        "resourceVersion": str(1_000_000 + number),
        "annotations": {marks.ORIGIN: f"bench/mr-{number}"},
        "labels": {marks.MANAGED_BY: "gardener"},
    }
    return {**obj, "metadata": metadata}


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * system.getpagesize()


def _memory(count: int, shards: int, own: float, others: float) -> float:
    mine = count * OBJECTS / shards
    rest = count * OBJECTS - mine
    return _BASE_MB + (mine * (own + _DESIRED_KB) + rest * others) / 1024


def _requests(count: int, shards: int) -> int:
    repeated = 1 if shards > 1 else 0  # the Secret once more, after the leader's finalizer
    return count // shards * (_WRITES + repeated)


def _row(name: str, cell: Callable[[int], str]) -> tuple[str, ...]:
    return name, *(cell(shards) for shards in COUNTS)


if __name__ == "__main__":
    main()
