"""The kinds in a test case, as the API server serves them."""

from pergola.api.cluster_api import CLUSTER, CLUSTER_GROUP
from pergola.api.objects import GroupKind, GroupVersionKind, JsonObject, map_at, maps_at
from pergola.externally_managed.contract import Contract, contract_of, kind_of
from pergola.externally_managed.kinds import read_crd
from pergola.externally_managed.versions import newest
from pergola.kube.client import Client


class Kinds:
    """The kind of an InfraCluster, and that of its Cluster.

    Attributes:
        contract: the contract that core would use.
        infra: the InfraCluster, in the version that core reads.
        cluster: the Cluster, in its newest version.
        served: all served versions of the InfraCluster.

    Raises:
        ContractError: the CRD is not labelled for any contract.
    """

    def __init__(self, crd: JsonObject, cluster_crd: JsonObject) -> None:
        self.contract: Contract = contract_of(crd)
        self.infra = kind_of(crd, self.contract)
        self.cluster = GroupVersionKind(CLUSTER_GROUP, newest(_served(cluster_crd)), CLUSTER.kind)
        self.served = _served(crd)
        self._crd = crd

    @classmethod
    async def read(cls, client: Client, kind: GroupKind) -> "Kinds":
        """Read both CRDs.

        Raises:
            ContractError: one of them is missing, or is not labelled for any contract.
        """
        return cls(await read_crd(client, kind), await read_crd(client, CLUSTER.group_kind))

    @property
    def is_namespaced(self) -> bool:
        """Whether InfraClusters are namespaced, as they must be."""
        return map_at(self._crd, "spec").get("scope") == "Namespaced"

    @property
    def has_status(self) -> bool:
        """Whether the version that core reads has a status subresource."""
        return any(
            "status" in map_at(version, "subresources")
            for version in maps_at(self._crd, "spec", "versions")
            if version.get("name") == self.infra.version
        )

    def reference(self, infra: GroupVersionKind, name: str, namespace: str) -> JsonObject:
        """Return a Cluster's reference to an InfraCluster, in the form of the Cluster's version."""
        if self.cluster.version == "v1beta1":
            return {
                "apiVersion": infra.api_version,
                "kind": infra.kind,
                "name": name,
                "namespace": namespace,
            }
        return {"apiGroup": infra.group, "kind": infra.kind, "name": name}


def _served(crd: JsonObject) -> list[str]:
    versions = maps_at(crd, "spec", "versions")
    return [str(version["name"]) for version in versions if version.get("served")]
