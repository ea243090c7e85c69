"""The webhook's decisions; the API server is not needed for them."""

from warden import review

from pergola.admission import GroupVersionResource, Request
from pergola.api import GroupVersionKind, JsonObject


def of(obj: JsonObject) -> Request:
    kind = GroupVersionKind("", "v1", "ConfigMap")
    resource = GroupVersionResource("", "v1", "configmaps")
    return Request(uid="1", operation="CREATE", kind=kind, resource=resource, object=obj)


def test_a_config_map_with_an_owner_is_allowed() -> None:
    assert review(of({"data": {"owner": "a-team"}})).allowed


def test_others_are_refused_with_the_reason() -> None:
    refused: list[JsonObject] = [{}, {"data": {}}, {"data": {"owner": ""}}, {"data": None}]
    for obj in refused:
        verdict = review(of(obj))
        assert not verdict.allowed
        assert "owner" in verdict.message
