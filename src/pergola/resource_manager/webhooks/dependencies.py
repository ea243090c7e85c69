"""Dependencies of the webhooks in addition to their configuration."""

from dataclasses import dataclass

from pergola.resource_manager.webhooks.deletion_events import DeletionEvents
from pergola.resource_manager.webhooks.facts.high_availability import Version
from pergola.resource_manager.webhooks.facts.lookups import Lookups
from pergola.resource_manager.webhooks.installation import Installation
from pergola.runtime.clock import Clock


@dataclass(frozen=True, slots=True)
class Dependencies:
    """The dependencies of handlers.

    Attributes:
        deletion_events: records confirmed deletions; None for no Events.
        clock: the system's clock if None.
        version: the cluster's Kubernetes version, which selects some rules; None if unknown.
    """

    installation: Installation
    lookups: Lookups
    deletion_events: DeletionEvents | None = None
    clock: Clock | None = None
    version: Version | None = None
