"""Bash completes kinds and names of the cluster with the printed script."""

import asyncio
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from pergola.kube.client import Client
from tests.support.objects import secret

COMPLETE = """
source <(pergola completion bash)
COMP_LINE={line} COMP_POINT={length}
_pergola
printf '%s\\n' "${{COMPREPLY[@]}}"
"""


async def completed(kubeconfig: Path, line: str) -> list[str]:
    """Return what bash offers for a line."""
    script = COMPLETE.format(line=shlex.quote(line), length=len(line))
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "PYTHONPATH": ":".join(filter(None, sys.path)),
        "KUBECONFIG": str(kubeconfig),
    }
    done = await asyncio.to_thread(
        subprocess.run, ["bash", "-c", script], env=environment, capture_output=True, check=True
    )
    return done.stdout.decode().split()


@pytest.fixture
async def name(cluster_client: Client, namespace: str) -> str:
    """Return the name of a Secret in the namespace."""
    await cluster_client.create(secret(namespace, "completed-one"))
    return "completed-one"


async def test_kinds_and_names_are_completed(kubeconfig: Path, namespace: str, name: str) -> None:
    assert await completed(kubeconfig, "pergola why configma") == ["configmap/"]
    line = f"pergola why -n {namespace} secret/comp"
    assert await completed(kubeconfig, line) == [f"secret/{name}"]
    assert await completed(kubeconfig, f"pergola why -n {namespace[:-1]}") == [namespace]


async def test_a_value_after_an_equals_sign_is_completed_without_the_option(
    kubeconfig: Path,
) -> None:
    assert await completed(kubeconfig, "pergola why --output=js") == ["json"]


async def test_a_cluster_that_does_not_answer_has_no_candidates(tmp_path: Path) -> None:
    assert await completed(tmp_path / "none", "pergola why -n ") == []
