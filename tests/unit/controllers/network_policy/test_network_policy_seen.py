"""Cached facts about objects, peers, and the desired policies: spec 11 §4.5-4.9."""

from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.api.objects import JsonObject, Key
from pergola.controllers.network_policy.apply import plan
from pergola.controllers.network_policy.desired import desired
from pergola.controllers.network_policy.intents import intents
from pergola.controllers.network_policy.peers import Peers, peers_of
from pergola.controllers.network_policy.seen import (
    SeenNamespace,
    SeenPolicy,
    keep_gateway,
    keep_ingress,
    keep_namespace,
    keep_pod,
    keep_policy,
    keep_virtual_service,
)
from pergola.controllers.network_policy.service import ServiceView, read_service
from pergola.runtime.caching.cache import Change

T = TypeVar("T")
L = "networking.resources.gardener.cloud/"


def service(name: str, *selectors: JsonObject, namespace: str = "a") -> ServiceView:
    annotations = {L + "namespace-selectors": orjson.dumps(selectors).decode()} if selectors else {}
    return read_service(
        {
            "metadata": {"name": name, "namespace": namespace, "annotations": annotations},
            "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]},
        }
    )


# Peers


def namespaces(**labels: dict[str, str] | None) -> dict[str, SeenNamespace]:
    """Return namespaces by name; None stands for a terminating one that every selector matches."""
    return {
        name: SeenNamespace(found or {"team": "x"}, terminating=found is None)
        for name, found in labels.items()
    }


AROUND = namespaces(a={"team": "y"}, c={"team": "x"}, b={"team": "x"}, gone=None)


@pytest.mark.parametrize(
    ("selectors", "peers"),
    [
        ([], ["a"]),
        ([{"matchLabels": {"team": "x"}}], ["a", "b", "c"]),
        ([{"matchLabels": {"team": "y"}}], ["a"]),
        ([{}], ["a", "b", "c"]),
        ([{"matchLabels": {"team": "z"}}], ["a"]),
        ([{"matchLabels": {"team": "z"}}, {"matchLabels": {"team": "x"}}], ["a", "b", "c"]),
    ],
)
def test_peers_are_the_own_namespace_and_all_selected_ones(
    selectors: list[JsonObject], peers: list[str]
) -> None:
    assert peers_of(service("web", *selectors), AROUND) == peers


def test_a_terminating_namespace_has_no_peers() -> None:
    assert peers_of(service("web", {}, namespace="gone"), AROUND) == []


class Reported(Generic[T]):
    """A cache whose contents a test sets, instead of a server."""

    def __init__(self) -> None:
        self.objects: dict[Key, T] = {}
        self.subscribers: list[Callable[[Change[T]], None]] = []

    def get(self, key: Key) -> T | None:
        return self.objects.get(key)

    def items(self) -> Iterator[tuple[Key, T]]:
        return iter(self.objects.items())

    def subscribe(self, subscriber: Callable[[Change[T]], None]) -> None:
        self.subscribers.append(subscriber)

    def put(self, key: Key, new: T | None) -> Change[T]:
        change = Change(key, self.objects.pop(key, None), new)
        if new is not None:
            self.objects[key] = new
        for subscriber in self.subscribers:
            subscriber(change)
        return change


TEAMS = st.sampled_from(["x", "y", "z"])
SELECTORS = st.one_of(st.just({}), st.builds(lambda team: {"matchLabels": {"team": team}}, TEAMS))
SERVICES = st.tuples(st.sampled_from(["s", "t"]), st.none() | st.lists(SELECTORS, max_size=2))
NAMESPACES = st.tuples(
    st.sampled_from(["b", "c", "d"]),
    st.none() | st.builds(lambda t, gone: SeenNamespace({"team": t}, gone), TEAMS, st.booleans()),
)


@given(st.lists(SERVICES | NAMESPACES, max_size=12))
def test_incrementally_updated_peers_equal_recomputed_ones(
    steps: list[tuple[str, list[JsonObject] | SeenNamespace | None]],
) -> None:
    views, around = Reported[ServiceView](), Reported[SeenNamespace]()
    peers = Peers(views, around)
    for name, what in steps:
        before = {key: peers.of(view) for key, view in views.items()}
        if name in ("s", "t"):
            new = service(name, *what) if isinstance(what, list) else None
            views.put(Key("a", name), new)
        else:
            seen = what if isinstance(what, SeenNamespace) else None
            affected = peers.namespace_changed(around.put(Key("", name), seen))
            changed = {k for k, view in views.items() if peers.of(view) != before[k]}
            assert changed <= affected
            # A selector may start to match a namespace that another one matched before.
            assert all(len(views.objects[k].namespace_selectors) > 1 for k in affected - changed)
        now = {key.name: seen for key, seen in around.items()}
        for view in views.objects.values():
            assert peers.of(view) == peers_of(view, now)


# Cached facts


def test_labels_and_termination_of_a_namespace_are_cached() -> None:
    metadata = {"labels": {"a": "b"}, "deletionTimestamp": "now"}
    assert keep_namespace({"metadata": metadata}) == SeenNamespace({"a": "b"}, terminating=True)


def test_labels_of_a_pod_that_allow_connections_are_cached() -> None:
    labels = {f"{L}to-a": "allowed", f"{L}to-b": "denied", f"{L}from-c": "allowed", "x": "allowed"}
    assert keep_pod({"metadata": {"labels": labels}}) == {f"{L}to-a"}


def test_the_backends_of_an_ingress_are_cached() -> None:
    def path(**service: object) -> JsonObject:
        return {"path": "/", "backend": {"service": service}}

    paths = [
        path(name="web", port={"number": 80}),
        path(name="web", port={"number": 80}),
        path(name="api", port={"name": "https"}),
        {"backend": {"resource": {"kind": "Bucket", "name": "b"}}},
    ]
    spec = {
        "rules": [{"http": {"paths": paths}}, {"host": "without.paths"}],
        "defaultBackend": {"service": {"name": "fallback", "port": {"number": 1}}},
    }
    assert keep_ingress({"metadata": {"namespace": "a"}, "spec": spec}) == {
        (Key("a", "web"), 80),
        (Key("a", "api"), "https"),
        (Key("a", "fallback"), 1),
    }


@pytest.mark.parametrize(
    ("host", "service"),
    [
        ("web.a.svc.cluster.local", "web"),
        ("web", "web"),
        ("web.b.svc.cluster.local", None),
        ("web.a", None),
        ("web.a.svc", None),
        ("www.example.org", None),
        ("", None),
        (None, None),
    ],
)
@pytest.mark.parametrize("protocol", ["http", "tls", "tcp"])
def test_the_destinations_of_a_virtual_service_are_cached(
    protocol: str, host: str | None, service: str | None
) -> None:
    destination = {"host": host, "port": {"number": 443}}
    spec = {protocol: [{"route": [{"destination": destination}]}], "gateways": ["web"]}
    seen = keep_virtual_service({"metadata": {"namespace": "a"}, "spec": spec})
    assert seen.destinations == ({(Key("a", service), 443)} if service else set())


def test_gateway_names_have_an_optional_namespace_and_mesh_is_ignored() -> None:
    spec = {"gateways": ["web", "istio-ingress/web", "mesh"]}
    seen = keep_virtual_service({"metadata": {"namespace": "a"}, "spec": spec})
    assert seen.gateways == {Key("a", "web"), Key("istio-ingress", "web")}


def test_the_pod_labels_of_a_gateway_are_cached() -> None:
    selector = {"istio": "ingressgateway", "app": "gateway"}
    labels = keep_gateway({"spec": {"selector": selector}})
    assert labels == (("app", "gateway"), ("istio", "ingressgateway"))
    assert keep_gateway({"spec": {}}) == ()


# Pending writes


def present(policies: dict[Key, JsonObject]) -> dict[Key, SeenPolicy]:
    """Return the policies as the API server stores them: with more metadata, in another order."""
    return {
        key: keep_policy(
            {
                "metadata": dict(reversed(policy["metadata"].items()))
                | {"uid": "u", "resourceVersion": "1", "generation": 1},
                "spec": dict(reversed(policy["spec"].items())),
            }
        )
        for key, policy in policies.items()
    }


def intended() -> dict[Key, JsonObject]:
    view = service("web")
    return desired(view, intents(view, ["a", "b"]))


def test_correct_policies_are_not_written() -> None:
    assert plan(intended(), present(intended())).is_empty


@pytest.mark.parametrize(
    "edit",
    [
        {"spec": {}},
        {"metadata": {"annotations": {"gardener.cloud/description": "edited"}}},
        {"metadata": {"annotations": {}}},
    ],
)
def test_edited_policies_are_written(edit: JsonObject) -> None:
    key, policy = next(iter(intended().items()))
    edited = {**policy, "spec": edit.get("spec", policy["spec"])}
    edited["metadata"] = {**policy["metadata"], **edit.get("metadata", {})}
    seen = present(intended()) | present({key: edited})
    assert plan(intended(), seen).put == [policy]


def test_labels_and_annotations_of_others_are_ignored() -> None:
    key, policy = next(iter(intended().items()))
    metadata = policy["metadata"]
    marked = {
        **policy,
        "metadata": {
            **metadata,
            "labels": {**metadata["labels"], "other": "label"},
            "annotations": {**metadata["annotations"], "other": "annotation"},
        },
    }
    assert plan(intended(), present(intended() | {key: marked})).is_empty


def test_unwanted_policies_are_deleted_unless_kept() -> None:
    some = dict(list(intended().items())[:2])
    rest = present(intended()).keys() - some.keys()
    assert plan(some, present(intended())).delete.keys() == rest
    kept = [next(iter(rest))]
    assert plan(some, present(intended()), kept).delete.keys() == rest - set(kept)


def test_a_policy_has_no_owner_if_a_label_is_empty() -> None:
    labels = {L + "service-name": "", L + "service-namespace": "a"}
    assert keep_policy({"metadata": {"labels": labels}}).owner is None
