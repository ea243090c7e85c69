"""The options of an extension's process: spec 40 §3.3."""

from pathlib import Path

import pytest

from pergola.api.objects import JsonObject
from pergola.api.schema import schema_of
from pergola.extensions.lifecycle import Settings
from pergola.extensions.options import ExtensionOptions, options_from
from pergola.extensions.process import Options, chosen
from pergola.providers.aws.actuator import AwsInfrastructure
from pergola.providers.aws.bastion import AwsBastion
from pergola.providers.aws.workers.actuator import AwsWorker
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.process.options import Address, ShardLease, StartError, parse_address
from pergola.testing.extension_site import RecordingActuator

UNITS = [Unit(name) for name in ("network", "network-healthcheck", "heartbeat")]


def test_without_options_the_documented_defaults_apply() -> None:
    options = options_from(None, {}, "extension-ns")
    assert options.lifecycle == Settings(
        max_concurrent=5, timeout=0, ignore_operation_annotation=False, classes=("shoot",)
    )
    assert options.health_checks.sync_period == 30
    assert options.heartbeat_renew_interval_seconds == 30
    assert options.leader_election_namespace == options.heartbeat_namespace == "extension-ns"
    assert options.webhooks is not None
    assert options.webhooks.mode == "service"
    assert options.webhooks.namespace == "extension-ns"


def test_outside_a_cluster_there_is_one_replica_without_heartbeat_and_webhooks() -> None:
    options = options_from(None, {})
    assert (options.leader_election_namespace, options.heartbeat_namespace) == ("", "")
    assert options.webhooks is None


def test_leader_election_can_be_disabled() -> None:
    options = options_from(None, {"leaderElection": False}, "extension-ns")
    assert (options.leader_election_namespace, options.heartbeat_namespace) == ("", "extension-ns")


def test_the_command_line_overrides_the_file(tmp_path: Path) -> None:
    file = tmp_path / "options.yaml"
    file.write_text(
        "maxConcurrentReconciles: 9\nreconcileTimeout: 5m\nextensionClasses: [garden, seed]\n"
    )
    given = {"maxConcurrentReconciles": 7, "reconcileTimeout": None}
    options = options_from(file, given)
    assert options.lifecycle == Settings(max_concurrent=7, timeout=300, classes=("garden", "seed"))
    assert options.health_checks.classes == ("garden", "seed")


@pytest.mark.parametrize("given", [{}, {"reconcileTimeout": "0"}])
def test_a_timeout_of_zero_is_that_of_the_kind(given: JsonObject) -> None:
    settings = options_from(None, given).lifecycle

    assert settings.deadline_of(RecordingActuator()) == 180
    for slow in (AwsBastion(), AwsInfrastructure(), AwsWorker()):
        assert settings.deadline_of(slow) == 1200
    limited = options_from(None, {"reconcileTimeout": "5m"}).lifecycle
    assert limited.deadline_of(AwsWorker()) == 300


FIELDS = schema_of(ExtensionOptions)["properties"]


@pytest.mark.parametrize("field", sorted(FIELDS))
def test_whatever_go_writes_for_nothing_is_the_default_or_an_error_with_its_name(
    tmp_path: Path, field: str
) -> None:
    file = tmp_path / "options.yaml"
    default = options_from(None, {}, "extension-ns")
    zeros = ['""', "0", "false", "null", "[]", "{}"]
    for zero in [*zeros, "0s"] if FIELDS[field].get("format") == "duration" else zeros:
        file.write_text(f"{field}: {zero}\n")
        try:
            found = options_from(file, {}, "extension-ns")
        except StartError as error:
            named = str(error)
        else:
            is_real = (field, zero) == ("leaderElection", "false")
            assert (found == default) is not is_real, zero
            continue
        assert f"options.{field}" in named


def test_the_authority_of_clients_of_the_webhooks_can_be_given() -> None:
    given = {"webhookConfigClientCAFile": "/ca.crt"}
    webhooks = options_from(None, given, "extension-ns").webhooks
    assert webhooks is not None
    assert webhooks.client_ca == "/ca.crt"


def test_all_errors_of_a_file_are_reported(tmp_path: Path) -> None:
    file = tmp_path / "options.yaml"
    file.write_text("maxConcurrentReconciles: -1\nunknown: 1\nextensionClasses: [cloud]\n")
    with pytest.raises(StartError) as raised:
        options_from(file, {})
    text = str(raised.value)
    for part in ("options.maxConcurrentReconciles", "options.unknown", "extensionClasses[0]"):
        assert part in text
    assert str(file) in text


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("- a", "must be a map of options"),
        ("a: [", "is not valid YAML"),
        (None, "cannot read configuration file .*: No such file"),
    ],
)
def test_a_missing_file_is_reported_in_one_sentence(
    tmp_path: Path, content: str | None, sentence: str
) -> None:
    file = tmp_path / "options.yaml"
    if content is not None:
        file.write_text(content)
    with pytest.raises(StartError, match=sentence):
        options_from(file, {})


def test_an_invalid_webhook_option_is_reported() -> None:
    with pytest.raises(StartError, match="--webhook-config-mode=url needs --webhook-config-url"):
        options_from(None, {"webhookConfigMode": "url"}, "ns")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (":8080", ("", 8080)),
        ("127.0.0.1:0", ("127.0.0.1", 0)),
        ("[::1]:8080", ("::1", 8080)),
        ("0", None),
    ],
)
def test_addresses_are_parsed(text: str, expected: tuple[str, int] | None) -> None:
    option = "--metrics-bind-address"
    assert parse_address(text, option) == (Address(*expected, option) if expected else None)


@pytest.mark.parametrize("text", ["8080", "", "host:", ":port", ":65536", ":-1"])
def test_the_error_about_an_invalid_address_names_its_option(text: str) -> None:
    with pytest.raises(StartError, match=r"--metrics-bind-address is .*; write host:port"):
        parse_address(text, "--metrics-bind-address")


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (Options(), ["network", "network-healthcheck", "heartbeat"]),
        (Options(controllers=("network",)), ["network"]),
        (Options(disable_controllers=("heartbeat",)), ["network", "network-healthcheck"]),
        (Options(controllers=("network",), disable_controllers=("network",)), []),
    ],
)
def test_controllers_are_disabled_by_name(options: Options, expected: list[str]) -> None:
    assert [unit.name for unit in chosen(UNITS, options)] == expected


def test_the_error_about_an_unknown_controller_lists_the_known_ones() -> None:
    with pytest.raises(StartError, match="--controllers names net; there are heartbeat, network"):
        chosen(UNITS, Options(controllers=("net",)))


def test_a_heartbeat_without_an_interval_is_refused() -> None:
    with pytest.raises(StartError, match="--heartbeat-renew-interval-seconds must be greater"):
        options_from(None, {"heartbeatRenewIntervalSeconds": 0})


def test_with_a_ring_every_replica_is_a_shard(tmp_path: Path) -> None:
    file = tmp_path / "options.yaml"
    file.write_text("sharding:\n  controllerRing: networks\n")
    options = options_from(file, {}, "extension-ns").process("networking-weft")
    assert options.sharding == ShardLease(ring="networks", namespace="extension-ns")
    assert options.election is not None


@pytest.mark.parametrize(
    ("ring", "namespace", "problem"),
    [
        ("Networks", "extension-ns", "must be the name of a ControllerRing"),
        ("networks", "", "needs the leader election"),
    ],
)
def test_an_invalid_ring_is_refused(ring: str, namespace: str, problem: str) -> None:
    with pytest.raises(StartError, match=problem):
        options_from(None, {"sharding": {"controllerRing": ring}}, namespace).process("weft")
