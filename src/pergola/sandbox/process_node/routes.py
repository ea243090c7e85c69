"""What a node's processes find behind the names and addresses of Services and pods.

There is no DNS and no kube-proxy: clients name a host to the tunnel, which connects them to the
process that runs a pod of that Service.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from pergola.api.objects import JsonObject, Key, labels_of, map_at, maps_at
from pergola.sandbox.process_node.observe import Observed, workload_of
from pergola.sandbox.process_node.place import local_port


class Endpoint(NamedTuple):
    """A loopback address of this machine, and a TCP port."""

    host: str
    port: int


class Routes:
    """A resolver of hosts in the cluster.

    Args:
        namespace: of names without one.
        addresses: of running processes, by the workload whose pods they run.
    """

    def __init__(self, observed: Observed, namespace: str, addresses: Mapping[Key, str]) -> None:
        self._services = observed.services
        self._pods = observed.pods
        self._namespace = namespace
        self._addresses = addresses

    def resolve(self, host: str, port: int) -> Endpoint | None:
        """Return where a connection to a Service or pod leads, or None if nothing runs there.

        Args:
            host: a name as in a cluster, with or without namespace, or an IP address.
        """
        for _, pod in self._pods.items():  # noqa: PERF102 - not a dict
            if host and map_at(pod, "status").get("podIP") == host:
                return self._endpoint(pod, port)
        service = self._service(host)
        return self._behind(service, port) if service is not None else None

    def _service(self, host: str) -> JsonObject | None:
        for _, service in self._services.items():  # noqa: PERF102 - not a dict
            if map_at(service, "spec").get("clusterIP") == host:
                return service
        name, _, rest = host.removesuffix(".").partition(".")
        namespace = rest.partition(".")[0] or self._namespace
        return self._services.get(Key(namespace, name))

    def _behind(self, service: JsonObject, port: int) -> Endpoint | None:
        target = next((p for p in maps_at(service, "spec", "ports") if p["port"] == port), None)
        if target is None:
            return None
        for pod in self._selected(service):
            number = _number(pod, target.get("targetPort", port))
            if number is not None:
                return self._endpoint(pod, number)
        return None

    def _selected(self, service: JsonObject) -> Iterator[JsonObject]:
        wanted = map_at(service, "spec", "selector").items()
        for key, pod in self._pods.items():
            is_here = key.namespace == service["metadata"]["namespace"]
            if (
                wanted
                and is_here
                and wanted <= labels_of(pod).items()
                and workload_of(pod) in self._addresses
            ):
                yield pod

    def _endpoint(self, pod: JsonObject, port: int) -> Endpoint | None:
        address = self._addresses.get(workload_of(pod))
        return Endpoint(address, local_port(port)) if address else None


def _number(pod: JsonObject, port: int | str) -> int | None:
    if isinstance(port, int):
        return port
    for container in maps_at(pod, "spec", "containers"):
        for each in maps_at(container, "ports"):
            if each.get("name") == port:
                return int(each["containerPort"])
    return None
