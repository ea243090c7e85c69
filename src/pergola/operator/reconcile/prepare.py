"""Preparation of the flows of a Garden: its namespace, and its release (spec 20 §8)."""

from typing import Final

from pergola.api import marks
from pergola.api.kinds import NAMESPACE as NAMESPACE_KIND
from pergola.api.kinds import VERTICAL_POD_AUTOSCALER
from pergola.api.objects import (
    JsonObject,
    Key,
    annotations_of,
    labels_of,
    uid_of,
)
from pergola.api.operator_v1alpha1 import GARDEN, Garden
from pergola.garden.landscape import NAMESPACE
from pergola.garden.landscape.errors import OperatorError
from pergola.kube.client import Client
from pergola.kube.errors import UnknownKind
from pergola.kube.finalizers import remove_finalizer
from pergola.manifests import manifest
from pergola.operator.run.direct import MANAGER

_HIGH_AVAILABILITY: Final = "high-availability-config.resources.gardener.cloud"


async def release(client: Client, garden: JsonObject) -> None:
    """Remove the operator's finalizer from a Garden, which may then disappear.

    Raises:
        KubeError: The API server refused, or did not answer.
    """
    live = await client.find(GARDEN, Key.of(garden), metadata_only=True)
    if live is not None and uid_of(live) == uid_of(garden):
        await remove_finalizer(client, GARDEN, live, marks.OPERATOR_FINALIZER)


async def check_autoscaler(client: Client, garden: Garden) -> None:
    """Check that the vertical pod autoscaler is installed if the Garden does not deploy it.

    Raises:
        OperatorError: It is not.
        KubeError: The API server refused, or did not answer.
    """
    settings = garden.spec.runtime_cluster.settings.vertical_pod_autoscaler
    if settings.enabled:
        return
    try:
        await client.resource(VERTICAL_POD_AUTOSCALER)
    except UnknownKind as error:
        raise OperatorError(
            f"VPA is required for runtime cluster but CRD is not installed: {error}"
        ) from None


async def apply_namespace(client: Client, garden: Garden) -> None:
    """Create the namespace of the garden, or label an existing one; additions of others stay.

    Raises:
        KubeError: The API server refused, or did not answer.
    """
    zones = ",".join(garden.spec.runtime_cluster.provider.zones)
    desired = manifest(
        "v1",
        "Namespace",
        NAMESPACE,
        labels={
            "gardener.cloud/role": "garden",
            "pod-security.kubernetes.io/enforce": "privileged",
            f"{_HIGH_AVAILABILITY}/consider": "true",
        },
        annotations={f"{_HIGH_AVAILABILITY}/zones": zones},
    )
    live = await client.find(NAMESPACE_KIND, Key("", NAMESPACE))
    if live is None or not _has(live, desired):
        await client.apply(desired, manager=MANAGER, force=True)


def _has(live: JsonObject, desired: JsonObject) -> bool:
    """Return whether an object has all labels and annotations of another."""
    return (
        labels_of(desired).items() <= labels_of(live).items()
        and annotations_of(desired).items() <= annotations_of(live).items()
    )
