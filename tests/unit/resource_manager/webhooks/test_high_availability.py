"""The high-availability webhook: spec 12 §3."""

import asyncio
import copy
from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.admission.review import GroupVersionResource, Request, Verdict
from pergola.api.kinds import DAEMON_SET, DEPLOYMENT, HPA, HVPA, STATEFUL_SET
from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.kube.errors import ApiError, KubeError
from pergola.resource_manager.webhooks.facts.high_availability import (
    PREFIX,
    SEED,
    TODAY,
    NamespaceSettings,
    Profile,
    profile_for,
    read_namespace,
)
from pergola.resource_manager.webhooks.high_availability_config import (
    HighAvailability,
    registrations,
)
from pergola.resource_manager.webhooks.high_availability_config.replicas import (
    desired_replicas,
    range_of,
    replicas_of,
)
from pergola.resource_manager.webhooks.installation import Installation

HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
PROFILES = {"seed": SEED, "today": TODAY}


class Around:
    """The known facts about a cluster."""

    def __init__(
        self,
        namespace: NamespaceSettings | None = None,
        most: int | None = None,
        many: bool = True,
        error: KubeError | None = None,
    ) -> None:
        self._namespace = namespace or NamespaceSettings()
        self._most = most
        self._many = many
        self._error = error

    async def namespace(self, name: str) -> NamespaceSettings:
        if self._error:
            raise self._error
        return self._namespace

    async def most_replicas(self, workload: GroupVersionKind, key: Key) -> int | None:
        if self._most == -1:
            raise ApiError(500, {"message": "no list today"})
        return self._most

    async def many_nodes(self) -> bool:
        return self._many


def zones(count: int) -> tuple[str, ...]:
    return tuple("abcdef"[:count])


def workload(replicas: int | None = 2, kind: str = "", **more: Any) -> JsonObject:
    metadata: JsonObject = {"name": "web", "namespace": "demo"}
    if kind:
        metadata["labels"] = {f"{PREFIX}/type": kind}
    if annotations := more.pop("annotations", None):
        metadata["annotations"] = {f"{PREFIX}/{k}": v for k, v in annotations.items()}
    pod: JsonObject = {"containers": [{"name": "c", "image": "i"}], **more.pop("pod", {})}
    spec: JsonObject = {"template": {"metadata": {"labels": {"app": "x"}}, "spec": pod}, **more}
    if replicas is not None:
        spec["replicas"] = replicas
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def ask(
    obj: JsonObject,
    around: Around | None = None,
    profile: Profile = SEED,
    gvk: GroupVersionKind = DEPLOYMENT,
    operation: Any = "UPDATE",
    **seconds: int,
) -> Verdict:
    handler = HighAvailability(around or Around(), profile, **seconds)
    request = Request(
        uid="u",
        operation=operation,
        kind=gvk,
        resource=GroupVersionResource(gvk.group, gvk.version, f"{gvk.kind.lower()}s"),
        namespace="demo",
        name="web",
        object=obj,
    )
    return asyncio.run(handler(request))


def changed(
    obj: JsonObject, around: Around | None = None, profile: Profile = SEED, **more: Any
) -> JsonObject:
    """Return the object after the patch."""
    verdict = ask(obj, around, profile, **more)
    assert verdict.allowed, verdict.message
    patch = [edit.operation() for edit in verdict.edits]
    result: JsonObject = jsonpatch.apply_patch(obj, patch)
    return result


# §3.2: replicas


@pytest.mark.parametrize(
    ("kind", "tolerance", "desired"),
    [
        ("controller", None, 2),
        ("controller", "", 1),
        ("controller", "zone", 2),
        ("server", None, 2),
        ("server", "", 2),
        ("server", "node", 2),
        ("", None, None),
        ("", "", None),
        ("", "zone", None),
        ("tyop", "", 2),
    ],
)
def test_replicas_follow_the_matrix(kind: str, tolerance: str | None, desired: int | None) -> None:
    assert desired_replicas(kind, tolerance, "") == desired
    assert desired_replicas(kind, tolerance, "4") == (4 if kind else None)


@pytest.mark.parametrize(
    ("present", "is_scaled", "result"),
    [(0, False, 0), (0, True, 0), (1, False, 2), (5, False, 2), (5, True, 5), (1, True, 2)],
)
def test_the_result_depends_on_the_present_replicas(
    present: int, is_scaled: bool, result: int
) -> None:
    assert replicas_of(present, 2, is_scaled=is_scaled) == result
    assert replicas_of(present, None, is_scaled=is_scaled) == present


@pytest.mark.parametrize(
    ("least", "most", "desired", "result"),
    [
        (1, 2, 12, (12, 12)),
        (1, 20, 12, (12, 20)),
        (15, 20, 12, (15, 20)),
        (0, 2, 12, (0, 2)),
        (1, 2, None, (1, 2)),
    ],
)
def test_the_range_of_an_autoscaler_is_adjusted(
    least: int, most: int, desired: int | None, result: tuple[int, int]
) -> None:
    assert range_of(least, most, desired) == result


# §3.4: affinity


@pytest.mark.parametrize(
    ("tolerance", "pins", "count", "pinned"),
    [
        (None, False, 2, False),
        (None, True, 1, True),
        ("", False, 1, True),
        ("node", False, 2, True),
        ("zone", True, 3, True),
        ("zone", True, 0, False),
    ],
)
def test_pods_are_pinned_to_zones_as_the_namespace_requests(
    tolerance: str | None, pins: bool, count: int, pinned: bool
) -> None:
    around = Around(NamespaceSettings(tolerance, zones(count), pins))
    pod = changed(workload(1), around)["spec"]["template"]["spec"]
    assert ("affinity" in pod) is pinned
    if pinned:
        (term,) = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][
            "nodeSelectorTerms"
        ]
        requirement = {"key": ZONE, "operator": "In", "values": list(zones(count))}
        assert term == {"matchExpressions": [requirement]}


def test_each_term_requires_the_zones_once_and_keeps_the_rest() -> None:
    other = {"key": "other", "operator": "Exists"}
    old = {"key": ZONE, "operator": "In", "values": ["x"]}
    fields = [{"key": "metadata.name", "operator": "In", "values": ["n"]}]
    terms = [
        {"matchExpressions": [old, other, old]},
        {"matchExpressions": [other], "matchFields": fields},
        {},
    ]
    required = {"nodeSelectorTerms": terms}
    affinity = {
        "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required},
        "podAntiAffinity": {"x": 1},
    }
    around = Around(NamespaceSettings("", zones(2)))
    once = changed(workload(1, pod={"affinity": affinity}), around)
    found = once["spec"]["template"]["spec"]["affinity"]
    new = {"key": ZONE, "operator": "In", "values": ["a", "b"]}
    assert found["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"] == {
        "nodeSelectorTerms": [
            {"matchExpressions": [other, new]},
            {"matchExpressions": [other, new], "matchFields": fields},
            {"matchExpressions": [new]},
        ]
    }
    assert found["podAntiAffinity"] == {"x": 1}
    assert changed(once, around) == once


# §3.5: the decision matrix; host and zone as whenUnsatisfiable/minDomains/maxSkew

ROWS: list[tuple[str | None, int, int, int, str, str, str, str]] = [
    (None, 1, 1, 1, "", "", "", ""),
    ("zone", 3, 1, 1, "", "", "", ""),
    (None, 0, 2, 2, "SA/-/1", "SA/-/1", "", ""),
    (None, 1, 2, 2, "SA/-/1", "SA/-/1", "", ""),
    (None, 2, 2, 2, "SA/-/1", "SA/-/1", "DNS/2/1", "DNS/2/1"),
    (None, 2, 3, 3, "SA/-/1", "SA/-/1", "DNS/2/1", "DNS/2/1"),
    (None, 2, 2, 4, "SA/-/1", "SA/-/1", "DNS/2/2", "DNS/2/1"),
    (None, 3, 2, 2, "SA/-/1", "SA/-/1", "DNS/2/1", "DNS/2/1"),
    (None, 3, 3, 3, "SA/-/1", "SA/-/1", "DNS/3/1", "DNS/3/1"),
    (None, 3, 2, 6, "SA/-/1", "SA/-/1", "DNS/3/2", "DNS/3/1"),
    ("", 3, 2, 2, "SA/-/1", "SA/-/1", "", ""),
    ("node", 3, 2, 2, "DNS/-/1", "DNS/2/1", "", ""),
    ("foo", 3, 2, 2, "DNS/-/1", "DNS/2/1", "", ""),
    ("node", 1, 3, 4, "DNS/-/1", "DNS/3/1", "", ""),
    ("zone", 1, 2, 2, "DNS/-/1", "DNS/2/1", "", ""),
    ("zone", 2, 2, 2, "DNS/-/1", "DNS/2/1", "DNS/2/1", "DNS/2/1"),
    ("zone", 2, 2, 4, "DNS/-/1", "DNS/3/1", "DNS/2/2", "DNS/2/1"),
    ("zone", 3, 3, 3, "DNS/-/1", "DNS/3/1", "DNS/3/1", "DNS/3/1"),
]


def constraints(obj: JsonObject) -> dict[str, str]:
    """Return the constraints by their keys, as the matrix writes them."""
    short = {"ScheduleAnyway": "SA", "DoNotSchedule": "DNS"}
    return {
        c[
            "topologyKey"
        ]: f"{short[c['whenUnsatisfiable']]}/{c.get('minDomains', '-')}/{c['maxSkew']}"
        for c in obj["spec"]["template"]["spec"].get("topologySpreadConstraints", [])
    }


@pytest.mark.parametrize("row", ROWS)
@pytest.mark.parametrize("name", PROFILES)
def test_constraints_follow_the_matrix(
    row: tuple[str | None, int, int, int, str, str, str, str], name: str
) -> None:
    tolerance, count, replicas, most, seed_host, host, seed_zone, zone = row
    scaled = most if most != replicas else None
    around = Around(NamespaceSettings(tolerance, zones(count)), scaled)
    found = constraints(changed(workload(replicas), around, PROFILES[name]))
    chosen = (seed_host, seed_zone) if name == "seed" else (host, zone)
    assert (found.get(HOST, ""), found.get(ZONE, "")) == chosen


def test_an_object_may_request_hosts_and_a_single_node_does_not_block_it() -> None:
    asking = workload(2, annotations={"host-spread": "true"})
    around = Around(NamespaceSettings(None, zones(2)), 4)
    assert constraints(changed(asking, around, TODAY)) == {HOST: "DNS/3/1", ZONE: "DNS/2/1"}
    assert constraints(changed(asking, around, SEED))[HOST] == "SA/-/1"
    single = Around(NamespaceSettings("node", zones(1)), 4, many=False)
    assert constraints(changed(workload(3), single, TODAY)) == {HOST: "SA/-/1"}
    assert constraints(changed(workload(3), single, SEED)) == {HOST: "DNS/-/1"}


def test_foreign_constraints_stay_first_and_ours_are_replaced() -> None:
    foreign = {"topologyKey": "some-key", "maxSkew": 7, "whenUnsatisfiable": "ScheduleAnyway"}
    odd = [{"topologyKey": key, "maxSkew": 9, "whenUnsatisfiable": "x"} for key in (HOST, ZONE)]
    pod = {"topologySpreadConstraints": [odd[0], foreign, odd[1]]}
    result = changed(workload(2, pod=pod), Around(NamespaceSettings(None, zones(2))))
    found = result["spec"]["template"]["spec"]["topologySpreadConstraints"]
    assert [c["topologyKey"] for c in found] == ["some-key", HOST, ZONE]
    assert found[0] == foreign
    assert found[1]["maxSkew"] == found[2]["maxSkew"] == 1


def test_constraints_of_a_single_replica_are_unchanged() -> None:
    old = {"topologyKey": HOST, "maxSkew": 9, "whenUnsatisfiable": "ScheduleAnyway"}
    around = Around(NamespaceSettings("", zones(2)))
    result = changed(workload(1, pod={"topologySpreadConstraints": [old]}), around, not_ready=60)
    pod = result["spec"]["template"]["spec"]
    assert pod["topologySpreadConstraints"] == [old]
    assert "affinity" in pod
    assert len(pod["tolerations"]) == 1


def test_a_stateful_set_is_spread_by_its_own_selector() -> None:
    selector = {"matchLabels": {"stable": "yes"}}
    obj = {**workload(2, selector=selector), "kind": "StatefulSet"}
    result = changed(obj, profile=TODAY, gvk=STATEFUL_SET)
    (host,) = result["spec"]["template"]["spec"]["topologySpreadConstraints"]
    assert host["labelSelector"] == selector
    assert "matchLabelKeys" not in host


@pytest.mark.parametrize(
    ("selector", "keys", "added"),
    [
        ({"matchLabels": {"a": "b"}}, None, True),
        ({"matchLabels": {"a": "b"}}, ["x"], True),
        (None, None, False),
        ({"matchLabels": {"pod-template-hash": "1"}}, None, False),
        ({"matchExpressions": [{"key": "pod-template-hash", "operator": "Exists"}]}, None, False),
        ({"matchLabels": {"a": "b"}}, ["pod-template-hash"], False),
    ],
)
def test_foreign_constraints_get_the_template_hash_if_the_api_server_accepts_it(
    selector: JsonObject | None, keys: list[str] | None, added: bool
) -> None:
    foreign: JsonObject = {"topologyKey": "k", "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway"}
    if selector:
        foreign["labelSelector"] = selector
    if keys:
        foreign["matchLabelKeys"] = keys
    obj = workload(1, pod={"topologySpreadConstraints": [foreign]})
    (found,) = changed(obj, profile=TODAY)["spec"]["template"]["spec"]["topologySpreadConstraints"]
    expected = [*(keys or []), "pod-template-hash"] if added else keys
    assert found.get("matchLabelKeys") == expected
    assert changed(obj, profile=SEED) == obj


# §3.6: tolerations


def test_tolerations_are_added_only_for_unmentioned_keys() -> None:
    mine = {
        "key": "node.kubernetes.io/not-ready",
        "operator": "Exists",
        "effect": "NoExecute",
        "tolerationSeconds": 300,
    }
    result = changed(workload(0, pod={"tolerations": [mine]}), not_ready=60, unreachable=70)
    assert result["spec"]["template"]["spec"]["tolerations"] == [
        mine,
        {
            "key": "node.kubernetes.io/unreachable",
            "operator": "Exists",
            "effect": "NoExecute",
            "tolerationSeconds": 70,
        },
    ]


@pytest.mark.parametrize(
    ("toleration", "counts"),
    [
        ({"key": "node.kubernetes.io/not-ready", "operator": "Exists"}, True),
        ({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"}, False),
        ({"operator": "Exists"}, False),
    ],
)
def test_tolerations_that_mention_a_key_are_recognized(
    toleration: JsonObject, counts: bool
) -> None:
    result = changed(workload(1, pod={"tolerations": [toleration]}), not_ready=60)
    assert len(result["spec"]["template"]["spec"]["tolerations"]) == (1 if counts else 2)


def test_without_seconds_no_toleration_is_added() -> None:
    assert changed(workload(1)) == workload(1)


# §3.9: the examples


def example(profile: Profile) -> JsonObject:
    obj = workload(1, "controller")
    around = Around(
        read_namespace({f"{PREFIX}/failure-tolerance-type": "zone", f"{PREFIX}/zones": "b,a,,b,c"})
    )
    spec: JsonObject = changed(obj, around, profile, not_ready=60, unreachable=60)["spec"]
    return spec


def test_the_example_of_the_specification() -> None:
    spec = example(SEED)
    assert spec["replicas"] == 2
    requirement = {"key": ZONE, "operator": "In", "values": ["a", "b", "c"]}
    pod = spec["template"]["spec"]
    required = pod["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert required == {"nodeSelectorTerms": [{"matchExpressions": [requirement]}]}
    selector = {"matchLabels": {"app": "x"}}
    host = {
        "topologyKey": HOST,
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": selector,
    }
    zone = {**host, "topologyKey": ZONE, "minDomains": 2}
    assert pod["topologySpreadConstraints"] == [host, zone]
    assert [t["key"].rpartition("/")[2] for t in pod["tolerations"]] == ["not-ready", "unreachable"]
    keys = {"matchLabelKeys": ["pod-template-hash"]}
    modern = example(TODAY)["template"]["spec"]["topologySpreadConstraints"]
    assert modern == [{**host, "minDomains": 2, **keys}, {**zone, **keys}]


@pytest.mark.parametrize("gvk", [HPA, HVPA])
def test_an_autoscaler_follows_the_annotation(gvk: GroupVersionKind) -> None:
    limits = {"minReplicas": 1, "maxReplicas": 2}
    spec = limits if gvk == HPA else {"hpa": {"template": {"spec": limits}}}
    obj: JsonObject = {
        "metadata": {
            "labels": {f"{PREFIX}/type": "server"},
            "annotations": {f"{PREFIX}/replicas": "12"},
        },
        "spec": spec,
    }
    result = changed(obj, gvk=gvk)["spec"]
    found = result if gvk == HPA else result["hpa"]["template"]["spec"]
    assert found == {"minReplicas": 12, "maxReplicas": 12}


# Must hold


@pytest.mark.parametrize(
    ("replicas", "most", "result"), [(3, None, 1), (3, 10, 3), (0, None, 0), (None, None, None)]
)
def test_a_controller_without_failure_tolerance_has_one_replica_unless_autoscaled(
    replicas: int | None, most: int | None, result: int | None
) -> None:
    around = Around(NamespaceSettings(""), most)
    spec = changed(workload(replicas, "controller"), around)["spec"]
    assert spec.get("replicas") == result


@pytest.mark.parametrize("value", ["x", "-1", "1.5", "99999999999", "1_0", "٣"])
def test_an_annotation_that_is_not_a_number_refuses_the_request(value: str) -> None:
    verdict = ask(workload(2, "server", annotations={"replicas": value}))
    assert (verdict.allowed, verdict.code) == (False, 403)
    assert value in verdict.message
    # It is read only if it has an effect.
    assert ask(workload(2, annotations={"replicas": value})).allowed
    assert ask(workload(0, "server", annotations={"replicas": value})).allowed


def test_failed_lookups_are_errors() -> None:
    gone = ApiError(503, {"message": "etcd is not there"})
    verdict = ask(workload(), Around(error=gone))
    assert (verdict.allowed, verdict.code) == (False, 500)
    assert "etcd is not there" in verdict.message
    verdict = ask(workload(), Around(most=-1))
    assert (verdict.code, verdict.message) == (500, "failed to list all HPAs: no list today")


def test_other_kinds_versions_and_operations_are_ignored() -> None:
    other = DAEMON_SET
    assert ask(workload(), gvk=other).message == "unexpected resource: DaemonSet.apps"
    old = GroupVersionKind("autoscaling", "v1", "HorizontalPodAutoscaler")
    verdict = ask({"spec": {}}, gvk=old)
    assert verdict.message == 'autoscaling version "v1" in request is not supported'
    assert not verdict.allowed
    assert ask({"spec": {}}, gvk=GroupVersionKind("autoscaling", "v2beta1", HPA.kind)).allowed
    assert ask(workload(1, "server"), operation="DELETE").edits == ()


@pytest.mark.parametrize("spec", [7, {"template": {"spec": {"tolerations": "x"}}}])
def test_an_invalid_workload_is_a_bad_request(spec: Any) -> None:
    verdict = ask({"metadata": {}, "spec": spec}, not_ready=60)
    assert (verdict.allowed, verdict.code) == (False, 400)


def test_an_unknown_type_causes_a_warning() -> None:
    (warning,) = ask(workload(2, "sevrer")).warnings
    assert '"sevrer"' in warning
    assert ask(workload(2, "server")).warnings == ()


@pytest.mark.parametrize(
    ("chosen", "version", "profile"),
    [
        ("auto", (1, 36), TODAY),
        ("auto", (1, 26), Profile(widens_zone_skew=False, is_modern=False)),
        ("auto", (1, 25), SEED),
        ("auto", None, SEED),
        ("seed", (1, 36), SEED),
        ("today", None, TODAY),
    ],
)
def test_the_rules_follow_the_version_unless_configured(
    chosen: Any, version: tuple[int, int] | None, profile: Profile
) -> None:
    assert profile_for(chosen, version) == profile


def test_the_registration_follows_the_specification() -> None:
    (runtime,) = registrations(Installation("runtime", hvpa=True))
    entry = runtime.render({})
    assert entry["namespaceSelector"]["matchLabels"] == {f"{PREFIX}/consider": "true"}
    assert [rule["resources"] for rule in entry["rules"]] == [
        ["deployments", "statefulsets"],
        ["horizontalpodautoscalers"],
        ["hvpas"],
    ]
    assert (entry["failurePolicy"], entry["matchPolicy"]) == ("Fail", "Equivalent")
    (target,) = registrations(Installation("target"))
    assert "resources.gardener.cloud/managed-by" in target.object_selector["matchLabels"]
    assert len(target.rules) == 2


# Properties

scalars = st.text(max_size=4) | st.integers(0, 5) | st.booleans()
keys = st.sampled_from([HOST, ZONE, "other"])
constraint = st.fixed_dictionaries(
    {"topologyKey": keys},
    optional={
        "maxSkew": st.integers(1, 9),
        "labelSelector": st.just({"matchLabels": {"a": "b"}}),
        "unknown": scalars,
    },
)
toleration = st.fixed_dictionaries(
    {}, optional={"key": st.text(max_size=3), "effect": st.sampled_from(["", "NoExecute", "x"])}
)
terms = st.lists(
    st.fixed_dictionaries(
        {},
        optional={"matchExpressions": st.lists(st.fixed_dictionaries({"key": keys}), max_size=2)},
    ),
    max_size=2,
)


@st.composite
def workloads(draw: st.DrawFn) -> JsonObject:
    pod: JsonObject = {"unknownField": draw(scalars)}
    if draw(st.booleans()):
        pod["topologySpreadConstraints"] = draw(st.lists(constraint, max_size=3))
    if draw(st.booleans()):
        pod["tolerations"] = draw(st.lists(toleration, max_size=2))
    if draw(st.booleans()):
        required = {"nodeSelectorTerms": draw(terms), "unknown": 1}
        pod["affinity"] = {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}
        }
    kind = draw(st.sampled_from(["", "controller", "server"]))
    return workload(draw(st.none() | st.integers(0, 4)), kind, pod=pod, unknown=draw(scalars))


arounds = st.builds(
    Around,
    st.builds(
        NamespaceSettings,
        st.sampled_from([None, "", "node", "zone"]),
        st.integers(0, 3).map(zones),
        st.booleans(),
    ),
    st.none() | st.integers(1, 6),
    st.booleans(),
)
DOCUMENTED = ("replicas", "affinity", "topologySpreadConstraints", "tolerations")


def without_documented(obj: JsonObject) -> JsonObject:
    rest = copy.deepcopy(obj)
    for part in (rest["spec"], rest["spec"]["template"]["spec"]):
        for name in DOCUMENTED:
            part.pop(name, None)
    return rest


@given(workloads(), arounds, st.sampled_from([SEED, TODAY]))
def test_changes_are_idempotent_and_limited_to_documented_fields(
    obj: JsonObject, around: Around, profile: Profile
) -> None:
    before = copy.deepcopy(obj)
    once = changed(obj, around, profile, not_ready=60, unreachable=60)
    assert obj == before
    assert changed(once, around, profile, not_ready=60, unreachable=60) == once
    assert without_documented(once) == without_documented(before)
