"""All webhooks, in the order of spec 12 §2.3 and §2.4.

An API server calls mutating webhooks in this order: each sees the changes of the previous ones.
"""

from collections.abc import Callable
from typing import Final

from pergola.admission.webhook import Webhook
from pergola.api.resource_manager_config.controllers import Switch
from pergola.api.resource_manager_config.webhooks import Webhooks
from pergola.resource_manager.webhooks import (
    deletion_protection,
    endpoint_slice_hints,
    kubernetes_service_host,
    pod_kube_apiserver_load_balancing,
    pod_scheduler_name,
    pod_topology_spread_constraints,
    projected_token_mount,
    seccomp_profile,
    system_components_config,
    token_invalidator,
    vpa_in_place_updates,
)
from pergola.resource_manager.webhooks.dependencies import Dependencies
from pergola.resource_manager.webhooks.extension_validation import review as extension_validation
from pergola.resource_manager.webhooks.high_availability_config import review as high_availability

_Declare = Callable[[Webhooks, Dependencies], list[Webhook]]

_ALL: Final[tuple[tuple[Callable[[Webhooks], Switch], _Declare], ...]] = (
    (lambda config: config.token_invalidator, token_invalidator.webhooks),
    (lambda config: config.projected_token_mount, projected_token_mount.webhooks),
    (lambda config: config.high_availability_config, high_availability.webhooks),
    (lambda config: config.pod_scheduler_name, pod_scheduler_name.webhooks),
    (lambda config: config.seccomp_profile, seccomp_profile.webhooks),
    (lambda config: config.kubernetes_service_host, kubernetes_service_host.webhooks),
    (
        lambda config: config.pod_kube_api_server_load_balancing,
        pod_kube_apiserver_load_balancing.webhooks,
    ),
    (lambda config: config.system_components_config, system_components_config.webhooks),
    (lambda config: config.endpoint_slice_hints, endpoint_slice_hints.webhooks),
    (
        lambda config: config.pod_topology_spread_constraints,
        pod_topology_spread_constraints.webhooks,
    ),
    (lambda config: config.vpa_in_place_updates, vpa_in_place_updates.webhooks),
    (lambda config: config.crd_deletion_protection, deletion_protection.webhooks),
    (lambda config: config.extension_validation, extension_validation.webhooks),
)


def webhooks(config: Webhooks, dependencies: Dependencies) -> list[Webhook]:
    """Return the enabled webhooks.

    Validating webhooks are registered only by runtime instances (spec 12 §2.4), but always served.
    """
    return [
        webhook
        for switch, declare in _ALL
        if switch(config).enabled
        for webhook in declare(config, dependencies)
    ]


def everything() -> Webhooks:
    """Return settings that enable all webhooks that work without settings of their own."""
    settings = Webhooks()
    for switch in settings.switches:
        switch.enabled = True
    settings.kubernetes_service_host.enabled = False  # requires a host
    return settings
