"""Resolution of the names and addresses of Services and pods, for a node's processes.

Without DNS and kube-proxy, clients pass a host to the tunnel, which connects them to the process
that runs a pod of that Service.
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from pergola.api.objects import JsonObject, Key, labels_of, map_at, maps_at
from pergola.sandbox.process_node.observe import Observed, workload_of
from pergola.sandbox.process_node.place import Place

_LOOPBACK: Final = "127."
_DOMAINS: Final = ("", "svc", "svc.cluster.local")


class Endpoint(NamedTuple):
    """A loopback address of this machine, and a TCP port."""

    host: str
    port: int


class Routes:
    """A resolver of hosts in the cluster.

    Args:
        namespace: of names without one.
        places: of running processes, by the workload whose pods they run.
    """

    def __init__(self, observed: Observed, namespace: str, places: Mapping[Key, Place]) -> None:
        self._services = observed.services
        self._pods = observed.pods
        self._routes = observed.routes
        self._namespace = namespace
        self._places = places

    def resolve(self, host: str, port: int) -> Endpoint | None:
        """Return where a connection leads, or None if nothing runs there.

        Args:
            host: an IP address of a Service or pod, the name of a Service, with or without
                namespace, a name that a gateway passes on to a Service, or a loopback address.
        """
        if host.startswith(_LOOPBACK):
            return Endpoint(host, port)
        for _, pod in self._pods.items():  # noqa: PERF102 - not a dict
            if host and map_at(pod, "status").get("podIP") == host:
                return self._endpoint(pod, port)
        service = self._service(host)
        if service is not None:
            return self._behind(service, port)
        destination = self._destination(host)
        return self.resolve(*destination) if destination else None

    def _service(self, host: str) -> JsonObject | None:
        for _, service in self._services.items():  # noqa: PERF102 - not a dict
            if map_at(service, "spec").get("clusterIP") == host:
                return service
        name, _, rest = host.partition(".")
        namespace, _, domain = rest.partition(".")
        if domain not in _DOMAINS:
            return None
        return self._services.get(Key(namespace or self._namespace, name))

    def _destination(self, host: str) -> tuple[str, int] | None:
        """Return the Service behind a public name, as if its gateway ran."""
        for _, virtual_service in self._routes.items():  # noqa: PERF102 - not a dict
            spec = map_at(virtual_service, "spec")
            if host in spec.get("hosts", ()):
                rules = (*maps_at(spec, "tls"), *maps_at(spec, "http"))
                targets = (
                    map_at(r, "destination") for rule in rules for r in maps_at(rule, "route")
                )
                return next(((t["host"], int(t["port"]["number"])) for t in targets), None)
        return None

    def _behind(self, service: JsonObject, port: int) -> Endpoint | None:
        elsewhere = map_at(service, "spec").get("externalName")
        if elsewhere:
            return self.resolve(elsewhere, port)
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
            is_here = key.namespace == service["metadata"]["namespace"]
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


def _number(pod: JsonObject, port: int | str) -> int | None:
    if isinstance(port, int):
        return port
    for container in maps_at(pod, "spec", "containers"):
        for each in maps_at(container, "ports"):
            if each.get("name") == port:
                return int(each["containerPort"])
    return None
