"""A description of clusters in which something failed: a folder of plain text for each.

conditions.txt  operations, errors and conditions of all objects that report them
events.txt      events, the oldest first
logs/           of the control plane and of the processes of pods
"""

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from pergola.api.kinds import EVENT
from pergola.api.objects import JsonObject, Key, map_at, maps_at
from pergola.kube.client import Client
from pergola.kube.errors import ApiError, KubeError
from pergola.kube.kind_words import listable_kinds
from pergola.kube.kubeconfig import load

_OPERATION: Final = ("type", "state", "progress", "description")


class Evidence:
    """The clusters to describe, and where their logs are."""

    def __init__(self) -> None:
        self._clusters: dict[str, tuple[Path, tuple[Path, ...]]] = {}

    def add(self, name: str, kubeconfig: Path, *logs: Path) -> None:
        """Add a cluster.

        Args:
            logs: folders in which files `*.log` are.
        """
        self._clusters[name] = kubeconfig, logs

    async def write(self, folder: Path) -> None:
        """Describe all clusters, in place of an earlier description."""
        await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)
        for name, (kubeconfig, logs) in self._clusters.items():
            own = folder / name
            own.mkdir(parents=True)
            async with Client.connect(load(kubeconfig)) as client:
                await _write(own / "conditions.txt", _conditions(client))
                await _write(own / "events.txt", _events(client))
            for source in logs:
                await asyncio.to_thread(_copy_logs, source, own / "logs")


async def _write(file: Path, lines: AsyncIterator[str]) -> None:
    with await asyncio.to_thread(file.open, "w") as text:
        try:
            async for line in lines:
                text.write(f"{line}\n")
        except KubeError as error:
            text.write(f"The cluster cannot be read: {error}\n")


async def _conditions(client: Client) -> AsyncIterator[str]:
    for resource in await listable_kinds(client):
        try:
            objects = await client.list(resource.gvk)
        except ApiError as error:  # such as that of a conversion webhook
            yield f"{resource.gvk.kind} cannot be listed: {error}"
            continue
        for obj in objects:
            reported = [*_reported(map_at(obj, "status"))]
            if reported:
                yield f"{resource.gvk.kind} {Key.of(obj)}"
                for line in reported:
                    yield f"  {line}"


def _reported(status: JsonObject) -> Iterator[str]:
    operation = map_at(status, "lastOperation")
    if operation:
        kind, state, progress, text = (operation.get(name, "") for name in _OPERATION)
        yield f"{kind} {state} {progress} %: {text}"
    errors = [*maps_at(status, "lastErrors"), *filter(None, [map_at(status, "lastError")])]
    for error in errors:
        yield f"error: {error.get('description')}"
    for each in maps_at(status, "conditions"):
        text = " ".join(str(each.get(field) or "") for field in ("reason", "message"))
        yield f"{each.get('type')}={each.get('status')} {text}".rstrip()


async def _events(client: Client) -> AsyncIterator[str]:
    for event in sorted(await client.list(EVENT), key=_last_seen):
        about = map_at(event, "regarding")
        key = Key(str(about.get("namespace") or ""), str(about.get("name")))
        what = f"{about.get('kind')} {key} {event.get('reason')}: {event.get('note')}"
        yield f"{_last_seen(event)} {what}"


def _last_seen(event: JsonObject) -> str:
    repeated = map_at(event, "series").get("lastObservedTime")
    return str(repeated or event.get("eventTime") or event.get("deprecatedLastTimestamp") or "")


def _copy_logs(source: Path, target: Path) -> None:
    for path in source.rglob("*.log"):
        copy = target / path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileNotFoundError):  # its process ended in the meantime
            shutil.copy(path, copy)
