"""The webhooks that change pods."""

from collections.abc import Iterator
from functools import partial
from itertools import chain
from typing import Any, Final

import orjson
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.questions import collected
from conformance.strategies.kubernetes import some
from conformance.strategies.pods import NAMESPACE, PODS, TAINTS, TOLERATIONS
from conformance.subjects.webhooks import WebhookSubject, asked, request
from pergola.api.objects import JsonObject
from pergola.resource_manager.webhooks import (
    kubernetes_service_host,
    pod_kube_apiserver_load_balancing,
    pod_scheduler_name,
    pod_topology_spread_constraints,
    projected_token_mount,
    seccomp_profile,
    system_components_config,
)

_GATEWAY_NAMESPACE: Final = "istio-ingress"
_LABELS: Final = st.dictionaries(
    st.sampled_from(["pool", "system"]), st.sampled_from(["a", "true"]), max_size=2
)


_WEBHOOKS: Final[tuple[tuple[str, str, SearchStrategy[JsonObject]], ...]] = (
    (kubernetes_service_host.PATH, "kubernetesServiceHost", st.just({"host": "api.example"})),
    (pod_kube_apiserver_load_balancing.PATH, "podKubeAPIServerLoadBalancing", st.just({})),
    (
        pod_scheduler_name.PATH,
        "podSchedulerName",
        some({"schedulerName": st.sampled_from(["bin-packing", "default-scheduler"])}),
    ),
    (pod_topology_spread_constraints.PATH, "podTopologySpreadConstraints", st.just({})),
    (
        projected_token_mount.PATH,
        "projectedTokenMount",
        some({"expirationSeconds": st.sampled_from([600, 43200])}),
    ),
    (seccomp_profile.PATH, "seccompProfile", st.just({})),
    (
        system_components_config.PATH,
        "systemComponentsConfig",
        some({"nodeSelector": _LABELS, "podNodeSelector": _LABELS, "podTolerations": TOLERATIONS}),
    ),
)


def _object(kind: str, name: str, **fields: Any) -> JsonObject:
    metadata: JsonObject = {"name": name}
    if kind != "Node":
        metadata["namespace"] = fields.pop("namespace", NAMESPACE)
    metadata["labels"] = fields.pop("labels", {})
    return {"apiVersion": "v1", "kind": kind, "metadata": metadata, **fields}


_AUTOMOUNT: Final = st.sampled_from(
    [{}, *[{"automountServiceAccountToken": value} for value in (True, False, False, False)]]
)
_ACCOUNTS: Final = st.tuples(_AUTOMOUNT, _AUTOMOUNT).map(
    lambda parts: [
        _object("ServiceAccount", "default", **parts[0]),
        _object("ServiceAccount", "a", **parts[1]),
    ]
)
_NODES: Final = st.lists(st.tuples(_LABELS, TAINTS), max_size=3).map(
    lambda nodes: [
        _object("Node", f"node-{number}", labels=labels, spec={"taints": taints})
        for number, (labels, taints) in enumerate(nodes)
    ]
)
_ROUTES: Final = st.tuples(
    some(
        {
            "hosts": st.sampled_from(["api.example", "api.example,api2.example", "a", ""]),
            "istio-namespace": st.sampled_from([*[_GATEWAY_NAMESPACE] * 4, "missing"]),
        }
    ),
    st.lists(st.sampled_from(["10.0.0.1", "10.0.0.9"]), max_size=2, unique=True),
).map(
    lambda parts: [
        _object("ConfigMap", pod_kube_apiserver_load_balancing.CONFIG_MAP, data=parts[0]),
        _object(
            "Service",
            pod_kube_apiserver_load_balancing.GATEWAY,
            namespace=_GATEWAY_NAMESPACE,
            spec={"clusterIPs": parts[1]},
        ),
    ]
)


def _sorted_tolerations(pod: JsonObject) -> JsonObject:
    """Sort the tolerations: the original's come out of a set."""
    found = pod["spec"].get("tolerations")
    if not found:
        return pod
    ordered = sorted(found, key=lambda each: orjson.dumps(each, option=orjson.OPT_SORT_KEYS))
    return {**pod, "spec": {**pod["spec"], "tolerations": ordered}}


def _merged_aliases(pod: JsonObject) -> JsonObject:
    """Return the pod with one host alias for each address, as `/etc/hosts` has it.

    The original adds another alias for an address that has one, which server-side apply refuses.
    """
    hosts: dict[str, list[str]] = {}
    for alias in pod["spec"].get("hostAliases", ()):
        known = hosts.setdefault(alias["ip"], [])
        known += [name for name in alias.get("hostnames", ()) if name not in known]
    if not hosts:
        return pod
    aliases = [{"ip": ip, "hostnames": names} for ip, names in hosts.items() if names]
    return {**pod, "spec": {**pod["spec"], "hostAliases": aliases}}


_TARGET: Final = st.tuples(_ACCOUNTS, _NODES, _ROUTES).map(lambda parts: [*chain(*parts)])
_REQUESTS: Final = request(("", "v1", "Pod"), "pods", PODS)


def _questions() -> Iterator[SearchStrategy[JsonObject]]:
    for path, key, settings in _WEBHOOKS:
        yield st.builds(asked, st.just((path, key)), settings, _TARGET, _REQUESTS)


PODS_SUBJECT: Final = WebhookSubject(
    "pods",
    "Webhooks that change pods",
    tuple(
        f"pergola.resource_manager.webhooks.{name}"
        for name in (
            "kubernetes_service_host",
            "pod_kube_apiserver_load_balancing",
            "pod_scheduler_name",
            "pod_topology_spread_constraints",
            "projected_token_mount",
            "seccomp_profile",
            "system_components_config",
            "facts.taints",
        )
    ),
    st.one_of([*_questions()]),
    normalise=lambda pod: _merged_aliases(_sorted_tolerations(pod)),
    always=partial(collected, "pods"),
)
"""The subject."""
