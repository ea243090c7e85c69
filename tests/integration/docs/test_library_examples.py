"""The examples of the library run, against a real API server where they take a client."""

import importlib.util
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from pergola.kube.client import Client
from pergola.testing.crds import install_crds
from tools.examples import FOLDER

Example = Callable[..., Any]


def examples() -> list[Example]:
    """Return the functions of all files without a result; others are called by these."""
    found: list[Example] = []
    for path in sorted(FOLDER.glob("*.py")):
        spec = importlib.util.spec_from_file_location(f"library_{path.stem}", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        functions = (each for each in vars(module).values() if inspect.isfunction(each))
        own = (each for each in functions if each.__module__ == module.__name__)
        found += [each for each in own if each.__annotations__["return"] is None]
    return found


def name_of(example: Example) -> str:
    return f"{example.__module__}.{example.__name__}"


ALONE: Final = [each for each in examples() if not inspect.signature(each).parameters]
WITH_CLUSTER: Final = [each for each in examples() if inspect.signature(each).parameters]


async def run(example: Example, **given: object) -> None:
    outcome = example(**given)
    if inspect.isawaitable(outcome):
        await outcome


@pytest.mark.parametrize("example", ALONE, ids=name_of)
async def test_an_example_runs(example: Example) -> None:
    await run(example)


@pytest.mark.parametrize("example", WITH_CLUSTER, ids=name_of)
async def test_an_example_runs_with_a_cluster(
    example: Example, cluster_client: Client, namespace: str, kubeconfig: Path, tmp_path: Path
) -> None:
    await install_crds(cluster_client)
    given = {
        "client": cluster_client,
        "namespace": namespace,
        "kubeconfig": kubeconfig,
        "folder": tmp_path,
    }
    names = inspect.signature(example).parameters
    await run(example, **{name: given[name] for name in names})
