"""Building ManagedResources from manifests: unique names, compression, splitting, references.

In addition, for the same producers: `image_vector` chooses images and lets operators override them,
`lint` checks manifests against house rules.

For producers; the resource manager's side of a ManagedResource is not here.

    bundle = for_seed("garden", "greeter", Registry(config_map, deployment))
    await apply(client, bundle)
    await wait_healthy(client, bundle.key, timeout=120)
"""

from pergola.bundle.client import (
    apply,
    delete,
    delete_by_origin,
    exists,
    set_keep_objects,
    update,
)
from pergola.bundle.errors import BundleError, WaitTimeout
from pergola.bundle.managed_resource import Bundle, Settings, build, for_seed, for_shoot
from pergola.bundle.names import make_unique
from pergola.bundle.references import Reference, annotate, annotated_references, references
from pergola.bundle.registry import Registry
from pergola.bundle.waits import wait_deleted, wait_healthy, wait_not_progressing, wait_until

__all__ = [
    "Bundle",
    "BundleError",
    "Reference",
    "Registry",
    "Settings",
    "WaitTimeout",
    "annotate",
    "annotated_references",
    "apply",
    "build",
    "delete",
    "delete_by_origin",
    "exists",
    "for_seed",
    "for_shoot",
    "make_unique",
    "references",
    "set_keep_objects",
    "update",
    "wait_deleted",
    "wait_healthy",
    "wait_not_progressing",
    "wait_until",
]
