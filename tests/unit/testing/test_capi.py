from base64 import b64decode

from pergola.api.objects import JsonObject
from tests.support.capi import convertible, registered

AUTHORITY = b"-----BEGIN CERTIFICATE-----"


def served(config: JsonObject) -> tuple[str, bytes]:
    assert set(config) == {"url", "caBundle"}
    return config["url"], b64decode(config["caBundle"])


def test_the_versions_of_a_crd_are_converted_on_this_machine() -> None:
    crd: JsonObject = {"metadata": {"name": "clusters"}, "spec": {"group": "cluster.x-k8s.io"}}
    changed = convertible(crd, 7443, AUTHORITY)
    conversion = changed["spec"].pop("conversion")
    assert changed == crd
    assert conversion["strategy"] == "Webhook"
    assert conversion["webhook"]["conversionReviewVersions"] == ["v1"]
    config = conversion["webhook"]["clientConfig"]
    assert served(config) == ("https://127.0.0.1:7443/convert", AUTHORITY)
    assert "conversion" not in crd["spec"]


def test_all_entries_of_a_registration_are_served_on_this_machine() -> None:
    entries: list[JsonObject] = [
        {"name": name, "clientConfig": {"service": {"name": "s", "path": f"/{name}"}}, "rules": []}
        for name in ("one", "two")
    ]
    configuration: JsonObject = {"metadata": {"name": "mutating"}, "webhooks": entries}
    changed = registered(configuration, 7443, AUTHORITY)
    assert changed["metadata"] == {"name": "capi-mutating"}
    assert [served(entry["clientConfig"])[0] for entry in changed["webhooks"]] == [
        "https://127.0.0.1:7443/one",
        "https://127.0.0.1:7443/two",
    ]
    assert [(entry["name"], entry["rules"]) for entry in changed["webhooks"]] == [
        ("one", []),
        ("two", []),
    ]
