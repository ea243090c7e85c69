"""Names of the parts of an Extension; they are the original's, so that it can be taken over."""

from typing import Final

from pergola.api.objects import JsonObject, Key, map_at
from pergola.garden.landscape import NAMESPACE

ORIGIN: Final = "gardener-operator"
"""The creator of ManagedResources, according to their label."""
POD_SECURITY: Final = "security.gardener.cloud/pod-security-enforce"
"""The annotation of an Extension with the Pod Security Standard of its namespaces."""


def runtime_namespace(name: str) -> str:
    """Return the namespace of an Extension in the runtime cluster."""
    return f"runtime-extension-{name}"


def virtual_namespace(name: str) -> str:
    """Return the namespace of an Extension's admission in the virtual cluster."""
    return f"extension-{name}"


def runtime_resource(name: str) -> Key:
    """Return the ManagedResource of an Extension in the runtime cluster."""
    return Key(NAMESPACE, f"extension-{name}-garden")


def admission_runtime_resource(name: str) -> Key:
    """Return the ManagedResource of an Extension's admission in the runtime cluster."""
    return Key(NAMESPACE, f"extension-admission-runtime-{name}")


def admission_virtual_resource(name: str) -> Key:
    """Return the ManagedResource of an Extension's admission in the virtual cluster."""
    return Key(NAMESPACE, f"extension-admission-virtual-{name}")


def registration_resource(name: str) -> Key:
    """Return the ManagedResource with the registration of an Extension."""
    return Key(NAMESPACE, f"extension-registration-{name}")


def admission_account(name: str) -> str:
    """Return the ServiceAccount of an Extension's admission in the virtual cluster."""
    return f"extension-admission-{name}"


def chart_of(extension: JsonObject, *path: str) -> JsonObject:
    """Return the `ociRepository` of a deployment below `spec.deployment`; empty without one."""
    return map_at(extension, "spec", "deployment", *path, "helm", "ociRepository")


EXTENSION_CHART: Final = ("extension",)
ADMISSION_RUNTIME_CHART: Final = ("admission", "runtimeCluster")
ADMISSION_VIRTUAL_CHART: Final = ("admission", "virtualCluster")
