"""The kinds of extension resources, and their callers' waiting times.

Spec 40 §4, spec 21 §15.3.
"""

from dataclasses import dataclass
from typing import Final

from pergola.api.objects import GroupVersionKind

GROUP: Final = "extensions.gardener.cloud"
VERSION: Final = "v1alpha1"


_FINALIZERS: Final = {"OperatingSystemConfig": "operatingsystemconfigs"}
"""Names of finalizers that differ from that of the kind."""


def finalizer_of(kind: str) -> str:
    """Return the finalizer that keeps a resource until its extension has finished."""
    return f"{GROUP}/{_FINALIZERS.get(kind, kind.lower())}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtensionKind:
    """A kind of extension resources, for its callers.

    Attributes:
        plural: as in the name of its CustomResourceDefinition.
        interval: the seconds between two checks of an error.
        severe: how many seconds an error may still pass; later, an error ends the wait.
        timeout: the seconds after which a wait always ends.
    """

    kind: str
    plural: str
    interval: float = 5.0
    severe: float = 30.0
    timeout: float = 180.0

    @property
    def gvk(self) -> GroupVersionKind:
        """The kind with its group and version."""
        return GroupVersionKind(GROUP, VERSION, self.kind)

    @property
    def finalizer(self) -> str:
        """The finalizer of the extension on objects of the kind."""
        return finalizer_of(self.kind)


BACKUP_BUCKET: Final = ExtensionKind(
    kind="BackupBucket", plural="backupbuckets", interval=2.0, timeout=60.0
)
BACKUP_ENTRY: Final = ExtensionKind(kind="BackupEntry", plural="backupentries", timeout=600.0)
DNS_RECORD: Final = ExtensionKind(kind="DNSRecord", plural="dnsrecords", severe=15.0, timeout=120.0)
EXTENSION: Final = ExtensionKind(kind="Extension", plural="extensions")
NETWORK: Final = ExtensionKind(kind="Network", plural="networks")
CONTROL_PLANE: Final = GroupVersionKind(GROUP, VERSION, "ControlPlane")
WORKER: Final = GroupVersionKind(GROUP, VERSION, "Worker")

EXTENSION_KINDS: Final = frozenset(
    {
        "BackupBucket",
        "BackupEntry",
        "Bastion",
        "ContainerRuntime",
        "ControlPlane",
        "DNSRecord",
        "Extension",
        "Infrastructure",
        "Network",
        "OperatingSystemConfig",
        "SelfHostedShootExposure",
        "Worker",
    }
)
"""The kinds that an extension can be registered for."""

STOPPED_BY_FAILURE: Final = EXTENSION_KINDS - {
    "BackupBucket",
    "BackupEntry",
    "Bastion",
    "SelfHostedShootExposure",
}
"""Those of them for which nothing is done while their Shoot has failed."""

CLUSTER_SCOPED: Final = frozenset({"BackupBucket", "BackupEntry"})
"""Those of them that have no namespace."""
