"""`pergola garbage` prints unused objects and deletes nothing."""

import asyncio
import json
import sys
from pathlib import Path

from pergola.api import marks
from pergola.api.kinds import CONFIG_MAP
from pergola.api.objects import Key
from pergola.kube.client import Client
from pergola.testing.world import config_map

PERGOLA = Path(sys.executable).parent / "pergola"


async def run(*arguments: str) -> tuple[int, str]:
    """Return the exit code and the output."""
    process = await asyncio.create_subprocess_exec(
        PERGOLA,
        "garbage",
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    assert process.returncode is not None
    return process.returncode, output.decode()


async def test_unused_objects_are_printed_and_kept(
    cluster_client: Client, namespace: str, kubeconfig: Path
) -> None:
    labels = {marks.GARBAGE_COLLECTABLE: "true"}
    await cluster_client.create(config_map("unused", namespace, labels=labels))
    await cluster_client.create(config_map("other", namespace))
    here = ("-n", namespace, "--kubeconfig", str(kubeconfig))
    code, said = await run(*here, "--minimum-age", "0", "-o", "json")
    assert code == 0
    assert json.loads(said) == [{"kind": "ConfigMap", "namespace": namespace, "name": "unused"}]
    code, said = await run(*here, "--minimum-age", "0")
    assert (code, "unused" in said, "other" in said) == (0, True, False)
    assert await run(*here) == (0, "nothing is unused\n")
    await cluster_client.get(CONFIG_MAP, Key(namespace, "unused"))


async def test_an_invalid_age_is_reported_in_one_sentence(kubeconfig: Path) -> None:
    code, said = await run("--kubeconfig", str(kubeconfig), "--minimum-age", "1d")
    assert code == 1
    assert "1d" in said
    assert "Traceback" not in said
