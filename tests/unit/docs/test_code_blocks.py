"""Every code block of the documentation is executed, or checked as far as it can be.

The shell blocks of guides are typed as they are written, see `tests/support/documented/guides.py`.
Those of references are parsed by the programs that they call, and other tests run the commands.
"""

import ast
import functools
import importlib.util
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from pergola import bundle
from pergola.api.objects import JsonObject, name_of
from pergola.bundle import Registry
from pergola.cli import app
from pergola.kube.patches import apply_merge_patch
from pergola.kube.yaml import dump, parse
from pergola.sandbox.helm import helm
from pergola.sandbox.module import kubernetes_version
from tests.support.charts import ALL_CHARTS
from tests.support.documented import ROOT, Block, Command, blocks, commands_of, pages
from tests.support.documented.guides import (
    FIRST_STEPS,
    GARDEN,
    GUIDE,
    GUIDES,
    LANDSCAPE,
    LOOK_AROUND,
    NOT_RUN,
    TYPED,
    TYPED_ALONE,
    UP,
)
from tests.support.documented.kubectl import read
from tests.support.documented.pages import output
from tests.support.documented.reader import Shows
from tests.support.documented.scripts import documents_of
from tools.monitoring import FAMILIES

EXAMPLES: Final = ROOT / "examples"
TESTS: Final = ROOT / "tests"
BLOCKS: Final = [block for page in pages() for block in blocks(page)]
TUTORIAL: Final = "tutorials/network-extension.md"
"""Its blocks of Python are one file, which tests/integration/extensions/test_gardenet.py runs."""
FILES_ONLY: Final = ("pergola garden check",)
"""Commands that need nothing but files: the test runs them, in a folder that has these."""

RENDERED: Final = ("helm upgrade",)
"""Commands whose charts the test renders with their values."""

RUN_ELSEWHERE: Final = {
    "pergola garden compare": "unit/cli/test_garden_compare_command.py",
    "pergola garden export": "integration/operator/test_garden_transfer.py",
    "pergola garden certificates": "integration/operator/test_garden_certificates_command.py",
    "pergola garden import": "integration/operator/test_garden_transfer.py",
    "pergola garden kubeconfig": "integration/operator/test_garden_kubeconfig_command.py",
    "pergola garden plan": "integration/operator/test_garden_plan_command.py",
    "pergola garden rotate": "integration/operator/test_garden_rotation.py",
    "pergola garden status": "unit/cli/test_garden_status_output.py",
    "pergola garden wait": "integration/operator/test_garden_wait_command.py",
    "pergola garden why": "unit/cli/test_garden_why_output.py",
    "pergola infra": "integration/cli/test_infra.py",
    "pergola infra-manager": "integration/externally_managed/test_infra_manager_process.py",
    "pergola why": "integration/cli/test_why.py",
}
"""Commands by their first words, and the test that runs them with a cluster or an account."""

ONLY_PARSED: Final = {
    "kubectl": "verbs, options, kinds and files are checked",
}
"""Commands by their first words, and why no test runs them as they are written."""

OUTPUTS: Final = {
    "../README.md: How it works": ("managedresource",),
    "../examples/istio-cluster-configuration/README.md: Ingress gateways with bounded buffers": (
        "outbound|",
    ),
    "../examples/node-critical-components/README.md: Wait for the critical components of a Node": (
        "Unready required CSI drivers for Node: ",
    ),
    "how-to/capi-contract-suite.md: Running it": ("left alone", "is externally managed, but"),
    "how-to/operating-a-garden.md: Seeds": ("Seeds done, waiting for",),
    "reference/garden-commands.md: plan": ("of the other tasks, ",),
    "reference/garden-commands.md: why": ("read why it ends: ",),
    "tutorials/landscape.md: Start it": ("export GARDEN=",),
    "reference/commands.md: Completion in shells": ("source <(pergola completion bash)",),
    "reference/why.md: What needs attention": ("; checked ",),
    "reference/why.md: Example": ("differs from its manifest",),
}
"""Blocks of output, and texts in them that the product prints."""

COMPARED: Final = "../examples/node-agent-reconciliation-delay/README.md"
"""A page whose guide compares its block with what the reader sees."""

OF_A_GARDEN: Final = (
    "how-to/aws-dns-and-backups.md: DNS records and backups in AWS",
    "how-to/operating-a-garden.md: Back up",
    "how-to/operating-a-garden.md: When to rotate",
)
"""Fields of a Garden."""
VALUES: Final = {
    "how-to/install-with-helm.md: Images and registries": ["operator", "networking-calico"],
    "how-to/install-with-helm.md: Optional objects": ["resource-manager", "infra-manager"],
    "how-to/install-with-helm.md: Pods": ["infra-manager"],
    "how-to/operating-pergola.md: Alerts and dashboards": [*FAMILIES],
    "how-to/sharding.md: Extensions": ["networking-calico", "networking-cilium", "extension-aws"],
    "how-to/sharding.md: Switch it on": ["resource-manager"],
    "how-to/tracing.md: Tracing": ["operator", "resource-manager", "dashboard", "infra-manager"],
    "reference/cluster-api.md: The annotation cannot be removed": ["infra-manager"],
}
"""Values of charts, and the charts that have them."""
MANIFESTS: Final = {
    "../README.md: Your first ManagedResource",
    "how-to/aws-dns-and-backups.md: BackupBucket",
    "how-to/aws-dns-and-backups.md: BackupEntry",
    "how-to/aws-dns-and-backups.md: DNSRecord",
    "how-to/extensions-of-a-garden.md: Values with credentials",
    "how-to/gardenlets.md: The first gardenlet of a Seed",
    "how-to/lost-secret.md: Recover an encryption key by hand",
    "how-to/operating-a-garden.md: Access for programs",
    "reference/aws-networks.md: AWSClusters on existing networks",
    "reference/cluster-api.md: From a network to a Cluster",
    "tutorials/network-extension.md: A network extension from scratch",
}
"""Blocks that tests/integration/docs/test_documented_manifests.py sends to an API server."""


def named(block: Block) -> str:
    return f"{block.page}:{block.line}"


def of(*languages: str) -> list[Block]:
    return [block for block in BLOCKS if block.language in languages]


def of_guides() -> list[Block]:
    """Return the shell blocks that are typed as they are written."""
    return [block for block in of("sh") if block.page.startswith(TYPED)]


def of_references() -> list[Block]:
    return [block for block in of("sh") if not block.page.startswith(TYPED)]


@pytest.mark.parametrize("page", pages())
def test_every_block_of_a_page_passes_the_checks_of_its_language(
    page: str, subtests: pytest.Subtests
) -> None:
    found = [*blocks(page)]
    fences = re.findall(r"^ *```", (ROOT / "docs" / page).read_text(), flags=re.MULTILINE)
    assert len(fences) == 2 * len(found), "a fence is not closed"
    for block in found:
        for check in BLOCK_CHECKS[block.language]:
            with subtests.test(named(block), check=check.__name__):
                check(block)


# Shell


def is_readable_by_a_shell(block: Block) -> None:
    answer = subprocess.run(
        ["bash", "-n"], input=block.text, capture_output=True, text=True, check=False
    )
    assert (answer.returncode, answer.stderr) == (0, "")


def is_typed(block: Block) -> bool:
    """Return whether a test types the block, or a reason says why none does."""
    is_alone = block.heading in TYPED_ALONE.get(block.page, ()) or block.text.strip() in UP
    return is_alone or block in typed() or block.text.startswith(tuple(NOT_RUN))


@functools.cache
def typed() -> frozenset[Block]:
    guides = (*GUIDES.values(), FIRST_STEPS, LOOK_AROUND, GARDEN, LANDSCAPE)
    return frozenset(block for guide in guides for block in guide.blocks())


def has_commands_that_exist(block: Block) -> None:
    if block.page.startswith(TYPED):
        assert is_typed(block), "add it to tests/support/documented/guides.py"
        return
    found = [*commands_of(block.text)]
    assert found
    for command in found:
        assert rule(command), f"{command}: say in this file what checks it"
        CHECKS.get(command.program, any_arguments)(command.arguments)


def rule(command: Command) -> str:
    """Return the words under which the tables above list a command; empty if they do not."""
    words = str(command)
    known = (*FILES_ONLY, *RUN_ELSEWHERE, *ONLY_PARSED, *RENDERED)
    return max((each for each in known if f"{words} ".startswith(f"{each} ")), key=len, default="")


def any_arguments(arguments: tuple[str, ...]) -> None:
    """Check nothing: the program is not ours."""


def check_pergola(arguments: tuple[str, ...]) -> None:
    command, bound, *_ = app.parse_args([*arguments], print_error=False, exit_on_error=False)
    assert callable(command)
    assert bound is not None


def check_kubectl(arguments: tuple[str, ...]) -> None:
    file = getattr(read(arguments), "filename", None)
    assert file in {None, "-", "garden.yaml"} or (ROOT / file).is_file(), file


CHECKS: Final[Mapping[str, Callable[[tuple[str, ...]], None]]] = {
    "kubectl": check_kubectl,
    "pergola": check_pergola,
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory, with the files that commands name."""
    (tmp_path / "examples").symlink_to(EXAMPLES)
    for name in ("garden.yaml", "new.yaml", "current.yaml"):
        shutil.copy(EXAMPLES / "garden" / "garden.yaml", tmp_path / name)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def called(*programs: str) -> list[Command]:
    """Return each command that begins with one of these and reads no cluster, once."""
    found = {command for block in of_references() for command in commands_of(block.text)}
    chosen = [command for command in found if rule(command) in programs]
    return sorted(command for command in chosen if "--context" not in command.arguments)


def test_each_command_that_needs_only_files_succeeds(
    folder: Path, capsys: pytest.CaptureFixture[str], subtests: pytest.Subtests
) -> None:
    for command in called(*FILES_ONLY):
        with subtests.test(str(command)):
            run, bound, *_ = app.parse_args(
                [*command.arguments], print_error=False, exit_on_error=False
            )
            run(*bound.args, **bound.kwargs)
            assert capsys.readouterr().out


@pytest.mark.timeout(600)  # Helm may have to be built
def test_each_chart_can_be_rendered_with_the_flags_of_its_install_command(
    folder: Path, subtests: pytest.Subtests
) -> None:
    (folder / "charts").symlink_to(ROOT / "charts")
    (folder / "target.kubeconfig").write_text("apiVersion: v1")
    for command in called(*RENDERED):
        with subtests.test(str(command)):
            chart = next(word for word in command.arguments if word.startswith("charts/"))
            shutil.copy(ROOT / chart / "values.yaml", folder)
            options = [word for word in command.arguments[1:] if word != "--install"]
            text = helm("template", *options, "--kube-version", kubernetes_version())
            assert "kind: Deployment" in text


def test_at_most_ten_blocks_are_not_typed() -> None:
    texts = [block.text for block in of_guides()]
    assert [each for each in NOT_RUN if not any(text.startswith(each) for text in texts)] == []
    assert len([text for text in texts if text.startswith(tuple(NOT_RUN))]) <= 10


def test_a_page_that_starts_a_sandbox_installs_the_kinds_of_its_process() -> None:
    """The sandbox of the tests may have them of another page."""
    process = re.compile(r"^pergola (resource-manager|extension run)", re.MULTILINE)
    texts = [block.text for block in of_guides() if "pergola sandbox start" in block.text]
    found = [(text, match.start()) for text in texts if (match := process.search(text))]
    assert len(found) > 5
    assert [text for text, at in found if "pergola crds --apply\n" not in text[:at]] == []


def test_the_test_of_a_gardens_life_types_the_blocks_that_are_typed_alone() -> None:
    text = (TESTS / "integration" / "operator" / "test_garden_life.py").read_text()
    assert [each for each in TYPED_ALONE[GUIDE] if f'commands(GUIDE, "{each}")' not in text] == []


def test_each_row_of_the_tables_is_used() -> None:
    used = {rule(command) for block in of_references() for command in commands_of(block.text)}
    assert used == {*FILES_ONLY, *RUN_ELSEWHERE, *ONLY_PARSED, *RENDERED}


def test_the_test_of_each_command_calls_it() -> None:
    for command, path in RUN_ELSEWHERE.items():
        text = (TESTS / path).read_text()
        last = command.rsplit(maxsplit=1)[-1].rpartition("/")[2].removesuffix(".py")
        assert re.search(rf"\b{last.replace('-', '[-_]')}\b", text), (command, path)
        assert "def test_" in text, (command, path)


# Python


def has_imports_that_exist(block: Block) -> None:
    if block.page == TUTORIAL:
        return
    tree = ast.parse(block.text)
    ours = {"count_keys", "gardenet"}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module not in ours:
            module = importlib.import_module(node.module or "")
            assert [name.name for name in node.names if not hasattr(module, name.name)] == []


def test_the_code_of_the_page_about_why_is_an_explainer() -> None:
    [block] = [block for block in of("python") if block.page == "reference/why.md"]
    names: dict[str, Any] = {}
    exec(block.text, names)  # noqa: S102 - our own documentation
    assert names["LAKES"].applies({"kind": "Lake"})


def test_the_test_in_the_tutorial_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(EXAMPLES / "network" / "gardenet")
    [block] = [block for block in of("python") if block.heading == "5. Test it"]
    names: dict[str, Any] = {}
    exec(block.text, names)  # noqa: S102 - our own documentation
    names["test_the_agents_restart_when_their_config_changes"]()
    del sys.modules["gardenet"]


def test_the_code_about_unique_names_annotates_the_workload() -> None:
    place = "ConfigMaps and Secrets that your objects use"
    [block] = [block for block in of("python") if block.heading == place]
    config_map: JsonObject = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}
    template: JsonObject = {"metadata": {}, "spec": {"containers": []}}
    deployment: JsonObject = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "b"},
        "spec": {"template": template},
    }
    registry = Registry()
    names = {"config_map": config_map, "deployment": deployment, "registry": registry}
    exec(block.text, {**vars(bundle), "name_of": name_of, **names})  # noqa: S102
    assert len(registry) == 2


# The others


def has_entry_points_of_the_examples(block: Block) -> None:
    [points] = tomllib.loads(block.text)["project"]["entry-points"].values()
    for target in points.values():
        module, _, name = target.partition(":")
        [file] = EXAMPLES.rglob(f"{module}.py")
        assert f"class {name}" in file.read_text()


def has_texts_of_the_source(block: Block) -> None:
    if block.page == COMPARED:
        [guide] = [guide for guide in GUIDES.values() if COMPARED in guide.places]
        assert Shows(output(COMPARED)) in guide.expected.values()
        return
    words = [each for each in OUTPUTS[block.place] if each in block.text]
    assert words
    assert [each for each in words if not any(each in text for text in sources())] == []


@functools.cache
def sources() -> list[str]:
    return [path.read_text() for path in (ROOT / "src").rglob("*.py")]


def has_queries_of_existing_metrics(block: Block) -> None:
    known = "".join(path.read_text() for path in (ROOT / "src").rglob("metrics.py"))
    names = set(re.findall(r"\b(pergola_\w+)", block.text))
    assert names
    assert [name for name in names if f'"{name}"' not in known] == []


BLOCK_CHECKS: Final[Mapping[str, tuple[Callable[[Block], None], ...]]] = {
    "promql": (has_queries_of_existing_metrics,),
    "python": (has_imports_that_exist,),
    "sh": (is_readable_by_a_shell, has_commands_that_exist),
    "symptom": (),  # checked by the tests that produce it
    "text": (has_texts_of_the_source,),
    "toml": (has_entry_points_of_the_examples,),
    "yaml": (),  # checked by the tests below
}


def test_each_block_of_yaml_has_one_check() -> None:
    places = {block.place for block in of("yaml")}
    assert places == {*OF_A_GARDEN} ^ {*VALUES} ^ MANIFESTS


@pytest.mark.parametrize("place", OF_A_GARDEN)
def test_fields_of_a_garden_are_valid(
    place: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    [block] = [block for block in of("yaml") if block.place == place]
    garden = loaded((EXAMPLES / "garden" / "garden.yaml").read_text())
    (folder / "garden.yaml").write_text(dump(apply_merge_patch(garden, loaded(block.text))))

    check_garden, bound, *_ = app.parse_args(["garden", "check", "-f", "garden.yaml"])
    check_garden(*bound.args, **bound.kwargs)

    assert "local" in capsys.readouterr().out


@pytest.mark.timeout(600)  # Helm may have to be built
@pytest.mark.parametrize(
    ("place", "name"), [(place, name) for place, names in VALUES.items() for name in names]
)
def test_values_blocks_are_valid_for_a_chart(place: str, name: str) -> None:
    [chart] = [chart for chart in ALL_CHARTS if chart.name == name]
    [block] = [block for block in of("yaml") if block.place == place]
    assert chart.rendered(loaded(block.text)) != chart.rendered()


def loaded(text: str) -> JsonObject:
    value = parse(text)
    assert isinstance(value, dict)
    return value


# The parsers


def test_the_commands_of_a_script_are_found() -> None:
    script = (
        "A=b sudo bin/one $(two 'x y') > file  # three\n"
        "for i in 1 2; do four $i | five; done\n"
        "six() { seven; }\nsix && eight \\\n  --nine\n"
        "ten <<'EOF'\nkind: Pod\nEOF\n"
    )
    assert [str(command) for command in commands_of(script)] == [
        "two 'x y'",
        "one SUBSTITUTED",
        "four '$i'",
        "five",
        "seven",
        "eight --nine",
        "ten",
    ]
    assert documents_of(script) == ["kind: Pod\n"]


@pytest.mark.parametrize(
    "line", ["get pods --unknown", "frobnicate pod/x", "delete x --replicas 2"]
)
def test_an_unknown_kubectl_command_is_detected(line: str) -> None:
    with pytest.raises(ValueError, match="kubectl"):
        read(line.split())
