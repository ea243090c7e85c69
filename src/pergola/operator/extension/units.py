"""The controllers of Extensions (spec 21 §13)."""

from typing import Final, NamedTuple

from pergola.api.operator_config import OperatorConfiguration
from pergola.api.operator_v1alpha1 import EXTENSION
from pergola.charts import Blobs, Helm, Puller
from pergola.extension_api.kinds import BACKUP_BUCKET, BACKUP_ENTRY, ExtensionKind
from pergola.garden.landscape import NAMESPACE
from pergola.operator.chart_source import Charts
from pergola.operator.conditions import Conditions
from pergola.operator.copies import Copies
from pergola.operator.extension import triggers
from pergola.operator.extension.admission import AdmissionPart
from pergola.operator.extension.care import ExtensionCare
from pergola.operator.extension.deployments import Deployments
from pergola.operator.extension.installations import Installations
from pergola.operator.extension.reconcile import ExtensionReconciler, Parts
from pergola.operator.extension.registration import RegistrationPart
from pergola.operator.extension.required_runtime import KINDS, RequiredRuntime, type_of
from pergola.operator.extension.required_virtual import RequiredVirtual
from pergola.operator.extension.runtime import RuntimePart
from pergola.operator.run.observed import Template
from pergola.operator.virtual_cluster import VirtualCluster
from pergola.runtime.caching.cache import Cache
from pergola.runtime.clock import Clock, SystemClock
from pergola.runtime.controlling.events import Recorder
from pergola.runtime.controlling.unit import Controller, Unit
from pergola.runtime.metrics import Metrics

NAME: Final = "extension"
REQUIRED_RUNTIME: Final = "extension-required-runtime"
REQUIRED_VIRTUAL: Final = "extension-required-virtual"
CARE: Final = "extension-care"

_DEADLINE: Final = 180.0
_CLUSTER_WIDE: Final = (BACKUP_BUCKET, BACKUP_ENTRY)


class Environment(NamedTuple):
    """The dependencies of the controllers of Extensions.

    Attributes:
        template: Returns the landscape of a Garden, without the parts that are read from clusters.
        blobs: The charts that were pulled before.
    """

    copies: Copies
    virtual: VirtualCluster
    template: Template
    helm: Helm
    blobs: Blobs
    metrics: Metrics
    clock: Clock = SystemClock()


def extension_units(config: OperatorConfiguration, environment: Environment) -> tuple[Unit, ...]:
    """Return the controllers of Extensions; for the leader."""
    installations = Installations(environment.virtual)
    return (
        _installing(config, environment),
        _required_runtime(config, environment),
        _required_virtual(config, environment, installations),
        _care(config, environment, installations),
    )


def _installing(config: OperatorConfiguration, environment: Environment) -> Unit:
    client, clock = environment.copies.client, environment.clock
    events = Recorder(client, "extension-controller", clock=clock)
    charts = Charts(client, Puller(environment.blobs), environment.helm)
    deployments = Deployments(client, clock)
    parts = Parts(
        RuntimePart(client, charts, deployments),
        AdmissionPart(client, charts, deployments),
        RegistrationPart(client, deployments),
    )
    conditions = Conditions(client, EXTENSION, clock)
    reconciler = ExtensionReconciler(client, environment.virtual, parts, conditions, events)
    return Controller(
        NAME,
        reconciler.reconcile,
        watches=triggers.of_installation(environment.copies),
        metrics=environment.metrics,
        workers=config.controllers.extension.concurrent_syncs,
        deadline=_DEADLINE,
        tasks=[events.run],
    )


def _required_runtime(config: OperatorConfiguration, environment: Environment) -> Unit:
    client = environment.copies.client
    types = {kind.kind: _types(environment.copies, kind) for kind in KINDS}
    conditions = Conditions(client, EXTENSION, environment.clock)
    required = RequiredRuntime(client, types, environment.template, conditions)
    return Controller(
        REQUIRED_RUNTIME,
        required.reconcile,
        watches=triggers.of_requirement(environment.copies, types.values()),
        metrics=environment.metrics,
        workers=config.controllers.extension_required_runtime.concurrent_syncs,
        deadline=_DEADLINE,
    )


def _required_virtual(
    config: OperatorConfiguration, environment: Environment, installations: Installations
) -> Unit:
    client = environment.copies.client
    conditions = Conditions(client, EXTENSION, environment.clock)
    required = RequiredVirtual(client, installations, conditions)
    return Controller(
        REQUIRED_VIRTUAL,
        required.reconcile,
        watches=triggers.of_installations(environment.copies, installations),
        metrics=environment.metrics,
        workers=config.controllers.extension_required_virtual.concurrent_syncs,
        deadline=_DEADLINE,
        tasks=[installations.run],
    )


def _care(
    config: OperatorConfiguration, environment: Environment, installations: Installations
) -> Unit:
    client, settings = environment.copies.client, config.controllers.extension_care
    care = ExtensionCare(
        client,
        installations,
        Conditions(client, EXTENSION, environment.clock),
        environment.clock,
        period=settings.sync_period,
        thresholds={each.type: each.duration for each in settings.condition_thresholds},
    )
    return Controller(
        CARE,
        care.reconcile,
        watches=triggers.of_care(environment.copies, installations),
        metrics=environment.metrics,
        workers=settings.concurrent_syncs,
        deadline=settings.sync_period.total_seconds(),
    )


def _types(copies: Copies, kind: ExtensionKind) -> Cache[str]:
    namespace = None if kind in _CLUSTER_WIDE else NAMESPACE
    return Cache(copies.client, kind.gvk, type_of, namespace=namespace)
