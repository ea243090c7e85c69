"""The names of MachineClasses never change: another name replaces every node."""

import os
from pathlib import Path
from typing import Final

import orjson

from conformance.subjects.aws_machines import rendered
from pergola import __version__
from pergola.api.objects import JsonObject, name_of
from pergola.api.schema.read import Malformed
from pergola.extension_api.errors import ExtensionError
from tests.support.aws.machines import machine_facts

NAMES: Final = Path(__file__).parent / "data" / "class_names.json"
"""By release, then by Worker: the names of its MachineClasses. Never change those of a release."""
WRITE: Final = "PERGOLA_WRITE_DOCS"


def test_an_upgrade_of_pergola_replaces_no_nodes() -> None:
    recorded: JsonObject = orjson.loads(NAMES.read_bytes()) if NAMES.exists() else {}
    found = {fact["case"]: _names(fact["input"]) for fact in machine_facts()}
    if os.environ.get(WRITE):
        # A release that has its names keeps them; a new one adds its own.
        names = {__version__: found, **recorded}
        NAMES.write_bytes(orjson.dumps(names, option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS))
        recorded = names

    assert __version__ in recorded, f"{WRITE}=1 records the names of this release"
    for release, names in recorded.items():
        assert {case: found.get(case) for case in names} == names, release


def _names(worker: JsonObject) -> list[str]:
    try:
        return [name_of(each) for each in rendered(worker)["machineClasses"]]
    except (ExtensionError, Malformed):
        return []
