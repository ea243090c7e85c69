"""Configuration files that Go code writes: a struct's fields without a value are zeros."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from pergola.api import operator_config, resource_manager_config
from pergola.api.component_config import ConfigurationInvalid, Loaded
from pergola.api.objects import JsonObject, JsonValue
from pergola.api.schema import schema_of
from pergola.api.schema.declare import Value
from pergola.kube.yaml import parse

RECORDED: Final = sorted((Path(__file__).parent / "recorded/resource_manager").glob("*.yaml"))

RESOURCE_MANAGER: Final[JsonObject] = {
    "apiVersion": resource_manager_config.API_VERSION,
    "kind": resource_manager_config.KIND,
    "leaderElection": {"resourceNamespace": "garden"},
    "targetClientConnection": {},
    "controllers": {
        "networkPolicy": {
            "enabled": True,
            "ingressControllerSelector": {"namespace": "a", "podSelector": {}},
        }
    },
}
OPERATOR: Final[JsonObject] = {
    "apiVersion": "operator.config.gardener.cloud/v1alpha1",
    "kind": "OperatorConfiguration",
    "controllers": {"garden": {"etcdConfig": {"backupLeaderElection": {}}}},
}
ZEROS: Final[dict[str, JsonValue]] = {
    "boolean": False,
    "integer": 0,
    "number": 0,
    "array": [],
    "object": {},
}
ON: Final[JsonValue] = True
REAL_ZEROS: Final = {
    "leaderElection.leaderElect",
    "controllers.networkPolicy.enabled",  # enabled in the configuration above
    "controllers.networkPolicy.onlyForMatchingPods",  # not in the original, so Go never writes it
    "server.webhooks.port",  # any free port
    "server.healthProbes.port",
    "server.metrics.port",
    # Pointers in Go: absent if they have no value.
    "controllers.cacheSyncTimeout",
    "controllers.garbageCollector.minimumAge",
    "controllers.nodeAgentReconciliationDelay.maxDelay",
    "controllers.tokenRequestor.audiences",
    "controllers.garden.etcdConfig.etcdController.workers",
    "controllers.garden.etcdConfig.custodianController.workers",
    "controllers.garden.etcdConfig.backupCompactionController.workers",
    "controllers.garden.etcdConfig.backupCompactionController.eventsThreshold",
    "controllers.garden.etcdConfig.backupCompactionController.activeDeadlineDuration",
    "controllers.garden.etcdConfig.backupCompactionController.metricsScrapeWaitDuration",
    "controllers.garden.etcdConfig.backupLeaderElection.reelectionPeriod",
    "controllers.garden.etcdConfig.backupLeaderElection.etcdConnectionTimeout",
    "controllers.garden.etcdConfig.deltaSnapshotRetentionPeriod",
    "nodeToleration.defaultNotReadyTolerationSeconds",
    "nodeToleration.defaultUnreachableTolerationSeconds",
    "webhooks.highAvailabilityConfig.defaultNotReadyTolerationSeconds",
    "webhooks.highAvailabilityConfig.defaultUnreachableTolerationSeconds",
}


def leaves(schema: JsonObject, path: str = "") -> Iterator[tuple[str, JsonValue]]:
    """Yield the path of each field, and its zero in Go."""
    for name, field in schema.get("properties", {}).items():
        at = f"{path}.{name}".lstrip(".")
        if "properties" in field:
            yield from leaves(field, at)
        elif field["type"] == "string":
            yield at, "0s" if field.get("format") == "duration" else ""
        else:
            yield at, ZEROS[field["type"]]


def with_field(config: JsonObject, path: str, value: JsonValue) -> JsonObject:
    name, _, rest = path.partition(".")
    return {**config, name: with_field(config.get(name, {}), rest, value) if rest else value}


def test_all_recorded_files_are_here() -> None:
    assert len(RECORDED) == 9


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name)
def test_a_file_that_gardener_writes_is_accepted(path: Path) -> None:
    loaded = resource_manager_config.configuration_from(parse(path.read_bytes()))

    election = loaded.config.leader_election
    periods = (election.lease_duration, election.renew_deadline, election.retry_period)
    assert [period.total_seconds() for period in periods] == [15, 10, 2]
    assert election.resource_lock == "leases"
    assert (loaded.config.log_level, loaded.config.log_format) == ("info", "json")
    assert (loaded.config.source_client_connection.qps, loaded.warnings) == (None, [])


FILES: Final = (
    (
        RESOURCE_MANAGER,
        resource_manager_config.ResourceManagerConfiguration,
        resource_manager_config.configuration_from,
    ),
    (OPERATOR, operator_config.OperatorConfiguration, operator_config.configuration_from),
)


def enabled(config: JsonObject, path: str, fields: Mapping[str, JsonValue]) -> JsonObject:
    """Return the configuration with the block of a field enabled."""
    switch = f"{path.rpartition('.')[0]}.enabled"
    has_switch = switch in fields and path != switch
    return with_field(config, switch, ON) if has_switch else config


@pytest.mark.parametrize(("config", "type_", "load"), FILES, ids=["manager", "operator"])
def test_a_zero_is_the_default_unless_it_has_a_meaning_or_a_finding(
    config: JsonObject,
    type_: type[Value],
    load: Callable[[JsonValue], Loaded[Any]],
    subtests: pytest.Subtests,
) -> None:
    fields = dict(leaves(schema_of(type_)))
    for path, zero in fields.items():
        with subtests.test(path):
            check(enabled(config, path, fields), load, path, [zero])


def check(
    config: JsonObject,
    load: Callable[[JsonValue], Loaded[Any]],
    path: str,
    zeros: Iterable[JsonValue],
) -> None:
    usual = cache(lambda: load(config).config.to_complete_json())  # some need the field
    for zero in zeros:
        try:
            loaded = load(with_field(config, path, zero))
        except ConfigurationInvalid as error:
            findings = [finding.path for finding in error.findings]
            assert path in findings or findings == ["controllers.tokenInvalidator"], zero
        else:
            differs = loaded.config.to_complete_json() != usual()
            is_real = path in REAL_ZEROS and zero is not None
            assert differs <= is_real, zero


ANY_ZERO: Final[tuple[JsonValue, ...]] = ("", 0, False, None, [], {})


def blocks(schema: JsonObject, path: str = "") -> Iterator[tuple[str, JsonObject]]:
    """Yield the paths and schemas of all fields, including those with fields of their own."""
    for name, field in schema.get("properties", {}).items():
        at = f"{path}.{name}".lstrip(".")
        if at not in ("apiVersion", "kind"):
            yield at, field
            yield from blocks(field, at)


@pytest.mark.parametrize(("config", "type_", "load"), FILES, ids=lambda it: str(it)[:30])
def test_whatever_go_writes_for_nothing_is_the_default_or_a_finding_with_its_path(
    config: JsonObject, type_: type[Value], load: Callable[[JsonValue], Loaded[Any]]
) -> None:
    schema = schema_of(type_)
    fields = dict(leaves(schema))
    for path, field in blocks(schema):
        base = enabled(config, path, fields)
        if path in paths_in(base):
            continue  # this configuration has a value there
        is_duration = field.get("format") == "duration"
        check(base, load, path, (*ANY_ZERO, "0s") if is_duration else ANY_ZERO)


def paths_in(config: JsonObject, *path: str) -> Iterator[str]:
    for name, value in config.items():
        yield ".".join((*path, name))
        if isinstance(value, dict):
            yield from paths_in(value, *path, name)
