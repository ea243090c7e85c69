"""`pergola tokens` prints owners, times and errors, and never a token."""

import asyncio
import json
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from cyclopts import App

from pergola.api.durations import parse_duration
from pergola.cli.tokens import TokensError, tokens
from pergola.resource_manager.controllers.token_requestor import names
from pergola.resource_manager.controllers.token_requestor.observe import token_of
from pergola.sandbox import Sandbox
from tests.support.token_clusters import Clusters


async def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Return the output of the command, which runs its own event loop."""
    app = App()
    app.default(tokens)
    capsys.readouterr()
    await asyncio.to_thread(app, arguments, result_action="return_value")
    return capsys.readouterr().out


async def test_owner_age_renewal_and_last_error_are_printed_but_no_token(
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

    printed = await run(capsys, *here, "-o", "json")
    assert token.decode() not in printed
    good, mistaken, away = json.loads(printed)
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

    printed = await run(capsys, *here)
    assert token.decode() not in printed
    header, *lines = printed.splitlines()
    assert header.split()[:2] == ["SECRET", "CLASS"]
    name, _, _, age, expires, renewed = lines[0].split()
    assert name == f"{clusters.namespace}/good"
    assert abs(parse_duration(age) + parse_duration(expires) - life) <= timedelta(seconds=1)
    assert parse_duration(renewed) < parse_duration(expires)
    (mistake,) = (line for line in lines if line.startswith(f"{clusters.namespace}/mistaken: "))
    assert 'invalid duration "1d"' in mistake


async def test_an_error_that_is_older_than_the_token_is_not_printed(
    clusters: Clusters, kubeconfig: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # The clock gives the Event an earlier time than the API server gives the token.
    clusters.clock.set(clusters.clock.now() - timedelta(minutes=5))
    await clusters.put(annotations={names.EXPIRATION: "1d"})
    async with clusters.start():
        await clusters.warning("InvalidTokenRequest")
        await clusters.annotate(EXPIRATION=None)
        await clusters.issued()
    here = ("-n", clusters.namespace, "--kubeconfig", str(kubeconfig))
    (row,) = json.loads(await run(capsys, *here, "-o", "json"))
    assert row["lastError"] is None


async def test_a_namespace_without_requests_is_reported(
    clusters: Clusters, kubeconfig: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await clusters.put(labels={names.PURPOSE: None})
    here = ("-n", clusters.namespace, "--kubeconfig", str(kubeconfig))
    assert await run(capsys, *here) == "no Secret requests a token\n"
    assert await run(capsys, *here, "-o", "json") == "[]\n"


@pytest.mark.parametrize(
    ("labels", "reason"),
    [
        ({names.CLASS: None}, "the label resources.gardener.cloud/class is missing"),
        ({names.CLASS: "other"}, 'no instance has served class "other"'),
    ],
)
async def test_a_secret_that_no_instance_serves_is_reported(
    clusters: Clusters,
    kubeconfig: Path,
    capsys: pytest.CaptureFixture[str],
    labels: dict[str, str | None],
    reason: str,
) -> None:
    await clusters.put(labels=labels)
    async with clusters.start():
        await clusters.settle()

    (row,) = json.loads(
        await run(capsys, "-n", clusters.namespace, "--kubeconfig", str(kubeconfig), "-o", "json")
    )
    assert reason in row["lastError"]


async def test_the_options_of_kubectl_are_accepted(
    clusters: Clusters, kubeconfig: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await clusters.put("one", labels={"app": clusters.namespace})
    await clusters.put("two")

    selector = ("-A", "-l", f"app={clusters.namespace}")
    (row,) = json.loads(await run(capsys, *selector, "--kubeconfig", str(kubeconfig), "-o", "json"))
    assert row["name"] == "one"
    with pytest.raises(TokensError, match="either --namespace or --all-namespaces"):
        await run(capsys, "-A", "-n", "default", "--kubeconfig", str(kubeconfig))
