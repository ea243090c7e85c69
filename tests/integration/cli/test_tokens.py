"""`pergola tokens` prints who has which token and what went wrong, and no token."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from cyclopts import App

from pergola.api.durations import parse_duration
from pergola.cli.tokens import tokens
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.resource_manager.controllers.token_requestor import names
from pergola.resource_manager.controllers.token_requestor.observe import token_of
from pergola.sandbox import Sandbox
from pergola.testing.token_clusters import Clusters, token_clusters


@pytest.fixture
async def clusters(
    kubeconfig: Path, cluster_client: Client, namespace: str, second_sandbox: Sandbox
) -> AsyncIterator[Clusters]:
    target = load(second_sandbox.kubeconfig)
    async with token_clusters(load(kubeconfig), target, cluster_client, namespace) as clusters:
        yield clusters


async def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """What the command prints, beside this event loop."""
    app = App()
    app.default(tokens)
    capsys.readouterr()
    await asyncio.to_thread(app, arguments, result_action="return_value")
    return capsys.readouterr().out


async def test_owner_age_renewal_and_last_error_are_printed_and_no_token(
    clusters: Clusters,
    kubeconfig: Path,
    second_sandbox: Sandbox,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "600")
    here = ("-n", clusters.namespace, "--kubeconfig", str(kubeconfig))
    there = ("--target-kubeconfig", str(second_sandbox.kubeconfig))
    await clusters.put("good")
    await clusters.put("mistaken", annotations={names.EXPIRATION: "1d"})
    await clusters.put("moved", annotations=clusters.to_target)
    async with clusters.start():
        token = token_of(await clusters.issued("good"))
        await clusters.warning("InvalidTokenRequest")
        await clusters.settle()

    said = await run(capsys, *here, "-o", "json")
    assert token.decode() not in said
    good, mistaken, away = json.loads(said)
    account = f"{clusters.target_namespace}/robot"
    assert [row["name"] for row in (good, mistaken, away)] == ["good", "mistaken", "moved"]
    assert good["serviceAccount"] == account
    assert (good["class"], good["targetSecret"], good["lastError"]) == ("shoot", None, None)
    life = datetime.fromisoformat(good["expires"]) - datetime.fromisoformat(good["issued"])
    assert life == timedelta(hours=12)
    assert datetime.fromisoformat(good["nextRenewal"]) > clusters.clock.now()
    assert 'invalid duration "1d"' in mistaken["lastError"]
    assert mistaken["issued"] is mistaken["nextRenewal"] is None
    assert away["targetSecret"] == f"{clusters.target_namespace}/moved"
    assert away["expires"] is None

    (*_, away) = json.loads(await run(capsys, *here, *there, "-o", "json"))
    assert datetime.fromisoformat(away["expires"]) > clusters.clock.now()

    said = await run(capsys, *here)
    assert token.decode() not in said
    header, *lines = said.splitlines()
    assert header.split()[:2] == ["SECRET", "CLASS"]
    name, _, _, age, expires, renewed = lines[0].split()
    assert name == f"{clusters.namespace}/good"
    assert abs(parse_duration(age) + parse_duration(expires) - life) <= timedelta(seconds=1)
    assert parse_duration(renewed) < parse_duration(expires)
    (mistake,) = (line for line in lines if line.startswith(f"{clusters.namespace}/mistaken: "))
    assert 'invalid duration "1d"' in mistake


async def test_an_error_before_the_present_token_is_not_printed(
    clusters: Clusters, kubeconfig: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The Event is told to be older than the token, whose time is the API server's.
    clusters.clock.set(clusters.clock.now() - timedelta(minutes=5))
    await clusters.put(annotations={names.EXPIRATION: "1d"})
    async with clusters.start():
        await clusters.warning("InvalidTokenRequest")
        await clusters.annotate(EXPIRATION=None)
        await clusters.issued()
    here = ("-n", clusters.namespace, "--kubeconfig", str(kubeconfig))
    (row,) = json.loads(await run(capsys, *here, "-o", "json"))
    assert row["lastError"] is None


async def test_where_nobody_asks_for_a_token_that_is_said(
    clusters: Clusters, kubeconfig: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await clusters.put(labels={names.PURPOSE: None})
    here = ("-n", clusters.namespace, "--kubeconfig", str(kubeconfig))
    assert await run(capsys, *here) == "no token is requested\n"
    assert await run(capsys, *here, "-o", "json") == "[]\n"
