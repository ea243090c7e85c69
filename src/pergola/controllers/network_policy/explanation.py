"""Explanation of a Service's policies: the permitted clients and the policies that exist.

Reads with the controller's caches, decides with its functions, and writes nothing.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Final, Literal, NamedTuple, TypeAlias

from pergola.api.kinds import NETWORK_POLICY, POD
from pergola.api.objects import JsonObject, Key, labels_of, map_at
from pergola.controllers.network_policy.annotations import PolicyPort, tidied
from pergola.controllers.network_policy.desired import desired, render
from pergola.controllers.network_policy.intents import (
    Environment,
    IngressController,
    Intent,
    Kind,
    intents,
)
from pergola.controllers.network_policy.kept import is_kept
from pergola.controllers.network_policy.peers import peers_of
from pergola.controllers.network_policy.seen import digest, owner_of
from pergola.controllers.network_policy.service import ServiceView
from pergola.controllers.network_policy.unit import Settings
from pergola.controllers.network_policy.watches import Watches
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.kube.selectors import SelectorError, format_selector, matches
from pergola.runtime.controlling.unit import Watching

State: TypeAlias = Literal[
    "present",
    "missing",
    "differs",
    "foreign",
    "not needed",
    "out of reach",
    "kept",
    "superfluous",
]
_PATIENCE: Final = 30.0


class ExplanationError(Exception):
    """There is nothing to explain; the text gives the reason."""


@dataclass(frozen=True, slots=True)
class Policy:
    """A NetworkPolicy that exists or should exist.

    Attributes:
        state: `foreign` for a policy of this name that the controller does not own, `not needed`
            for one that is created once a pod has the label, `out of reach` for one in a namespace
            that the configuration excludes, `kept` for one that stays because of a malformed
            annotation, `superfluous` for one that the controller is about to delete.
        owner: the Service that a foreign policy belongs to, if any.
    """

    key: Key
    state: State
    owner: Key | None = None


@dataclass(frozen=True, slots=True)
class Caller:
    """A set of callers that may talk to the Service.

    Attributes:
        namespace: empty for the world.
        label: the label key that pods need, whose value is `allowed`; empty if they need none.
        full_label: the label key before it was shortened.
        selector: the selector of the callers' pods, in kubectl's syntax; empty for the world.
        ports: such as `TCP 8080` or `TCP 8080-8090`; none means all.
        because: the annotation, field or object that requests it.
        pods: the number of matching pods; None for the world.
    """

    kind: Kind
    namespace: str
    label: str
    full_label: str
    selector: str
    ports: tuple[str, ...]
    because: str
    pods: int | None
    policies: tuple[Policy, ...]


@dataclass(frozen=True, slots=True)
class Explanation:
    """The explanation of one Service.

    Attributes:
        selector: the selector of the Service's pods, in kubectl's syntax.
        pods: the number of matching pods.
        refusal: why there are no policies at all; empty if there are some.
        others: policies of other owners that also allow ingress to the pods.
        problems: a sentence for each mistake in the annotations.
    """

    service: Key
    selector: str
    pods: int
    refusal: str
    callers: tuple[Caller, ...]
    policies: tuple[Policy, ...]
    others: tuple[Key, ...]
    problems: tuple[str, ...]


async def explain(client: Client, service: Key, settings: Settings) -> Explanation:
    """Read the cluster, and return who may talk to a Service.

    Raises:
        ExplanationError: the Service does not exist.
        KubeError: the API server refuses or does not answer.
    """
    pods = await _pods(client)
    async with _watching(client, settings) as watches:
        view = _service(watches, service)
        environment = await watches.environment(service)
        decision = _decide(view, watches, environment)
        policies = await _policies(client, view, watches, decision)
    others = await _others(client, view, pods)
    return _explanation(view, decision, policies, others, pods)


def _service(watches: Watches, key: Key) -> ServiceView:
    if not watches.services.covers(key.namespace):
        raise ExplanationError(
            f"the namespace {key.namespace} is not among targetClientConnection.namespaces"
        )
    view = watches.services.get(key)
    if view is None:
        raise ExplanationError(f"Service {key} does not exist: use NAMESPACE/NAME")
    return view


class _SeenPod(NamedTuple):
    namespace: str
    labels: Mapping[str, str]


class _Decision(NamedTuple):
    """The desired policies, and the callers if pods had the labels; or why there are none."""

    policies: dict[Key, JsonObject]
    asked: list[Intent]
    refusal: str


def _decide(service: ServiceView, watches: Watches, environment: Environment) -> _Decision:
    refusal = _refusal(service, watches)
    if refusal:
        return _Decision({}, [], refusal)
    peers = peers_of(service, {key.name: seen for key, seen in watches.namespaces.items()})
    policies = desired(service, intents(service, peers, environment))
    asked = intents(service, peers, replace(environment, has_caller=None))
    return _Decision(policies, asked, "")


def _refusal(service: ServiceView, watches: Watches) -> str:
    """Return why there are no policies regardless of annotations; empty if there are some."""
    home = service.key.namespace
    namespace = watches.namespaces.get(Key("", home))
    if service.deleting:
        return "the Service is being deleted"
    if not service.selector:
        return "the Service has no selector, and therefore no pods"
    if not watches.handles(namespace):
        return (
            f"the namespace {home} is not selected by controllers.networkPolicy.namespaceSelectors"
        )
    if namespace is not None and namespace.terminating:
        return f"the namespace {home} is being deleted"
    return ""


async def _policies(
    client: Client, service: ServiceView, watches: Watches, decision: _Decision
) -> dict[Key, Policy]:
    """Return the states of all policies that are desired or have the Service's labels."""
    present = watches.policies_of(service.key)
    states: dict[Key, Policy] = {}
    for key, policy in decision.policies.items():
        if not watches.policies.covers(key.namespace):
            states[key] = Policy(key, "out of reach")
        elif (seen := present.get(key)) is None:
            states[key] = await _absent(client, service, key)
        else:
            is_equal = seen.digest == digest(policy)
            states[key] = Policy(key, "present" if is_equal else "differs")
    for key in present.keys() - decision.policies.keys():
        kept = not decision.refusal and is_kept(service, key)
        states[key] = Policy(key, "kept" if kept else "superfluous")
    return states


async def _absent(client: Client, service: ServiceView, key: Key) -> Policy:
    """Return why a desired policy is not among those of the Service."""
    try:
        live = await client.get(NETWORK_POLICY, key, metadata_only=True)
    except NotFound:
        return Policy(key, "missing")
    owner = owner_of(live)
    # It may have just been written.
    return Policy(key, "present") if owner == service.key else Policy(key, "foreign", owner)


async def _others(
    client: Client, service: ServiceView, pods: Sequence[_SeenPod]
) -> tuple[Key, ...]:
    """Return the policies of other owners that allow ingress to the pods of the Service."""
    behind = [dict(service.selector), *(p.labels for p in _behind(service, pods))]
    return tuple(
        sorted(
            Key.of(policy)
            for policy in await client.list(NETWORK_POLICY, service.key.namespace)
            if owner_of(policy) != service.key
            and map_at(policy, "spec").get("ingress")
            and any(matches(map_at(policy, "spec", "podSelector"), labels) for labels in behind)
        )
    )


def _explanation(
    service: ServiceView,
    decision: _Decision,
    policies: Mapping[Key, Policy],
    others: tuple[Key, ...],
    pods: Sequence[_SeenPod],
) -> Explanation:
    return Explanation(
        service=service.key,
        selector=_text(service.pod_selector) if service.selector else "",
        pods=len(list(_behind(service, pods))),
        refusal=decision.refusal,
        callers=tuple(_caller(service, intent, policies, pods) for intent in decision.asked),
        policies=tuple(policies[key] for key in sorted(policies)),
        others=others,
        problems=service.problems,
    )


def _caller(
    service: ServiceView,
    intent: Intent,
    policies: Mapping[Key, Policy],
    pods: Sequence[_SeenPod],
) -> Caller:
    is_world = intent.kind == "world"
    matching = [
        pod
        for pod in pods
        if pod.namespace == intent.peer and matches(tidied(intent.callers), pod.labels)
    ]
    keys = map(Key.of, render(service, intent))
    return Caller(
        kind=intent.kind,
        namespace=intent.peer,
        label=intent.label,
        full_label=intent.full_label,
        selector="" if is_world else _text(intent.callers),
        ports=tuple(map(_port, intent.ports)),
        because=intent.because,
        pods=None if is_world else len(matching),
        policies=tuple(policies.get(key, Policy(key, "not needed")) for key in keys),
    )


def _behind(service: ServiceView, pods: Sequence[_SeenPod]) -> Iterator[_SeenPod]:
    if service.selector:
        yield from (
            pod
            for pod in pods
            if pod.namespace == service.key.namespace and matches(service.pod_selector, pod.labels)
        )


def _port(port: PolicyPort) -> str:
    numbers = "any port" if port.port is None else str(port.port)
    return f"{port.protocol} {numbers}" + (f"-{port.end_port}" if port.end_port else "")


def _text(selector: JsonObject) -> str:
    try:
        return format_selector(selector)
    except SelectorError:  # a label that is too long, which the API server also rejects
        return str(selector)


async def _pods(client: Client) -> list[_SeenPod]:
    """Return the labels of all pods that are still running or pending."""
    fields = "status.phase!=Succeeded,status.phase!=Failed"
    found: list[_SeenPod] = []
    async for page in client.pages(POD, fields=fields, metadata_only=True):
        found += (_SeenPod(Key.of(pod).namespace, labels_of(pod)) for pod in page.items)
    return found


@asynccontextmanager
async def _watching(client: Client, settings: Settings) -> AsyncGenerator[Watches]:
    """Yield the controller's caches once they are filled."""
    controller = settings.ingress_controller
    watches = Watches.of(
        client,
        namespaces=settings.namespaces,
        selectors=settings.namespace_selectors,
        ingress_controller=IngressController(*controller) if controller else None,
        only_for_matching_pods=settings.only_for_matching_pods,
    )
    caches = list(watches.caches())
    following = [asyncio.create_task(watches.istio.pods.run())]
    following += [asyncio.create_task(cache.run()) for cache in caches]
    try:
        await _filled(caches)
        yield watches
    finally:
        for task in following:
            task.cancel()
        await asyncio.gather(*following, return_exceptions=True)


async def _filled(caches: Sequence[Watching]) -> None:
    """Wait until the caches are filled, but not forever: caches retry without end."""
    try:
        async with asyncio.timeout(_PATIENCE):
            for cache in caches:
                await cache.synced()
    except TimeoutError:
        lost = [f"{cache.gvk}: {cache.problem or 'no answer'}" for cache in caches if cache.problem]
        raise ExplanationError(
            f"the cluster could not be read within {_PATIENCE:g}s; {'; '.join(lost)}"
        ) from None
