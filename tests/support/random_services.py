"""Random Services, and what their NetworkPolicies depend on, in two clusters at once.

The objects leave out what Pergola does otherwise on purpose (decision 593):

- malformed annotations, ports without protocol and quoted numbers;
- backends whose number is a port of two protocols (decision 554) or no port: ports have names and
  different numbers;
- ExternalName Services with a selector;
- events that the original misses: a Gateway that changes, pods of a Gateway that start later, a
  namespace that begins to terminate, and labels of callers with other values than `allowed`;
- policies of one name: pods of two Gateways, or of a Gateway and another caller, in one namespace
  (decision 563), and an alias with a port and a range that begins with it.
"""

import copy
import random
from collections.abc import Collection
from contextlib import suppress
from typing import Any, Final

import orjson

from pergola.api.kinds import (
    GATEWAY,
    INGRESS,
    NAMESPACE,
    NETWORK_POLICY,
    POD,
    SERVICE,
    VIRTUAL_SERVICE,
)
from pergola.api.objects import GroupVersionKind, JsonObject, Key, annotations_of, labels_of
from pergola.controllers.network_policy.intents import intents
from pergola.controllers.network_policy.names import (
    ALLOWED,
    FROM_WORLD,
    METADATA_NAME,
    NAMESPACE_ALIAS,
    NAMESPACE_SELECTORS,
    PREFIX,
    SERVICE_NAME,
    SERVICE_NAMESPACE,
)
from pergola.controllers.network_policy.peers import peers_of
from pergola.controllers.network_policy.seen import keep_namespace
from pergola.controllers.network_policy.service import read_service
from pergola.kube.errors import NotFound
from tests.support.beside_original import Sides

HOMES: Final = tuple(f"n{number}" for number in range(6))
"""The namespaces of Services."""
CONTROLLER: Final = {"namespace": "ingress", "podSelector": {"matchLabels": {"app": "nginx"}}}
HANDLED: Final = (
    {"matchLabels": {"handled": "yes"}},
    {"matchExpressions": [{"key": "role", "operator": "In", "values": ["seed"]}]},
)
_GATEWAYS: Final = ("gateways-0", "gateways-1")
_NAMES: Final = ("web", "db", f"api-{'x' * 45}")
_NUMBERS: Final = (80, 443, 8080, 9000)
_TARGETS: Final = (80, 443, 8443, "http", "https")
_PROTOCOLS: Final = ("TCP", "TCP", "UDP", "SCTP")
_ALIASES: Final = ("all-scrape-targets", "foo", "foo.bar")
_TYPES: Final[tuple[JsonObject, ...]] = (
    {},
    {},
    {"clusterIP": "None"},
    {"type": "LoadBalancer"},
    {"type": "NodePort"},
)
_DOMAIN: Final = "svc.cluster.local"

Name = tuple[GroupVersionKind, Key]


class Services:
    """Objects that exist in both clusters, and random changes of them."""

    def __init__(self, sides: Sides, chance: random.Random) -> None:
        self.objects: dict[Name, JsonObject] = {}
        self.history: list[str] = []
        self._sides = sides
        self._chance = chance

    async def fill(self) -> None:
        """Create all that exists at first; Gateways and their pods never change."""
        for name in (*HOMES, CONTROLLER["namespace"], *_GATEWAYS):
            await self._create(self._namespace(str(name)))
            account = {"name": "default", "namespace": name}
            obj = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account}
            await self._sides.create(obj)
        for name in _GATEWAYS:
            selector = {"istio": name}
            metadata = {"name": "gateway", "namespace": name}
            await self._create(_object(GATEWAY, metadata, spec={"selector": selector}))
            await self._create(_pod({**metadata, "labels": selector}))
        for home in HOMES:
            for name in _NAMES:
                await self._create(self._service(Key(home, name)))
        for home in HOMES:
            for number in range(3):
                await self._create(self._caller(Key(home, f"pod-{number}")))
            await self._create(self._ingress(Key(home, "ingress-0")))
            await self._create(self._virtual_service(Key(home, "virtual-0")))

    async def change(self) -> None:
        """Change something."""
        change = self._chance.choice(
            (
                *(self._relabel_namespace, self._annotate, self._annotate, self._respecify),
                *(self._appear_or_disappear, self._appear_or_disappear, self._relabel_pod),
                *(self._route, self._drift, self._leave_behind),
            )
        )
        await change()

    async def end_callers(self) -> None:
        """Delete most pods of callers."""
        for gvk, key in [*self.objects]:
            if gvk == POD and key.namespace in HOMES and self._chance.random() < 0.7:
                await self._delete((gvk, key))

    async def describe(self, policy: str) -> object:
        """Return the Service of a policy, and what changed last."""
        owner = await self._owner(policy)
        return {"service": self.objects.get((SERVICE, owner)), "history": self.history[-20:]}

    async def nudge(self, policies: Collection[str]) -> None:
        """Let the original look again at the Services of policies: leave something behind.

        It reads policies and their metadata from different caches. If one is late, it keeps what
        others edited, or believes that a policy exists which was deleted.
        """
        for owner in sorted({await self._owner(policy) for policy in policies} - {Key("", "")}):
            self.history.append(f"nudge {owner}")
            await self._sides.theirs.create(self._left_behind(HOMES[0], owner))

    async def _owner(self, policy: str) -> Key:
        """Return the Service of a policy that one side has; an empty key if it is gone."""
        namespace, _, name = policy.partition("/")
        for client in (self._sides.ours, self._sides.theirs):
            if found := await client.find(NETWORK_POLICY, Key(namespace, name)):
                labels = labels_of(found)
                return Key(labels.get(SERVICE_NAMESPACE, ""), labels.get(SERVICE_NAME, ""))
        return Key("", "")

    # Changes

    async def _relabel_namespace(self) -> None:
        key = self._one(NAMESPACE)
        labels = {**labels_of(self._namespace(key.name)), METADATA_NAME: key.name}
        await self._edit((NAMESPACE, key), lambda o: o["metadata"].update(labels=labels))

    async def _annotate(self) -> None:
        annotations = self._annotations()
        await self._edit(
            (SERVICE, self._one(SERVICE)), lambda o: o["metadata"].update(annotations=annotations)
        )

    async def _respecify(self) -> None:
        key = self._one(SERVICE)
        if self.objects[SERVICE, key]["spec"].get("type") == "ExternalName":
            return
        fields = {"selector": self._selector(), "ports": self._ports()}
        await self._edit((SERVICE, key), lambda o: o["spec"].update(copy.deepcopy(fields)))

    async def _appear_or_disappear(self) -> None:
        name = self._chance.choice(
            [
                (SERVICE, Key(self._home(), self._chance.choice(_NAMES))),
                (POD, Key(self._home(), f"pod-{self._chance.randrange(6)}")),
                (INGRESS, Key(self._home(), f"ingress-{self._chance.randrange(2)}")),
                (VIRTUAL_SERVICE, Key(self._home(), f"virtual-{self._chance.randrange(2)}")),
            ]
        )
        if name not in self.objects:
            await self._create(self._made(name))
        elif name[0] != POD:  # the last one of a label matters for a while: see `end_callers`
            await self._delete(name)

    async def _relabel_pod(self) -> None:
        key = self._one(POD)
        if key.namespace in HOMES:
            labels = labels_of(self._caller(key))
            await self._edit(
                (POD, key), lambda o: o["metadata"].setdefault("labels", {}).update(labels)
            )

    async def _route(self) -> None:
        gvk = self._chance.choice((INGRESS, VIRTUAL_SERVICE))
        key = self._one(gvk)
        spec = self._made((gvk, key))["spec"]
        await self._edit((gvk, key), lambda o: o.update(spec=copy.deepcopy(spec)))

    async def _drift(self) -> None:
        """Edit or delete a policy of Pergola; the original does not always repair that."""
        found = sorted(Key.of(policy) for policy in await self._sides.ours.list(NETWORK_POLICY))
        if not found:
            return
        key = self._chance.choice(found)
        patch = self._chance.choice(
            [
                {"spec": {"podSelector": {"matchLabels": {"foreign": "label"}}}},
                {"spec": {"policyTypes": ["Ingress", "Egress"]}},
                {"metadata": {"annotations": {"gardener.cloud/description": "foreign"}}},
                None,
            ]
        )
        self.history.append(f"drift {key} {patch}")
        with suppress(NotFound):  # Pergola may be about to delete it
            if patch is None:
                await self._sides.ours.delete(NETWORK_POLICY, key)
            else:
                await self._sides.ours.patch(NETWORK_POLICY, key, patch)

    async def _leave_behind(self) -> None:
        """Create a policy that the Service in its labels does not need, if there is one."""
        namespace = self._chance.choice([*HOMES, "nowhere"])
        owner = Key(namespace, self._chance.choice([*_NAMES, "none"]))
        self.history.append(f"leave behind for {owner}")
        await self._sides.create(self._left_behind(self._home(), owner))

    def _left_behind(self, namespace: str, owner: Key) -> JsonObject:
        labels = {SERVICE_NAME: owner.name, SERVICE_NAMESPACE: owner.namespace}
        name = f"left-{len(self.history)}"
        metadata = {"name": name, "namespace": namespace, "labels": labels}
        return _object(NETWORK_POLICY, metadata, spec={"podSelector": {}})

    # Objects

    def _made(self, name: Name) -> JsonObject:
        gvk, key = name
        make = {
            SERVICE: self._service,
            POD: self._caller,
            INGRESS: self._ingress,
            VIRTUAL_SERVICE: self._virtual_service,
        }
        return make[gvk](key)

    def _namespace(self, name: str) -> JsonObject:
        labels = {
            "handled": self._maybe(0.8, "yes", "yes", "yes", "no"),
            "team": self._maybe(0.5, "x", "y"),
            "role": self._maybe(0.4, "shoot", "seed"),
        }
        kept = {key: value for key, value in labels.items() if value}
        return _object(NAMESPACE, {"name": name, "labels": kept})

    def _service(self, key: Key) -> JsonObject:
        spec: JsonObject = {**self._chance.choice(_TYPES), "ports": self._ports()}
        if self._chance.random() < 0.1:
            spec = {"type": "ExternalName", "externalName": "example.com", "ports": spec["ports"]}
        elif selector := self._selector():
            spec["selector"] = selector
        metadata = {"name": key.name, "namespace": key.namespace}
        return _object(SERVICE, {**metadata, "annotations": self._annotations()}, spec=spec)

    def _selector(self) -> JsonObject | None:
        selectors = ({"app": "a"}, {"app": "a", "tier": "b"}, {"role": "r"})
        return None if self._chance.random() < 0.1 else self._chance.choice(selectors)

    def _ports(self) -> list[JsonObject]:
        numbers = self._chance.sample(_NUMBERS, self._chance.randrange(1, 4))
        found = []
        for position, number in enumerate(numbers):
            port = {"name": f"p{position}", "port": number}
            port["protocol"] = self._chance.choice(_PROTOCOLS)
            if target := self._maybe(0.8, *_TARGETS):
                port["targetPort"] = target
            found.append(port)
        return found

    def _annotations(self) -> dict[str, str]:
        selectors = [self._namespace_selector() for _ in range(self._chance.randrange(3))]
        found = {
            NAMESPACE_SELECTORS: self._maybe(0.6, _json(selectors)),
            NAMESPACE_ALIAS: self._maybe(0.3, "all-shoots", "all-Shoots_x"),
            FROM_WORLD: self._maybe(0.3, _json(self._policy_ports())),
            "other": self._maybe(0.2, "x", "y"),
        }
        for alias in _ALIASES:
            ports = _json(self._policy_ports())
            found[f"{PREFIX}from-{alias}-allowed-ports"] = self._maybe(0.3, ports)
        return {key: value for key, value in found.items() if value is not None}

    def _namespace_selector(self) -> JsonObject:
        operator = self._chance.choice(["In", "NotIn", "Exists", "DoesNotExist"])
        expression: JsonObject = {"key": self._chance.choice(["team", "role", "handled"])}
        expression["operator"] = operator
        if operator in ("In", "NotIn"):
            expression["values"] = self._chance.sample(["x", "y", "shoot", "seed", "no"], 2)
        return self._chance.choice(
            [
                *({}, {"matchExpressions": [expression]}, {"matchExpressions": [expression]}),
                {"matchLabels": {"team": self._chance.choice("xy")}},
                {"matchLabels": {METADATA_NAME: self._home()}},
            ]
        )

    def _policy_ports(self) -> list[JsonObject]:
        found = {}
        for _ in range(self._chance.randrange(4)):
            port = self._chance.choice(_TARGETS)
            protocol = self._chance.choice(_PROTOCOLS)
            entry: JsonObject = {"port": port, "protocol": protocol}
            if isinstance(port, int) and self._chance.random() < 0.2:
                entry["endPort"] = port + self._chance.randrange(100)
            found[port, protocol] = entry
        return [*found.values()]

    def _caller(self, key: Key) -> JsonObject:
        """Return a pod that may call some Services that its namespace is a peer of."""
        namespaces = {k.name: keep_namespace(o) for (gvk, k), o in self._of(NAMESPACE)}
        labels = set()
        for _, service in self._of(SERVICE):
            view = read_service(service)
            for intent in intents(view, peers_of(view, namespaces)):
                if intent.label and (intent.peer == key.namespace or self._chance.random() < 0.1):
                    labels.add(intent.label)
        chosen = self._chance.sample(sorted(labels), min(len(labels), self._chance.randrange(14)))
        metadata = {"name": key.name, "namespace": key.namespace}
        return _pod({**metadata, "labels": dict.fromkeys(chosen, ALLOWED)})

    def _ingress(self, key: Key) -> JsonObject:
        paths = []
        for _ in range(self._chance.randrange(1, 4)):
            number = {"number": self._chance.choice([*_NUMBERS, 9999])}
            name = {"name": self._chance.choice(["p0", "p1", "missing"])}
            port = self._chance.choice([number, name])
            backend = {"service": {"name": self._chance.choice(_NAMES), "port": port}}
            paths.append({"path": "/", "pathType": "Prefix", "backend": backend})
        metadata = {"name": key.name, "namespace": key.namespace}
        return _object(INGRESS, metadata, spec={"rules": [{"http": {"paths": paths}}]})

    def _virtual_service(self, key: Key) -> JsonObject:
        names = self._chance.sample(_GATEWAYS, self._chance.randrange(3))
        spec: JsonObject = {"gateways": [f"{name}/gateway" for name in names]}
        for protocol in ("http", "tls", "tcp"):
            homes = [key.namespace] * 9 + [self._home()]
            hosts = [
                f"{self._chance.choice(_NAMES)}.{self._chance.choice(homes)}.{_DOMAIN}"
                for _ in range(self._chance.randrange(3))
            ]
            spec[protocol] = [{"route": [self._destination(host)]} for host in hosts]
        metadata = {"name": key.name, "namespace": key.namespace}
        return _object(VIRTUAL_SERVICE, metadata, spec=spec)

    def _destination(self, host: str) -> JsonObject:
        port = {"number": self._chance.choice([*_NUMBERS, 9999])}
        return {"destination": {"host": host, "port": port}}

    # Both clusters

    async def _create(self, obj: JsonObject) -> None:
        name = GroupVersionKind.of(obj), Key.of(obj)
        self.objects[name] = obj
        self.history.append(f"create {name[0].kind} {name[1]}")
        await self._sides.create(obj)

    async def _delete(self, name: Name) -> None:
        del self.objects[name]
        self.history.append(f"delete {name[0].kind} {name[1]}")
        await self._sides.delete(*name)

    async def _edit(self, name: Name, edit: Any) -> None:
        edit(self.objects[name])
        obj = self.objects[name]
        text = _json([labels_of(obj), annotations_of(obj), obj.get("spec")])
        self.history.append(f"edit {name[0].kind} {name[1]}: {text}")
        await self._sides.change(*name, edit)

    # Chance

    def _one(self, gvk: GroupVersionKind) -> Key:
        keys = [key for (kind, key), _ in self._of(gvk)]
        return self._chance.choice(keys)

    def _of(self, gvk: GroupVersionKind) -> list[tuple[Name, JsonObject]]:
        return [(name, obj) for name, obj in self.objects.items() if name[0] == gvk]

    def _home(self) -> str:
        return self._chance.choice(HOMES)

    def _maybe(self, probability: float, *values: Any) -> Any:
        return self._chance.choice(values) if self._chance.random() < probability else None


def _object(gvk: GroupVersionKind, metadata: JsonObject, **content: object) -> JsonObject:
    return {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": metadata, **content}


def _pod(metadata: JsonObject) -> JsonObject:
    container = {"name": "c", "image": "registry.example/c:1"}
    spec = {"automountServiceAccountToken": False, "containers": [container]}
    return _object(POD, metadata, spec=spec)


def _json(value: object) -> str:
    return orjson.dumps(value).decode()
