"""The admission server under load: figures and their targets (design §4).

    python -m bench admission                  # the product's server, and one that does no work
    python -m bench admission --all            # also aiohttp, and the original
    python -m bench admission --seconds 2      # a quick run

A pod of 5 KB is sent to the slowest pod webhook, over TLS, on 16 persistent connections. The server
has one core; the load generator, a Go program, has another, which it shares with the second process
of servers on both cores.

Durations depend on the machine and its other load, hence the best of three runs. CPU time depends
on them least: `per core` is the number of reviews per second that a dedicated core would answer,
and `round` is the CPU time for one response on each connection, for which an API server would wait.
"""

import argparse
import asyncio
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

import orjson

from bench.admission_original import PATH as ORIGINAL_PATH
from bench.admission_original import original
from bench.admission_servers import CONNECTIONS, NOTHING, SERVERS, endpoints
from bench.processes import Process
from bench.tables import show
from pergola.admission.http import Endpoint
from pergola.api.objects import JsonObject
from pergola.pki import Authority
from pergola.runtime.logging import configure
from pergola.sandbox.errors import SandboxError
from pergola.sandbox.on_demand import ORIGINAL_RESOURCE_MANAGER
from pergola.sandbox.toolchain import find_go

LOADGEN: Final = Path(__file__).parent / "loadgen"
GO: Final = (1, 22)
HEADINGS: Final = (
    "server",
    "reviews/s",
    "p50",
    "p99",
    "peak memory",
    "CPU each",
    "per core",
    "round p50",
    "round p99",
    "GC pauses",
    "longest",
)
TARGETS: Final = ("target", "", "", "≤ 3 ms", "", "", "≥ 10,000", "", "", "", "")


class Figures(NamedTuple):
    """The figures of one server; milliseconds, megabytes, and microseconds of CPU per review."""

    server: str
    per_second: float
    p50: float
    p99: float
    megabytes: float
    cpu: float
    notes: Mapping[str, float] = MappingProxyType({})

    def row(self) -> tuple[str, ...]:
        """Return the cells of the table."""
        return (
            self.server,
            f"{self.per_second:,.0f}",
            f"{self.p50:.2f} ms",
            f"{self.p99:.2f} ms",
            f"{self.megabytes:.0f} MB",
            f"{self.cpu:.0f} µs",
            f"{1e6 / self.cpu:,.0f}",
            *self._notes(),
        )

    def _notes(self) -> tuple[str, ...]:
        if not self.notes:
            return ("", "", "", "")
        return (
            f"{self.notes['p50']:.2f} ms",
            f"{self.notes['p99']:.2f} ms",
            f"{self.notes['pauses'] / self.notes['answers'] * 1000:.1f} in 1,000",
            f"{self.notes['longest_pause']:.2f} ms",
        )


def pod() -> JsonObject:
    """Return a pod of 5 KB as the API server sends it, with defaults and managed fields."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "generateName": "metrics-server-6d94bc8694-",
            "namespace": "kube-system",
            "creationTimestamp": None,
            "labels": {
                "app": "metrics-server",
                "gardener.cloud/role": "system-component",
                "pod-template-hash": "6d94bc8694",
                "resources.gardener.cloud/managed-by": "gardener",
            },
            "annotations": {"checksum/secret": "8f7d0e3c" * 8, "checksum/config": "17ac5e2b" * 8},
            "ownerReferences": [
                {
                    "apiVersion": "apps/v1",
                    "kind": "ReplicaSet",
                    "name": "metrics-server-6d94bc8694",
                    "uid": "a8e0bd4c-5b0f-4c4f-9a6e-0f5d7e4a1b2c",
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
            "managedFields": [_managed_fields()],
        },
        "spec": {
            "serviceAccountName": "metrics-server",
            "serviceAccount": "metrics-server",
            "automountServiceAccountToken": False,
            "restartPolicy": "Always",
            "dnsPolicy": "ClusterFirst",
            "schedulerName": "default-scheduler",
            "terminationGracePeriodSeconds": 30,
            "enableServiceLinks": True,
            "priorityClassName": "system-cluster-critical",
            "securityContext": {"runAsUser": 65534, "fsGroup": 65534},
            "tolerations": [
                {"key": "CriticalAddonsOnly", "operator": "Exists"},
                {
                    "key": "node.kubernetes.io/not-ready",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 300,
                },
            ],
            "topologySpreadConstraints": [
                {
                    "maxSkew": 1,
                    "topologyKey": key,
                    "whenUnsatisfiable": "ScheduleAnyway",
                    "labelSelector": {"matchLabels": {"app": "metrics-server"}},
                }
                for key in ("kubernetes.io/hostname", "topology.kubernetes.io/zone")
            ],
            "containers": [_container("metrics-server", 8443), _container("proxy", 8080)],
            "volumes": [
                {"name": "tls", "secret": {"secretName": "metrics-server-tls", "defaultMode": 420}},
                {"name": "config", "configMap": {"name": "metrics-server", "defaultMode": 420}},
            ],
        },
        "status": {},
    }


def _managed_fields() -> JsonObject:
    fields: JsonObject = {
        f'k:{{"name":"{name}"}}': {".": {}, "f:image": {}} for name in ("web", "proxy")
    }
    return {
        "manager": "kube-controller-manager",
        "operation": "Update",
        "apiVersion": "v1",
        "time": "2026-01-01T00:00:00Z",
        "fieldsType": "FieldsV1",
        "fieldsV1": {"f:spec": {"f:containers": fields, "f:dnsPolicy": {}}},
    }


def _container(name: str, port: int) -> JsonObject:
    def probe(path: str) -> JsonObject:
        return {
            "httpGet": {"path": path, "port": port, "scheme": "HTTPS"},
            "timeoutSeconds": 1,
            "periodSeconds": 10,
            "successThreshold": 1,
            "failureThreshold": 3,
        }

    return {
        "name": name,
        "image": f"registry.example.org/gardener/{name}:v0.7.2",
        "imagePullPolicy": "IfNotPresent",
        "command": [f"/{name}", "--cert-dir=/tmp", f"--secure-port={port}", "--v=2"],
        "env": [
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "LOG_LEVEL", "value": "info"},
            {"name": "KUBERNETES_CLUSTER_DOMAIN", "value": "cluster.local"},
            {
                "name": "GOMEMLIMIT",
                "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "0"}},
            },
        ],
        "ports": [{"name": "https", "containerPort": port, "protocol": "TCP"}],
        "resources": {
            "requests": {"cpu": "50m", "memory": "64Mi"},
            "limits": {"memory": "512Mi"},
        },
        "livenessProbe": probe("/livez"),
        "readinessProbe": probe("/readyz"),
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "startupProbe": probe("/startupz"),
        "volumeMounts": [
            {"name": "tls", "mountPath": "/srv/tls", "readOnly": True},
            {"name": "config", "mountPath": "/srv/config", "readOnly": True},
        ],
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    }


def review() -> bytes:
    """Return the review of the pod's creation."""
    kind = {"group": "", "version": "v1", "kind": "Pod"}
    resource = {"group": "", "version": "v1", "resource": "pods"}
    return orjson.dumps(
        {
            "kind": "AdmissionReview",
            "apiVersion": "admission.k8s.io/v1",
            "request": {
                "uid": "5f1c2d6e-0e58-4e0d-b41c-5d9be0c7a3f1",
                "kind": kind,
                "resource": resource,
                "requestKind": kind,
                "requestResource": resource,
                "namespace": "kube-system",
                "operation": "CREATE",
                "userInfo": {
                    "username": "system:serviceaccount:kube-system:replicaset-controller",
                    "uid": "0c2c1d3f-4a5b-6c7d-8e9f-0a1b2c3d4e5f",
                    "groups": ["system:serviceaccounts", "system:authenticated"],
                },
                "object": pod(),
                "oldObject": None,
                "dryRun": False,
                "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
            },
        }
    )


async def cost(endpoint: Endpoint, body: bytes, times: int = 3000) -> float:
    """Return the microseconds of CPU from the request's bytes to the response's."""
    began = time.process_time()
    for _ in range(times):
        found = endpoint("application/json", body)
        if not isinstance(found, bytes):
            await found
    return (time.process_time() - began) / times * 1e6


async def heaviest(body: bytes) -> str:
    """Measure all webhooks, and return the path of the slowest."""
    costs = {path: await cost(endpoint, body) for path, endpoint in endpoints().items()}
    rows = [(path, f"{micros:.0f} µs") for path, micros in costs.items() if NOTHING not in path]
    show([*rows], ("webhook", "CPU per review"))
    print()
    return max(costs, key=lambda path: costs[path])


def build(folder: Path) -> None:
    """Build the load generator."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pergola"
    cache.mkdir(parents=True, exist_ok=True)
    try:
        go = find_go(GO, cache, lambda text: print(text, file=sys.stderr), os.environ)
    except SandboxError as error:
        raise SystemExit(f"the load generator is a Go program: {error}") from None
    line = [str(go), "build", "-o", str(folder / "loadgen"), "."]
    if subprocess.run(line, cwd=LOADGEN, check=False).returncode:
        raise SystemExit(f"cannot build {LOADGEN}")


def pinned(core: int, line: list[str]) -> list[str]:
    """Return a command pinned to one core, if the machine supports that."""
    return [*_pin(core), *line]


def _pin(core: int) -> list[str]:
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    return ["taskset", "--cpu-list", str(cores[core])] if len(cores) > 1 else []


@contextmanager
def serving(
    line: list[str], folder: Path, cores: Sequence[int]
) -> Iterator[tuple[list[Process], int]]:
    """Run a server as one process for each core given, and yield once all listen on the port."""
    (folder / "port").unlink(missing_ok=True)
    with ExitStack() as stack:
        running = [stack.enter_context(_process(line, cores[0]))]
        _await_file(folder / "port", running[0])
        port = int((folder / "port").read_text())
        for core in cores[1:]:
            running.append(stack.enter_context(_process([*line, str(port)], core)))
            _await_file(folder / str(running[-1].pid), running[-1])
        yield [Process(process) for process in running], port


@contextmanager
def _process(line: list[str], core: int) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(pinned(core, line), env={**os.environ, "GOMAXPROCS": "1"})
    try:
        yield process
    finally:
        process.terminate()
        process.wait(timeout=30)


def _await_file(file: Path, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 30
    while not file.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            raise SystemExit(f"the server did not start: {process.args!r}")
        time.sleep(0.05)


def load(folder: Path, url: str, seconds: float) -> dict[str, float]:
    """Run the load generator and return its report."""
    line = [str(folder / "loadgen"), "-url", url, "-body", str(folder / "body.json")]
    line += ["-connections", str(CONNECTIONS), "-warm", "0s", "-for", f"{seconds}s"]
    done = subprocess.run(
        pinned(1, line), stdout=subprocess.PIPE, check=True, env={**os.environ, "GOMAXPROCS": "1"}
    )
    found: dict[str, float] = orjson.loads(done.stdout)
    if found["errors"]:
        raise SystemExit(f"{found['errors']} requests failed: {found['first_error']}")
    return found


def measure(
    name: str,
    served: AbstractContextManager[tuple[list[Process], int]],
    path: str,
    folder: Path,
    seconds: float,
    runs: int,
) -> Figures:
    """Measure one server after a second of warm-up; return the best of several runs.

    Args:
        served: runs it, and yields its processes and port.
    """
    for file in folder.glob("*.json"):
        if file.stem.isdecimal():
            file.unlink()
    with served as (running, port):
        url = f"https://127.0.0.1:{port}{path}"
        load(folder, url, 1)
        found = []
        for _ in range(runs):
            before = sum(process.cpu for process in running)
            run = load(folder, url, seconds)
            cpu = (sum(process.cpu for process in running) - before) / run["requests"] * 1e6
            figures = run["per_second"], run["p50_ms"], run["p99_ms"]
            megabytes = sum(process.peak_megabytes for process in running)
            found.append(Figures(name, *figures, megabytes, cpu))
    best = max(found, key=lambda figures: figures.per_second)
    notes = [orjson.loads(file.read_bytes()) for file in folder.glob("[0-9]*.json")]
    return best._replace(notes=max(notes, key=lambda each: each["p99"], default={}))


def run(folder: Path, *, seconds: float, runs: int, everything: bool) -> list[Figures]:
    """Measure all servers, one after another."""
    build(folder)
    now, day = datetime.now(UTC), timedelta(days=1)
    pair = Authority.create("bench", now, day).issue_server("bench", ("localhost",), now, day)
    (folder / "tls.crt").write_bytes(pair.public)
    (folder / "tls.key").write_bytes(pair.private)
    body = review()
    (folder / "body.json").write_bytes(body)
    path = asyncio.run(heaviest(body))
    print(f"a pod of {len(orjson.dumps(pod())):,} bytes, a review of {len(body):,}, to {path}")

    def ours(name: str, *cores: int) -> AbstractContextManager[tuple[list[Process], int]]:
        line = [sys.executable, "-m", "bench.admission_servers", name, str(folder)]
        return serving(line, folder, cores)

    def measured(
        name: str, served: AbstractContextManager[tuple[list[Process], int]], to: str = path
    ) -> Figures:
        return measure(name, served, to, folder, seconds, runs)

    found = [measured(name, ours(name, 0)) for name in (SERVERS if everything else ["pergola"])]
    found.append(measured("pergola, nothing to decide", ours("pergola", 0), f"/{NOTHING}"))
    found.append(measured("pergola, 2 processes on one core", ours("pergola", 0, 0)))
    found.append(measured("pergola, 2 processes on both cores", ours("pergola", 0, 1)))
    if everything:
        name = f"Gardener {ORIGINAL_RESOURCE_MANAGER.version}"
        found.append(measured(name, original(_pin(0), folder), ORIGINAL_PATH))
    return found


def main() -> None:
    """Parse the arguments and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--seconds", type=float, default=5.0, help="of each run")
    parser.add_argument("--runs", type=int, default=3, help="for each server; the best counts")
    parser.add_argument("--all", action="store_true", help="also measure other servers")
    arguments = parser.parse_args()
    configure("error")
    with tempfile.TemporaryDirectory() as folder:
        found = run(
            Path(folder),
            seconds=arguments.seconds,
            runs=arguments.runs,
            everything=arguments.all,
        )
    show([*(figures.row() for figures in found), TARGETS], HEADINGS)
