"""The ManagedResources of a control plane (spec 31 §6)."""

from collections.abc import Iterable, Sequence
from typing import Final, Self

from pergola.api import marks
from pergola.api.managed_resource_status import applied_problem, healthy_problem
from pergola.api.objects import JsonObject, Key, deletion_timestamp_of, name_of
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.bundle import (
    Bundle,
    Registry,
    Settings,
    apply,
    build,
    set_keep_objects,
    update,
)
from pergola.bundle import delete as delete_bundle
from pergola.bundle import wait_deleted as wait_bundle_deleted
from pergola.bundle.managed_resource import SEED_CLASS, merge_into
from pergola.extension_api.errors import ExtensionError, RequeueAfter
from pergola.extensions.actuator import Context
from pergola.extensions.control_planes.plan import Rendered
from pergola.extensions.managed_resources import DELETION_SECONDS, as_extension_error

CONFIGURATION: Final = "extension-controlplane-configuration-seed"
SEED: Final = "extension-controlplane-seed"
SHOOT: Final = "extension-controlplane-shoot"
DEFINITIONS: Final = "extension-controlplane-shoot-crds"
STORAGE_CLASSES: Final = "extension-controlplane-storageclasses"
WEBHOOKS: Final = "extension-controlplane-shoot-webhooks"
REMOVAL: Final = (STORAGE_CLASSES, DEFINITIONS, SHOOT, SEED, CONFIGURATION, WEBHOOKS)
"""All of them, in the order of their removal."""
KEPT_IN_SHOOT: Final = (SHOOT, DEFINITIONS, STORAGE_CLASSES)
"""Those whose objects stay in the Shoot when it moves to another seed."""

_DELETION_PAUSE: Final = 5.0
_ON_SEED: Final = Settings(resource_class=SEED_CLASS)
_NO_CLEANUP: Final = {marks.NO_CLEANUP: "true"}


def bundles(namespace: str, rendered: Rendered) -> list[Bundle]:
    """Return the objects as bundles, in the order of their installation."""
    shoot, enforced = _in_shoot(enforced=False), _in_shoot(enforced=True)
    parts = (
        (CONFIGURATION, rendered.configuration, _ON_SEED),
        (SEED, rendered.seed, _ON_SEED),
        (SHOOT, rendered.shoot, shoot),
        (DEFINITIONS, rendered.definitions, shoot),
        (STORAGE_CLASSES, rendered.storage_classes, enforced),
    )
    return [_bundle(namespace, *part) for part in parts]


def webhooks_bundle(namespace: str, configurations: Sequence[JsonObject]) -> Bundle:
    """Return the bundle with the webhooks for objects of a Shoot."""
    return _bundle(namespace, WEBHOOKS, configurations, Settings())


class ControlPlaneResources:
    """The ManagedResources of a control plane, as listed once.

    Args:
        live: those of the namespace, by name.
    """

    def __init__(self, context: Context, live: dict[str, JsonObject]) -> None:
        self._context = context
        self._live = live

    @classmethod
    async def read(cls, context: Context) -> Self:
        """List them with one request."""
        listed = await context.client.list(MANAGED_RESOURCE, context.namespace)
        return cls(context, {name_of(each): each for each in listed})

    def is_pending(self, name: str) -> bool:
        """Return whether one was not healthy when it was listed."""
        live = self._live.get(name, {})
        return bool(applied_problem(live) or healthy_problem(live))

    async def apply(self, bundles: Iterable[Bundle]) -> bool:
        """Apply bundles in order, and delete those without objects; return whether any differed.

        One that is up to date, and that the resource manager has applied, needs no request: its
        Secrets are immutable, and their names follow from their content.

        Raises:
            RequeueAfter: one of a previous ControlPlane is still being deleted.
            ExtensionError: an object occurs twice, or is too large.
            KubeError: the API server refused, or did not answer.
        """
        differed = False
        for bundle in bundles:
            name = bundle.key.name
            live = self._live.get(name)
            if not bundle.secrets:
                if live is not None:
                    await remove(self._context, name)
                continue
            if live is not None and deletion_timestamp_of(live) is not None:
                cause = f"ManagedResource {bundle.key} of a previous ControlPlane is being deleted"
                raise RequeueAfter(_DELETION_PAUSE, ExtensionError(cause))
            if live is not None and _is_applied(live, bundle):
                continue
            with as_extension_error():
                await apply(self._context.client, bundle, clock=self._context.clock)
            differed = True
        return differed

    async def update(self, bundle: Bundle) -> None:
        """Update one if it exists."""
        live = self._live.get(bundle.key.name)
        if live is not None and not _is_applied(live, bundle):
            await update(self._context.client, bundle, clock=self._context.clock)


async def keep(context: Context, name: str) -> None:
    """Keep the objects of one when it is deleted; no-op if it is gone."""
    await set_keep_objects(context.client, Key(context.namespace, name), keep=True)


async def remove(context: Context, name: str) -> None:
    """Request the deletion of one; no-op if it is gone."""
    await delete_bundle(context.client, Key(context.namespace, name), secret_prefix=False)


async def wait_deleted(context: Context, name: str) -> None:
    """Wait until one is gone, along with its objects that are not kept.

    Raises:
        WaitTimeout: it still exists; the text gives the reason, if known.
    """
    await wait_bundle_deleted(context.client, Key(context.namespace, name), DELETION_SECONDS)


def _bundle(namespace: str, name: str, objects: Sequence[JsonObject], settings: Settings) -> Bundle:
    return build(namespace, name, Registry(*objects), settings=settings, secret_prefix=False)


def _in_shoot(*, enforced: bool) -> Settings:
    return Settings(
        inject_labels=_NO_CLEANUP,
        keep_objects=False,
        force_overwrite_annotations=enforced,
    )


def _is_applied(live: JsonObject, bundle: Bundle) -> bool:
    return merge_into(live, bundle.managed_resource) == live and applied_problem(live) is None
