"""The settings of the network policy controller in a configuration."""

from pergola.api.resource_manager_config import ResourceManagerConfiguration
from pergola.controllers.network_policy import Settings


def network_policy_settings(
    config: ResourceManagerConfiguration, namespaces: tuple[str, ...] | None = None
) -> Settings:
    """Return the settings of the network policy controller.

    Args:
        namespaces: the watched namespaces of the target, all if empty; those of the configuration
            by default.
    """
    if namespaces is None:
        target = config.target_client_connection or config.source_client_connection
        namespaces = tuple(target.namespaces)
    settings = config.controllers.network_policy
    ingress = settings.ingress_controller_selector
    selector = ingress.pod_selector.to_json() if ingress and ingress.pod_selector else {}
    return Settings(
        workers=settings.workers,
        namespace_selectors=tuple(chosen.to_json() for chosen in settings.namespace_selectors),
        ingress_controller=(ingress.namespace, selector) if ingress else None,
        only_for_matching_pods=settings.only_for_matching_pods,
        namespaces=namespaces,
    )
