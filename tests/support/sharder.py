"""The sharder of kubernetes-controller-sharding as a process."""

import asyncio
import base64
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import orjson

from pergola.api.objects import GroupVersionKind, JsonObject, map_at
from pergola.kube.client import Client
from pergola.kube.yaml import parse
from pergola.pki.authorities import Authority
from pergola.sandbox import Sandbox, binaries
from pergola.sandbox.on_demand import SHARDER, SHARDING_CRDS
from pergola.testing.crds import serve
from tests.support.ports import held_port

CONTROLLER_RING: Final = GroupVersionKind("sharding.timebertt.dev", "v1alpha1", "ControllerRing")
_CRD: Final = "sharding.timebertt.dev_controllerrings.yaml"
_LIFETIME: Final = timedelta(days=1)


@asynccontextmanager
async def sharder(sandbox: Sandbox, client: Client, folder: Path) -> AsyncGenerator[None]:
    """Run the sharder on a sandbox while the block lasts; it may be built first.

    Args:
        folder: for its configuration and its log.
    """
    programs = await asyncio.to_thread(binaries.find, (SHARDER, SHARDING_CRDS))
    definition = parse((programs[SHARDING_CRDS] / _CRD).read_bytes())
    assert isinstance(definition, dict)
    await serve(client, definition)
    with held_port() as port, (folder / "sharder.log").open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            programs[SHARDER],
            f"--config={_configure(folder, port)}",
            stdout=output,
            stderr=output,
            env={
                **{k: v for k, v in os.environ.items() if k != "KUBERNETES_SERVICE_HOST"},
                "KUBECONFIG": str(sandbox.kubeconfig),
                "PERGOLA_WEBHOOK_PORT": str(port),
            },
        )
        try:
            yield
        finally:
            process.kill()
            await process.wait()


def ring(name: str, namespace: str, *resources: JsonObject) -> JsonObject:
    """Return a ControllerRing for some resources of a namespace."""
    selector = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    return {
        "apiVersion": CONTROLLER_RING.api_version,
        "kind": CONTROLLER_RING.kind,
        "metadata": {"name": name},
        "spec": {"resources": list(resources), "namespaceSelector": selector},
    }


def available_shards(ring: JsonObject) -> int:
    """Return how many shards the sharder assigns objects to."""
    return int(map_at(ring, "status").get("availableShards") or 0)


def _configure(folder: Path, port: int) -> Path:
    now = datetime.now(UTC)
    authority = Authority.create("sharder", now, _LIFETIME)
    pair = authority.issue_server("sharder", ["127.0.0.1"], now, _LIFETIME)
    (folder / "tls.crt").write_bytes(pair.public)
    (folder / "tls.key").write_bytes(pair.private)
    path = folder / "sharder.json"
    path.write_bytes(orjson.dumps(_configuration(folder, port, authority.pair.public)))
    return path


def _configuration(folder: Path, port: int, bundle: bytes) -> JsonObject:
    url = f"https://127.0.0.1:{port}"
    calls = {"url": url, "caBundle": base64.b64encode(bundle).decode()}
    return {
        "apiVersion": "config.sharding.timebertt.dev/v1alpha1",
        "kind": "SharderConfig",
        "leaderElection": {"leaderElect": False},
        "health": {"bindAddress": "0"},
        "metrics": {"bindAddress": "127.0.0.1:0"},
        "controller": {"sharder": {"syncPeriod": "5s"}},
        "webhook": {"server": {"certDir": str(folder)}, "config": {"clientConfig": calls}},
    }
