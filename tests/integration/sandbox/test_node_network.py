"""Felix's own parser accepts its settings on a node."""

from pathlib import Path

import pytest

from pergola.sandbox.components import Layout
from pergola.sandbox.node.configuration import NODE, NODE_ADDRESS
from pergola.sandbox.node.network import configurations
from tests.support.config_checks import check_calico


@pytest.mark.soak("originals")
def test_felix_knows_all_its_settings_and_accepts_their_values(tmp_path: Path) -> None:
    content = configurations(Layout(tmp_path, 6443), NODE, NODE_ADDRESS)["felix.cfg"]
    settings = dict(line.split(" = ") for line in content.splitlines())
    environment = {f"FELIX_{name.upper()}": value for name, value in settings.items()}

    [judgement] = check_calico([{"environment": environment}])

    assert settings["NFTablesMode"] == "Enabled"
    assert judgement == {"accepted": True}
