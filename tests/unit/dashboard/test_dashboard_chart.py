"""The chart of the dashboard: its permissions, its names and its arguments."""

import pytest

from pergola.api.kinds import EVENT
from pergola.api.objects import JsonObject, map_at, maps_at
from pergola.cli import app
from pergola.dashboard.state.kinds import WATCHED
from tests.support.charts import ALL_CHARTS

pytestmark = pytest.mark.timeout(600)  # Helm may have to be built

[CHART] = [each for each in ALL_CHARTS if each.name == "dashboard"]


def only(kind: str, objects: list[JsonObject]) -> JsonObject:
    [found] = [each for each in objects if each["kind"] == kind]
    return found


def test_its_role_permits_exactly_the_objects_on_the_page() -> None:
    rules = maps_at(only("ClusterRole", CHART.rendered()), "rules")
    granted = {
        (rule["apiGroups"][0], plural, *sorted(rule["verbs"]))
        for rule in rules
        for plural in rule["resources"]
    }
    plurals = {(kind.group, _plural(kind.kind)) for kind in (*WATCHED, EVENT)}
    assert granted == {
        ("authentication.k8s.io", "tokenreviews", "create"),
        ("authorization.k8s.io", "subjectaccessreviews", "create"),
        *((*plural, "list", "watch") for plural in plurals),
    }
    assert all(len(rule["apiGroups"]) == 1 and "resourceNames" not in rule for rule in rules)


def _plural(kind: str) -> str:
    return "backupentries" if kind == "BackupEntry" else f"{kind.lower()}s"


def test_all_host_names_of_the_values_are_arguments() -> None:
    ingress = {"enabled": True, "host": "dashboard.example.org"}
    found = CHART.rendered({"hosts": ["localhost", "a.example"], "ingress": ingress})
    [container] = map_at(only("Deployment", found), "spec", "template", "spec")["containers"]
    assert [each.removeprefix("--host=") for each in container["args"] if "--host=" in each] == [
        "pergola-dashboard.pergola-system.svc",
        "localhost",
        "a.example",
        "dashboard.example.org",
    ]
    rule = map_at(only("Ingress", found), "spec")["rules"][0]
    assert rule["host"] == "dashboard.example.org"


def test_the_command_line_accepts_the_arguments_of_the_chart() -> None:
    values = {"clusterName": "the: garden"}
    [container] = map_at(only("Deployment", CHART.rendered(values)), "spec", "template", "spec")[
        "containers"
    ]
    _, bound, _ = app.parse_args([*container["command"][1:], *container["args"]])
    assert bound.arguments["name"] == "the: garden"
    assert bound.arguments["host"] == ["pergola-dashboard.pergola-system.svc", "localhost"]


def test_the_network_policy_lists_all_permitted_clients() -> None:
    def sources(peers: list[JsonObject]) -> list[object]:
        policy = {"enabled": True, "pageFrom": peers}
        found = only("NetworkPolicy", CHART.rendered({"networkPolicy": policy}))
        return [each.get("from") for each in maps_at(found, "spec", "ingress")]

    namespaces: list[JsonObject] = [{"namespaceSelector": {"matchLabels": {"a": "b"}}}]
    assert sources([]) == [None]
    assert sources(namespaces) == [namespaces]
