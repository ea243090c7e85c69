"""`pergola explain`: what the webhooks make of an object, and why."""

import asyncio
import sys
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

from cyclopts import Parameter

from pergola.api.kinds import NAMESPACE

if TYPE_CHECKING:
    from pergola.admission.review import Operation
    from pergola.api.objects import JsonObject, JsonValue
    from pergola.api.resource_manager_config.webhooks import Webhooks
    from pergola.cli.explain.findings import Answer
    from pergola.kube.client import Client
    from pergola.resource_manager.webhooks.documents import DocumentLookups
    from pergola.resource_manager.webhooks.explanation import Question, ReviewedKind
    from pergola.resource_manager.webhooks.installation import Installation

_SHORT_NAMES: Final = {
    "po": "pods",
    "deploy": "deployments",
    "sts": "statefulsets",
    "hpa": "horizontalpodautoscalers",
    "vpa": "verticalpodautoscalers",
    "crd": "customresourcedefinitions",
}


class ExplainError(Exception):
    """What was asked cannot be answered; the text says why."""


@dataclass(frozen=True, slots=True)
class _Asked:
    """What was given on the command line."""

    target: str | None
    files: tuple[Path, ...]
    namespace: str
    operation: "Operation"
    config: Path | None
    installation: Literal["runtime", "target"] | None
    kubeconfig: Path | None
    context: str | None

    @property
    def needs_cluster(self) -> bool:
        return bool(self.target or self.kubeconfig or self.context)


def explain(
    target: str | None = None,
    /,
    *,
    file: Annotated[list[Path] | None, Parameter(alias="-f", negative="")] = None,
    namespace: Annotated[str, Parameter(alias="-n")] = "default",
    operation: Literal["create", "update", "delete"] = "create",
    config: Path | None = None,
    installation: Literal["runtime", "target"] | None = None,
    output: Annotated[Literal["text", "json", "yaml"], Parameter(alias="-o")] = "text",
    kubeconfig: Path | None = None,
    context: str | None = None,
) -> None:
    """Print what each admission webhook would change in an object, by which rule; or why nothing.

    The same functions that are served are asked, one after the other; nothing is written. What they
    have to know (Namespaces, ServiceAccounts, Nodes and so on) is taken from the files, and from
    the cluster if one is named.

    Parameters
    ----------
    target
        An object of the cluster, such as `pod/web`.
    file
        Manifests; `-` for standard input. All objects that some webhook is about are explained.
    namespace
        Of objects that do not say in which they are.
    operation
        With which request the object would come.
    config
        Configuration file of the resource manager. Unless it is given, all webhooks are on with
        their defaults, except kubernetesServiceHost, which needs a host.
    installation
        Whether the webhooks are registered for the cluster that the resource manager runs in, or
        for another one; as the configuration says unless given.
    output
        `text` for people, `json` and `yaml` for programs.
    kubeconfig
        The cluster, as kubectl finds it unless given.
    context
        Context of that kubeconfig.
    """
    files = tuple(file or ())
    operations: dict[str, Operation] = {
        "create": "CREATE",
        "update": "UPDATE",
        "delete": "DELETE",
    }
    asked = _Asked(
        target,
        files,
        namespace,
        operations[operation],
        config,
        installation,
        kubeconfig,
        context,
    )
    answers = asyncio.run(_explain(asked))
    from pergola.cli.explain.findings import print_data, print_text

    if output == "text":
        print_text(answers)
    else:
        print_data(answers, output)


async def _explain(asked: _Asked) -> "list[Answer]":
    from pergola.cli.explain.findings import Answer
    from pergola.resource_manager.webhooks import explanation
    from pergola.resource_manager.webhooks.catalog import webhooks
    from pergola.resource_manager.webhooks.dependencies import Dependencies
    from pergola.resource_manager.webhooks.documents import DocumentLookups
    from pergola.resource_manager.webhooks.lookups import ClusterLookups

    settings, installation = _settings(asked)
    documents = [document for path in asked.files for document in _read(path)]
    async with AsyncExitStack() as stack:
        client = await _connect(asked, stack)
        nodes = settings.system_components_config.node_selector
        beyond = ClusterLookups(client, system_nodes=nodes) if client else None
        lookups = DocumentLookups(documents, beyond, namespace=asked.namespace, system_nodes=nodes)
        found = webhooks(settings, Dependencies(installation, lookups))
        answers = []
        for obj in [await _live(asked, client)] if client and asked.target else documents:
            question = await _question(asked, obj, lookups, client)
            if question is not None:
                answers.append(Answer(question, await explanation.explain(question, found)))
    if not answers:
        raise ExplainError(_nothing(asked))
    return answers


def _nothing(asked: _Asked) -> str:
    if not asked.files:
        return "nothing to explain: name an object such as pod/web, or a file with -f"
    return f"no webhook is about any object in {', '.join(map(str, asked.files))}"


def _settings(asked: _Asked) -> "tuple[Webhooks, Installation]":
    """Which webhooks are on, and where they are registered."""
    from pergola.cli.configuration import read_settings
    from pergola.resource_manager.serving import installation_of
    from pergola.resource_manager.webhooks.installation import Installation

    if asked.config is None:
        return _everything(), Installation(asked.installation or "runtime", hvpa=True)
    config = read_settings(asked.config)
    # Where somebody asks about an Hvpa, Hvpas are served.
    installation = replace(installation_of(config), hvpa=True)
    if not config.server.webhooks.self_signed.enabled and config.target_client_connection:
        # Somebody else registers the webhooks: in the other cluster, if there is one.
        installation = replace(installation, kind="target")
    return config.webhooks, replace(installation, kind=asked.installation or installation.kind)


def _everything() -> "Webhooks":
    """All webhooks that work without a setting."""
    from pergola.api.resource_manager_config.controllers import Switch
    from pergola.api.resource_manager_config.webhooks import Webhooks

    settings = Webhooks()
    for name in settings.__struct_fields__:
        switch: Switch = getattr(settings, name)
        switch.enabled = True
    settings.kubernetes_service_host.enabled = False  # it needs a host
    return settings


async def _connect(asked: _Asked, stack: AsyncExitStack) -> "Client | None":
    if not asked.needs_cluster:
        return None
    from pergola.kube.client import Client
    from pergola.kube.kubeconfig import load

    client = Client.connect(load(asked.kubeconfig, asked.context))
    return await stack.enter_async_context(client)


async def _live(asked: _Asked, client: "Client") -> "JsonObject":
    """The object that was named, as the cluster has it."""
    from pergola.api.objects import Key

    word, slash, name = (asked.target or "").partition("/")
    if not slash or not name:
        raise ExplainError(f'"{asked.target}" is no object: name it by kind and name, as pod/web')
    kind = _kind_called(word)
    return await client.get(kind.gvk, Key(asked.namespace if kind.namespaced else "", name))


def _kind_called(word: str) -> "ReviewedKind":
    from pergola.resource_manager.webhooks.explanation import REVIEWED_KINDS

    wanted = _SHORT_NAMES.get(word.lower(), word.lower())
    for kind in REVIEWED_KINDS:
        if wanted in (kind.plural, kind.gvk.kind.lower()):
            return kind
    known = ", ".join(sorted({kind.gvk.kind.lower() for kind in REVIEWED_KINDS}))
    raise ExplainError(f'no webhook is about the kind "{word}"; there are some about {known}')


async def _question(
    asked: _Asked, obj: "JsonObject", lookups: "DocumentLookups", client: "Client | None"
) -> "Question | None":
    """The request to ask about; None if no webhook is about objects of this kind."""
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
    """Of a namespace: from the files, else from the cluster; None if neither knows it."""
    from pergola.api.objects import Key, labels_of
    from pergola.kube.errors import NotFound

    given = lookups.find("Namespace", Key("", namespace))
    if given is not None:
        # An API server gives every namespace this label.
        return {"kubernetes.io/metadata.name": namespace} | labels_of(given)
    if client is None:
        return None
    try:
        gvk = NAMESPACE
        return labels_of(await client.get(gvk, Key("", namespace)))
    except NotFound:
        return None


def _read(path: Path) -> "Iterator[JsonObject]":
    """The objects of a file; those of a List one by one."""
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
        raise ExplainError(f"{where}: is no object with apiVersion and kind")
    if value.get("kind") == "List":
        yield from maps_at(value, "items")
    else:
        yield value
