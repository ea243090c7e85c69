"""What the original extension renders for calico, to take over from it and to compare with it.

    fields = original_calico("overlay off")["Service calico-typha"]

A table of our own in `calico_original.yaml`: the fields of each object as `readable` shows them.
"""

from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Final, cast

from pergola.api.objects import JsonObject, JsonValue
from pergola.extension_api.cluster import Shoot
from pergola.extensions.provider_config import read_strict
from pergola.kube.yaml import parse
from pergola.providers.networking.calico import Calico, NetworkConfig
from pergola.providers.networking.plugin import Plan
from pergola.testing.readable import fields, readable, title

Fields = Mapping[str, JsonValue]
VARIANTS: Final[Mapping[str, JsonObject]] = {
    "default": {},
    "overlay off": {"overlay": {"enabled": False}},
    "ebpf": {
        "ebpfDataplane": {"enabled": True},
        "birdExporter": {"enabled": True},
        "multus": {"enabled": True},
    },
}
"""The providerConfig of each variant; `ebpf` runs without kube-proxy."""


def calico_plan(variant: str, namespace: str = "shoot--project--name") -> Plan[NetworkConfig]:
    """Return the plan of a Network whose config is a variant."""
    kubernetes = {"version": "1.31.1", "kubeProxy": {"enabled": variant != "ebpf"}}
    networking = {"pods": "100.244.0.0/16", "nodes": "10.250.0.0/16"}
    status = {
        "networking": {"pods": ["100.244.0.0/16"]},
        "advertisedAddresses": [{"name": "external", "url": "https://api.example.org"}],
    }
    shoot = {"spec": {"networking": networking, "kubernetes": kubernetes}, "status": status}
    return Plan(
        config=read_strict(NetworkConfig, VARIANTS[variant], Calico.config_gvk()),
        pod_range="100.244.0.0/16",
        service_range="100.32.0.0/13",
        families=("IPv4",),
        shoot=Shoot(shoot),
        namespace=namespace,
    )


def original_calico(variant: str) -> dict[str, Fields]:
    """Return the fields of every object in a variant, by kind and name."""
    table = _table()
    found: dict[str, Fields] = {k: v for k, v in table["default"].items() if v is not None}
    if variant == "default":
        return found
    for name, changes in table[variant].items():
        if changes is None:
            del found[name]
        else:
            merged = {**found.get(name, {}), **changes}
            found[name] = {path: value for path, value in merged.items() if value is not None}
    return found


def rendered_fields(objects: list[JsonObject]) -> dict[str, Fields]:
    """Return the fields of objects in the same form."""
    return {title(obj): dict(fields(readable(obj))) for obj in objects}


def takeover_object(name: str, of: Fields) -> JsonObject:
    """Return an object with the original's immutable fields, as an API server may have it."""
    kind, _, own_name = name.partition(" ")
    version, namespaced = _KINDS[kind]
    metadata: JsonObject = {"name": own_name} | ({"namespace": "kube-system"} if namespaced else {})
    obj: JsonObject = {"apiVersion": version, "kind": kind, "metadata": metadata}
    if kind in ("DaemonSet", "Deployment"):
        labels = {
            path.removeprefix(_SELECTOR): of[path] for path in of if path.startswith(_SELECTOR)
        }
        pod = {"containers": [{"name": "original", "image": "original"}]}
        template = {"metadata": {"labels": labels}, "spec": pod}
        obj["spec"] = {"selector": {"matchLabels": labels}, "template": template}
    elif kind == "Service":
        numbers = [int(path.split(".")[2]) for path in of if path.endswith(".targetPort")]
        obj["spec"] = {"ports": [{"port": number} for number in numbers]}
    elif kind.endswith("Binding"):
        role_kind, _, role_name = str(of["roleRef"]).partition(" ")
        group = "rbac.authorization.k8s.io"
        obj["roleRef"] = {"apiGroup": group, "kind": role_kind, "name": role_name}
    elif kind == "IPPool":
        obj["spec"] = {"cidr": of["spec.cidr"]}
    elif kind == "NetworkPolicy":
        obj["spec"] = {"podSelector": {}}
    return obj


_SELECTOR: Final = "spec.selector.matchLabels."
_KINDS: Final = {
    "ClusterRole": ("rbac.authorization.k8s.io/v1", False),
    "ClusterRoleBinding": ("rbac.authorization.k8s.io/v1", False),
    "ConfigMap": ("v1", True),
    "DaemonSet": ("apps/v1", True),
    "Deployment": ("apps/v1", True),
    "IPPool": ("crd.projectcalico.org/v1", False),
    "NetworkPolicy": ("networking.k8s.io/v1", True),
    "PodDisruptionBudget": ("policy/v1", True),
    "Role": ("rbac.authorization.k8s.io/v1", True),
    "RoleBinding": ("rbac.authorization.k8s.io/v1", True),
    "Service": ("v1", True),
    "ServiceAccount": ("v1", True),
}


@cache
def _table() -> dict[str, dict[str, dict[str, JsonValue] | None]]:
    content = parse((files(__package__) / "calico_original.yaml").read_bytes())
    return cast("dict[str, dict[str, dict[str, JsonValue] | None]]", content)
