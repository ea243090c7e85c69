"""The operator as a process of `pergola up`."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pergola.admission.configurations import VALIDATING
from pergola.api.objects import Key
from pergola.cli.up.operator_process import operator_process
from pergola.kube.client import Client
from pergola.runtime.failures import Failures, sentence_of
from pergola.sandbox import Sandbox
from pergola.sandbox.simulated import Site
from pergola.testing.waiting import until

REGISTERED = Key("", "gardener-operator")


def site_of(sandbox: Sandbox, client: Client, directory: Path, **environment: str) -> Site:
    """Return a site without nodes, on which an operator has these variables."""

    class OfTest(Site):
        @property
        def operator_environment(self) -> dict[str, str]:
            return {**super().operator_environment, "IMAGEVECTOR_OVERWRITE": "", **environment}

    node = cast("Any", SimpleNamespace(proxy="http://127.0.0.1:1"))
    return OfTest(sandbox, client, directory, node, ())


async def test_the_permissions_of_the_chart_suffice_until_the_end_of_the_block(
    garden_sandbox: Sandbox, runtime: Client, tmp_path: Path
) -> None:
    async with operator_process(site_of(garden_sandbox, runtime, tmp_path)):
        await until(runtime, VALIDATING, REGISTERED, lambda _: True)
    log = (tmp_path / "operator.log").read_text()
    assert "forbidden" not in log
    assert "Traceback" not in log


async def test_an_operator_that_ends_fails_the_block_with_its_last_words(
    garden_sandbox: Sandbox, runtime: Client, tmp_path: Path
) -> None:
    site = site_of(garden_sandbox, runtime, tmp_path, WEBHOOK_MODE="nonsense")
    with pytest.raises(Failures) as caught:
        async with operator_process(site):
            await until(runtime, VALIDATING, Key("", "never"), lambda _: True)
    text = sentence_of(caught.value)
    assert "pergola operator ended with code 1" in text
    assert "nonsense" in text
