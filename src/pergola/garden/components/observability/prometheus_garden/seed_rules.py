"""Alerts about Seeds, from the metrics that they report to the garden."""

from collections.abc import Iterator
from typing import Final

from pergola.api.objects import JsonObject
from pergola.garden.components.monitoring import GARDEN, alert, prometheus_rule, rules
from pergola.garden.components.observability.prometheus_garden.alerting import (
    INFO,
    LANDSCAPE,
    MUTE_ON_WEEKENDS,
    SEED_CRITICAL,
    SEED_WARNING,
    WARNING,
    value_of,
)

_OPEN: Final = 'protected="false",visible="true"'
_FAILED: Final = 6
_ERROR: Final = 5


def seed_rules() -> JsonObject:
    """Return alerts about the capacity, the conditions and the workloads of Seeds."""
    each = (
        *_workloads(),
        _capacity("critical", 98, 90),
        _capacity("warning", 90, 85),
        *_forwarded(),
        *_conditions(),
        *_operations(),
    )
    return prometheus_rule(GARDEN, "seed", rules("seed", *each))


def _workloads() -> Iterator[JsonObject]:
    yield alert(
        "PodFrequentlyRestarting",
        "seed:kube_pod_container_status_restarts_total:max_by_namespace > 5",
        lasting="10m",
        **INFO,
        summary="Some container is restarting frequently",
        description=(
            "A container in namespace {{$labels.namespace}} of Seed {{$labels.seed}} in "
            f"landscape {LANDSCAPE} restarted more than 5 times within the last hour."
        ),
    )
    yield alert(
        "PersistentVolumeSizeMismatch",
        "round((seed:persistentvolume:inconsistent_size > 0.05) * 10000) / 100",
        lasting="5m",
        **WARNING,
        summary="A persistent volume does not have the size of its claim",
        description=(
            "The volume of {{$labels.namespace}}/{{$labels.persistentvolumeclaim}} in Seed "
            f"{{{{$labels.seed}}}} of landscape {LANDSCAPE} differs by {{{{$value}}}}%."
        ),
    )
    yield alert(
        "SeedFederationFailure",
        r'up{job="prometheus-aggregate", instance!~".*\\.(cc|cp-mgr).*"} == 0',
        lasting="5m",
        **WARNING,
        summary="Seed federation failure",
        description=(
            "The garden Prometheus gets nothing from {{$labels.instance}}. Its page /targets "
            "shows the error."
        ),
    )


def _capacity(severity: str, full: int, relieved: int) -> JsonObject:
    """Return an alert that starts above one percentage of the capacity and stops below another."""
    where = "sum by (iaas, region)"
    used = f'{where} (garden_seed_usage{{{_OPEN},resource="shoot"}} and on (name) {_capacities()})'
    capacity = f"{where} ({_capacities()})"
    firing = 'ALERTS{alertname="ApproachingSeedCapacity",alertstate="firing"}'
    share = value_of(
        f'100 * sum(garden_seed_usage{{{_OPEN},resource="shoot",iaas="%s",region="%s"}}) / '
        f'sum(garden_seed_capacity{{{_OPEN},iaas="%s",region="%s"}})',
        "iaas",
        "region",
        "iaas",
        "region",
    )
    return alert(
        "ApproachingSeedCapacity",
        f"{used} > {capacity} * {full / 100} or "
        f"({used} > {capacity} * {relieved / 100} and count by (iaas, region) ({firing}))",
        lasting="10m",
        severity=severity,
        topology="garden",
        summary=f"{LANDSCAPE}: {{{{$labels.region}}}} in {{{{$labels.iaas}}}} approaches capacity",
        description=(
            f"The Seeds of {{{{$labels.region}}}} in {{{{$labels.iaas}}}} host {{{{$value}}}} "
            f"Shoots, {share}% of what they can. Above {full}% this alert fires, and it stops "
            f"below {relieved}%. Add Seeds or make more of them visible."
        ),
    )


def _capacities() -> str:
    return f"garden_seed_capacity{{{_OPEN}}}"


def _forwarded() -> Iterator[JsonObject]:
    """Yield alerts of Seeds that concern the operators of the garden."""
    seeds = 'namespace=~"shoot--garden--.+"'
    for what, verb in (("Approaching", "approaches"), ("Crossed", "has crossed")):
        yield alert(
            f"SeedKubeEtcd3MainDbSizeLimit{what}",
            f'ALERTS{{alertname="KubeEtcd3MainDbSizeLimit{what}",alertstate="firing",{seeds}}}',
            **WARNING,
            summary=f"A seed etcd-main in landscape {LANDSCAPE} {verb} its DB size limit.",
            description=(
                f"etcd-main of Seed {{{{$labels.name}}}} in landscape {LANDSCAPE} {verb} the size "
                "that it may have. Its quota may be too small."
            ),
        )
    yield alert(
        "SeedPodStuckInPending",
        'ALERTS{alertname="PodStuckInPending",alertstate="firing"}',
        lasting="10m",
        **WARNING,
        summary="A pod is stuck in Pending state for more than 10 minutes.",
        description=(
            "Pod {{$labels.namespace}}/{{$labels.pod}} in Seed {{$labels.seed}} of landscape "
            f"{LANDSCAPE} is not scheduled."
        ),
    )
    capped = 'alertname="VerticalPodAutoscalerCappedRecommendation",type="seed"'
    yield alert(
        "SeedVerticalPodAutoscalerCappedRecommendationCount",
        f'count(count by (seed) (ALERTS{{{capped},alertstate="firing"}}))',
        **WARNING,
        summary="A VPA recommendation in a seed is capped.",
        description=(
            f"In {{{{$value}}}} Seeds of {LANDSCAPE} a container needs more than its autoscaler "
            f"may recommend. This query of the garden Prometheus shows which: ALERTS{{{capped}}}"
        ),
    )


def _conditions() -> Iterator[JsonObject]:
    of_shoots = 'is_seed="true",operation="Reconcile"'
    unavailable = f'garden_shoot_condition{{condition="APIServerUnavailable",{of_shoots}}}'
    others = f'garden_shoot_condition{{condition!="APIServerUnavailable",{of_shoots}}}'
    by = "max by (name, condition)"
    yield _condition(
        f'{by} (last_over_time((garden_seed_condition{{condition="GardenletReady"}} <= 0 '
        f"or {unavailable} <= 0)[5m:]))",
        "10m",
    )
    yield _condition(
        f'{by} (count_over_time((garden_seed_condition{{condition!="GardenletReady"}} <= 0 '
        f"or {others} <= 0)[8m:]) >= 4)",
        "30m",
    )


def _condition(expr: str, lasting: str) -> JsonObject:
    return alert(
        "SeedConditionFailing",
        expr,
        lasting=lasting,
        **SEED_CRITICAL,
        **MUTE_ON_WEEKENDS,
        summary="Seed Condition Failing",
        description=(
            "Condition {{$labels.condition}} of Seed {{$labels.name}} in landscape "
            f"{LANDSCAPE} fails."
        ),
    )


def _operations() -> Iterator[JsonObject]:
    states = 'garden_seed_operation_states{operation="Reconcile"}'
    yield alert(
        "SeedReconciliationFailed",
        f"{states} == {_FAILED}",
        lasting="0m",
        **SEED_CRITICAL,
        **MUTE_ON_WEEKENDS,
        summary="Seed reconciliation has permanently failed",
        description=(
            f"The reconciliation of Seed {{{{$labels.name}}}} in {LANDSCAPE} is in state Failed "
            "and is not tried again."
        ),
    )
    yield alert(
        "SeedReconciliationError",
        f"{states} == {_ERROR}",
        lasting="30m",
        **SEED_WARNING,
        **MUTE_ON_WEEKENDS,
        summary="Seed reconciliation is in error state",
        description=(
            f"The reconciliation of Seed {{{{$labels.name}}}} in {LANDSCAPE} has been in state "
            "Error for 30 minutes, though it is tried again."
        ),
    )
