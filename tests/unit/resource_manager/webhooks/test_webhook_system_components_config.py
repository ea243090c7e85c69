"""Node selectors and tolerations of system components: spec 12 §7, §2.6."""

from collections.abc import Sequence

import orjson
import pytest

from pergola.admission.review import Verdict
from pergola.admission.selection import Candidate, why_not_selected
from pergola.api.core_v1 import Toleration
from pergola.api.objects import JsonObject
from pergola.kube.errors import Unreachable
from pergola.resource_manager.webhooks.facts.taints import Taint, in_order, taints_of
from pergola.resource_manager.webhooks.installation import Installation
from pergola.resource_manager.webhooks.system_components_config import (
    SKIP,
    SystemComponentsConfig,
    registrations,
)
from tests.support.reviews import patched, pod, review_of

T: JsonObject = {"key": "mine", "operator": "Exists"}
C = Toleration(key="c", operator="Exists", effect="NoSchedule")
X = {"key": "x", "operator": "Equal", "value": "1", "effect": "NoSchedule"}


def node(*taints: JsonObject) -> JsonObject:
    return {"kind": "Node", "spec": {"taints": list(taints)}}


def handler(
    *taints: Taint,
    selector: dict[str, str] | None = None,
    tolerations: Sequence[Toleration] = (),
) -> SystemComponentsConfig:
    known = in_order(taints)

    async def system_taints() -> Sequence[Taint]:
        return known

    return SystemComponentsConfig(system_taints, selector or {}, tolerations)


async def reviewed(given: JsonObject, webhook: SystemComponentsConfig) -> Verdict:
    return await webhook(review_of(given))


async def tolerations_after(given: JsonObject, webhook: SystemComponentsConfig) -> list[JsonObject]:
    changed = patched(given, await reviewed(given, webhook))
    assert (await reviewed(changed, webhook)).edits == ()
    found: list[JsonObject] = changed["spec"].get("tolerations", [])
    return found


async def test_without_nodes_the_configuration_applies() -> None:
    given = pod()
    webhook = handler(selector={"pool": "system"}, tolerations=[C])
    spec = patched(given, await reviewed(given, webhook))["spec"]
    assert spec["nodeSelector"] == {"pool": "system"}
    assert spec["tolerations"] == [{"key": "c", "operator": "Exists", "effect": "NoSchedule"}]


async def test_the_example_of_the_specification() -> None:
    webhook = handler(Taint("x", "1", "NoSchedule"), selector={"pool": "system"}, tolerations=[C])
    given = pod(nodeSelector={"pool": "mine", "a": "b"}, tolerations=[T])
    verdict = await reviewed(given, webhook)
    spec = patched(given, verdict)["spec"]
    assert spec["nodeSelector"] == {"pool": "system", "a": "b"}
    assert spec["tolerations"] == [T, C.to_json(), X]
    assert [edit.because for edit in verdict.edits] == [
        "webhooks.systemComponentsConfig.podNodeSelector contains it",
        "webhooks.systemComponentsConfig.podTolerations contains it",
        "a node for system components has the taint x=1:NoSchedule",
    ]
    assert verdict.warnings == (
        'spec.nodeSelector[pool]: "mine" was replaced by "system", where system components run',
    )


async def test_duplicate_tolerations_of_the_pod_are_removed() -> None:
    other = T | {"tolerationSeconds": 5}
    given = pod(tolerations=[T, other, T, T | {"value": ""}, other])
    assert await tolerations_after(given, handler(Taint("x", "1", "NoSchedule"))) == [T, other, X]


async def test_existing_tolerations_are_not_added_again() -> None:
    given = pod(tolerations=[X])
    verdict = await reviewed(given, handler(Taint("x", "1", "NoSchedule")))
    assert (verdict.edits, verdict.because) == ((), "node selector and tolerations are already set")


@pytest.mark.parametrize(
    ("labels", "asked"),
    [
        ({"resources.gardener.cloud/managed-by": "gardener"}, True),
        ({"resources.gardener.cloud/managed-by": "somebody"}, False),
        ({}, False),
        ({"resources.gardener.cloud/managed-by": "gardener", SKIP: "false"}, False),
    ],
)
def test_other_pods_and_pods_with_the_skip_label_are_not_sent(
    labels: dict[str, str], *, asked: bool
) -> None:
    (entry,) = registrations(Installation("target"))
    candidate = Candidate("CREATE", review_of(pod()).resource, labels=labels)
    assert (why_not_selected(entry.render({}), candidate) is None) is asked


@pytest.mark.parametrize(
    ("owner", "placed"),
    [
        ({"apiVersion": "apps/v1", "kind": "DaemonSet", "controller": True}, False),
        ({"apiVersion": "apps/v1", "kind": "DaemonSet", "controller": False}, True),
        ({"apiVersion": "apps/v1", "kind": "DaemonSet"}, True),
        ({"apiVersion": "apps/v1", "kind": "ReplicaSet", "controller": True}, True),
        ({"apiVersion": "example.org/v1", "kind": "DaemonSet", "controller": True}, True),
    ],
)
async def test_pods_of_a_daemon_set_are_unchanged(owner: JsonObject, *, placed: bool) -> None:
    given = pod(metadata={"ownerReferences": [owner]})
    verdict = await reviewed(given, handler(selector={"pool": "system"}))
    assert bool(verdict.edits) is placed
    assert placed or verdict.because == "the DaemonSet decides where its pods run"


async def test_a_pod_is_refused_while_nodes_cannot_be_listed() -> None:
    async def system_taints() -> Sequence[Taint]:
        raise Unreachable("no answer")

    verdict = await reviewed(pod(), SystemComponentsConfig(system_taints, {}))
    assert (verdict.allowed, verdict.code) == (False, 403)
    assert verdict.message == "no answer (system-components-config: cannot list the nodes)"


async def test_equal_pods_get_equal_patches() -> None:
    taints = [Taint(key, value, "NoSchedule") for key in "bca" for value in ("2", "", "1")]
    one = await tolerations_after(pod(), handler(*taints, tolerations=[C]))
    other = await tolerations_after(pod(), handler(*reversed(taints), tolerations=[C]))
    assert orjson.dumps(one) == orjson.dumps(other)
    assert [(t["key"], t["operator"], t.get("value")) for t in one][:4] == [
        ("c", "Exists", None),
        ("a", "Equal", "1"),
        ("a", "Equal", "2"),
        ("a", "Exists", None),
    ]


async def test_a_taint_that_the_configuration_tolerates_is_not_added_twice() -> None:
    configured = Toleration(key="x", operator="Equal", value="1", effect="NoSchedule")
    webhook = handler(Taint("x", "1", "NoSchedule"), tolerations=[configured, configured])
    assert await tolerations_after(pod(), webhook) == [X]


async def test_tolerations_follow_the_nodes() -> None:
    known: list[Sequence[Taint]] = [[Taint("x", "1", "NoSchedule")]]

    async def system_taints() -> Sequence[Taint]:
        return known[0]

    webhook = SystemComponentsConfig(system_taints, {})
    assert await tolerations_after(pod(), webhook) == [X]
    known[0] = [Taint("y", "", "NoExecute")]
    assert await tolerations_after(pod(), webhook) == [
        {"key": "y", "operator": "Exists", "effect": "NoExecute"}
    ]


@pytest.mark.parametrize(
    ("taint", "toleration"),
    [
        (
            {"key": "k", "value": "v", "effect": "NoExecute", "timeAdded": "2030-01-01T00:00:00Z"},
            {"key": "k", "operator": "Equal", "value": "v", "effect": "NoExecute"},
        ),
        (
            {"key": "k", "effect": "NoSchedule"},
            {"key": "k", "operator": "Exists", "effect": "NoSchedule"},
        ),
        *(
            ({"key": key, "value": "x", "effect": "NoSchedule"}, None)
            for key in (
                "node.kubernetes.io/memory-pressure",
                "node.kubernetes.io/unschedulable",
                "node.kubernetes.io/network-unavailable",
                "node.kubernetes.io/pid-pressure",
                "node.kubernetes.io/disk-pressure",
                "node.cloudprovider.kubernetes.io/uninitialized",
                "ToBeDeletedByClusterAutoscaler",
            )
        ),
    ],
)
def test_taints_become_tolerations(taint: JsonObject, toleration: JsonObject | None) -> None:
    found = [taint.toleration() for taint in taints_of(node(taint))]
    assert found == ([toleration] if toleration else [])


def test_a_node_without_taints_has_none() -> None:
    assert taints_of({"kind": "Node", "spec": {}}) == ()
    assert taints_of({"kind": "Node", "spec": {"taints": None}}) == ()


async def test_cached_taints_give_the_same_result_without_waiting() -> None:
    taints = in_order([Taint("a", "1", "NoSchedule"), Taint("b", "", "NoExecute")])
    waiting = handler(*taints, selector={"pool": "system"}, tolerations=[C])

    async def never() -> Sequence[Taint]:
        raise AssertionError("the taints are known")

    prompt = SystemComponentsConfig(never, {"pool": "system"}, [C], known=lambda: taints)
    for given in (pod(), {**pod(), "spec": "broken"}):
        request = review_of(given)
        assert prompt.at_once(request) == await waiting(request)
        assert waiting.at_once(request) is None
