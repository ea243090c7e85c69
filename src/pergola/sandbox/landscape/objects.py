"""The objects by which users and operators ask for Seeds and Shoots, from the examples."""

import base64
import io
import tarfile
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from pergola.api.kinds import SHOOT
from pergola.api.objects import JsonObject, Key, map_at, name_of
from pergola.charts import ChartReference
from pergola.kube.client import Client
from pergola.kube.patches import apply_merge_patch
from pergola.kube.yaml import parse_documents
from pergola.manifests import manifest
from pergola.sandbox.module import kubernetes_version
from pergola.shipped import EXAMPLES

MANAGER: Final = "pergola-sandbox"
FOLDER: Final = EXAMPLES / "landscape"
ONE_ZONE: Final = ("local",)
ZONES: Final = ("local-a", "local-b", "local-c")
_TOKEN_SECONDS: Final = 3600
_STAND_IN: Final = "local-workers"
# gardenlet requires that an extension is installed; the sandbox itself reports for its kinds.
_CHART: Final = {
    "local/Chart.yaml": "apiVersion: v2\nname: local\nversion: 1.0.0\n",
    "local/templates/installed.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n"
    "  name: provider-local\n  namespace: {{ .Release.Namespace }}\n",
}


async def create_seed(
    garden: Client,
    kubeconfig: bytes | None,
    chart: ChartReference,
    name: str = "local",
    zones: Sequence[str] = ONE_ZONE,
    patch: JsonObject | None = None,
    *,
    provider_local: bool = False,
) -> Key:
    """Create the Gardenlet of a Seed, and what it requires; return its key.

    Args:
        garden: the virtual cluster.
        kubeconfig: of the Seed's cluster; None for the runtime cluster of the Garden.
        chart: of gardenlet.
        zones: of the cluster's nodes.
        patch: a merge patch of the example.
        provider_local: whether provider-local is installed, and registers its kinds itself.
    """
    await register(garden, provider_local=provider_local)
    reference: JsonObject | None = None
    if kubeconfig is not None:
        reference = {"name": f"seed-{name}"}
        access = {"kubeconfig": base64.b64encode(kubeconfig).decode()}
        await apply_all(
            garden, manifest("v1", "Secret", f"seed-{name}", namespace="garden", data=access)
        )
    own: JsonObject = {
        "metadata": {"name": name},
        "spec": {
            "config": {"seedConfig": {"spec": {"provider": {"zones": list(zones)}}}},
            "deployment": {"helm": {"ociRepository": {"ref": str(chart)}}},
            "kubeconfigSecretRef": reference,
        },
    }
    [example] = documents(FOLDER / "gardenlet.yaml")
    await apply_all(garden, apply_merge_patch(apply_merge_patch(example, own), patch or {}))
    return Key("garden", name)


async def register(garden: Client, *, provider_local: bool = False) -> None:
    """Register the kinds that the sandbox answers for, with the credentials of domains.

    Args:
        provider_local: whether provider-local is installed, and registers its kinds itself.
    """
    required = documents(FOLDER / "provider.yaml")
    served = {_STAND_IN} if provider_local else set()
    await apply_all(
        garden, _deployment(), *(each for each in required if name_of(each) not in served)
    )


async def create_project(garden: Client) -> None:
    """Create a CloudProfile with the version of Kubernetes that the sandbox runs, and a Project."""
    await apply_all(garden, *map(_versioned, documents(FOLDER / "project.yaml")))


async def create_shoot(
    garden: Client, patch: JsonObject | None = None, *, example: str = "shoot.yaml"
) -> Key:
    """Create a Shoot, and what it refers to; return its key.

    Args:
        patch: a merge patch of the example.
        example: the name of the file, which ends with the Shoot.
    """
    patched = apply_merge_patch(await create_prerequisites(garden, example), patch or {})
    await garden.create(patched)
    return Key.of(patched)


async def create_prerequisites(garden: Client, example: str) -> JsonObject:
    """Create what a Shoot of the examples refers to; return the Shoot, which is not created.

    Args:
        example: the name of the file, which ends with the Shoot.
    """
    *others, shoot = documents(FOLDER / example)
    await apply_all(garden, *map(_versioned, others))
    window = distant_window(datetime.now(UTC))
    own = {"kubernetes": {"version": _kubernetes()}, "maintenance": {"timeWindow": window}}
    return apply_merge_patch(shoot, {"spec": own})


def distant_window(now: datetime) -> JsonObject:
    """Return a window for maintenance that begins in half a day.

    Otherwise the API server chooses one at random. Maintenance reconciles a Shoot again, and then
    waits for pods that have no nodes.
    """
    begin = now.astimezone(UTC) + timedelta(hours=12)
    times = {"begin": begin, "end": begin + timedelta(hours=1)}
    return {name: f"{time:%H0000+0000}" for name, time in times.items()}


async def admin_kubeconfig(garden: Client, shoot: Key) -> bytes:
    """Return the kubeconfig that Gardener issues to an administrator of a Shoot, for an hour."""
    request: JsonObject = {
        "apiVersion": "authentication.gardener.cloud/v1alpha1",
        "kind": "AdminKubeconfigRequest",
        "spec": {"expirationSeconds": _TOKEN_SECONDS},
    }
    answer = await garden.create_subresource(SHOOT, shoot, "adminkubeconfig", request)
    return base64.b64decode(map_at(answer, "status")["kubeconfig"])


def _kubernetes() -> str:
    return kubernetes_version().removeprefix("v")


def _versioned(obj: JsonObject) -> JsonObject:
    """Return a CloudProfile with the version of Kubernetes that the sandbox runs."""
    if obj["kind"] != "CloudProfile":
        return obj
    versions = {"spec": {"kubernetes": {"versions": [{"version": _kubernetes()}]}}}
    return apply_merge_patch(obj, versions)


def documents(file: Path) -> Iterator[JsonObject]:
    """Yield the objects in a file of manifests."""
    for document in parse_documents(file.read_text()):
        if isinstance(document.value, dict):
            yield document.value


async def apply_all(client: Client, *objects: JsonObject) -> None:
    """Apply objects in the given order."""
    for obj in objects:
        await client.apply(obj, manager=MANAGER, force=True)


def _deployment() -> JsonObject:
    return manifest(
        "core.gardener.cloud/v1", "ControllerDeployment", "local", helm={"rawChart": _archive()}
    )


def _archive() -> str:
    """Return the chart as a packed archive, in base64."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for path, text in _CHART.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return base64.b64encode(packed.getvalue()).decode()
