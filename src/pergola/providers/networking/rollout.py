"""Installation and removal of a plugin's network in a Shoot (spec 40 §5.3, §6.3).

Everything is checked and rendered before anything is written, so a Network that is wrong leaves
the Shoot as it is.
"""

from collections.abc import Awaitable, Sequence
from typing import TypeVar

from pergola.api.field_errors import sentence
from pergola.api.marks import OPERATION, OPERATION_RESTORE
from pergola.api.network_validation import check_network
from pergola.api.objects import JsonObject, Key, annotations_of, map_at
from pergola.api.schema.read import Malformed
from pergola.bundle import BundleError
from pergola.extension_api.cluster import Shoot
from pergola.extension_api.errors import configuration_problem
from pergola.extensions.actuator import Context, Status
from pergola.extensions.health_checks.checks import SYSTEM_COMPONENTS_HEALTHY
from pergola.extensions.managed_resources import ManagedResources
from pergola.extensions.managed_resources import delete as delete_managed_resource
from pergola.extensions.provider_config import read_strict
from pergola.kube.errors import KubeError
from pergola.providers.networking.contract import PluginContract
from pergola.providers.networking.families import desired_families, effective_families
from pergola.providers.networking.plan import C, Plan, Rendered
from pergola.providers.networking.seed_objects import SeedObjects
from pergola.runtime.logging import get_logger

log = get_logger("network")

T = TypeVar("T")


async def reconcile(plugin: PluginContract[C], context: Context, obj: JsonObject) -> Status:
    """Give the Shoot the network of a Network; return the fields of its status.

    Raises:
        ExtensionError: the Network, its config or the Shoot do not allow it.
        KubeError: the API server refused, or did not answer.
    """
    plan = await plugin.observe(context, plan_of(plugin, context, obj))
    rendered = plugin.render(plan)
    if rendered.state is not None and rendered.state != plan.state:
        # First, because the objects may depend on it.
        await context.save({"state": rendered.state})
    resources = _managed_resources(plugin, context)
    main = {plugin.managed_resource(): rendered.shoot}
    await resources.apply(
        {**rendered.managed_resources, **main}, condition_type=SYSTEM_COMPONENTS_HEALTHY
    )
    await _seed_objects(plugin, context).apply(rendered.seed)
    if plugin.wait_seconds and not plan.shoot.hibernation_enabled:
        await resources.wait_applied(plugin.managed_resource(), plugin.wait_seconds)
    for warning in rendered.warnings:
        log.warning(warning, network=str(Key.of(obj)))
    return network_status(plugin, plan, rendered)


async def delete(plugin: PluginContract[C], context: Context) -> None:
    """Delete everything; return when the Shoot has none of it left.

    Raises:
        ExtensionError: something still exists after two minutes.
        KubeError: the API server refused, or did not answer.
    """
    await _seed_objects(plugin, context).delete()
    await _managed_resources(plugin, context).delete()


async def force_delete(plugin: PluginContract[C], context: Context) -> None:
    """Request the deletion of everything; log and leave what cannot be deleted."""
    await _attempt(_seed_objects(plugin, context).delete(), "objects on the seed")
    names = _managed_resources(plugin, context).names()
    for name in await _attempt(names, "ManagedResources") or ():
        await _attempt(delete_managed_resource(context, name), f"ManagedResource {name}")


async def migrate(plugin: PluginContract[C], context: Context) -> None:
    """Delete everything on the seed, and keep everything in the Shoot.

    Raises:
        ExtensionError, KubeError: see `delete`.
    """
    await _managed_resources(plugin, context).keep_objects()
    await delete(plugin, context)


def plan_of(plugin: PluginContract[C], context: Context, obj: JsonObject) -> Plan[C]:
    """Return the checked plan of a Network; pure.

    Raises:
        ExtensionError: something in the Network, its config or the Shoot is wrong.
    """
    if findings := list(check_network(obj)):
        raise configuration_problem(f"invalid network resource: {sentence(findings)}")
    _, shoot = context.shoot_of(obj)
    spec, families = map_at(obj, "spec"), desired_families(obj)
    return Plan(
        config=_checked_config(plugin, spec.get("providerConfig"), families, shoot),
        pod_range=spec["podCIDR"],
        service_range=spec["serviceCIDR"],
        families=effective_families(families, shoot),
        shoot=shoot,
        namespace=context.namespace,
        state=map_at(obj, "status", "state"),
        is_new=_is_new(obj),
    )


def _checked_config(
    plugin: PluginContract[C], value: JsonObject | None, families: Sequence[str], shoot: Shoot
) -> C:
    try:
        config = read_strict(plugin.config, value, plugin.config_gvk())
    except Malformed as error:
        raise configuration_problem(f"invalid network config: {error}") from error
    findings = [c.under("spec.providerConfig") for c in plugin.check(config, families)]
    if findings:
        raise configuration_problem(f"invalid network config: {sentence(findings)}")
    if contradictions := list(plugin.check_shoot(config, shoot)):
        raise configuration_problem(sentence(contradictions))
    return config


def network_status(plugin: PluginContract[C], plan: Plan[C], rendered: Rendered) -> Status:
    """Return the status of a Network; its families are in the order of the original."""
    provider_status: JsonObject = {
        "apiVersion": plugin.config_gvk().api_version,
        "kind": "NetworkStatus",
        **rendered.status,
    }
    if rendered.warnings:
        provider_status["warnings"] = list(rendered.warnings)
    status: Status = {"ipFamilies": sorted(plan.families), "providerStatus": provider_status}
    if rendered.state is not None:
        status["state"] = rendered.state
    return status


def _managed_resources(plugin: PluginContract[C], context: Context) -> ManagedResources:
    return ManagedResources(context, plugin.origin())


def _seed_objects(plugin: PluginContract[C], context: Context) -> SeedObjects:
    return SeedObjects(context.client, context.namespace, plugin.origin())


def _is_new(obj: JsonObject) -> bool:
    """Return whether a Network is new; a restored one is not, even without a state."""
    status = map_at(obj, "status")
    operation = map_at(status, "lastOperation").get("type", "Create")
    requested = annotations_of(obj).get(OPERATION)
    known = status.get("providerStatus") or status.get("state")
    return operation == "Create" and requested != OPERATION_RESTORE and not known


async def _attempt(work: Awaitable[T], what: str) -> T | None:
    try:
        return await work
    except (KubeError, BundleError) as error:
        log.warning("left behind by a forced deletion", what=what, error=str(error))
        return None
