"""All webhooks: which a configuration switches on, who answers, and for what they are asked.

The order is that in which an API server asks them (spec 12 §2.3, §2.4): each one sees what those
before it changed.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

from pergola.admission.registration import Registration
from pergola.admission.review import Handler
from pergola.api.resource_manager_config.controllers import Switch
from pergola.api.resource_manager_config.webhooks import Webhooks
from pergola.resource_manager.webhooks import (
    deletion_protection,
    endpoint_slice_hints,
    high_availability_config,
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
from pergola.resource_manager.webhooks.deletion_events import DeletionEvents
from pergola.resource_manager.webhooks.extension_validation import review as extensions
from pergola.resource_manager.webhooks.high_availability_config import HighAvailability
from pergola.resource_manager.webhooks.high_availability_config.settings import (
    Version,
    profile_for,
)
from pergola.resource_manager.webhooks.installation import Installation
from pergola.resource_manager.webhooks.lookups import Lookups
from pergola.runtime.clock import Clock


@dataclass(frozen=True, slots=True)
class Webhook:
    """One webhook as it is registered and served.

    Attributes:
        registrations: one or several entries; none where the installation has no use for it.
        handlers: by the paths of these entries.
    """

    registrations: list[Registration]
    handlers: dict[str, Handler]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What webhooks need besides their configuration.

    Attributes:
        deletion_events: records confirmed deletions; None for no Events.
        clock: the system's if None.
        version: of the cluster's Kubernetes, by which some rules are chosen; None if not known.
    """

    installation: Installation
    lookups: Lookups
    deletion_events: DeletionEvents | None = None
    clock: Clock | None = None
    version: Version | None = None


def webhooks(config: Webhooks, around: Surroundings) -> list[Webhook]:
    """The admission webhooks that are switched on.

    Validating ones are registered by runtime instances only (spec 12 §2.4), but always served.
    """
    return [
        Webhook(
            row.registrations(around.installation) if _is_registered(row, around) else [],
            row.handlers(config, around),
        )
        for row in (*_MUTATING, *_VALIDATING)
        if row.switch(config).enabled
    ]


def registered(config: Webhooks, installation: Installation) -> list[Registration]:
    """All entries of the webhooks that are switched on, whoever answers."""
    rows = (*_MUTATING, *_VALIDATING) if installation.kind == "runtime" else _MUTATING
    return [
        entry
        for row in rows
        if row.switch(config).enabled
        for entry in row.registrations(installation)
    ]


def registrations(found: Iterable[Webhook]) -> list[Registration]:
    """All entries, in the order of the configurations."""
    return [entry for webhook in found for entry in webhook.registrations]


def handlers(found: Iterable[Webhook]) -> dict[str, Handler]:
    """Who answers at which path.

    Raises:
        ValueError: two answer at the same one.
    """
    served: dict[str, Handler] = {}
    for webhook in found:
        for path, handler in webhook.handlers.items():
            if served.setdefault(path, handler) is not handler:
                raise ValueError(f"two webhooks answer at {path}")
    return served


def _is_registered(row: "_Row", around: Surroundings) -> bool:
    return row in _MUTATING or around.installation.kind == "runtime"


class _Row(NamedTuple):
    """A webhook: its switch in the configuration, its entries, and how its handlers are made."""

    switch: Callable[[Webhooks], Switch]
    registrations: Callable[[Installation], list[Registration]]
    handlers: Callable[[Webhooks, Surroundings], dict[str, Handler]]


def _handlers_of_token_mount(config: Webhooks, around: Surroundings) -> dict[str, Handler]:
    seconds = config.projected_token_mount.expiration_seconds
    if seconds is None:
        seconds = projected_token_mount.DEFAULT_EXPIRATION_SECONDS
    handler = projected_token_mount.ProjectedTokenMount(around.lookups.mounts_token, seconds)
    return {projected_token_mount.PATH: handler}


def high_availability(config: Webhooks, around: Surroundings) -> HighAvailability:
    """The handler of the high-availability webhook."""
    settings = config.high_availability_config
    return HighAvailability(
        around.lookups,
        profile_for(settings.profile, around.version),
        not_ready=settings.default_not_ready_toleration_seconds,
        unreachable=settings.default_unreachable_toleration_seconds,
    )


def _handlers_of_high_availability(config: Webhooks, around: Surroundings) -> dict[str, Handler]:
    return {high_availability_config.PATH: high_availability(config, around)}


def _handlers_of_scheduler_name(config: Webhooks, _: Surroundings) -> dict[str, Handler]:
    name = config.pod_scheduler_name.scheduler_name or pod_scheduler_name.DEFAULT
    return {pod_scheduler_name.PATH: pod_scheduler_name.PodSchedulerName(name)}


def _handlers_of_service_host(config: Webhooks, _: Surroundings) -> dict[str, Handler]:
    host = config.kubernetes_service_host.host
    return {kubernetes_service_host.PATH: kubernetes_service_host.KubernetesServiceHost(host)}


def _handlers_of_load_balancing(_: Webhooks, around: Surroundings) -> dict[str, Handler]:
    handler = pod_kube_apiserver_load_balancing.PodKubeApiserverLoadBalancing(
        around.lookups.config_map, around.lookups.service
    )
    return {pod_kube_apiserver_load_balancing.PATH: handler}


def _handlers_of_system_components(config: Webhooks, around: Surroundings) -> dict[str, Handler]:
    settings = config.system_components_config
    handler = system_components_config.SystemComponentsConfig(
        around.lookups.system_taints, settings.pod_node_selector, settings.pod_tolerations
    )
    return {system_components_config.PATH: handler}


def _handlers_of_deletion_protection(config: Webhooks, around: Surroundings) -> dict[str, Handler]:
    handler = deletion_protection.DeletionProtection(
        around.lookups.objects,
        events=around.deletion_events,
        clock=around.clock,
        maximum_age=config.crd_deletion_protection.confirmation_maximum_age,
    )
    return {deletion_protection.PATH: handler}


_MUTATING: Final = (
    _Row(
        lambda config: config.token_invalidator,
        token_invalidator.registrations,
        lambda *_: {token_invalidator.PATH: token_invalidator.review},
    ),
    _Row(
        lambda config: config.projected_token_mount,
        projected_token_mount.registrations,
        _handlers_of_token_mount,
    ),
    _Row(
        lambda config: config.high_availability_config,
        high_availability_config.registrations,
        _handlers_of_high_availability,
    ),
    _Row(
        lambda config: config.pod_scheduler_name,
        pod_scheduler_name.registrations,
        _handlers_of_scheduler_name,
    ),
    _Row(
        lambda config: config.seccomp_profile,
        seccomp_profile.registrations,
        lambda *_: {seccomp_profile.PATH: seccomp_profile.review},
    ),
    _Row(
        lambda config: config.kubernetes_service_host,
        kubernetes_service_host.registrations,
        _handlers_of_service_host,
    ),
    _Row(
        lambda config: config.pod_kube_api_server_load_balancing,
        pod_kube_apiserver_load_balancing.registrations,
        _handlers_of_load_balancing,
    ),
    _Row(
        lambda config: config.system_components_config,
        system_components_config.registrations,
        _handlers_of_system_components,
    ),
    _Row(
        lambda config: config.endpoint_slice_hints,
        endpoint_slice_hints.registrations,
        lambda *_: {endpoint_slice_hints.PATH: endpoint_slice_hints.review},
    ),
    _Row(
        lambda config: config.pod_topology_spread_constraints,
        pod_topology_spread_constraints.registrations,
        lambda *_: {pod_topology_spread_constraints.PATH: pod_topology_spread_constraints.review},
    ),
    _Row(
        lambda config: config.vpa_in_place_updates,
        vpa_in_place_updates.registrations,
        lambda *_: {vpa_in_place_updates.PATH: vpa_in_place_updates.review},
    ),
)
_VALIDATING: Final = (
    _Row(
        lambda config: config.crd_deletion_protection,
        deletion_protection.registrations,
        _handlers_of_deletion_protection,
    ),
    _Row(
        lambda config: config.extension_validation,
        extensions.registrations,
        lambda config, _: extensions.handlers(config.extension_validation.profile),
    ),
)
