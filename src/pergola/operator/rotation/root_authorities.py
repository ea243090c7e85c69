"""The virtual cluster's authority as published to pods in every namespace.

kube-controller-manager writes it into a ConfigMap in each namespace. A rotation is not prepared
before all of them contain the new authority: otherwise, clients that read them would not trust
servers whose certificates it signs next (spec 21 'Beyond').
"""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Final

from pergola.api.kinds import CONFIG_MAP
from pergola.api.objects import JsonObject, map_at
from pergola.api.texts import abridged
from pergola.flow import Graph, Retry
from pergola.garden.components import task_names
from pergola.garden.components.authorities import CLUSTER
from pergola.garden.components.kube_controller_manager import KUBE_CONTROLLER_MANAGER
from pergola.garden.landscape.errors import OperatorError
from pergola.kube.client import Client
from pergola.operator.rotation.current import AUTHORITIES
from pergola.operator.rotation.seeds.tasks import skipped
from pergola.operator.run.run import Run
from pergola.operator.run.waiting import Note, unnoted
from pergola.runtime.caching.cache import Cache
from pergola.runtime.controlling.spans import work_until
from pergola.runtime.retrying import retrying

PUBLISHED: Final = "Waiting until all namespaces publish the new certificate authority"
NAME: Final = "kube-root-ca.crt"

_LIMIT: Final = 600.0
_KEY: Final = "ca.crt"
_NAMED: Final = 5


class NotPublished(OperatorError):
    """Namespaces of the virtual cluster do not publish the new certificate authority yet."""


def add_publication_task(graph: Graph, run: Run) -> None:
    """Add the task that waits for all namespaces."""
    graph.add(
        PUBLISHED,
        partial(wait, run),
        after=[task_names.CONNECTION, KUBE_CONTROLLER_MANAGER.ready],
        skip=skipped(run, AUTHORITIES),
        retry=Retry.every(5),
        timeout=_LIMIT,
    )


async def wait(run: Run) -> None:
    """Wait until all namespaces publish the newest authority.

    Raises:
        NotConnected: The virtual cluster cannot be reached.
    """
    authority = run.current().credentials.current(CLUSTER).data["ca.crt"].decode()
    await published(await run.virtual.client(), authority, run.note)


async def published(client: Client, authority: str, note: Note = unnoted) -> None:
    """Wait until each ConfigMap of this name has an authority.

    An enclosing deadline reports which ones lack it.
    """
    cache = Cache(client, CONFIG_MAP, partial(_has, authority), fields=f"metadata.name={NAME}")
    changed = asyncio.Event()
    cache.subscribe(lambda _: changed.set())

    async def all_have_it() -> None:
        await cache.synced()
        while True:
            changed.clear()
            late = _late(cache)
            if not late:
                return
            failed(NotPublished(f"ConfigMap {NAME} {_problem(late)}"))
            note(f"ConfigMap {NAME}", _problem(late))
            await changed.wait()

    try:
        with retrying() as failed:
            await work_until(all_have_it(), cache.run())
    finally:
        note(f"ConfigMap {NAME}", "")


def _has(authority: str, config_map: JsonObject) -> bool:
    return authority.strip() in str(map_at(config_map, "data").get(_KEY, ""))


def _late(cache: Cache[bool]) -> list[str]:
    """Return the namespaces without the authority."""
    return sorted(key.namespace for key, has_it in cache.items() if not has_it)


def _problem(namespaces: Sequence[str]) -> str:
    return f"lacks the new certificate authority in namespace {abridged(namespaces, _NAMED)}"
