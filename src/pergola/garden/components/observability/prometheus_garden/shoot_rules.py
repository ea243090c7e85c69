"""Alerts about Shoots that concern the operators of the garden."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.garden.components.monitoring import GARDEN, alert, prometheus_rule, rules
from pergola.garden.components.observability.prometheus_garden.alerting import (
    CRITICAL,
    LANDSCAPE,
    SEED_CRITICAL,
    WARNING,
    value_of,
)

_PRODUCTIVE: Final = (
    'condition="APIServerAvailable",operation="Reconcile",is_seed="false",purpose=~"production"'
)


def shoot_rules() -> JsonObject:
    """Return alerts about outages of many Shoots, and about nodes of Seeds."""
    each = (_outage(), _outage_by_infrastructure(), _files(), _capped())
    return prometheus_rule(GARDEN, "shoot", rules("shoot", *each))


def _outage() -> JsonObject:
    shoots = f"garden_shoot_condition{{{_PRODUCTIVE}}}"
    down, all_of_them = f"count({shoots} == 0)", f"count({shoots})"
    return alert(
        "ShootOutageOverall",
        f"{down} / {all_of_them} > 0.10",
        lasting="10m",
        **CRITICAL,
        summary=f"Over 10% of productive shoots are unavailable in landscape {LANDSCAPE}.",
        description=(
            f"The API servers of {value_of(down)} productive Shoots out of "
            f"{value_of(all_of_them)} are not available."
        ),
    )


def _outage_by_infrastructure() -> JsonObject:
    shoots = f"garden_shoot_condition{{{_PRODUCTIVE}}}"
    of_one = f'garden_shoot_condition{{{_PRODUCTIVE},iaas="%s"}}'
    down = value_of(f"count({of_one} == 0)", "iaas")
    all_of_them = value_of(f"count({of_one})", "iaas")
    return alert(
        "ShootOutageByIaas",
        f"count by (iaas) ({shoots} == 0) / count by (iaas) ({shoots}) > 0.10",
        lasting="10m",
        **CRITICAL,
        summary=(
            "Over 10% of productive {{$labels.iaas}} shoots are unavailable in landscape "
            f"{LANDSCAPE}."
        ),
        description=(
            f"The API servers of {down} productive Shoots on {{{{$labels.iaas}}}} out of "
            f"{all_of_them} are not available."
        ),
    )


def _files() -> JsonObject:
    return alert(
        "NodeFilesystemAlmostOutOfFiles",
        'shoot:node_filesystem_files_free:percent{project="garden"} < 5',
        lasting="10m",
        **SEED_CRITICAL,
        summary="Node filesystem has less than 5% inodes left.",
        description=(
            "Node {{$labels.node}} of {{$labels.project}}/{{$labels.name}} has "
            '{{printf "%.2f" $value}}% of its inodes left at {{$labels.mountpoint}}.'
        ),
    )


def _capped() -> JsonObject:
    capped = 'alertname="VerticalPodAutoscalerCappedRecommendation",type="shoot"'
    return alert(
        "ShootVerticalPodAutoscalerCappedRecommendationCount",
        f'count(count by (cluster) (ALERTS{{{capped},alertstate="firing"}}))',
        **WARNING,
        summary="A VPA recommendation in a shoot is capped.",
        description=(
            f"In {{{{$value}}}} Shoots of {LANDSCAPE} a container needs more than its autoscaler "
            f"may recommend. This query of the garden Prometheus shows which: ALERTS{{{capped}}}"
        ),
    )
