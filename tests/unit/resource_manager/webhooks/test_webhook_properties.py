"""Properties of all mutating webhooks, for any input."""

import copy
from collections.abc import Sequence
from typing import Any

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.admission.review import Handler, Verdict
from pergola.api.core_v1 import Toleration
from pergola.api.objects import JsonObject, Key
from pergola.resource_manager.webhooks import (
    endpoint_slice_hints,
    pod_topology_spread_constraints,
    seccomp_profile,
    token_invalidator,
    vpa_in_place_updates,
)
from pergola.resource_manager.webhooks.explanation import applied
from pergola.resource_manager.webhooks.facts.taints import Taint
from pergola.resource_manager.webhooks.kubernetes_service_host import KubernetesServiceHost
from pergola.resource_manager.webhooks.pod_kube_apiserver_load_balancing import (
    PodKubeApiserverLoadBalancing,
)
from pergola.resource_manager.webhooks.pod_scheduler_name import PodSchedulerName
from pergola.resource_manager.webhooks.projected_token_mount import (
    EXPIRATION,
    ProjectedTokenMount,
)
from pergola.resource_manager.webhooks.system_components_config import SystemComponentsConfig
from tests.support.reviews import answer, review_of

# Objects as an API server sends them


def optional(**fields: st.SearchStrategy[Any]) -> st.SearchStrategy[JsonObject]:
    """Draw maps with some of the fields, some of them null, and perhaps an unknown one."""
    unknown = st.dictionaries(st.just("x-new"), st.integers(0, 3), max_size=1)
    known = st.fixed_dictionaries({}, optional={k: st.none() | v for k, v in fields.items()})
    return st.builds(lambda a, b: a | b, known, unknown)


def some(item: st.SearchStrategy[Any]) -> st.SearchStrategy[list[Any]]:
    return st.lists(item, max_size=3)


WORD = st.sampled_from(["", "a", "b"])
LABELS = st.dictionaries(st.sampled_from(["app", "a/b", "pod-template-hash"]), WORD)
CONTAINER = optional(
    name=WORD,
    env=some(optional(name=st.sampled_from(["X", "KUBERNETES_SERVICE_HOST"]), value=WORD)),
    volumeMounts=some(
        optional(
            name=WORD,
            mountPath=st.sampled_from(["/a", "/var/run/secrets/kubernetes.io/serviceaccount/"]),
        )
    ),
)
KUBECONFIG = {"name": "k", "secret": {"secretName": "generic-token-kubeconfig"}}
VOLUME = optional(
    name=st.sampled_from(["data", "kube-api-access-x"]),
    secret=optional(secretName=st.sampled_from(["a", "generic-token-kubeconfig"])),
    projected=optional(
        sources=some(optional(secret=optional(name=st.just("generic-token-kubeconfig-1"))))
    ),
)
TOLERATION = optional(
    key=WORD,
    operator=st.sampled_from(["", "Equal", "Exists"]),
    value=WORD,
    effect=st.sampled_from(["", "NoSchedule"]),
    tolerationSeconds=st.integers(0, 1),
)
SELECTOR = optional(
    matchLabels=LABELS,
    matchExpressions=some(
        optional(
            key=st.sampled_from(["app", "pod-template-hash"]),
            operator=st.sampled_from(["In", "Exists"]),
            values=some(WORD),
        )
    ),
)
CONSTRAINT = optional(
    topologyKey=WORD,
    labelSelector=SELECTOR,
    matchLabelKeys=some(st.sampled_from(["app", "pod-template-hash"])),
)
OWNER = optional(apiVersion=st.just("apps/v1"), kind=st.just("DaemonSet"), controller=st.booleans())
OPTIONAL_SPEC = {
    "serviceAccountName": st.sampled_from(["", "default", "web", "other"]),
    "automountServiceAccountToken": st.booleans(),
    "schedulerName": st.sampled_from(["", "default-scheduler", "own"]),
    "securityContext": optional(
        runAsUser=st.integers(0, 1),
        seccompProfile=optional(type=st.sampled_from(["", "Unconfined"])),
    ),
    "nodeSelector": st.dictionaries(st.sampled_from(["pool", "a/b"]), WORD),
}
METADATA = {
    "labels": LABELS,
    "annotations": st.dictionaries(st.just(EXPIRATION), st.sampled_from(["700", "x"])),
}
REST: JsonObject = {
    "nodeName": "n",
    "ephemeralContainers": [{"name": "e"}],
    "x-new": {"labels": [None, {"a": 1}]},
}


def of_kind(
    api_version: str, kind: str, **parts: st.SearchStrategy[Any]
) -> st.SearchStrategy[JsonObject]:
    top = {"apiVersion": st.just(api_version), "kind": st.just(kind)}
    return st.fixed_dictionaries({**top, "metadata": optional(labels=LABELS), **parts})


def pods(
    metadata: dict[str, st.SearchStrategy[Any]] | None = None, **spec: st.SearchStrategy[Any]
) -> st.SearchStrategy[JsonObject]:
    """Draw pods that have these fields and some of the others."""
    sure = st.fixed_dictionaries(spec | {k: st.just(v) for k, v in REST.items()})
    further = optional(**{k: v for k, v in OPTIONAL_SPEC.items() if k not in spec})
    return of_kind(
        "v1",
        "Pod",
        metadata=st.fixed_dictionaries(
            metadata or {},
            optional={k: v for k, v in METADATA.items() if k not in (metadata or {})},
        ),
        spec=st.builds(lambda a, b: a | b, further, sure),
    )


SECRET_LABELS = st.dictionaries(st.just(token_invalidator.CONSIDER), WORD)
SECRETS = of_kind(
    "v1",
    "Secret",
    metadata=st.fixed_dictionaries({"labels": SECRET_LABELS}),
    data=st.none()
    | st.dictionaries(st.sampled_from(["token", "ca.crt"]), st.sampled_from(["AAAA", "dg=="])),
)
SLICES = of_kind(
    "discovery.k8s.io/v1",
    "EndpointSlice",
    endpoints=some(optional(zone=WORD, hints=optional(forZones=some(optional())))),
)
MODES = st.sampled_from(["", "Auto", "Recreate", "Initial", "Off", "InPlaceOrRecreate"])
AUTOSCALERS = of_kind(
    "autoscaling.k8s.io/v1",
    "VerticalPodAutoscaler",
    spec=optional(updatePolicy=optional(updateMode=MODES)),
)

# The webhooks, and the fields that each may change


async def mounts_token(account: Key) -> bool:
    return account.name == "other"


async def system_taints() -> Sequence[Taint]:
    return [Taint("a", "b", "NoSchedule"), Taint("x", "", "NoExecute")]


async def config_map(key: Key) -> JsonObject:
    return {"data": {"hosts": "api,b.example.com", "istio-namespace": "istio"}}


async def service(key: Key) -> JsonObject:
    return {"spec": {"clusterIPs": ["10.0.0.1", "2001:db8::1"]}}


CASES: dict[str, tuple[Handler, st.SearchStrategy[JsonObject], tuple[str, ...]]] = {
    "projected-token-mount": (
        ProjectedTokenMount(mounts_token),
        pods(
            serviceAccountName=st.sampled_from(["web", "web", "other", "default"]),
            automountServiceAccountToken=st.sampled_from([None, True, True, False]),
            containers=some(CONTAINER),
            initContainers=some(CONTAINER),
            volumes=st.none() | some(VOLUME),
        ),
        ("spec.volumes", "spec.containers.*.volumeMounts", "spec.initContainers.*.volumeMounts"),
    ),
    "kubernetes-service-host": (
        KubernetesServiceHost("api.example.com"),
        pods(containers=some(CONTAINER), initContainers=some(CONTAINER)),
        ("spec.containers.*.env", "spec.initContainers.*.env"),
    ),
    "pod-topology-spread-constraints": (
        pod_topology_spread_constraints.review,
        pods(
            {"labels": st.just({"pod-template-hash": "abc", "app": "a"}) | LABELS},
            topologySpreadConstraints=some(CONSTRAINT),
        ),
        (
            "spec.topologySpreadConstraints.*.labelSelector",
            "spec.topologySpreadConstraints.*.matchLabelKeys",
        ),
    ),
    "system-components-config": (
        SystemComponentsConfig(
            system_taints, {"pool": "system", "c/d": "e"}, [Toleration(key="a", operator="Exists")]
        ),
        pods({"ownerReferences": some(OWNER)}, tolerations=st.none() | some(TOLERATION)),
        ("spec.nodeSelector", "spec.tolerations"),
    ),
    "seccomp-profile": (
        seccomp_profile.review,
        pods(),
        ("spec.securityContext.seccompProfile",),
    ),
    "pod-scheduler-name": (PodSchedulerName("own"), pods(), ("spec.schedulerName",)),
    "pod-kube-apiserver-load-balancing": (
        PodKubeApiserverLoadBalancing(config_map, service),
        pods(
            volumes=some(VOLUME).map(lambda volumes: [*volumes, KUBECONFIG]),
            hostAliases=st.none()
            | some(
                optional(
                    ip=st.sampled_from(["10.0.0.1", "x"]),
                    hostnames=some(st.sampled_from(["api", "y"])),
                )
            ),
        ),
        ("spec.hostAliases", "metadata.labels"),
    ),
    "endpoint-slice-hints": (endpoint_slice_hints.review, SLICES, ("endpoints.*.hints",)),
    "token-invalidator": (token_invalidator.review, SECRETS, ("data.token",)),
    "vpa-in-place-updates": (
        vpa_in_place_updates.review,
        AUTOSCALERS,
        ("spec.updatePolicy.updateMode", "metadata.labels"),
    ),
}
OF_OTHER_KINDS = {
    "endpoint-slice-hints": ("discovery.k8s.io/v1", "EndpointSlice"),
    "token-invalidator": ("v1", "Secret"),
    "vpa-in-place-updates": ("autoscaling.k8s.io/v1", "VerticalPodAutoscaler"),
}
each_webhook = pytest.mark.parametrize("name", CASES)


def said(handler: Handler, obj: JsonObject, **fields: Any) -> Verdict:
    """Return the answer; no event loop is needed, as the look-ups above never wait."""
    steps = answer(handler, review_of(obj, namespace="kube-system", **fields)).__await__()
    try:
        next(steps)
    except StopIteration as end:
        verdict: Verdict = end.value
        return verdict
    raise AssertionError("a look-up waited")


def leaves(value: Any, path: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    """Return all values by their paths, without empty maps and nulls."""
    if isinstance(value, dict):
        found: dict[tuple[str, ...], Any] = {}
        for name, item in value.items():
            found |= leaves(item, (*path, name))
        return found
    if isinstance(value, list):
        return leaves({str(index): item for index, item in enumerate(value)}, path)
    return {} if value is None else {path: value}


def is_documented(path: tuple[str, ...], allowed: Sequence[str]) -> bool:
    for pattern in allowed:
        steps = pattern.split(".")
        fits = [step in ("*", at) for step, at in zip(steps, path, strict=False)]
        if len(path) >= len(steps) and all(fits):
            return True
    return False


@each_webhook
@given(data=st.data())
def test_changes_are_idempotent_and_every_verdict_has_a_reason(
    name: str, data: st.DataObject
) -> None:
    handler, objects, _ = CASES[name]
    obj = data.draw(objects)
    verdict = said(handler, obj)
    assert all(edit.because for edit in verdict.edits)
    assert verdict.edits or verdict.because or verdict.message
    if verdict.allowed:
        again = said(handler, applied(obj, verdict.edits))
        assert (again.allowed, again.edits) == (True, ())


@each_webhook
@given(data=st.data())
def test_the_patch_applies_and_changes_only_documented_fields(
    name: str, data: st.DataObject
) -> None:
    handler, objects, documented = CASES[name]
    obj = data.draw(objects)
    before = copy.deepcopy(obj)
    verdict = said(handler, obj)
    assert obj == before
    after = applied(obj, verdict.edits)
    assert jsonpatch.apply_patch(obj, [edit.operation() for edit in verdict.edits]) == after
    old, new = leaves(before), leaves(after)
    for path in old.keys() | new.keys():
        if old.get(path) != new.get(path):
            assert is_documented(path, documented), path


ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers(0, 1) | st.sampled_from(["", "a"]),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(
                [
                    "labels",
                    "annotations",
                    "containers",
                    "env",
                    "name",
                    "volumes",
                    "tolerations",
                    "updatePolicy",
                    "zone",
                    "securityContext",
                    "topologySpreadConstraints",
                ]
            ),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)


@each_webhook
@given(metadata=ANYTHING, spec=ANYTHING, other=ANYTHING)
def test_a_malformed_object_is_refused_without_an_exception(
    name: str, metadata: Any, spec: Any, other: Any
) -> None:
    handler = CASES[name][0]
    api_version, kind = OF_OTHER_KINDS.get(name, ("v1", "Pod"))
    obj = {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": metadata,
        "spec": spec,
        "data": other,
        "endpoints": other,
    }
    verdict = said(handler, obj)
    if verdict.allowed:
        applied(obj, verdict.edits)
    else:
        assert verdict.code in (400, 403)
        assert verdict.message


@pytest.mark.parametrize("name", sorted(CASES.keys() - OF_OTHER_KINDS.keys()))
def test_a_spec_that_is_not_a_map_is_refused_with_400(name: str) -> None:
    handler = CASES[name][0]
    obj = {"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": "x"}
    verdict = said(handler, obj)
    if name == "pod-topology-spread-constraints":
        obj["metadata"] = {"labels": {"pod-template-hash": "a"}}
        verdict = said(handler, obj)
    assert (verdict.allowed, verdict.code, verdict.reason) == (False, 400, "")
    assert verdict.message == "cannot decode the Pod: spec: expected a map, found a string"


@each_webhook
def test_other_kinds_subresources_and_deletions_are_not_reviewed(name: str) -> None:
    handler = CASES[name][0]
    other: JsonObject = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {}}
    assert said(handler, other).code == 400
    assert said(handler, other, operation="DELETE").allowed
    status = said(handler, other, subresource="status")
    assert (status.allowed, status.edits) == (True, ())
