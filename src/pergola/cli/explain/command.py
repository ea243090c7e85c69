"""`pergola explain`: what the webhooks would change in an object, and why."""

import asyncio
import sys
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

from cyclopts import Parameter

from pergola.api.kinds import NAMESPACE
from pergola.cli.cluster_options import ScopeOptions
from pergola.cli.output import ShowOutput

if TYPE_CHECKING:
    from pergola.admission.review import Operation
    from pergola.api.objects import JsonObject, JsonValue
    from pergola.api.resource_manager_config.webhooks import Webhooks
    from pergola.cli.explain.findings import Answer
    from pergola.kube.client import Client
    from pergola.resource_manager.webhooks.documents import DocumentLookups
    from pergola.resource_manager.webhooks.explanation import Question, ReviewedKind
    from pergola.resource_manager.webhooks.installation import Installation

_MANIFESTS: Final = (".json", ".yaml", ".yml")
_DEFAULT: Final = ScopeOptions()
_DEFAULT_NAMESPACE: Final = "default"
_SHORT_NAMES: Final = {
    "po": "pods",
    "deploy": "deployments",
    "sts": "statefulsets",
    "hpa": "horizontalpodautoscalers",
    "vpa": "verticalpodautoscalers",
    "crd": "customresourcedefinitions",
}


class ExplainError(Exception):
    """There is nothing to explain, or it cannot be read; the text gives the reason."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """The command line.

    Attributes:
        namespace: empty for all namespaces.
    """

    target: str | None
    files: tuple[Path, ...]
    namespace: str
    selector: str
    operation: "Operation"
    config: Path | None
    installation: Literal["runtime", "target"] | None
    cluster: ScopeOptions

    @property
    def needs_cluster(self) -> bool:
        return bool(self.target) or self.cluster.are_given


def explain(
    target: str | None = None,
    /,
    *,
    file: Annotated[list[Path] | None, Parameter(alias="-f", negative="")] = None,
    selector: Annotated[str, Parameter(alias="-l")] = "",
    operation: Literal["create", "update", "delete"] = "create",
    config: Path | None = None,
    installation: Literal["runtime", "target"] | None = None,
    output: ShowOutput = "text",
    cluster: ScopeOptions = _DEFAULT,
) -> None:
    """Print what each admission webhook would change in an object, and by which rule.

    Calls the functions that a resource manager serves, one after another, and writes nothing.
    Namespaces, ServiceAccounts, Nodes and so on are read from the files, and from the cluster if
    one is given.

    Parameters
    ----------
    target
        Objects of the cluster: one such as `pod/web`, or all of a kind such as `pods`.
    file
        Manifest files, folders with manifests, or `-` for standard input.
    selector
        Explain the objects of a kind with these labels, such as `app=web`.
    operation
        The request to explain.
    config
        Configuration file of the resource manager. By default all webhooks are enabled with
        default settings, except kubernetesServiceHost, which needs a host.
    installation
        `runtime`: the webhooks are registered in the cluster that the resource manager runs in;
        `target`: in another cluster. By default as in the configuration.
    """
    files = tuple(file or ())
    namespace = cluster.namespace or _DEFAULT_NAMESPACE
    if target or cluster.are_given:
        namespace = cluster.scope() or ""
    elif cluster.all_namespaces:
        namespace = ""
    operations: dict[str, Operation] = {
        "create": "CREATE",
        "update": "UPDATE",
        "delete": "DELETE",
    }
    asked = _Asked(
        target,
        files,
        namespace,
        selector,
        operations[operation],
        config,
        installation,
        cluster,
    )
    answers = asyncio.run(_explain(asked))
    from pergola.cli.explain.findings import print_answers

    print_answers(answers, output)


async def _explain(asked: _Asked) -> "list[Answer]":
    from pergola.cli.explain.findings import Answer
    from pergola.resource_manager.webhooks import explanation
    from pergola.resource_manager.webhooks.catalog import webhooks
    from pergola.resource_manager.webhooks.dependencies import Dependencies
    from pergola.resource_manager.webhooks.documents import DocumentLookups
    from pergola.resource_manager.webhooks.facts.lookups import ClusterLookups

    settings, installation = _settings(asked)
    documents = [
        document for path in asked.files for file in _files(path) for document in _read(file)
    ]
    async with AsyncExitStack() as stack:
        client = await _connect(asked, stack)
        nodes = settings.system_components_config.node_selector
        beyond = ClusterLookups(client, system_nodes=nodes) if client else None
        lookups = DocumentLookups(
            documents, beyond, namespace=asked.namespace or _DEFAULT_NAMESPACE, system_nodes=nodes
        )
        found = webhooks(settings, Dependencies(installation, lookups))
        answers = []
        for obj in await _live(asked, client) if client and asked.target else documents:
            question = await _question(asked, obj, lookups, client)
            if question is not None:
                answers.append(Answer(question, await explanation.explain(question, found)))
    if not answers:
        raise ExplainError(_nothing(asked))
    return answers


def _nothing(asked: _Asked) -> str:
    if asked.target:
        where = f"namespace {asked.namespace}" if asked.namespace else "the cluster"
        return f"no {asked.target} in {where}"
    if not asked.files:
        return "nothing to explain: name an object such as pod/web, or a file with -f"
    return f"no webhook reviews any object in {', '.join(map(str, asked.files))}"


def _settings(asked: _Asked) -> "tuple[Webhooks, Installation]":
    """Return the enabled webhooks, and where they are registered."""
    from pergola.cli.configuration import read_settings
    from pergola.resource_manager.serving import installation_of
    from pergola.resource_manager.webhooks.catalog import everything
    from pergola.resource_manager.webhooks.installation import Installation

    if asked.config is None:
        return everything(), Installation(asked.installation or "runtime", hvpa=True)
    config = read_settings(asked.config)
    # Assume that the cluster serves Hvpas, so that they can be explained.
    installation = replace(installation_of(config), hvpa=True)
    return config.webhooks, replace(installation, kind=asked.installation or installation.kind)


async def _connect(asked: _Asked, stack: AsyncExitStack) -> "Client | None":
    if not asked.needs_cluster:
        return None
    return await stack.enter_async_context(asked.cluster.connect())


async def _live(asked: _Asked, client: "Client") -> "list[JsonObject]":
    """Return the named objects of the cluster."""
    from pergola.api.objects import Key

    word, slash, name = (asked.target or "").partition("/")
    kind = _kind_called(word)
    namespace = asked.namespace if kind.namespaced else ""
    if not slash:
        return await client.list(kind.gvk, namespace or None, labels=asked.selector or None)
    if not name or (kind.namespaced and not namespace):
        raise ExplainError(f'"{asked.target}" does not name one object, such as pod/web -n demo')
    return [await client.get(kind.gvk, Key(namespace, name))]


def _kind_called(word: str) -> "ReviewedKind":
    from pergola.resource_manager.webhooks.explanation import REVIEWED_KINDS

    name = _SHORT_NAMES.get(word.lower(), word.lower())
    for kind in REVIEWED_KINDS:
        if name in (kind.plural, kind.gvk.kind.lower()):
            return kind
    known = ", ".join(sorted({kind.gvk.kind.lower() for kind in REVIEWED_KINDS}))
    raise ExplainError(f'no webhook reviews the kind "{word}"; reviewed kinds are {known}')


async def _question(
    asked: _Asked, obj: "JsonObject", lookups: "DocumentLookups", client: "Client | None"
) -> "Question | None":
    """Return the request to explain, or None if no webhook reviews objects of this kind."""
    from pergola.api.objects import GroupVersionKind, namespace_of
    from pergola.resource_manager.webhooks.explanation import Question, reviewed_kind

    kind = reviewed_kind(GroupVersionKind.of(obj))
    if kind is None:
        return None
    namespace = (namespace_of(obj) or asked.namespace) if kind.namespaced else ""
    return Question(
        kind=kind,
        obj=obj,
        operation=asked.operation,
        old=None if asked.operation == "CREATE" else obj,
        namespace=namespace,
        namespace_labels=await _labels(namespace, lookups, client) if namespace else None,
    )


async def _labels(
    namespace: str, lookups: "DocumentLookups", client: "Client | None"
) -> Mapping[str, str] | None:
    """Return a namespace's labels from the files, else from the cluster; None if neither has it."""
    from pergola.api.objects import Key, labels_of
    from pergola.kube.errors import NotFound

    given = lookups.find("Namespace", Key("", namespace))
    if given is not None:
        # API servers set this label on every namespace.
        return {"kubernetes.io/metadata.name": namespace} | labels_of(given)
    if client is None:
        return None
    try:
        gvk = NAMESPACE
        return labels_of(await client.get(gvk, Key("", namespace)))
    except NotFound:
        return None


def _files(path: Path) -> list[Path]:
    """Return a file, or the manifests of a folder, as `kubectl -f` does."""
    if not path.is_dir():
        return [path]
    found = sorted(file for file in path.iterdir() if file.suffix in _MANIFESTS)
    if not found:
        raise ExplainError(f"folder {path} has no {', '.join(_MANIFESTS)} files")
    return found


def _read(path: Path) -> "Iterator[JsonObject]":
    """Read the objects of a file; those of a List one by one."""
    from pergola.kube.yaml import parse_documents

    try:
        content = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    except OSError as error:
        raise ExplainError(f"cannot read {path}: {error.strerror}") from None
    for document in parse_documents(content):
        if document.error is not None:
            raise ExplainError(f"{path}, document {document.index}: {document.error}")
        if document.value is not None:
            yield from _objects(document.value, f"{path}, document {document.index}")


def _objects(value: "JsonValue", where: str) -> "Iterator[JsonObject]":
    from pergola.api.objects import maps_at

    if not isinstance(value, dict) or not value.get("kind"):
        raise ExplainError(f"{where}: is not an object with apiVersion and kind")
    if value.get("kind") == "List":
        yield from maps_at(value, "items")
    else:
        yield value
