"""All webhooks of the operator, in the order of spec 21 §6."""

from dataclasses import dataclass
from typing import Final

from pergola.admission import Webhook
from pergola.operator.webhooks import break_glass
from pergola.operator.webhooks.audit_policy import audit_policies
from pergola.operator.webhooks.extension import defaulting as extension_defaulting
from pergola.operator.webhooks.extension import review as extension_validation
from pergola.operator.webhooks.garden import defaulting as garden_defaulting
from pergola.operator.webhooks.garden.review import garden_validation
from pergola.operator.webhooks.lookups import Lookups
from pergola.operator.webhooks.namespace import namespace_deletion
from pergola.runtime.clock import Clock

CONFIGURATION_NAME: Final = "gardener-operator"
"""The name of both webhook configurations and of the Service for the webhooks."""


@dataclass(frozen=True, slots=True)
class Dependencies:
    """The dependencies of the handlers.

    Attributes:
        any_version: Whether Gardens may have unsupported versions of Kubernetes.
    """

    lookups: Lookups
    clock: Clock
    any_version: bool = False


def webhooks(dependencies: Dependencies) -> list[Webhook]:
    """Return all webhooks; none is called for an object with the break-glass label."""
    return [*map(break_glass.respecting, _all(dependencies))]


def _all(dependencies: Dependencies) -> list[Webhook]:
    lookups, clock = dependencies.lookups, dependencies.clock
    return [
        garden_validation(lookups, clock, any_version=dependencies.any_version),
        extension_validation.WEBHOOK,
        namespace_deletion(lookups),
        audit_policies(lookups),
        garden_defaulting.WEBHOOK,
        extension_defaulting.WEBHOOK,
    ]
