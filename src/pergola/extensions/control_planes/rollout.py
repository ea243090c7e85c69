"""Installation and removal of a provider's control plane (spec 31 §6).

Everything is checked before anything is written, so a ControlPlane that is wrong leaves the Shoot
as it is.
"""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from typing import Final

from pergola.api.field_errors import sentence
from pergola.api.kinds import DEPLOYMENT, SECRET
from pergola.api.objects import (
    JsonObject,
    Key,
    annotations_of,
    labels_of,
    map_at,
    name_of,
    uid_of,
)
from pergola.api.schema.read import Malformed
from pergola.bundle import BundleError
from pergola.extension_api.cluster import Shoot
from pergola.extension_api.errors import ExtensionError, configuration_problem
from pergola.extensions.actuator import Context
from pergola.extensions.control_planes import resources as managed
from pergola.extensions.control_planes.contract import ControlPlaneContract
from pergola.extensions.control_planes.hibernation import API_SERVER
from pergola.extensions.control_planes.plan import C, Plan
from pergola.extensions.control_planes.resources import ControlPlaneResources
from pergola.extensions.managed_resources import as_extension_error, wait_applied
from pergola.extensions.provider_config import read_strict
from pergola.health.times import read_time
from pergola.kube.client import Client
from pergola.kube.errors import AlreadyExists, KubeError, NotFound
from pergola.kube.selectors import format_selector
from pergola.manifests import READ, rule
from pergola.manifests.shoot_access import access_secret, access_secret_name, requests_token
from pergola.runtime.logging import get_logger
from pergola.secrets_manager import (
    CertificateAuthority,
    Rotate,
    SecretsManager,
    SecretsManagerError,
)

log = get_logger("control-plane")

RULES: Final = (
    rule("apps", ["deployments"], READ),  # when an API server has stopped, and health
    rule("", ["pods"], ["get", "list"]),  # why a controller is not healthy
)
"""Permissions on the seed beyond those of every extension."""
_COMPLETING: Final = "Completing"
_WEBHOOK_SECONDS: Final = 60.0


async def reconcile(provider: ControlPlaneContract[C], context: Context, obj: JsonObject) -> None:
    """Give a Shoot the control plane of its cloud.

    Raises:
        ExtensionError: the ControlPlane, its credentials or the Shoot do not allow it.
        KubeError: the API server refused, or did not answer.
    """
    plan = await plan_of(provider, context, obj)
    resources = await ControlPlaneResources.read(context)
    await _register_webhooks(provider, context, resources, plan.shoot)
    secrets = await _generate(provider, context, plan)
    await _request_access(provider, context)
    plan = replace(plan, generated=secrets.generated)
    with as_extension_error():
        # Compressing many objects takes long.
        desired = await asyncio.to_thread(managed.bundles, plan.namespace, provider.render(plan))
    await resources.apply(desired)
    await secrets.cleanup()
    await provider.complete(context, obj, plan)


async def delete(provider: ControlPlaneContract[C], context: Context, obj: JsonObject) -> None:
    """Delete everything; return when the Shoot has none of it left.

    Controllers on the seed go last: they clean up in the cloud what the Shoot deletes.

    Raises:
        ExtensionError: something still exists after two minutes.
        KubeError: the API server refused, or did not answer.
    """
    await _refresh_configuration(provider, context, obj)
    await _remove(provider, context)
    await _delete_credentials(provider, context)


async def force_delete(provider: ControlPlaneContract[C], context: Context) -> None:
    """Request the deletion of everything; log and leave what cannot be deleted."""
    for name in managed.REMOVAL:
        with _logged(f"ManagedResource {name} was left behind"):
            await managed.remove(context, name)
    with _logged("Secrets were left behind"):
        await _withdraw_access(provider, context)
        await _delete_credentials(provider, context)


async def migrate(provider: ControlPlaneContract[C], context: Context) -> None:
    """Delete everything on the seed; keep everything in the Shoot, and the authorities.

    Raises:
        ExtensionError, KubeError: see `delete`.
    """
    for name in managed.KEPT_IN_SHOOT:
        await managed.keep(context, name)
    await _remove(provider, context)


async def plan_of(provider: ControlPlaneContract[C], context: Context, obj: JsonObject) -> Plan[C]:
    """Return the checked plan of a ControlPlane.

    Raises:
        ExtensionError: something in the ControlPlane or the Shoot is wrong, or the Secret with the
            credentials is missing.
        KubeError: the API server refused, or did not answer.
    """
    cluster, shoot = context.shoot_of(obj)
    spec = map_at(obj, "spec")
    try:
        config = read_strict(
            provider.config,
            spec.get("providerConfig"),
            provider.config_gvk,
            needs_type=bool(spec.get("providerConfig")),
        )
    except Malformed as error:
        raise configuration_problem(f"invalid control plane config: {error}") from error
    plan = Plan(
        config=config,
        infrastructure=map_at(spec, "infrastructureProviderStatus"),
        region=str(spec.get("region") or ""),
        cluster=cluster,
        shoot=shoot,
        namespace=context.namespace,
        credentials=await _credentials_of(context.client, obj),
        is_awake=await _is_awake(context.client, context.namespace, shoot),
    )
    if findings := list(provider.check(plan)):
        raise configuration_problem(f"invalid control plane: {sentence(findings)}")
    return plan


async def _is_awake(client: Client, namespace: str, shoot: Shoot) -> bool:
    """Return whether controllers run; until the API server is gone, they prepare hibernation."""
    if not shoot.hibernation_enabled or shoot.is_deleting or shoot.is_migrating:
        return True
    server = await client.find(DEPLOYMENT, Key(namespace, API_SERVER))
    return server is not None and map_at(server, "spec").get("replicas", 1) != 0


async def _credentials_of(client: Client, obj: JsonObject) -> JsonObject:
    reference = map_at(obj, "spec", "secretRef")
    key = Key(str(reference.get("namespace") or ""), str(reference.get("name") or ""))
    if not key.name:
        raise configuration_problem(f"ControlPlane {Key.of(obj)}: spec.secretRef.name is missing")
    try:
        return await client.get(SECRET, key)
    except NotFound:
        raise ExtensionError(
            f"Secret {key} with the credentials of the cloud does not exist"
        ) from None


async def _register_webhooks(
    provider: ControlPlaneContract[C],
    context: Context,
    resources: ControlPlaneResources,
    shoot: Shoot,
) -> None:
    """Register the webhooks first, so that no object of the Shoot is created without them."""
    if provider.shoot_webhooks is None or shoot.is_self_hosted:
        return
    configurations = await provider.shoot_webhooks()
    changed = await resources.apply([managed.webhooks_bundle(context.namespace, configurations)])
    if shoot.hibernation_enabled or not (changed or resources.is_pending(managed.WEBHOOKS)):
        return
    with as_extension_error():
        await wait_applied(context, managed.WEBHOOKS, _WEBHOOK_SECONDS)


async def _generate(
    provider: ControlPlaneContract[C], context: Context, plan: Plan[C]
) -> SecretsManager:
    """Generate the credentials; authorities rotate together with those of the Shoot."""
    needed = list(provider.credentials(plan.namespace))
    authorities = {
        each.config.name for each in needed if isinstance(each.config, CertificateAuthority)
    }
    started, is_completing = _rotation_of(plan.shoot)
    times: Mapping[str, datetime] = dict.fromkeys(authorities, started) if started else {}
    try:
        secrets = await SecretsManager.open(
            context.client,
            plan.namespace,
            provider.identity(),
            clock=context.clock,
            rotation_times=times,
        )
        for config, options in needed:
            chosen = options
            if config.name in authorities:
                chosen = replace(options, rotate=Rotate.KEEP_OLD, ignore_old=is_completing)
            await secrets.generate(config, chosen)
    except SecretsManagerError as error:
        raise ExtensionError(str(error)) from error
    return secrets


def _rotation_of(shoot: Shoot) -> tuple[datetime | None, bool]:
    """Return when the last rotation of authorities began, and whether the old ones go now."""
    rotation = map_at(shoot.raw, "status", "credentials", "rotation", "certificateAuthorities")
    return read_time(rotation.get("lastInitiationTime")), rotation.get("phase") == _COMPLETING


async def _request_access(provider: ControlPlaneContract[C], context: Context) -> None:
    """Create the Secrets for tokens, and repair their labels and annotations."""
    if not provider.accounts:
        return
    client = context.client
    live = {name_of(each): each for each in await _access_secrets(context)}
    for account in provider.accounts:
        desired = access_secret(account, context.namespace)
        found = live.get(name_of(desired))
        if found is not None and _has_marks(found, desired):
            continue
        try:
            await client.create(desired)
        except AlreadyExists:
            marks = {"labels": labels_of(desired), "annotations": annotations_of(desired)}
            await client.patch(SECRET, Key.of(desired), {"metadata": marks})


def _has_marks(live: JsonObject, desired: JsonObject) -> bool:
    return (
        labels_of(desired).items() <= labels_of(live).items()
        and annotations_of(desired).items() <= annotations_of(live).items()
    )


async def _withdraw_access(provider: ControlPlaneContract[C], context: Context) -> None:
    names = {access_secret_name(account) for account in provider.accounts}
    for secret in await _access_secrets(context):
        if name_of(secret) in names:
            with suppress(NotFound):
                await context.client.delete(SECRET, Key.of(secret), uid=uid_of(secret))


async def _access_secrets(context: Context) -> list[JsonObject]:
    """Return the metadata of the Secrets that request tokens in the namespace."""
    labels = format_selector({"matchLabels": requests_token()})
    return await context.client.list(SECRET, context.namespace, labels=labels, metadata_only=True)


async def _refresh_configuration(
    provider: ControlPlaneContract[C], context: Context, obj: JsonObject
) -> None:
    """Update what controllers read, as far as possible: they still have to clean up."""
    with _logged("the configuration of controllers was left as it was"):
        plan = await plan_of(provider, context, obj)
        secrets = await _generate(provider, context, plan)
        rendered = provider.render(replace(plan, generated=secrets.generated))
        resources = await ControlPlaneResources.read(context)
        await resources.update(managed.bundles(plan.namespace, rendered)[0])


async def _remove(provider: ControlPlaneContract[C], context: Context) -> None:
    """Delete all ManagedResources in order, and the requests for tokens."""
    with as_extension_error():
        await managed.remove(context, managed.STORAGE_CLASSES)
        await managed.remove(context, managed.DEFINITIONS)
        await managed.wait_deleted(context, managed.DEFINITIONS)
        await managed.remove(context, managed.SHOOT)
        await managed.wait_deleted(context, managed.STORAGE_CLASSES)
        await managed.wait_deleted(context, managed.SHOOT)
        await managed.remove(context, managed.SEED)
        await managed.remove(context, managed.CONFIGURATION)
        await _withdraw_access(provider, context)
        await managed.remove(context, managed.WEBHOOKS)
        await managed.wait_deleted(context, managed.WEBHOOKS)


async def _delete_credentials(provider: ControlPlaneContract[C], context: Context) -> None:
    secrets = await SecretsManager.open(
        context.client, context.namespace, provider.identity(), clock=context.clock
    )
    await secrets.cleanup()


@contextmanager
def _logged(consequence: str) -> Iterator[None]:
    """Log a failure that must not block the removal."""
    try:
        yield
    except (ExtensionError, KubeError, BundleError, SecretsManagerError) as error:
        log.warning(consequence, error=str(error))
