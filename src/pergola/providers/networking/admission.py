"""The webhooks of a network plugin's admission component, which runs in the garden (spec 40 §7.3).

`pergola extension admission` serves and registers them, along with those of other actuators.
"""

from collections.abc import Sequence
from typing import TypeVar

from pergola.admission.webhook import Webhook
from pergola.api.schema.declare import Value
from pergola.extensions.webhooks.admission import component_of
from pergola.extensions.webhooks.shoot_mutator import ShootDefault, shoot_mutator
from pergola.providers.networking.contract import PluginContract
from pergola.providers.networking.shoot_validator import shoot_validator

C = TypeVar("C", bound=Value)


def admission_webhooks(
    plugin: PluginContract[C], defaults: Sequence[ShootDefault] = ()
) -> list[Webhook]:
    """Return a plugin's webhooks on Shoots: its defaults, if any, and its validation."""
    component = component_of(plugin)
    found = [shoot_mutator(component, defaults, network=plugin.type)] if defaults else []
    return [*found, shoot_validator(plugin, component)]
