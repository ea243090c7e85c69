"""`examples/webhooks`: the process, its registration, and the check in both cases."""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from pergola.admission.configurations import MUTATING, VALIDATING
from pergola.api.kinds import CRD, POD, SERVICE_ACCOUNT
from pergola.api.objects import JsonObject, Key, map_at
from pergola.kube.errors import AlreadyExists, ApiError, Forbidden
from pergola.kube.yaml import parse_documents
from pergola.testing.crds import install_crds
from pergola.testing.waiting import PATIENCE, until
from tests.support.webhook_site import WebhookSite

EXAMPLE = Path(__file__).parents[3] / "examples" / "webhooks"
CONFIG = EXAMPLE / "config.yaml"
PERGOLA = Path(sys.executable).parent / "pergola"
PLACE = "demo-webhooks"
FINE = "all webhooks are registered correctly, and none blocks what it must not"
DEFINITION = Key("", "managedresources.resources.gardener.cloud")
REGISTERED = Key("", "gardener-resource-manager")


def manifests(name: str) -> list[JsonObject]:
    found = [document.value for document in parse_documents((EXAMPLE / name).read_bytes())]
    return [obj for obj in found if isinstance(obj, dict)]


@asynccontextmanager
async def manager(site: WebhookSite, folder: Path) -> AsyncGenerator[None]:
    """Run the process of the example, and stop it when the block ends."""
    with (folder / "log").open("w") as output:
        process = await asyncio.create_subprocess_exec(
            PERGOLA,
            "resource-manager",
            "--config",
            str(CONFIG),
            stderr=output,
            env={"PATH": os.defpath, "KUBECONFIG": str(site.sandbox.kubeconfig)},
        )
        try:
            yield
            process.terminate()
            async with asyncio.timeout(PATIENCE):
                code = await process.wait()
            assert code == 0, (folder / "log").read_text()
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()


async def check(site: WebhookSite) -> tuple[int | None, str]:
    """Return exit code and output of `pergola webhooks check`."""
    process = await asyncio.create_subprocess_exec(
        PERGOLA,
        *("webhooks", "check", "--config", str(CONFIG)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={"PATH": os.defpath, "KUBECONFIG": str(site.sandbox.kubeconfig)},
    )
    async with asyncio.timeout(PATIENCE):
        output, _ = await process.communicate()
    return process.returncode, output.decode()


def is_changed(pod: JsonObject) -> bool:
    has_token = any(v["name"].endswith("-gardener") for v in pod["spec"].get("volumes", []))
    return has_token and "seccompProfile" in map_at(pod, "spec", "securityContext")


async def create_all(site: WebhookSite) -> dict[str, JsonObject | str]:
    """Return the example's pods by name, or the text of their refusal."""
    found: dict[str, JsonObject | str] = {}
    for obj in manifests("pod.yaml"):
        if obj["kind"] != "Pod":
            with suppress(AlreadyExists):
                await site.client.create(obj)
            continue
        try:
            found[obj["metadata"]["name"]] = await site.client.create(obj, dry_run=True)
        except ApiError as error:
            found[obj["metadata"]["name"]] = str(error)
    return found


@pytest.mark.soak("commands")
async def test_the_example_does_what_its_readme_says(site: WebhookSite, tmp_path: Path) -> None:
    await install_crds(site.client)
    (namespace,) = manifests("namespace.yaml")
    await site.client.create(namespace)
    await until(site.client, SERVICE_ACCOUNT, Key(PLACE, "default"), lambda _: True)
    async with manager(site, tmp_path):
        for gvk in (MUTATING, VALIDATING):
            await until(site.client, gvk, REGISTERED, lambda _: True)
        await site.effective(lambda: site.mutates(PLACE))
        code, text = await check(site)
        assert (code, text) == (0, f"{FINE}\n")
        found = await create_all(site)
        web, own = found["web"], found["own"]
        assert isinstance(web, dict)
        assert isinstance(own, dict)
        assert is_changed(web)
        assert not is_changed(own)
        with pytest.raises(Forbidden, match="annotation to delete"):
            await site.ask("DELETE", CRD, DEFINITION, dryRun="All")
    code, text = await check(site)
    assert code == 1
    assert "cannot be reached" in text
    found = await create_all(site)
    assert "failed calling webhook" in str(found["web"])
    assert isinstance(found["own"], dict)
    assert await site.client.list(POD, PLACE) == []
