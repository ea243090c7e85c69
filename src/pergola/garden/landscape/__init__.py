"""What the rendering of a component may depend on: the observed cluster, and credentials."""

from pergola.garden.landscape.landscape import (
    NAMESPACE,
    SEVERAL,
    Landscape,
    NodeTolerations,
    WebhookConfigurations,
)

__all__ = [
    "NAMESPACE",
    "SEVERAL",
    "Landscape",
    "NodeTolerations",
    "WebhookConfigurations",
]
