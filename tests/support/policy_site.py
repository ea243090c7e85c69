"""A namespace whose Services get NetworkPolicies, with the actions and checks of tests."""

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from typing import Any, Final, Self

from pergola.api.kinds import (
    EVENT,
    GATEWAY,
    INGRESS,
    NAMESPACE,
    NETWORK_POLICY,
    POD,
    SERVICE,
    VIRTUAL_SERVICE,
)
from pergola.api.objects import GroupVersionKind, JsonObject, Key, labels_of, map_at
from pergola.controllers.network_policy import Settings, network_policy
from pergola.kube.client import Client
from pergola.runtime.caching.cache import Cache
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.metrics import Metrics
from pergola.testing.crds import definition, serve
from pergola.testing.waiting import PATIENCE, running, settled, until, until_gone
from pergola.testing.world import RecordingClient

L: Final = "networking.resources.gardener.cloud/"
SITE: Final = "test.pergola/site"
PEER: Final = "test.pergola/peer"
X: Final = "web-tcp-8443"
"""The name of the Service `web`'s port in policies."""


class PolicySite:
    """A namespace whose Services are served, with the actions of a test.

    Attributes:
        handled: the labels of the namespaces that the controller under test serves.
    """

    def __init__(self, client: Client, recorder: RecordingClient, namespace: str) -> None:
        self.client = client
        self.recorder = recorder
        self.namespace = namespace
        self.handled = {SITE: namespace}
        self.metrics = Metrics()
        self._working: Unit | None = None
        self._changed = asyncio.Event()
        self._policies = Cache(client, NETWORK_POLICY, lambda obj: obj)
        self._events = Cache(client, EVENT, lambda obj: obj)
        self._running = AsyncExitStack()

    async def __aenter__(self) -> Self:
        caches = (self._policies, self._events)
        for cache in caches:
            cache.subscribe(lambda _: self._changed.set())
        await self._running.enter_async_context(running(Unit(caches=caches)))
        await self.label(self.namespace, self.handled)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    # The controller

    async def start(self, client: Client | None = None, **changes: Any) -> Unit:
        """Start the controller; `changes` are fields of its settings.

        Pods do not matter by default, so that a test of something else needs none.
        """
        selectors = ({"matchLabels": self.handled},)
        defaults: dict[str, Any] = {
            "namespace_selectors": selectors,
            "only_for_matching_pods": False,
        }
        settings = Settings(**(defaults | changes))
        self._working = network_policy(client or self.recorder, settings, metrics=self.metrics)
        await self._running.enter_async_context(running(self._working))
        await self.rest()
        self.recorder.taken()
        return self._working

    async def stop(self) -> None:
        """Stop the controller, as a kill would, and the watches of the test."""
        await self._running.aclose()

    async def rest(self) -> list[str]:
        """Wait until the controller is idle; return its writes since the last call."""
        assert self._working is not None
        await settled(self._working, self.client)
        return [w for w in self.recorder.taken() if not w.split()[1].startswith("Event")]

    @property
    def reconciled(self) -> float:
        """The number of reconciliations."""
        name = "controller_runtime_reconcile_total"
        results = ("success", "error", "requeue_after")
        labels = ({"controller": "networkpolicy", "result": result} for result in results)
        registry = self.metrics.registry
        return sum(registry.get_sample_value(name, label) or 0.0 for label in labels)

    # Observations

    async def names(self, *expected: str) -> None:
        """Wait until the site's Services have exactly these policies.

        Each is a name, or `namespace/name` in another namespace.
        """
        desired = {name if "/" in name else f"{self.namespace}/{name}" for name in expected}

        def found() -> set[str]:
            return {str(key) for key, policy in self._policies.items() if self._is_ours(policy)}

        await self._when(lambda: found() == desired, lambda: f"{found()} is not {desired}")

    async def policy(self, name: str, holds: Callable[[JsonObject], bool]) -> JsonObject:
        """Wait until a policy of the namespace satisfies `holds`."""
        return await until(self.client, NETWORK_POLICY, self.key(name), holds)

    async def warning(self, reason: str) -> str:
        """Wait for an Event about the Service `web`, and return its note."""

        def found() -> list[str]:
            return [
                event["note"]
                for _, event in self._events.items()
                if event.get("reason") == reason and self._regards_web(event)
            ]

        await self._when(lambda: bool(found()), lambda: f"no Event of reason {reason}")
        return found()[0]

    async def reported(self) -> list[JsonObject]:
        """Wait for Events of the controller in the namespace, and return them.

        The API server reports repairs of cluster IPs in the same namespace.
        """

        def found() -> list[JsonObject]:
            return [
                event
                for key, event in self._events.items()
                if key.namespace == self.namespace
                and event.get("reportingController") == "networkpolicy-controller"
            ]

        await self._when(lambda: bool(found()), lambda: "there are no Events")
        return found()

    def _is_ours(self, policy: JsonObject) -> bool:
        return labels_of(policy).get(f"{L}service-namespace") == self.namespace

    def _regards_web(self, event: JsonObject) -> bool:
        regarding = map_at(event, "regarding")
        return (regarding.get("namespace"), regarding.get("name")) == (self.namespace, "web")

    async def _when(self, holds: Callable[[], bool], problem: Callable[[], str]) -> None:
        try:
            async with asyncio.timeout(PATIENCE):
                while not holds():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            raise AssertionError(problem()) from None

    # Actions of tests

    def key(self, name: str) -> Key:
        """Return the key of something in the namespace."""
        return Key(self.namespace, name)

    async def label(self, namespace: str, labels: Mapping[str, str | None]) -> None:
        """Label a namespace; None removes a label."""
        await self.client.patch(
            NAMESPACE, Key("", namespace), {"metadata": {"labels": dict(labels)}}
        )

    async def serve(self, name: str = "web", namespace: str = "", **changes: Any) -> None:
        """Create a Service; annotations without prefix, with `_` for `-`."""
        annotations = changes.pop("annotations", {})
        metadata = {
            "name": name,
            "namespace": namespace or self.namespace,
            "annotations": _annotations(annotations),
        }
        spec = {"selector": {"app": name}, "ports": [port(443, 8443)]}
        await self.client.create(
            {
                "apiVersion": "v1",
                "kind": "Service",
                "metadata": metadata,
                "spec": spec | changes,
            }
        )

    async def change(self, name: str = "web", **spec: Any) -> None:
        """Change fields of a Service's spec."""
        await self.client.patch(SERVICE, self.key(name), {"spec": spec})

    async def annotate(self, **annotations: object) -> None:
        """Annotate the Service `web`, as `serve` does; None removes an annotation."""
        patch = {"metadata": {"annotations": _annotations(annotations)}}
        await self.client.patch(SERVICE, self.key("web"), patch)

    async def put_policy(self, name: str, labels: dict[str, str], namespace: str = "") -> None:
        """Create a NetworkPolicy as another client would."""
        await self.client.create(
            {
                "apiVersion": NETWORK_POLICY.api_version,
                "kind": NETWORK_POLICY.kind,
                "metadata": {
                    "name": name,
                    "namespace": namespace or self.namespace,
                    "labels": labels,
                },
                "spec": {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]},
            }
        )

    async def put_pod(self, name: str, namespace: str, *keys: str, **labels: str) -> None:
        """Create a Pod that these labels allow to call."""
        allowed = {L + key: "allowed" for key in keys} | labels
        await self.client.create(
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": name, "namespace": namespace, "labels": allowed},
                "spec": {"containers": [{"name": "c", "image": "registry.example/c:1"}]},
            }
        )

    async def delete_pod(self, name: str, namespace: str) -> None:
        """Wait until the Pod is gone."""
        await self.client.delete(POD, Key(namespace, name))
        await until_gone(self.client, POD, Key(namespace, name))

    async def put_ingress(self, number: int, name: str = "web") -> None:
        """Create an Ingress with one path, to a port of the Service `web`."""
        backend = {"service": {"name": "web", "port": {"number": number}}}
        path = {"path": "/", "pathType": "Prefix", "backend": backend}
        await self.client.create(
            {
                "apiVersion": INGRESS.api_version,
                "kind": INGRESS.kind,
                "metadata": {"name": name, "namespace": self.namespace},
                "spec": {"rules": [{"host": "web.example", "http": {"paths": [path]}}]},
            }
        )


def port(number: int, target: int | str, protocol: str = "TCP") -> JsonObject:
    """Return a port of a Service."""
    name = f"p{number}-{protocol.lower()}"
    return {"name": name, "port": number, "targetPort": target, "protocol": protocol}


def chosen(team: str) -> list[JsonObject]:
    """Return the value of `namespace-selectors` that chooses namespaces with the label `PEER`."""
    return [{"matchLabels": {PEER: team}}]


def pair(base: str = X) -> list[str]:
    """Return the policies within the namespace."""
    return [f"ingress-to-{base}", f"egress-to-{base}"]


def peer_pair(site: PolicySite, peer: str, base: str = X) -> list[str]:
    """Return the policies of a peer namespace."""
    return [f"ingress-to-{base}-from-{peer}", f"{peer}/egress-to-{site.namespace}-{base}"]


def written(site: PolicySite, verb: str, names: Iterable[str]) -> list[str]:
    """Return writes as the recorder notes them, sorted."""
    keys = (name if "/" in name else f"{site.namespace}/{name}" for name in names)
    return sorted(f"{verb} NetworkPolicy {key}" for key in keys)


def ports_of(policy: JsonObject) -> object:
    """Return the ports of a policy's only ingress rule."""
    return policy["spec"]["ingress"][0].get("ports")


async def install_istio(client: Client) -> None:
    """Install Istio's kinds; return when they are served."""
    await serve(client, *map(definition, (VIRTUAL_SERVICE, GATEWAY)))


def virtual_service(site: PolicySite, *gateways: str) -> JsonObject:
    """Return a VirtualService `web` that sends traffic of Gateways to the Service `web`."""
    host = f"web.{site.namespace}.svc.cluster.local"
    route = {"destination": {"host": host, "port": {"number": 443}}}
    spec = {"gateways": list(gateways), "tls": [{"route": [route]}]}
    return _istio_object(VIRTUAL_SERVICE, site.namespace, spec)


def gateway(namespace: str, pods: str) -> JsonObject:
    """Return a Gateway `web` whose pods have this value of the label `istio`."""
    return _istio_object(GATEWAY, namespace, {"selector": {"istio": pods}})


def gateway_pair(site: PolicySite, namespace: str) -> list[str]:
    """Return the policies for the pods of a Gateway in another namespace."""
    return [
        f"ingress-to-{X}-from-{namespace}",
        f"{namespace}/egress-to-{site.namespace}-{X}-from-istio",
    ]


async def until_served(unit: Unit) -> None:
    """Let the caches look for their kinds now instead of every half minute."""
    for cache in unit.caches:
        if isinstance(cache, Cache) and cache.gvk in (VIRTUAL_SERVICE, GATEWAY):
            while not cache.served:
                cache.wake()
                await asyncio.sleep(0.02)  # the client repeats discovery only after a while


def _istio_object(gvk: GroupVersionKind, namespace: str, spec: JsonObject) -> JsonObject:
    metadata = {"name": "web", "namespace": namespace}
    return {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": metadata, "spec": spec}


def _annotations(annotations: dict[str, object]) -> JsonObject:
    return {
        L + key.replace("_", "-"): v if v is None or isinstance(v, str) else json.dumps(v)
        for key, v in annotations.items()
    }
