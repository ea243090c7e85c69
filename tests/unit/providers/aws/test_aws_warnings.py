"""Warnings to users about networks that work."""

from datetime import UTC, datetime, timedelta

from pergola.api.objects import JsonObject
from pergola.providers.aws.warnings import event
from pergola.runtime.clock import FakeClock

NOW = datetime(2026, 1, 1, tzinfo=UTC)
OBJECT: JsonObject = {
    "apiVersion": "extensions.gardener.cloud/v1alpha1",
    "kind": "Infrastructure",
    "metadata": {"name": "web", "namespace": "shoot--p--web", "uid": "u1"},
}


def test_equal_warnings_about_an_object_are_one_event() -> None:
    first = event(OBJECT, "few addresses", FakeClock(NOW))
    later = event(OBJECT, "few addresses", FakeClock(NOW + timedelta(minutes=5)))
    other = event(OBJECT, "no route", FakeClock(NOW))
    recreated = {**OBJECT, "metadata": {**OBJECT["metadata"], "uid": "u2"}}

    names = [each["metadata"]["name"] for each in (first, later, other)]
    names.append(event(recreated, "few addresses", FakeClock(NOW))["metadata"]["name"])
    assert names[0] == names[1]
    assert len(set(names)) == 3


def test_an_event_is_a_warning_in_the_namespace_of_its_object() -> None:
    sent = event(OBJECT, "few addresses", FakeClock(NOW))

    assert (sent["type"], sent["note"]) == ("Warning", "few addresses")
    assert sent["metadata"]["namespace"] == sent["regarding"]["namespace"] == "shoot--p--web"
    assert sent["regarding"]["uid"] == "u1"


def test_a_long_message_is_truncated_to_the_limit_of_the_api_server() -> None:
    sent = event(OBJECT, "ä" * 2000, FakeClock(NOW))

    assert len(sent["note"].encode()) <= 1024
