"""The NetworkPolicies that allow the traffic to Services."""

import asyncio
from collections.abc import Iterable, Iterator
from itertools import chain
from types import SimpleNamespace
from typing import Any, Final, cast

import orjson
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.comparison import Difference, differences
from conformance.documents import client_of
from conformance.oracles import GARDENER, Answer, OracleModule
from conformance.strategies.istio import mesh
from conformance.strategies.kubernetes import some
from pergola.api.objects import JsonObject, JsonValue, Key, deletion_timestamp_of, labels_of
from pergola.controllers.network_policy.desired import desired
from pergola.controllers.network_policy.intents import (
    Backend,
    Environment,
    IngressController,
    Labels,
    intents,
)
from pergola.controllers.network_policy.istio import GatewayPods, Istio
from pergola.controllers.network_policy.names import (
    FROM_WORLD,
    NAMESPACE_ALIAS,
    NAMESPACE_SELECTORS,
    PREFIX,
)
from pergola.controllers.network_policy.peers import peers_of
from pergola.controllers.network_policy.seen import (
    SeenNamespace,
    keep_ingress,
    keep_namespace,
    keep_pod,
)
from pergola.controllers.network_policy.service import read_service
from pergola.controllers.network_policy.watches import Watches

_NAMESPACES: Final = ("a", "b", "istio")
_CONTROLLER: Final = {"namespace": "b", "podSelector": {"matchLabels": {"app": "nginx"}}}
_SERVICES: Final = ("web", "db", "x" * 40)
_NAMES: Final = ("", "http", "https")
_TARGETS: Final = (80, 443, 8443, "http", "https")
_PROTOCOLS: Final = ("TCP", "UDP")


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()


_POLICY_PORT: Final = st.builds(
    lambda protocol, port: {"port": port, "protocol": protocol},
    st.sampled_from(_PROTOCOLS),
    st.sampled_from(_TARGETS),
)
_LABELS: Final = some({"team": st.sampled_from(["x", "y"]), "role": st.just("shoot")})
_SELECTORS: Final = st.lists(
    st.one_of(
        some({"matchLabels": _LABELS}),
        some(
            {
                "matchExpressions": st.lists(
                    st.fixed_dictionaries(
                        {
                            "key": st.sampled_from(["team", "role"]),
                            "operator": st.sampled_from(["Exists", "DoesNotExist"]),
                        }
                    ),
                    max_size=1,
                )
            }
        ),
    ),
    max_size=2,
)
_ANNOTATIONS: Final = some(
    {
        NAMESPACE_SELECTORS: _SELECTORS.map(_json),
        NAMESPACE_ALIAS: st.sampled_from(["alias", "all-shoots"]),
        FROM_WORLD: st.lists(_POLICY_PORT, max_size=2, unique_by=_json).map(_json),
        f"{PREFIX}from-scrape-allowed-ports": st.lists(
            _POLICY_PORT, max_size=2, unique_by=_json
        ).map(_json),
    }
)
_PORT: Final = st.fixed_dictionaries(
    {
        "name": st.sampled_from(_NAMES),
        "port": st.sampled_from([80, 443]),
        "targetPort": st.sampled_from(_TARGETS),
        "protocol": st.sampled_from(_PROTOCOLS),
    }
)
_SPEC: Final = some(
    {},
    {
        "selector": st.sampled_from([{"app": "a"}, {"app": "a", "tier": "b"}, {"role": "r"}]),
        "ports": st.lists(
            _PORT, max_size=3, unique_by=lambda port: (port["port"], port["protocol"])
        ).map(lambda ports: [{**port, "name": f"p{n}"} for n, port in enumerate(ports)]),
    },
)


def _service(name: str, namespace: str, annotations: JsonObject, spec: JsonObject) -> JsonObject:
    metadata = {"name": name, "namespace": namespace, "annotations": annotations, "uid": "1"}
    return {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec}


def _pods(services: list[JsonObject]) -> SearchStrategy[list[JsonObject]]:
    """Return pods with the labels of callers of some of the Services' ports."""
    keys = sorted({key for service in services for key in _caller_keys(service)})
    label = st.sampled_from(keys or ["none"])
    pod = st.builds(
        lambda namespace, labels, value: (namespace, dict.fromkeys(labels, value)),
        st.sampled_from(_NAMESPACES),
        st.lists(label, min_size=1, max_size=4),
        st.sampled_from([*["allowed"] * 9, "denied"]),
    )
    return st.lists(pod, min_size=1, max_size=5).map(
        lambda found: [
            {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": f"pod-{n}", "namespace": namespace, "labels": labels},
            }
            for n, (namespace, labels) in enumerate(found)
        ]
    )


def _caller_keys(service: JsonObject) -> Iterator[str]:
    for intent in intents(read_service(service), _NAMESPACES):
        if intent.label:
            yield intent.label


def _ingress(parts: tuple[str, list[tuple[str, JsonObject]]]) -> JsonObject:
    namespace, backends = parts
    paths = [
        {"path": "/", "pathType": "Prefix", "backend": {"service": {"name": name, "port": port}}}
        for name, port in backends
    ]
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "Ingress",
        "metadata": {"name": "ingress", "namespace": namespace},
        "spec": {"rules": [{"http": {"paths": paths}}]},
    }


_INGRESSES: Final = st.lists(
    st.tuples(
        st.sampled_from(_NAMESPACES),
        st.lists(
            st.tuples(
                st.sampled_from(_SERVICES),
                st.one_of(
                    st.fixed_dictionaries({"number": st.sampled_from([80, 443, 9999])}),
                    st.fixed_dictionaries({"name": st.sampled_from(["p0", "p1", "missing"])}),
                ),
            ),
            max_size=2,
        ),
    ).map(_ingress),
    max_size=1,
)
_NAMESPACE: Final = some({"deleting": st.sampled_from([*[False] * 9, True])}, {"labels": _LABELS})


def _namespaces(parts: tuple[JsonObject, ...]) -> list[JsonObject]:
    found = []
    for name, fields in zip(_NAMESPACES, parts, strict=True):
        metadata = {"name": name, "labels": fields["labels"]}
        if fields.get("deleting"):
            metadata |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["f"]}
        found.append({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    return found


_SERVICE_LISTS: Final = st.lists(
    st.builds(
        _service,
        st.sampled_from(_SERVICES),
        st.sampled_from(_NAMESPACES),
        _ANNOTATIONS,
        _SPEC,
    ),
    min_size=1,
    max_size=2,
    unique_by=lambda service: (service["metadata"]["name"], service["metadata"]["namespace"]),
)


def _question(
    services: Iterable[list[JsonObject]],
    namespaces: list[JsonObject],
    ingresses: list[JsonObject],
    config: JsonObject,
) -> JsonObject:
    leaving = {Key.of(n).name for n in namespaces if deletion_timestamp_of(n) is not None}
    if _CONTROLLER["namespace"] in leaving:  # nothing can be created there
        config = {k: v for k, v in config.items() if k != "ingressControllerSelector"}
    return {"objects": [*chain.from_iterable(services), *namespaces, *ingresses], **config}


class NetworkPolicies:
    """The policies of all Services of a cluster."""

    name = "network-policies"
    ask = "network-policies"
    title = "NetworkPolicies of Services"
    of: OracleModule = GARDENER
    code = (
        "pergola.controllers.network_policy.desired",
        "pergola.controllers.network_policy.intents",
        "pergola.controllers.network_policy.istio",
        "pergola.controllers.network_policy.names",
        "pergola.controllers.network_policy.peers",
        "pergola.controllers.network_policy.service",
    )

    def table(self) -> Iterator[JsonObject]:
        """Yield nothing: random questions say it all."""
        yield from ()

    def questions(self) -> SearchStrategy[JsonObject]:
        """Return clusters with Services, Namespaces, pods, Ingresses and objects of Istio."""
        return st.builds(
            _question,
            _SERVICE_LISTS.flatmap(
                lambda found: st.tuples(st.just(found), _pods(found), st.just([]) | mesh(found))
            ),
            st.tuples(_NAMESPACE, _NAMESPACE, _NAMESPACE).map(_namespaces),
            _INGRESSES,
            some(
                {
                    "ingressControllerSelector": st.just(_CONTROLLER),
                    "namespaceSelectors": _SELECTORS,
                }
            ),
        )

    def meaning(self, answer: Answer) -> JsonValue:
        """Return the policies."""
        return answer.output

    def compare(self, question: JsonObject, answer: Answer) -> Iterable[Difference]:
        """Compare labels and specs of all policies."""
        return differences(self.meaning(answer), asyncio.run(policies_of(question)))


async def policies_of(question: JsonObject) -> JsonObject:
    """Return labels and specs of the policies of all Services of a cluster, by their keys."""
    by_kind: dict[str, list[JsonObject]] = {}
    for obj in question["objects"]:
        by_kind.setdefault(obj["kind"], []).append(obj)
    namespaces = {n["metadata"]["name"]: keep_namespace(n) for n in by_kind["Namespace"]}
    callers = {
        (pod["metadata"]["namespace"], key)
        for pod in by_kind.get("Pod", ())
        for key in keep_pod(pod)
    }
    found: JsonObject = {}
    istio, selectors = _istio(by_kind), tuple(question.get("namespaceSelectors", ()))
    for service in map(read_service, by_kind["Service"]):
        if not _handles(selectors, namespaces[service.key.namespace]):
            continue
        environment = Environment(
            has_caller=lambda namespace, label: (namespace, label) in callers,
            ingress_controller=_controller(question, namespaces),
            ingress_backends=_backends(service.key, by_kind.get("Ingress", ())),
            gateway_backends=await istio.backends(service.key),
        )
        peers = peers_of(service, namespaces)
        for key, policy in desired(service, intents(service, peers, environment)).items():
            found[str(key)] = {"labels": policy["metadata"]["labels"], "spec": policy["spec"]}
    return found


def _handles(selectors: tuple[JsonObject, ...], namespace: SeenNamespace) -> bool:
    return Watches.handles(cast("Watches", SimpleNamespace(selectors=selectors)), namespace)


class _Pods:
    """The pods of all Gateways, which are known."""

    def __init__(self, pods: Iterable[JsonObject]) -> None:
        self._pods = [*pods]

    def unknown(self, _: Iterable[Labels]) -> list[asyncio.Event]:
        return []

    def namespaces_of(self, labels: Labels) -> list[str]:
        wanted = dict(labels).items()
        return sorted(
            {Key.of(pod).namespace for pod in self._pods if wanted <= labels_of(pod).items()}
        )


def _istio(by_kind: dict[str, list[JsonObject]]) -> Istio:
    found = Istio(client_of(()), ())
    for gateway in by_kind.get("Gateway", ()):
        found.gateways.observe(gateway)
    for virtual_service in by_kind.get("VirtualService", ()):
        found.virtual_services.observe(virtual_service)
    found.pods = cast("GatewayPods", _Pods(by_kind.get("Pod", ())))
    return found


def _controller(question: JsonObject, namespaces: JsonObject) -> IngressController | None:
    selector = question.get("ingressControllerSelector")
    if selector is None or namespaces[selector["namespace"]].terminating:
        return None
    return IngressController(selector["namespace"], selector["podSelector"])


def _backends(service: Key, ingresses: Iterable[JsonObject]) -> list[Backend]:
    return [
        Backend(destination.port, "an Ingress")
        for ingress in ingresses
        for destination in sorted(keep_ingress(ingress), key=str)
        if destination.service == service
    ]
