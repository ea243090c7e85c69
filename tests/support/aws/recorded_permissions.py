"""The recorded permissions that programs of others needed in our tests."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import orjson

from pergola.api.objects import JsonObject
from tests.support.aws.authorization import Authorization

CLOUD_CONTROLLER: Final = "cloud-controller-manager"
MACHINE_DRIVER: Final = "machine-controller-aws"
_FILE: Final = Path(__file__).parents[2] / "unit/providers/aws/data/controller_permissions.json"
_SHOOT: Final = b"shoot--garden--recorded"
_WRITE: Final = "PERGOLA_WRITE_DOCS"


def recorded_permissions(program: str) -> list[Authorization]:
    """Return the recorded permissions of a program."""
    return [Authorization.of_data(each) for each in _read().get(program, [])]


def check_recorded(program: str, asked: Iterable[Authorization], technical_id: str) -> None:
    """Check that all permissions that a program needed are recorded, or record them if asked to.

    Args:
        technical_id: Of its Shoot; the records have another one.
    """
    recorded = _read()
    found = {_text(each): each for each in recorded.get(program, [])}
    texts = {_text(each.data()).replace(technical_id.encode(), _SHOOT) for each in asked}
    now = {text: orjson.loads(text) for text in texts}
    if os.environ.get(_WRITE):
        found |= now
        recorded[program] = [each for _, each in sorted(found.items())]
        options = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
        _FILE.write_bytes(orjson.dumps(recorded, option=options))
    assert now.keys() - found.keys() == set(), f"{_WRITE}=1 records them"


def _read() -> JsonObject:
    found: JsonObject = orjson.loads(_FILE.read_bytes()) if _FILE.exists() else {}
    return found


def _text(data: JsonObject) -> bytes:
    return orjson.dumps(data)
