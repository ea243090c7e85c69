"""The routes that follow from the HTTP rules of VirtualServices."""

import pytest

from pergola.api.objects import JsonObject
from pergola.sandbox.istiod.requests import routes, unsupported
from pergola.sandbox.istiod.termination import Host

DESTINATION = {"host": "web", "port": {"number": 8080}}
CLUSTER = "outbound|8080||web.garden.svc.cluster.local"
WEB: JsonObject = {"route": [{"destination": DESTINATION}]}


def rendered(*rules: JsonObject) -> list[JsonObject]:
    host = Host("garden/web", "garden", ("web.example.com",), rules)
    return list(routes(host, 443))


def test_a_rule_without_conditions_matches_every_request() -> None:
    assert rendered(WEB) == [
        {"match": {"prefix": "/"}, "route": {"cluster": CLUSTER, "timeout": "0s"}}
    ]


def test_rules_are_tried_in_order() -> None:
    first = {"name": "first", "match": [{"uri": {"prefix": "/a"}}], **WEB}

    assert [route.get("name", "") for route in rendered(first, WEB)] == ["first", ""]


@pytest.mark.parametrize(
    ("condition", "match"),
    [
        ({"uri": {"exact": "/a"}}, {"path": "/a"}),
        (
            {"uri": {"prefix": "/a"}, "ignoreUriCase": True},
            {"prefix": "/a", "case_sensitive": False},
        ),
        ({"uri": {"regex": "/a+"}}, {"safe_regex": {"regex": "/a+"}}),
        (
            {"method": {"exact": "GET"}},
            {"prefix": "/", "headers": [{"name": ":method", "string_match": {"exact": "GET"}}]},
        ),
        (
            {"headers": {"Connection": {"exact": "Upgrade"}, "Upgrade": {}}},
            {
                "prefix": "/",
                "headers": [
                    {"name": "Connection", "string_match": {"exact": "Upgrade"}},
                    {"name": "Upgrade", "present_match": True},
                ],
            },
        ),
        (
            {"withoutHeaders": {"x-internal": {}}},
            {
                "prefix": "/",
                "headers": [{"name": "x-internal", "present_match": True, "invert_match": True}],
            },
        ),
    ],
    ids=["exact", "prefix", "regex", "method", "headers", "without-headers"],
)
def test_conditions_are_translated_for_envoy(condition: JsonObject, match: JsonObject) -> None:
    (route,) = rendered({"match": [condition], **WEB})

    assert route["match"] == match


def test_each_condition_becomes_a_route() -> None:
    either = [{"uri": {"prefix": "/a"}}, {"uri": {"prefix": "/b"}}]

    assert [r["match"]["prefix"] for r in rendered({"match": either, **WEB})] == ["/a", "/b"]


def test_a_condition_on_another_port_never_matches() -> None:
    assert rendered({"match": [{"port": 80}], **WEB}) == []


def test_an_unknown_condition_never_matches() -> None:
    assert rendered({"match": [{"sourceNamespace": "trusted"}], **WEB}) == []


def test_a_direct_response_needs_no_service() -> None:
    (route,) = rendered({"directResponse": {"status": 403, "body": {"string": "no"}}})

    assert route["direct_response"] == {"status": 403, "body": {"inline_string": "no"}}


def test_a_redirect_names_the_new_place() -> None:
    (route,) = rendered({"redirect": {"authority": "new.example.com", "redirectCode": 308}})

    assert route["redirect"] == {
        "host_redirect": "new.example.com",
        "response_code": "PERMANENT_REDIRECT",
    }


def test_a_route_can_change_path_host_and_headers() -> None:
    (route,) = rendered(
        {
            **WEB,
            "timeout": "5s",
            "rewrite": {"uri": "/new", "authority": "new"},
            "headers": {"request": {"set": {"x-a": "1"}, "remove": ["x-b"]}},
        }
    )

    assert route["route"] == {
        "cluster": CLUSTER,
        "timeout": "5s",
        "prefix_rewrite": "/new",
        "host_rewrite_literal": "new",
    }
    (added,) = route["request_headers_to_add"]
    assert added == {
        "header": {"key": "x-a", "value": "1"},
        "append_action": "OVERWRITE_IF_EXISTS_OR_ADD",
    }
    assert route["request_headers_to_remove"] == ["x-b"]


def test_weights_divide_requests_between_services() -> None:
    other = {"destination": {"host": "other", "port": {"number": 80}}, "weight": 10}
    (route,) = rendered({"route": [{"destination": DESTINATION, "weight": 90}, other]})

    clusters = route["route"]["weighted_clusters"]["clusters"]
    assert [found["weight"] for found in clusters] == [90, 10]


def test_fields_without_effect_are_reported() -> None:
    rule = {"match": [{"uri": {}, "sourceLabels": {}}], "fault": {}, **WEB}

    assert unsupported(rule) == {"fault", "match.sourceLabels"}
