"""`pergola version` with and without a cluster."""

import asyncio
from pathlib import Path

import orjson
import pytest

from pergola import __version__
from pergola.cli.cluster_options import ScopeOptions
from pergola.cli.version import version
from pergola.kube.client import Client

POD = {
    "metadata": {"labels": {"app": "versions"}},
    "spec": {
        "containers": [
            {
                "name": "web",
                "image": f"registry.example/pergola:{__version__}",
                "command": ["pergola", "extension", "run", "aws"],
            }
        ]
    },
}


async def test_processes_of_the_cluster_are_listed_with_a_sentence_about_skew(
    cluster_client: Client,
    kubeconfig: Path,
    namespace: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    await cluster_client.create(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": "aws", "namespace": namespace},
            "spec": {
                "replicas": 0,
                "selector": {"matchLabels": {"app": "versions"}},
                "template": POD,
            },
        }
    )
    options = ScopeOptions(kubeconfig=kubeconfig, namespace=namespace)
    await asyncio.to_thread(version, cluster=options)
    lines = capsys.readouterr().out.splitlines()
    assert f"extension run aws   {namespace}   aws" in lines[-3]
    assert lines[-1] == f"1 of 1 run {__version__}, as this command"
    await asyncio.to_thread(version, cluster=options, output="json")
    found = orjson.loads(capsys.readouterr().out)
    assert found["kubernetes"].startswith("v1.")
    assert [each["version"] for each in found["processes"]] == [__version__]


def test_no_cluster_is_needed(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "none"))
    version(client=True)
    said = capsys.readouterr()
    assert said.out.splitlines()[0].split() == ["pergola", __version__]
    assert said.err == ""
    version()
    said = capsys.readouterr()
    assert "pergola" in said.out
    assert "versions in the cluster are unknown: " in said.err
