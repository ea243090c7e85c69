import os
import subprocess
import sys
from pathlib import Path

import pytest

from pergola.api.objects import name_of
from pergola.cli.crds.app import crds
from pergola.cli.crds.groups import definitions, operator_definitions, rendered
from pergola.cli.crds.install import is_established

FOLDER = Path(__file__).parents[3] / "charts" / "crds"


FILES = {
    "managedresources.resources.gardener.cloud": "resources.gardener.cloud_managedresources.yaml",
    "networks.extensions.gardener.cloud": "extensions.gardener.cloud_networks.yaml",
    "infrastructures.extensions.gardener.cloud": "extensions.gardener.cloud_infrastructures.yaml",
    "bastions.extensions.gardener.cloud": "extensions.gardener.cloud_bastions.yaml",
    "clusters.extensions.gardener.cloud": "extensions.gardener.cloud_clusters.yaml",
    "gardens.operator.gardener.cloud": "operator.gardener.cloud_gardens.yaml",
    "extensions.operator.gardener.cloud": "operator.gardener.cloud_extensions.yaml",
}


def test_the_crds_of_the_chart_match_the_types() -> None:
    written = {path.name: path.read_text() for path in FOLDER.iterdir()}

    assert written == {
        FILES[name_of(definition)]: rendered([definition])
        for definition in (*definitions(), *operator_definitions())
    }, "update them with `pergola crds pergola operator`"


def test_every_process_prints_the_same_bytes(capsys: pytest.CaptureFixture[str]) -> None:
    crds()
    environment = os.environ | {"PYTHONHASHSEED": "1"}

    other = subprocess.run(
        [sys.executable, "-c", "from pergola.cli.crds.app import crds; crds()"],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )

    assert other.stdout == capsys.readouterr().out


@pytest.mark.parametrize(
    ("conditions", "established"),
    [
        ([{"type": "Established", "status": "True"}], True),
        ([{"type": "Established", "status": "False"}], False),
        ([{"type": "NamesAccepted", "status": "True"}], False),
        ([], False),
    ],
)
def test_a_crd_is_served_once_it_is_established(
    conditions: list[dict[str, str]], established: bool
) -> None:
    assert is_established({"status": {"conditions": conditions}}) is established
