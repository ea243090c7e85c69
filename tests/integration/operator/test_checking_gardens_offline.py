"""`pergola garden check` reports what a real API server with the webhooks reports."""

import asyncio
import sys
from pathlib import Path

import orjson
import pytest

from pergola.api.objects import JsonObject
from pergola.kube.errors import ApiError
from pergola.kube.yaml import dump
from pergola.sandbox import Sandbox
from tests.support.gardens import MINIMAL, SERVER, VIRTUAL, with_values
from tests.support.operator_site import OperatorSite

PERGOLA = Path(sys.executable).parent / "pergola"
BROKEN = {
    f"{VIRTUAL}.networking.services": ["nonsense"],
    f"{VIRTUAL}.dns.domains": [{"name": "A_"}],
    f"{VIRTUAL}.kubernetes.version": "1.1.0",
}
POLICY = f"{SERVER}.auditConfig.auditPolicy.configMapRef.name"


class Checking:
    """A folder for manifests, and the command with the cluster."""

    def __init__(self, folder: Path, sandbox: Sandbox) -> None:
        self._file = folder / "garden.yaml"
        self._kubeconfig = sandbox.kubeconfig

    async def findings(self, garden: JsonObject, *, live: bool = False) -> list[str]:
        """Return the findings about a Garden, as an API server lists its causes."""
        self._file.write_text(dump(garden))
        cluster = ("--kubeconfig", self._kubeconfig) if live else ()
        process = await asyncio.create_subprocess_exec(
            PERGOLA,
            *("garden", "check", "-f", self._file, "-o", "json", *cluster),
            stdout=asyncio.subprocess.PIPE,
        )
        out, _ = await process.communicate()
        (row,) = orjson.loads(out)
        assert process.returncode == (1 if row["findings"] else 0)
        return [f"{cause['field']}: {cause['message']}" for cause in row["findings"]]


@pytest.fixture
def checking(tmp_path: Path, garden_sandbox: Sandbox) -> Checking:
    return Checking(tmp_path, garden_sandbox)


async def refusal(site: OperatorSite, garden: JsonObject) -> list[str]:
    with pytest.raises(ApiError) as refused:
        await site.client.create(garden)
    return [f"{cause['field']}: {cause['message']}" for cause in refused.value.causes]


async def test_a_broken_garden_has_the_same_findings_as_on_the_api_server(
    site: OperatorSite, checking: Checking
) -> None:
    garden = with_values(MINIMAL, BROKEN)

    found = await checking.findings(garden)

    assert len(found) >= len(BROKEN)
    assert found == await refusal(site, garden)


async def test_a_change_is_compared_with_the_garden_of_the_cluster(
    site: OperatorSite, checking: Checking
) -> None:
    await site.client.create(MINIMAL)
    changed = with_values(MINIMAL, {f"{VIRTUAL}.gardener.clusterIdentity": "other"})

    assert await checking.findings(changed) == []
    (found,) = await checking.findings(changed, live=True)
    assert found.startswith(f"{VIRTUAL}.gardener.clusterIdentity: ")


async def test_a_second_garden_and_missing_references_are_found(
    site: OperatorSite, checking: Checking
) -> None:
    await site.client.create(MINIMAL)
    second = with_values(MINIMAL, {"metadata.name": "second", POLICY: "absent"})

    only_one, policy = await checking.findings(second, live=True)

    assert "there can be only one" in only_one
    assert policy.endswith("ConfigMap garden/absent does not exist")
