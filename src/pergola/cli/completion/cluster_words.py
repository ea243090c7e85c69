"""Words of the cluster for completion; none if it does not answer at once."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from pergola.cli.cluster_options import ClusterOptionError, NamespaceOptions

if TYPE_CHECKING:
    from pergola.api.objects import GroupVersionKind
    from pergola.kube.client import Client
    from pergola.kube.discovery import Resource

    _Ask: TypeAlias = Callable[[Client, str], Awaitable[list[str]]]

_SECONDS: Final = 2.0
_MOST: Final = 500  # names of one kind


class Words(NamedTuple):
    """The options before the cursor, and the word at it."""

    options: dict[str, str]
    word: str

    def cluster(self) -> NamespaceOptions:
        """Return the cluster that the options name."""
        kubeconfig = self.options.get("--kubeconfig")
        return NamespaceOptions(
            kubeconfig=Path(kubeconfig).expanduser() if kubeconfig else None,
            context=self.options.get("--context"),
            as_user=self.options.get("--as", ""),
            namespace=self.options.get("--namespace", ""),
            request_timeout=f"{_SECONDS:g}s",
        )


def contexts(given: Words) -> list[str]:
    """Return the contexts of the kubeconfig."""
    from pergola.kube.errors import ConfigurationError
    from pergola.kube.kubeconfig import files_of
    from pergola.kube.kubeconfig_file import read_kubeconfig

    with suppress(ConfigurationError):
        files = files_of(given.cluster().kubeconfig, os.environ)
        names = read_kubeconfig(files).entries["contexts"]
        return [name for name in names if name.startswith(given.word)]
    return []


def namespaces(given: Words) -> list[str]:
    """Return the namespaces of the cluster."""
    from pergola.api.kinds import NAMESPACE

    return _of_cluster(given, NAMESPACE)


def gardens(given: Words) -> list[str]:
    """Return the names of the Gardens."""
    from pergola.api.operator_v1alpha1 import GARDEN

    return _of_cluster(given, GARDEN)


def named(given: Words, kind: str = "") -> list[str]:
    """Return kinds, or objects as `KIND/NAME`.

    Args:
        kind: if given, the only kind, and objects are named without it.
    """
    from pergola.kube.kind_words import kind_called, listable_kinds

    async def ask(client: "Client", namespace: str) -> list[str]:
        if kind:
            return await _names(client, await kind_called(client, kind), namespace, given.word)
        word, slash, name = given.word.partition("/")
        if slash:
            resource = await kind_called(client, word)
            return [f"{word}/{each}" for each in await _names(client, resource, namespace, name)]
        kinds = {f"{each.gvk.kind.lower()}/" for each in await listable_kinds(client)}
        return sorted(each for each in kinds if each.startswith(given.word))

    return _asked(given, ask)


def _of_cluster(given: Words, gvk: "GroupVersionKind") -> list[str]:
    async def ask(client: "Client", _: str) -> list[str]:
        return await _names(client, await client.resource(gvk), "", given.word)

    return _asked(given, ask)


async def _names(client: "Client", resource: "Resource", namespace: str, word: str) -> list[str]:
    from pergola.api.objects import name_of

    where = namespace if resource.namespaced else None
    pages = client.pages(resource.gvk, where, metadata_only=True, page_size=_MOST)
    async for page in pages:
        return sorted(name for name in map(name_of, page.items) if name.startswith(word))
    return []


def _asked(given: Words, ask: "_Ask") -> list[str]:
    """Return the answer of the cluster; nothing if it refuses or takes too long."""
    from pergola.kube.client import Client
    from pergola.kube.errors import KubeError

    async def main() -> list[str]:
        config = given.cluster().config()
        async with asyncio.timeout(_SECONDS), Client.connect(config) as client:
            return await ask(client, given.options.get("--namespace") or config.namespace)

    try:
        return asyncio.run(main())
    except (KubeError, OSError, TimeoutError, ClusterOptionError):
        return []
