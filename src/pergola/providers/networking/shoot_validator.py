"""A network plugin's webhook that refuses Shoots which it could not serve (spec 40 §7.2, §7.3).

It asks the same functions of the plugin that its reconciliation asks, so that a Shoot that passes
here does not fail there. What was wrong already stays the Shoot's problem, and is a warning: a rule
that came later must not block hibernating, repairing or deleting a cluster.
"""

from collections.abc import Iterator
from typing import Final, TypeVar

from pergola.admission.registration import Registration
from pergola.admission.review import Handler, Request, Verdict, allowed, errored, invalid
from pergola.admission.webhook import Webhook
from pergola.api.field_errors import Cause, duplicate, unsupported
from pergola.api.field_errors import invalid as invalid_value
from pergola.api.ip_ranges import is_network
from pergola.api.kinds import GARDENER_CORE
from pergola.api.objects import JsonObject, deletion_timestamp_of, map_at
from pergola.api.schema.declare import Value
from pergola.api.schema.read import Malformed
from pergola.extension_api.cluster import Shoot
from pergola.extensions.provider_config import read_strict
from pergola.extensions.webhooks.declare import webhook_name
from pergola.extensions.webhooks.shoots import network_of, of_network, shoot_rule
from pergola.kube.patches import same
from pergola.providers.networking.contract import PluginContract

C = TypeVar("C", bound=Value)

PATH: Final = "/webhooks/validate"
CONFIG: Final = "spec.networking.providerConfig"
_FAMILIES: Final = ("IPv4", "IPv6")
_MOST_FAMILIES: Final = 2


def shoot_validator(plugin: PluginContract[C], component: str, *, path: str = PATH) -> Webhook:
    """Return the webhook of an admission component on the Shoots with a plugin.

    Args:
        component: such as `admission-calico`.
    """
    registration = Registration(
        name=webhook_name("validator", component),
        path=path,
        kind="validating",
        rules=(shoot_rule("CREATE", "UPDATE"),),
        object_selector=of_network(plugin.type),
    )
    return Webhook(registration=registration, handler=_handler(plugin))


def check_shoot(plugin: PluginContract[C], shoot: JsonObject) -> Iterator[Cause]:
    """Return the findings about the network of a Shoot, all at once."""
    if Shoot(shoot).is_workerless:
        return
    kind = network_of(shoot)
    if kind != plugin.type:
        yield unsupported("spec.networking.type", kind, [plugin.type])
        return
    yield from _range_findings(shoot)
    families = list(_family_findings(shoot))
    yield from families
    yield from _config_findings(plugin, Shoot(shoot), are_families_known=not families)


def _handler(plugin: PluginContract[C]) -> Handler:
    def handle(request: Request) -> Verdict:
        shoot, old = request.object, request.old_object
        if shoot is None:
            return errored(400, "the review has no Shoot to be validated")
        if deletion_timestamp_of(shoot) is not None:
            return allowed(because="the Shoot is being deleted")
        if old is not None and same(map_at(shoot, "spec"), map_at(old, "spec")):
            return allowed(because="the spec is unchanged")
        known = set() if old is None else set(check_shoot(plugin, old))
        causes = list(check_shoot(plugin, shoot))
        if new := tuple(cause for cause in causes if cause not in known):
            return invalid(f"Shoot.{GARDENER_CORE}", request.name, new)
        return allowed(warnings=tuple(f"{cause} (as before)" for cause in causes))

    return handle


def _range_findings(shoot: JsonObject) -> Iterator[Cause]:
    networking = map_at(shoot, "spec", "networking")
    for name in ("pods", "nodes", "services"):
        value = networking.get(name)
        if value is None or value == "":
            continue
        if not isinstance(value, str) or not is_network(value):
            yield invalid_value(f"spec.networking.{name}", value, f"invalid CIDR address: {value}")


def _family_findings(shoot: JsonObject) -> Iterator[Cause]:
    path = "spec.networking.ipFamilies"
    families = map_at(shoot, "spec", "networking").get("ipFamilies")
    if not isinstance(families, list):
        return
    for index, family in enumerate(families):
        if family not in _FAMILIES:
            yield unsupported(f"{path}[{index}]", family, _FAMILIES)
        elif family in families[:index]:
            yield duplicate(f"{path}[{index}]", family)
    if len(families) > _MOST_FAMILIES:
        yield invalid_value(path, families, f"there may be at most {_MOST_FAMILIES}")


def _config_findings(
    plugin: PluginContract[C], shoot: Shoot, *, are_families_known: bool
) -> Iterator[Cause]:
    """Yield the plugin's findings; its rules about families only apply to valid families."""
    value = map_at(shoot.raw, "spec", "networking").get("providerConfig")
    try:
        config = read_strict(plugin.config, value, plugin.config_gvk(), path=CONFIG)
    except Malformed as error:
        for finding in error.findings:
            yield Cause("FieldValueInvalid", f"Invalid value: {finding.problem}", finding.path)
        return
    if are_families_known:
        families = shoot.ip_families or [_FAMILIES[0]]
        for cause in plugin.check(config, families):
            yield cause.under(CONFIG)
    yield from plugin.check_shoot(config, shoot)
