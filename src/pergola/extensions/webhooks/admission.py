"""The webhooks of a network plugin's admission component, which runs at the garden (spec 40 §7.3).

They are served and registered by `ExtensionWebhooks`, with a client of the garden.
"""

from collections.abc import Sequence
from typing import TypeVar

from pergola.api.schema.declare import Value
from pergola.extensions.network.plugin import NetworkPlugin
from pergola.extensions.webhooks.declare import Webhook
from pergola.extensions.webhooks.shoot_mutator import ShootDefault, shoot_mutator
from pergola.extensions.webhooks.shoot_validator import shoot_validator

C = TypeVar("C", bound=Value)


def component_of(plugin: NetworkPlugin[C]) -> str:
    """The name of a plugin's admission component, such as `admission-calico`."""
    return f"admission-{plugin.type}"


def admission_webhooks(
    plugin: NetworkPlugin[C], defaults: Sequence[ShootDefault] = ()
) -> list[Webhook]:
    """What is said to Shoots with a plugin: its defaults if it has any, and its refusals."""
    component = component_of(plugin)
    found = [shoot_mutator(component, defaults, network=plugin.type)] if defaults else []
    return [*found, shoot_validator(plugin, component)]
