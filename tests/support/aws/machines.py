"""Workers on AWS with what the original makes of them."""

import lzma
from functools import cache
from pathlib import Path
from typing import Final

import orjson

from pergola.api.objects import JsonObject

_FACTS: Final = Path(__file__).parents[2] / "unit/providers/aws/data/machines.jsonl.xz"


@cache
def _lines() -> list[bytes]:
    with lzma.open(_FACTS) as lines:
        return list(lines)


def machine_facts() -> list[JsonObject]:
    """Return all Workers: `case`, `input` and the original's `output`.

    provider-aws v1.73.0 made them, with clients that keep objects in memory and a
    machine-controller-manager with which everything is up at once.
    """
    return [orjson.loads(line) for line in _lines()]


def machine_fact(case: str) -> JsonObject:
    """Return the Worker with a name."""
    name = orjson.dumps(case)
    found: JsonObject
    (found,) = [
        fact for line in _lines() if name in line and (fact := orjson.loads(line))["case"] == case
    ]
    return found
