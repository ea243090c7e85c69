"""The component that gives Services of type LoadBalancer an address of this machine's loopback.

Each Service gets its own address in 127.77.0.0/16 with its own TCP ports, so that two Services can
have the same port. Only the machine can use the address; pods use the Service.
Run as `python -m pergola.sandbox.node.load_balancer DIRECTORY KUBECONFIG`.
"""

import hashlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from pergola.api.kinds import SERVICE
from pergola.api.objects import JsonObject, Key, map_at, maps_at, uid_of
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.kube.kubeconfig import load
from pergola.runtime.caching.cache import Cache, Change
from pergola.runtime.controlling.controller import DONE, Outcome
from pergola.runtime.controlling.unit import Controller
from pergola.runtime.controlling.watches import Watch
from pergola.runtime.logging import configure, get_logger
from pergola.runtime.metrics import Metrics
from pergola.runtime.process.event_loop import run
from pergola.runtime.process.signals import work_until_signalled
from pergola.sandbox import control
from pergola.sandbox.errors import SandboxError

log = get_logger("load-balancer")

_NAME: Final = "load-balancer"
_RANGE: Final = (127, 77)
_ATTEMPTS: Final = 20


class LoadBalancer:
    """A reconciler that forwards the ports of Services.

    Args:
        directory: the directory of the sandbox whose supervisor forwards.
        services: the Services of the whole cluster.
    """

    def __init__(self, client: Client, directory: Path, services: Cache[JsonObject]) -> None:
        self._client = client
        self._directory = directory
        self._services = services
        self._addresses: dict[Key, str] = {}

    async def reconcile(self, key: Key) -> Outcome:
        """Forward a Service's ports and report the address in its status; stop if it is gone."""
        service = self._services.get(key)
        if service is None or not _is_served(service):
            await self._give_up(key)
            return DONE
        current = _address(service)
        candidates = [current] if current else list(_candidates(service))
        address = await self._forward(service, candidates)
        self._addresses[key] = address
        if address != current:
            await self._report(key, address)
        return DONE

    async def _forward(self, service: JsonObject, candidates: list[str]) -> str:
        """Forward all ports on the first free address."""
        problem = SandboxError("there is no candidate address")
        for address in candidates:
            try:
                for port in _ports(service):
                    await control.command(
                        self._directory,
                        "forward",
                        host=map_at(service, "spec")["clusterIP"],
                        port=port,
                        at_host=address,
                        at_port=port,
                    )
            except SandboxError as error:
                problem = error
                await control.command(self._directory, "close", host=address)
            else:
                return address
        raise problem

    async def _give_up(self, key: Key) -> None:
        address = self._addresses.pop(key, None)
        if address is not None:
            await control.command(self._directory, "close", host=address)

    async def _report(self, key: Key, address: str) -> None:
        # Proxy: the address belongs to a proxy outside and is not routed inside the cluster.
        ingress = [{"ip": address, "ipMode": "Proxy"}]
        body: JsonObject = {"status": {"loadBalancer": {"ingress": ingress}}}
        try:
            await self._client.patch(SERVICE, key, body, subresource="status")
        except NotFound:
            log.debug("service is gone", object=str(key))


def _is_served(service: JsonObject) -> bool:
    spec = map_at(service, "spec")
    # A Service with a class belongs to another load balancer.
    return spec.get("type") == "LoadBalancer" and not spec.get("loadBalancerClass")


def _address(service: JsonObject) -> str:
    for ingress in maps_at(service, "status", "loadBalancer", "ingress"):
        return str(ingress.get("ip", ""))
    return ""


def _ports(service: JsonObject) -> list[int]:
    ports = maps_at(service, "spec", "ports")
    return [port["port"] for port in ports if port.get("protocol", "TCP") == "TCP"]


def _candidates(service: JsonObject) -> Iterator[str]:
    """Yield addresses to try, derived from the Service's UID to avoid those of other sandboxes."""
    for attempt in range(_ATTEMPTS):
        digest = hashlib.sha256(f"{uid_of(service)}/{attempt}".encode()).digest()
        yield ".".join(map(str, (*_RANGE, digest[0], 1 + digest[1] % 254)))


async def balance(directory: Path, kubeconfig: Path) -> None:
    """Serve all Services until cancelled."""
    async with Client.connect(load(kubeconfig)) as client:
        services: Cache[JsonObject] = Cache(client, SERVICE, keep=lambda service: service)
        balancer = LoadBalancer(client, directory, services)
        watches: list[Watch[Change[JsonObject], Key]] = [Watch(services)]
        await Controller(
            _NAME, balancer.reconcile, watches=watches, metrics=Metrics(), workers=1
        ).run()


async def _main() -> None:
    directory, kubeconfig = map(Path, sys.argv[1:])
    configure("info", "json")
    await work_until_signalled(balance(directory, kubeconfig))


if __name__ == "__main__":
    os.umask(0o077)
    run(_main)
