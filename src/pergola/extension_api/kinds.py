"""The kinds of extension resources, and how long a caller waits for each (spec 40 §4)."""

from dataclasses import dataclass
from typing import Final

from pergola.api.objects import GroupVersionKind

GROUP: Final = "extensions.gardener.cloud"
VERSION: Final = "v1alpha1"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtensionKind:
    """One kind, as its callers see it.

    Attributes:
        plural: as in the name of its CustomResourceDefinition.
        interval: seconds between two looks at an error.
        severe: seconds for which an error may still pass; one that is there at a later look ends
            the wait.
        timeout: seconds after which a wait ends in any case.
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
        """What an extension holds an object of the kind with."""
        return f"{GROUP}/{self.kind.lower()}"


NETWORK: Final = ExtensionKind(kind="Network", plural="networks")

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
