"""Checks of what webhooks change. Nothing is stored: the API server calls them in dry runs, too."""

from collections.abc import Awaitable, Callable
from typing import Final

from conformance.places.checks.setting import ACCOUNT, HOST, SYSTEM_POOL, eventually
from conformance.places.place import Check, Site
from pergola.api import marks
from pergola.api.kinds import VERTICAL_POD_AUTOSCALER
from pergola.api.objects import JsonObject, map_at, maps_at
from pergola.manifests import manifest
from pergola.sandbox.components import BIN_PACKING

_HASH: Final = "abc"
_IMAGE: Final = "registry.example/app:1"


def _pod(site: Site) -> JsonObject:
    return _pod_in(site.namespace)


def _pod_in(namespace: str) -> JsonObject:
    """Return a pod that each webhook changes."""
    constraint = {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    secret = {"secretName": "generic-token-kubeconfig-1", "optional": True}
    return manifest(
        "v1",
        "Pod",
        "mutated",
        namespace=namespace,
        labels={"pod-template-hash": _HASH, marks.MANAGED_BY: "gardener", "app": "web"},
        spec={
            "serviceAccountName": ACCOUNT,
            "containers": [{"name": "app", "image": _IMAGE}],
            "topologySpreadConstraints": [constraint],
            "volumes": [{"name": "kubeconfig", "secret": secret}],
        },
    )


def _has_token(pod: JsonObject) -> bool:
    return any(
        each["name"] == "kube-api-access-gardener" for each in maps_at(pod, "spec", "volumes")
    )


def _has_seccomp_profile(pod: JsonObject) -> bool:
    profile = map_at(pod, "spec", "securityContext", "seccompProfile")
    return profile == {"type": "RuntimeDefault"}


def _has_gateway(pod: JsonObject) -> bool:
    names = [name for each in maps_at(pod, "spec", "hostAliases") for name in each["hostnames"]]
    return names == [HOST]


def _is_system_component(pod: JsonObject) -> bool:
    keys = {each.get("key") for each in maps_at(pod, "spec", "tolerations")}
    return map_at(pod, "spec", "nodeSelector") == SYSTEM_POOL and "dedicated" in keys


def _has_host(pod: JsonObject) -> bool:
    (container,) = maps_at(pod, "spec", "containers")
    return {"name": "KUBERNETES_SERVICE_HOST", "value": HOST} in maps_at(container, "env")


def _has_scheduler(pod: JsonObject) -> bool:
    return bool(map_at(pod, "spec").get("schedulerName") == BIN_PACKING)


def _spreads_by_hash(pod: JsonObject) -> bool:
    (constraint,) = maps_at(pod, "spec", "topologySpreadConstraints")
    labels = map_at(constraint, "labelSelector", "matchLabels")
    return bool(labels.get("pod-template-hash") == _HASH)


def _workload(site: Site) -> JsonObject:
    labels = {
        "high-availability-config.resources.gardener.cloud/type": "server",
        marks.MANAGED_BY: "gardener",
    }
    selected = {"app": "web"}
    spec = {"containers": [{"name": "app", "image": _IMAGE}]}
    template = {"metadata": {"labels": selected}, "spec": spec}
    return manifest(
        "apps/v1",
        "Deployment",
        "mutated",
        namespace=site.namespace,
        labels=labels,
        spec={"replicas": 1, "selector": {"matchLabels": selected}, "template": template},
    )


def _is_highly_available(workload: JsonObject) -> bool:
    keys = {
        each.get("key") for each in maps_at(workload, "spec", "template", "spec", "tolerations")
    }
    return workload["spec"]["replicas"] == 2 and (
        not keys or "node.kubernetes.io/not-ready" in keys
    )


def _autoscaler(site: Site) -> JsonObject:
    return manifest(
        VERTICAL_POD_AUTOSCALER.api_version,
        VERTICAL_POD_AUTOSCALER.kind,
        "mutated",
        namespace=site.namespace,
        spec={
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "mutated"},
            "updatePolicy": {"updateMode": "Recreate"},
        },
    )


def _updates_in_place(autoscaler: JsonObject) -> bool:
    mode = map_at(autoscaler, "spec", "updatePolicy").get("updateMode")
    return bool(mode == "InPlaceOrRecreate")


def _created(
    make: Callable[[Site], JsonObject], holds: Callable[[JsonObject], bool]
) -> Callable[[Site], Awaitable[None]]:
    async def check(site: Site) -> None:
        last: JsonObject = {}

        async def probe() -> bool:
            nonlocal last
            last = await site.target.client.create(make(site), dry_run=True)
            return holds(last)

        try:
            await eventually("an object that its webhook changed", probe)
        except AssertionError as error:
            raise AssertionError(f"{error}; the API server returned {last.get('spec')}") from None

    return check


TOKEN: Final = Check("mutated", "pods get a token", _created(_pod, _has_token))
SECCOMP: Final = Check(
    "mutated", "pods get a seccomp profile", _created(_pod, _has_seccomp_profile)
)
GATEWAY: Final = Check("mutated", "pods reach their API server", _created(_pod, _has_gateway))
OWN_GATEWAY: Final = Check(
    "mutated",
    "the virtual garden's pods reach their API server",
    _created(lambda site: _pod_in(site.place.namespace), _has_gateway),
)
SYSTEM_COMPONENTS: Final = Check(
    "mutated", "pods get nodes for system components", _created(_pod, _is_system_component)
)
SERVICE_HOST: Final = Check("mutated", "pods get the API server's host", _created(_pod, _has_host))
SCHEDULER: Final = Check("mutated", "pods get a scheduler", _created(_pod, _has_scheduler))
SPREAD: Final = Check("mutated", "pods spread by their hash", _created(_pod, _spreads_by_hash))
HIGH_AVAILABILITY: Final = Check(
    "mutated", "Deployments get replicas", _created(_workload, _is_highly_available)
)
AUTOSCALERS: Final = Check(
    "mutated", "autoscalers update in place", _created(_autoscaler, _updates_in_place)
)
