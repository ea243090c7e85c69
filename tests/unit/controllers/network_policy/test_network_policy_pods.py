"""Policies that exist only while pods have the label of their callers."""

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, Final, Generic, NamedTuple, TypeAlias, TypeVar, cast

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conformance.documents import client_of
from pergola.api.objects import JsonObject, Key
from pergola.controllers.network_policy.apply import Plan, Writer
from pergola.controllers.network_policy.callers import Callers, Place
from pergola.controllers.network_policy.desired import desired
from pergola.controllers.network_policy.intents import Environment, intents
from pergola.controllers.network_policy.istio import Istio
from pergola.controllers.network_policy.peers import Peers, peers_of
from pergola.controllers.network_policy.reconcile import NetworkPolicies
from pergola.controllers.network_policy.seen import SeenNamespace, SeenPolicy, digest, keep_policy
from pergola.controllers.network_policy.service import ServiceView, read_service
from pergola.controllers.network_policy.triggers import Triggers
from pergola.controllers.network_policy.watches import Watches
from pergola.runtime.caching.cache import Change
from pergola.runtime.caching.caches import Caches
from pergola.runtime.caching.index import Index
from pergola.runtime.controlling.controller import Again
from pergola.runtime.controlling.events import Recorder
from pergola.runtime.controlling.queue import Queue

T = TypeVar("T")
L: Final = "networking.resources.gardener.cloud/"
GRACE: Final = 30.0
HOME: Final = "a"


class Reported(Generic[T]):
    """Caches whose contents a test sets, instead of a server."""

    def __init__(self) -> None:
        self.objects: dict[Key, T] = {}
        self.subscribers: list[Callable[[Change[T]], None]] = []

    def get(self, key: Key) -> T | None:
        return self.objects.get(key)

    def items(self) -> Iterator[tuple[Key, T]]:
        return iter(self.objects.items())

    def subscribe(self, subscriber: Callable[[Change[T]], None]) -> None:
        self.subscribers.append(subscriber)
        for key, value in self.objects.items():
            subscriber(Change(key, None, value, initial=True))

    def covers(self, namespace: str) -> bool:
        return namespace != "unwatched"

    def put(self, key: Key, new: T | None) -> None:
        change = Change(key, self.objects.pop(key, None), new)
        if new is not None:
            self.objects[key] = new
        if change.old is not None or new is not None:
            for subscriber in [*self.subscribers]:
                subscriber(change)


def service(name: str, *, teams: str = "", alias: str = "") -> ServiceView:
    annotations: dict[str, str] = {}
    if teams:
        selectors = [{"matchLabels": {"team": teams}}]
        annotations[L + "namespace-selectors"] = orjson.dumps(selectors).decode()
    if alias:
        annotations[L + f"from-{alias}-allowed-ports"] = '[{"port": 9000, "protocol": "TCP"}]'
    return read_service(
        {
            "metadata": {"name": name, "namespace": HOME, "annotations": annotations},
            "spec": {"selector": {"app": name}, "ports": [{"port": 80, "targetPort": 8080}]},
        }
    )


class Cluster:
    """The objects on the API server; they survive the process."""

    def __init__(self) -> None:
        self.services: dict[Key, ServiceView] = {}
        self.namespaces = {Key("", HOME): SeenNamespace({"team": "x"}, terminating=False)}
        self.pods: dict[Key, frozenset[str]] = {}
        self.policies: dict[Key, JsonObject] = {}


class Process:
    """The controller without a server: its triggers, its reconciler, and a clock."""

    def __init__(self, cluster: Cluster, now: float) -> None:
        self.now = now
        self._cluster = cluster
        self.services, self.namespaces = Reported[ServiceView](), Reported[SeenNamespace]()
        self.pods, self.policies = Reported[frozenset[str]](), Reported[SeenPolicy]()
        self.services.objects = dict(cluster.services)
        self.namespaces.objects = dict(cluster.namespaces)
        self.pods.objects = dict(cluster.pods)
        self.policies.objects = {k: keep_policy(p) for k, p in cluster.policies.items()}
        services = cast("Caches[ServiceView]", self.services)
        watches = Watches(
            services=services,
            namespaces=cast("Any", self.namespaces),
            policies=cast("Caches[SeenPolicy]", self.policies),
            callers=Callers(
                cast("Caches[frozenset[str]]", self.pods), services, GRACE, now=lambda: self.now
            ),
            ingresses=None,
            istio=Istio(client_of(()), ()),
            peers=Peers(services, cast("Any", self.namespaces)),
            services_by_namespace=Index(self.services, lambda key, _: [key.namespace]),
            policies_by_owner=Index(self.policies, lambda _, p: [p.owner] if p.owner else []),
            ingresses_by_service=None,
            ingress_controller=None,
            selectors=(),
        )
        self.writes = 0
        self._queue: dict[Key, None] = {}
        self._later: dict[Key, float] = {}
        self._reconciler = NetworkPolicies(
            watches, cast("Writer", self), cast("Recorder", _Silent())
        )
        for watch in Triggers(watches, cast("Writer", self)).all():
            watch.trigger(cast("Queue[Key]", self))

    def add(self, key: Key) -> None:
        """Enqueue a Service."""
        self._queue[key] = None

    async def work(self) -> None:
        """Reconcile what was triggered."""
        while self._queue:
            key = next(iter(self._queue))
            del self._queue[key]
            self._later.pop(key, None)
            outcome = await self._reconciler.reconcile(key)
            if isinstance(outcome, Again):
                assert 0 < outcome.seconds <= GRACE
                self._later[key] = self.now + outcome.seconds

    async def wait(self, seconds: float) -> None:
        """Let time pass, and reconcile what is due."""
        end = self.now + seconds
        while due := [key for key, when in self._later.items() if when <= end]:
            first = min(due, key=lambda key: self._later[key])
            self.now = self._later.pop(first)
            self.add(first)
            await self.work()
        self.now = end

    # The writer

    def is_as_written(self, _: Key, __: SeenPolicy) -> bool:
        return False

    def gone(self, _: Key) -> set[Key]:
        return set()

    def outstanding(self, plan: Plan) -> Plan:
        return plan

    async def apply(self, _: Key, plan: Plan) -> list[Exception]:
        for policy in plan.put:
            self._cluster.policies[Key.of(policy)] = policy
            self.policies.put(Key.of(policy), keep_policy(policy))
        for key in plan.delete:
            del self._cluster.policies[key]
            self.policies.put(key, None)
        self.writes += len(plan.put) + len(plan.delete)
        return []


class _Silent:
    def warning(self, *_: object) -> None:
        raise AssertionError("nothing is to be reported")


# Any sequence of events

SERVICES: Final = {
    "own": service("own"),
    "shared": service("shared", teams="x"),
    "scraped": service("scraped", teams="y", alias="scrape"),
}
LABELS: Final = [
    L + name
    for name in (
        "to-own-tcp-8080",
        "to-shared-tcp-8080",
        "to-a-shared-tcp-8080",
        "to-scrape",
        "to-a-scrape",
        "to-a-scraped-tcp-8080",
    )
]


class PutPod(NamedTuple):
    """A pod comes or changes; it goes without labels (None)."""

    namespace: str
    name: str
    labels: frozenset[str] | None


class PutNamespace(NamedTuple):
    name: str
    seen: SeenNamespace | None


class PutService(NamedTuple):
    name: str
    is_there: bool


class Wait(NamedTuple):
    seconds: float


class Restart(NamedTuple):
    pass


Step: TypeAlias = PutPod | PutNamespace | PutService | Wait | Restart

SEEN: Final = st.builds(
    lambda team, gone: SeenNamespace({"team": team}, terminating=gone),
    st.sampled_from(["x", "y"]),
    st.sampled_from([False, False, False, True]),
)
STEPS: Final[st.SearchStrategy[Step]] = st.one_of(
    st.builds(
        PutPod,
        st.sampled_from([HOME, "b", "c"]),
        st.sampled_from(["p", "q"]),
        st.none() | st.frozensets(st.sampled_from(LABELS), max_size=3),
    ),
    st.builds(PutNamespace, st.sampled_from(["b", "c"]), st.none() | SEEN),
    st.builds(PutNamespace, st.just(HOME), SEEN),
    st.builds(PutService, st.sampled_from(sorted(SERVICES)), st.booleans()),
    st.builds(Wait, st.sampled_from([1.0, GRACE / 2, GRACE])),
    st.just(Restart()),
)


class Scenario:
    """A cluster, a process, and what the policies should be."""

    def __init__(self) -> None:
        self.cluster = Cluster()
        self.process = Process(self.cluster, now=0.0)
        self._left: dict[Place, float] = {}

    async def step(self, step: Step) -> None:
        """Let something happen, and the controller work."""
        match step:
            case PutPod(namespace, name, labels):
                if labels is None or Key("", namespace) in self.cluster.namespaces:
                    self._put_pod(Key(namespace, name), labels)
            case PutNamespace(name, seen):
                if seen is None:
                    self._empty(name)
                _put(self.cluster.namespaces, self.process.namespaces, Key("", name), seen)
            case PutService(name, is_there):
                view = SERVICES[name] if is_there else None
                _put(self.cluster.services, self.process.services, Key(HOME, name), view)
            case Wait(seconds):
                await self.process.wait(seconds)
            case Restart():
                self._left.clear()
                self.process = Process(self.cluster, self.process.now)
                # A Service that went away meanwhile is triggered by its policies.
        await self.process.work()

    def expected(self, *, with_grace: bool) -> dict[Key, bytes]:
        """Return the digests of the policies that should exist: a function of the state."""
        around = {key.name: seen for key, seen in self.cluster.namespaces.items()}
        now = self.process.now

        def has(namespace: str, label: str) -> bool:
            place = Place(namespace, label)
            lingers = place in self._left and now < self._left[place] + GRACE
            return place in self._places() or (with_grace and lingers)

        found: dict[Key, bytes] = {}
        for view in self.cluster.services.values():
            intended = intents(view, peers_of(view, around), Environment(has_caller=has))
            found |= {key: digest(policy) for key, policy in desired(view, intended).items()}
        return found

    @property
    def present(self) -> dict[Key, bytes]:
        """The digests of the policies that exist."""
        return {key: digest(policy) for key, policy in self.cluster.policies.items()}

    def _put_pod(self, key: Key, labels: frozenset[str] | None) -> None:
        before = self._places()
        _put(self.cluster.pods, self.process.pods, key, labels)
        after = self._places()
        self._left |= dict.fromkeys(before - after, self.process.now)
        for place in after:
            self._left.pop(place, None)

    def _empty(self, namespace: str) -> None:
        for key in [key for key in self.cluster.pods if key.namespace == namespace]:
            self._put_pod(key, None)
        for key in [key for key in self.cluster.policies if key.namespace == namespace]:
            del self.cluster.policies[key]
            self.process.policies.put(key, None)

    def _places(self) -> set[Place]:
        pods = self.cluster.pods.items()
        return {Place(key.namespace, label) for key, labels in pods for label in labels}


def _put(stored: dict[Key, T], reported: Reported[T], key: Key, value: T | None) -> None:
    stored.pop(key, None)
    if value is not None:
        stored[key] = value
    reported.put(key, value)


@given(st.lists(STEPS, min_size=10, max_size=30))
@settings(max_examples=100, deadline=None)
def test_after_each_event_the_policies_are_those_of_the_state(steps: list[Step]) -> None:
    async def run() -> None:
        scenario = Scenario()
        for name in SERVICES:
            await scenario.step(PutService(name, is_there=True))
        for step in steps:
            await scenario.step(step)
            assert scenario.present == scenario.expected(with_grace=True)
        await scenario.process.wait(GRACE)
        assert scenario.present == scenario.expected(with_grace=False)

    asyncio.run(run())


# Single events


@pytest.fixture
async def scenario() -> Scenario:
    found = Scenario()
    await found.step(PutService("own", is_there=True))
    return found


OWN: Final = LABELS[0]
PAIR: Final = {Key(HOME, "ingress-to-own-tcp-8080"), Key(HOME, "egress-to-own-tcp-8080")}


async def test_nothing_is_written_while_a_single_pod_is_replaced(scenario: Scenario) -> None:
    caller = frozenset([OWN])
    await scenario.step(PutPod(HOME, "p", caller))
    assert (set(scenario.present), scenario.process.writes) == (PAIR, 2)
    for _ in range(3):
        await scenario.step(PutPod(HOME, "p", None))
        await scenario.step(Wait(GRACE - 1))
        await scenario.step(PutPod(HOME, "p", caller))
        await scenario.step(Wait(2 * GRACE))
    assert (set(scenario.present), scenario.process.writes) == (PAIR, 2)


async def test_policies_of_a_pod_that_stays_away_are_deleted_once(scenario: Scenario) -> None:
    await scenario.step(PutPod(HOME, "p", frozenset([OWN])))
    await scenario.step(PutPod(HOME, "p", None))
    await scenario.step(Wait(GRACE - 1))
    assert scenario.present.keys() == PAIR
    await scenario.step(Wait(1))
    assert (scenario.present, scenario.process.writes) == ({}, 4)


async def test_a_process_that_starts_without_the_pod_deletes_its_policies(
    scenario: Scenario,
) -> None:
    await scenario.step(PutPod(HOME, "p", frozenset([OWN])))
    await scenario.step(PutPod(HOME, "p", None))
    await scenario.step(Restart())
    assert scenario.present == {}


def test_departures_are_forgotten() -> None:
    pods, services, now = Reported[frozenset[str]](), Reported[ServiceView](), [0.0]
    callers = Callers(
        cast("Caches[frozenset[str]]", pods),
        cast("Caches[ServiceView]", services),
        GRACE,
        now=lambda: now[0],
    )
    for number in range(1000):
        key = Key(f"shoot-{number}", "p")
        pods.put(key, frozenset([OWN]))
        pods.put(key, None)
        now[0] += 1
    assert callers.has("shoot-999", OWN)
    assert not callers.has("shoot-0", OWN)
    assert len(callers._left) <= GRACE + 1


def test_pods_of_an_unwatched_namespace_may_have_any_label() -> None:
    callers = Callers(
        cast("Caches[frozenset[str]]", Reported[frozenset[str]]()),
        cast("Caches[ServiceView]", Reported[ServiceView]()),
        GRACE,
        now=lambda: 0.0,
    )
    assert callers.has("unwatched", OWN)
    assert not callers.has("watched", OWN)
