"""The bill of materials of the package, and the list of licences."""

import json
import uuid
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, metadata
from typing import Any, Final

from pergola import __version__
from tools.release.commands import uv

_NAMESPACE: Final = uuid.UUID("6f1d4c5e-3a5c-5b0e-9d6b-6a0f0f0f7c11")
_CLASSIFIER: Final = "License :: OSI Approved :: "
_LONGEST: Final = 80
"""Some packages put the whole text of their licence where its name belongs."""


def materials(epoch: int) -> dict[str, Any]:
    """Return the bill of materials as CycloneDX: all locked packages, those of extras included."""
    found: dict[str, Any] = json.loads(
        uv(
            *("export", "--frozen", "--no-dev", "--all-extras", "--offline", "--quiet"),
            *("--format", "cyclonedx1.5"),
            epoch=epoch,
        )
    )
    found["metadata"]["component"]["version"] = __version__
    found["metadata"]["timestamp"] = datetime.fromtimestamp(epoch, UTC).isoformat()
    for component in found["components"]:
        if text := licence(component["name"]):
            component["licenses"] = [{"license": {"name": text}}]
    found.pop("serialNumber", None)
    content = json.dumps(found, sort_keys=True)
    return {**found, "serialNumber": f"urn:uuid:{uuid.uuid5(_NAMESPACE, content)}"}


def licence(name: str) -> str:
    """Return the licence that a package declares; empty if it is not installed here."""
    try:
        declared = metadata(name)
    except PackageNotFoundError:
        return ""
    if "License-Expression" in declared:
        return declared["License-Expression"]
    classifiers = declared.get_all("Classifier") or []
    named = [each.removeprefix(_CLASSIFIER) for each in classifiers if each.startswith(_CLASSIFIER)]
    if named:
        return ", ".join(sorted(named))
    [text, *_] = declared.get_all("License") or [""]
    first = text.strip().partition("\n")[0]
    return first if len(first) <= _LONGEST else ""


def licence_list(bill: dict[str, Any]) -> str:
    """Return a line for each package of a bill of materials."""
    rows = [("pergola", __version__, "Apache-2.0")]
    for component in bill["components"]:
        [known] = component.get("licenses", [{"license": {"name": "only for other platforms"}}])
        rows.append((component["name"], component["version"], known["license"]["name"]))
    return "".join(f"{name:<28} {version:<16} {text}\n" for name, version, text in rows)
