"""Actuators by reference, as authors name them on the command line."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pergola.extensions.loading import BadReference, load_actuator, load_actuators

ONE = """
from pergola.extensions import Actuator
from pergola.providers.networking.plugin import NetworkPlugin

class Gardenet(Actuator):
    kind = "Network"
    type = "gardenet"
    name = "networking-gardenet"

    async def reconcile(self, context, obj):
        pass

    async def delete(self, context, obj):
        pass

    async def migrate(self, context, obj):
        pass

instance = Gardenet()
answer = 42

class Incomplete(Actuator):
    kind = "Network"
"""

HALF = """
from pergola.providers.networking.plugin import NetworkPlugin

class Half(NetworkPlugin):
    type = "half"
    name = "networking-half"

    def check(self, config, families):
        return iter(())
"""

TWO = (
    ONE
    + """
class Second(Gardenet):
    type = "second"

    def __init__(self, argument):
        pass
"""
)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(tmp_path)
    known = set(sys.modules)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "gardenet_one.py").write_text(ONE)
    (tmp_path / "gardenet_two.py").write_text(TWO)
    (tmp_path / "gardenet_half.py").write_text(HALF)
    yield tmp_path
    for name in set(sys.modules) - known:
        if name.startswith(("gardenet_", "broken", "extension_")):
            del sys.modules[name]


@pytest.mark.parametrize(
    "reference",
    [
        "./gardenet_one.py:Gardenet",
        "gardenet_one.py:Gardenet",
        "gardenet_one:Gardenet",
        "gardenet_one.py:instance",
        "gardenet_one.py",
        "gardenet_one",
        "{folder}/gardenet_one.py:Gardenet",
    ],
)
def test_actuators_are_loaded_from_files_and_modules(folder: Path, reference: str) -> None:
    actuator = load_actuator(reference.format(folder=folder))
    assert (actuator.kind, actuator.type, actuator.name) == (
        "Network",
        "gardenet",
        "networking-gardenet",
    )


@pytest.mark.parametrize(
    ("reference", "sentence"),
    [
        (":Gardenet", '":Gardenet" names no module; write module:Actuator or file.py:Actuator'),
        ("./none.py:Gardenet", "there is no file none.py"),
        ("gardenet_none:A", 'there is no module "gardenet_none"; install it, or name a file'),
        ("gardenet_one.py:Calico", 'has no "Calico"; its actuators are: Gardenet'),
        ("gardenet_two.py", "has several actuators; name one of gardenet_two.py:Gardenet, "),
        ("gardenet_one.py:answer", "gardenet_one.py:answer is not an actuator"),
        ("gardenet_one.py:Path", 'has no "Path"'),
        (
            "gardenet_one.py:Incomplete",
            "is incomplete: it does not set type, name and does not implement delete, migrate, rec",
        ),
        (
            "gardenet_one.py:NetworkPlugin",
            "does not set type, name, config and does not implement check, check_shoot, render",
        ),
        (
            "gardenet_half.py",
            "Half is incomplete: it does not set config and does not implement check_shoot, render",
        ),
        ("gardenet_half", "gardenet_half:Half is incomplete: it does not set config"),
        (
            "calicoo",
            "the installed extensions are aws, calico, cilium",
        ),
        ("gardenet_two.py:Second", "cannot be instantiated without arguments"),
        ("pergola.extension_api.errors", "has no actuator: a class that derives from"),
    ],
)
def test_an_invalid_reference_is_reported_in_one_sentence(
    folder: Path, reference: str, sentence: str
) -> None:
    with pytest.raises(BadReference, match=re.escape(sentence)) as raised:
        load_actuator(reference)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("x = 1\nraise ValueError('no')", r"ValueError: no \(.*broken\.py:2\)"),
        ("import nothing_of_that_name", "ModuleNotFoundError: No module named 'nothing_of_that"),
        ("def f(:", "SyntaxError: "),
    ],
)
@pytest.mark.parametrize("reference", ["broken.py:A", "broken:A"])
def test_a_failed_import_is_reported_with_the_line(
    folder: Path, reference: str, content: str, sentence: str
) -> None:
    (folder / "broken.py").write_text(content)
    with pytest.raises(BadReference, match=sentence):
        load_actuator(reference)
    assert "broken" not in sys.modules


def test_a_loaded_file_shadows_no_other_module(folder: Path) -> None:
    import json

    (folder / "json.py").write_text(ONE)
    load_actuator("./json.py:Gardenet")
    assert sys.modules["json"] is json


def test_installed_extensions_are_found_by_entry_point() -> None:
    found = load_actuators(["calico", "aws", "cilium"])

    assert [(actuator.kind, actuator.type) for actuator in found] == [
        ("Network", "calico"),
        ("Infrastructure", "aws"),
        ("Bastion", "aws"),
        ("DNSRecord", "aws-route53"),
        ("BackupBucket", "aws"),
        ("BackupEntry", "aws"),
        ("ControlPlane", "aws"),
        ("Worker", "aws"),
        ("Network", "cilium"),
    ]


def test_an_extension_with_several_actuators_is_not_a_single_actuator() -> None:
    with pytest.raises(BadReference, match=r"aws names 7 actuators"):
        load_actuator("aws")


def test_a_reference_may_be_a_sequence_of_actuators(folder: Path) -> None:
    (folder / "gardenet_all.py").write_text(f"{ONE}\nEVERY = [Gardenet, instance]\n")

    assert [type(a).__name__ for a in load_actuators(["gardenet_all:EVERY"])] == ["Gardenet"] * 2
