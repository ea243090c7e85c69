"""Commands that read the resource manager's configuration without starting it."""

from pathlib import Path

import pytest

from pergola.api.objects import JsonObject
from pergola.cli.configuration import read_settings
from pergola.cli.explain.command import explain
from pergola.cli.webhooks.app import render
from pergola.kube.errors import ConfigurationError
from pergola.kube.yaml_writer import dump
from pergola.resource_manager import app
from pergola.resource_manager.app import run
from pergola.resource_manager.configuration import read_configuration
from pergola.runtime.process.options import StartError
from tests.support.logs import captured_logs

MISSPELT: JsonObject = {
    "apiVersion": "resourcemanager.config.gardener.cloud/v1alpha1",
    "kind": "ResourceManagerConfiguration",
    "webhooks": {"seccompProfile": {"enabled": True}, "podSchedulerNames": {"enabled": True}},
}
POD: JsonObject = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web"}, "spec": {}}


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.yaml"
    path.write_text(dump(MISSPELT))
    return path


def is_warned(text: str, config: Path) -> bool:
    return f"warning: {config}: webhooks.podSchedulerNames" in text and "did you mean" in text


def test_offline_commands_report_misspelt_settings(
    config: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    render(config=config)
    said = capsys.readouterr()
    assert is_warned(said.err, config)
    assert "podSchedulerNames" not in said.out
    manifest = tmp_path / "pod.yaml"
    manifest.write_text(dump(POD))
    explain(file=[manifest], config=config, output="json")
    assert is_warned(capsys.readouterr().err, config)


def test_offline_commands_need_no_leader_election(config: Path) -> None:
    assert read_settings(config).webhooks.seccomp_profile.enabled
    with pytest.raises(StartError, match="leaderElection"):
        read_configuration(config, {})


def test_the_process_warns_of_misspelt_settings(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("KUBECONFIG", "TARGET_KUBECONFIG"):
        monkeypatch.setenv(name, str(config.parent / "missing"))
    monkeypatch.setattr(app, "configure", lambda *_: None)
    config.write_text(dump({**MISSPELT, "leaderElection": {"leaderElect": False}}))
    with captured_logs(app) as logs, pytest.raises(ConfigurationError, match="missing cannot"):
        run(config)
    (line,) = [line for line in logs if "podSchedulerNames" in line.get("warning", "")]
    assert line["log_level"] == "warning"
