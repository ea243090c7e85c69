"""The CustomResourceDefinitions of Calico (spec 40 §5.5).

Their schemas are open: Calico validates its input, and a schema here would have to follow each of
its versions. The API server needs only the names and the scope of the kinds.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from pergola.api.objects import JsonObject
from pergola.manifests import manifest
from pergola.manifests.labels import SYSTEM_COMPONENT
from pergola.providers.networking.calico.render.conventions import CALICO

POLICY: Final = "policy.networking.k8s.io"
MULTUS: Final = "k8s.cni.cncf.io"

NAMESPACED: Final = (
    "NetworkPolicy",
    "NetworkSet",
    "StagedKubernetesNetworkPolicy",
    "StagedNetworkPolicy",
)
CLUSTER_SCOPED: Final = (
    "BGPConfiguration",
    "BGPFilter",
    "BGPPeer",
    "BlockAffinity",
    "CalicoNodeStatus",
    "ClusterInformation",
    "FelixConfiguration",
    "GlobalNetworkPolicy",
    "GlobalNetworkSet",
    "HostEndpoint",
    "IPAMBlock",
    "IPAMConfig",
    "IPAMHandle",
    "IPPool",
    "IPReservation",
    "KubeControllersConfiguration",
    "StagedGlobalNetworkPolicy",
    "Tier",
)
ADMIN_POLICIES: Final = ("AdminNetworkPolicy", "BaselineAdminNetworkPolicy")
_PLURALS: Final = {
    "BlockAffinity": "blockaffinities",
    "CalicoNodeStatus": "caliconodestatuses",
    "KubeControllersConfiguration": "kubecontrollersconfigurations",
}
# Groups of *.k8s.io are protected: their kinds must name the review that approved them.
_APPROVED: Final = {
    "api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/network-policy-api/pull/30"
}
_OPEN: Final[JsonObject] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def calico_crds() -> Iterator[JsonObject]:
    """Yield the 24 definitions, by name."""
    for kind in sorted((*NAMESPACED, *CLUSTER_SCOPED)):
        yield _crd(CALICO, "v1", kind, namespaced=kind in NAMESPACED)
    for kind in ADMIN_POLICIES:
        yield _crd(POLICY, "v1alpha1", kind, namespaced=False, annotations=_APPROVED, status=True)


def network_attachment_definition() -> JsonObject:
    """Return the definition of the extra networks of Multus."""
    return _crd(
        MULTUS, "v1", "NetworkAttachmentDefinition", namespaced=True, labels=None, dashes=True
    )


def plural_of(kind: str) -> str:
    """Return the name of a kind in paths and roles."""
    word = kind.lower()
    return _PLURALS.get(kind) or (f"{word[:-1]}ies" if word.endswith("y") else f"{word}s")


def _crd(
    group: str,
    version: str,
    kind: str,
    *,
    namespaced: bool,
    labels: Mapping[str, str] | None = SYSTEM_COMPONENT,
    annotations: Mapping[str, str] | None = None,
    status: bool = False,
    dashes: bool = False,
) -> JsonObject:
    plural = "network-attachment-definitions" if dashes else plural_of(kind)
    singular = plural[:-1] if dashes else kind.lower()
    served: JsonObject = {
        "name": version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": _schema()},
        **({"subresources": {"status": {}}} if status else {}),
    }
    return manifest(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        f"{plural}.{group}",
        labels=labels,
        annotations=annotations,
        spec={
            "group": group,
            "names": {
                "kind": kind,
                "listKind": f"{kind}List",
                "plural": plural,
                "singular": singular,
            },
            "scope": "Namespaced" if namespaced else "Cluster",
            "versions": [served],
        },
    )


def _schema() -> JsonObject:
    text = {"type": "string"}
    parts: JsonObject = {"apiVersion": text, "kind": text, "metadata": {"type": "object"}}
    return {"type": "object", "properties": {**parts, "spec": _OPEN, "status": _OPEN}}
