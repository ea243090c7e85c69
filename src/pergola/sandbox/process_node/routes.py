"""Resolution of the names and addresses of Services and pods, for a node's processes.

Without DNS and kube-proxy, clients pass a host to the tunnel, which connects them to the process
that runs a pod of that Service.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from pergola.api.objects import JsonObject, Key, labels_of, map_at, maps_at, namespace_of
from pergola.sandbox.process_node.observe import Observed, workload_of
from pergola.sandbox.process_node.place import Place

_LOOPBACK: Final = "127."
_DOMAINS: Final = ("", "svc", "svc.cluster.local")


class Endpoint(NamedTuple):
    """A loopback address of this machine, and a TCP port."""

    host: str
    port: int


Resolve = Callable[[str, int], Endpoint | None]
ResolvePublic = Callable[[str], Endpoint | None]


class Routes:
    """A resolver of hosts in the cluster.

    Args:
        places: of running processes, by the workload whose pods they run.
        beyond: resolves public names of another cluster.
    """

    def __init__(
        self, observed: Observed, places: Mapping[Key, Place], beyond: ResolvePublic | None = None
    ) -> None:
        self._services = observed.services
        self._pods = observed.pods
        self._routes = observed.routes
        self._places = places
        self._beyond = beyond

    def seen_from(self, namespace: str) -> Resolve:
        """Return the resolver of the processes in a namespace."""
        return lambda host, port: self.resolve(host, port, namespace)

    def resolve(self, host: str, port: int, namespace: str) -> Endpoint | None:
        """Return where a connection leads, or None if nothing runs there.

        Args:
            host: an IP address of a Service or pod, the name of a Service, with or without
                namespace, a name that a gateway passes on to a Service, or a loopback address.
            namespace: of names without one.
        """
        if host.startswith(_LOOPBACK):
            return Endpoint(host, port)
        for _, pod in self._pods.items():  # noqa: PERF102 - not a dict
            if host and map_at(pod, "status").get("podIP") == host:
                return self._endpoint(pod, port)
        service = self._service(host, namespace)
        if service is not None:
            return self._behind(service, port)
        return self.resolve_public(host) or (self._beyond(host) if self._beyond else None)

    def resolve_public(self, host: str) -> Endpoint | None:
        """Return where a connection to a public name leads, as if its gateway ran."""
        for key, virtual_service in self._routes.items():
            if host in map_at(virtual_service, "spec").get("hosts", ()):
                destination = _destination(virtual_service)
                return self.resolve(*destination, key.namespace) if destination else None
        return None

    def _service(self, host: str, from_namespace: str) -> JsonObject | None:
        for _, service in self._services.items():  # noqa: PERF102 - not a dict
            if map_at(service, "spec").get("clusterIP") == host:
                return service
        name, _, rest = host.partition(".")
        namespace, _, domain = rest.partition(".")
        if domain not in _DOMAINS:
            return None
        return self._services.get(Key(namespace or from_namespace, name))

    def _behind(self, service: JsonObject, port: int) -> Endpoint | None:
        elsewhere = map_at(service, "spec").get("externalName")
        if elsewhere:
            return self.resolve(elsewhere, port, namespace_of(service))
        target = next((p for p in maps_at(service, "spec", "ports") if p["port"] == port), None)
        if target is None:
            return None
        for pod in self._selected(service):
            number = _number(pod, target.get("targetPort", port))
            if number is not None:
                return self._endpoint(pod, number)
        return None

    def _selected(self, service: JsonObject) -> Iterator[JsonObject]:
        labels = map_at(service, "spec", "selector").items()
        for key, pod in self._pods.items():
            is_here = key.namespace == namespace_of(service)
            if (
                labels
                and is_here
                and labels <= labels_of(pod).items()
                and workload_of(pod) in self._places
            ):
                yield pod

    def _endpoint(self, pod: JsonObject, port: int) -> Endpoint | None:
        place = self._places.get(workload_of(pod))
        return Endpoint(place.address, place.port(port)) if place else None


def _destination(virtual_service: JsonObject) -> tuple[str, int] | None:
    spec = map_at(virtual_service, "spec")
    rules = (*maps_at(spec, "tls"), *maps_at(spec, "http"))
    targets = (map_at(route, "destination") for rule in rules for route in maps_at(rule, "route"))
    return next(((each["host"], int(each["port"]["number"])) for each in targets), None)


def _number(pod: JsonObject, port: int | str) -> int | None:
    if isinstance(port, int):
        return port
    for container in maps_at(pod, "spec", "containers"):
        for each in maps_at(container, "ports"):
            if each.get("name") == port:
                return int(each["containerPort"])
    return None
