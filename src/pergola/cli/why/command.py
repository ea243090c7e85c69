"""`pergola why`: who requires an object, what was decided about it, and what it waits for."""

import asyncio
import logging
import sys
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, NamedTuple

from cyclopts import Parameter

from pergola.cli.cluster_options import ClusterOptions, ScopeOptions
from pergola.cli.output import ShowOutput, object_name

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from pergola.api.objects import JsonObject, Key
    from pergola.kube.client import Client
    from pergola.kube.discovery import Resource
    from pergola.why import Answer

_PARTS_OF_GARDENS: Final = ("component", "task")
_DEFAULT: Final = ScopeOptions()


class WhyError(Exception):
    """The arguments do not name an object; the text says how to write one."""


def why(
    *target: str,
    file: Annotated[Path | None, Parameter(alias="-f")] = None,
    output: ShowOutput = "text",
    cluster: ScopeOptions = _DEFAULT,
    source_kubeconfig: Path | None = None,
    target_kubeconfig: Path | None = None,
) -> None:
    """Explain why an object is as it is; without an object, list what needs attention.

    Explains who wants the object, what was decided, and what it waits for. Decides with the
    functions of the controllers and webhooks, from the current state of the cluster. Only reads,
    with your rights, and never prints the content of a Secret.

    Without an object, prints what the dashboard lists under "Needs attention", in all namespaces
    unless -n names one, and says what was checked. Exits with 1 if anything needs attention.

    Parameters
    ----------
    target
        KIND/NAME or KIND NAME, with the kind as in kubectl: `deploy/web`, `networks demo`. For a
        part of a Garden, `component/NAME` or `task/NAME`.
    file
        Manifest with one object, or `-` for standard input. The object need not be in the cluster.
    source_kubeconfig
        Kubeconfig of the cluster with the ManagedResource of the object, if that is another one.
    target_kubeconfig
        Kubeconfig of the cluster with the objects of a ManagedResource, if that is another one.
    """
    if not target and file is None:
        from pergola.cli.why.attention import list_attention

        list_attention(cluster, output)
        return
    _explain(target, file, output, cluster, _Others(source_kubeconfig, target_kubeconfig))


def _explain(
    target: tuple[str, ...],
    file: Path | None,
    output: str,
    cluster: ScopeOptions,
    others: "_Others",
) -> None:
    from pergola.cli.answers import print_answer

    given = _manifest(file) if file is not None else None
    kind, name = _words(target, has_file=file is not None)
    if cluster.all_namespaces:
        raise WhyError("-A lists what needs attention; leave it out to explain one object")
    if kind in _PARTS_OF_GARDENS:
        from pergola.cli.garden.runtime_cluster import Source
        from pergola.cli.garden.why import answer_about

        answer = asyncio.run(answer_about(name, Source("", None, cluster)))
        print_answer(answer, output, f"{kind}/{name}")
    else:
        answer = asyncio.run(_why((kind, name), given, cluster, others))
        print_answer(answer, output, _name_of(answer))


def _name_of(answer: "Answer") -> str:
    from pergola.api.objects import GroupVersionKind

    if answer.asked is None:
        return answer.name
    gvk = GroupVersionKind.of(answer.asked.obj)
    return object_name(gvk.kind, gvk.group, answer.asked.key.name)


class _Others(NamedTuple):
    """Kubeconfigs of the other clusters that a resource manager connects to the object's."""

    source: Path | None
    target: Path | None

    @asynccontextmanager
    async def connected(
        self, cluster: ClusterOptions
    ) -> "AsyncGenerator[dict[str, Client | None]]":
        async with AsyncExitStack() as stack:
            found: dict[str, Client | None] = {}
            for name, path in self._asdict().items():
                client = cluster.beside(path).connect() if path else None
                found[name] = await stack.enter_async_context(client) if client else None
            yield found


async def _why(
    words: tuple[str, str],
    given: "JsonObject | None",
    cluster: ScopeOptions,
    others: _Others,
) -> "Answer":
    from pergola.cli.why.gardens import GARDEN_TASKS
    from pergola.kube.client import Client
    from pergola.kube.kind_words import kind_called
    from pergola.why import explain

    # `configure` would import structlog, which most explanations do not need.
    for name in ("", "pergola"):
        logging.getLogger(name).setLevel(logging.ERROR)
    config = cluster.config()
    namespace = cluster.namespace or config.namespace
    async with Client.connect(config) as client, others.connected(cluster) as beside:
        if given is not None:
            return await _of_manifest(client, given, namespace, beside)
        kind, name = words
        resource = await kind_called(client, kind)
        key = _key(resource, namespace, name)
        return await explain(client, resource.gvk, key, [GARDEN_TASKS], **beside)


async def _of_manifest(
    client: "Client", given: "JsonObject", namespace: str, beside: "dict[str, Client | None]"
) -> "Answer":
    """Explain the object in the cluster, or the manifest if it does not exist yet."""
    from pergola.api.objects import GroupVersionKind, metadata_of, name_of, namespace_of
    from pergola.cli.why.gardens import GARDEN_TASKS
    from pergola.why import explain_object

    gvk = GroupVersionKind.of(given)
    resource = await client.resource(gvk)
    key = _key(resource, namespace_of(given) or namespace, name_of(given))
    live = await client.find(gvk, key)
    metadata = {**metadata_of(given), "namespace": key.namespace}
    obj = live or {**given, "metadata": metadata}
    return await explain_object(client, obj, [GARDEN_TASKS], **beside)


def _key(resource: "Resource", namespace: str, name: str) -> "Key":
    from pergola.api.objects import Key

    return Key(namespace if resource.namespaced else "", name)


def _words(target: tuple[str, ...], *, has_file: bool) -> tuple[str, str]:
    """Return the kind and the name in `KIND/NAME` or `KIND NAME`."""
    if has_file and not target:
        return "", ""
    words = target[0].split("/") if len(target) == 1 else list(target)
    if has_file or len(words) != 2 or not all(words) or "/" in words[1]:
        raise WhyError(
            "name one object, such as deployment/web -n demo, or a manifest with -f, but not both"
        )
    return words[0], words[1]


def _manifest(path: Path) -> "JsonObject":
    from pergola.api.object_metadata import metadata_problem
    from pergola.kube.yaml import parse_documents

    content = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    objects = []
    for document in parse_documents(content):
        if document.error is not None:
            raise WhyError(f"{path}, document {document.index}: {document.error}")
        if document.value is not None:
            objects.append(document.value)
    match objects:
        case [dict() as obj] if obj.get("kind") and obj.get("apiVersion"):
            if problem := metadata_problem(obj):
                raise WhyError(f"{path}: {problem}")
            return obj
    raise WhyError(f"{path} has {len(objects)} documents; it must have one, which is an object")
