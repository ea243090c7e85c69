"""`pergola aws plan` for a Worker: which pools replace their machines, why, and how fast."""

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any, Final

import orjson
import pytest

from pergola.api.objects import JsonObject
from pergola.cli.aws import plan as aws_plan
from pergola.cli.aws.subject import AwsCheckError, Source
from pergola.cli.manifest_files import ManifestFileError
from pergola.extension_api.errors import ExtensionError
from pergola.kube.yaml import dump
from tests.support.aws.machines import machine_fact

Change = Callable[[JsonObject], object]
BASE: Final = machine_fact("base")["input"]
POOL: Final = "shoot--demo--blue-pool-a"


class Planner:
    """A user with a file of the current Worker, and one with a change."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.old: JsonObject = deepcopy(BASE["worker"])
        self._capsys = capsys

    @property
    def old_pool(self) -> JsonObject:
        pool: JsonObject = self.old["spec"]["pools"][0]
        return pool

    def write(self, name: str, *objects: JsonObject) -> str:
        file = self.folder / name
        file.write_text("---\n".join(map(dump, objects)))
        return str(file)

    def text(self, change: Change, *, code: int = aws_plan.DIFFERENT, **options: Any) -> str:
        """Return the output for a Worker with a changed pool."""
        new = deepcopy(self.old)
        change(new["spec"]["pools"][0])
        file = self.write("new.yaml", new, BASE["cluster"])
        old = self.write("old.yaml", self.old)
        self._capsys.readouterr()
        found: object = 0
        try:
            aws_plan.plan(source=Source(file=file), old=old, **options)
        except SystemExit as exit_:
            found = exit_.code
        assert found == code
        return self._capsys.readouterr().out

    def pool(self, change: Change, **options: Any) -> JsonObject:
        """Return the data of the first pool."""
        found: JsonObject = orjson.loads(self.text(change, output="json", **options))["pools"][0]
        return found


@pytest.fixture
def planner(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Planner:
    return Planner(tmp_path, capsys)


def test_a_changed_input_of_the_hash_replaces_the_machines_zone_by_zone(planner: Planner) -> None:
    printed = planner.text(lambda pool: pool["volume"].update(encrypted=False)).splitlines()

    assert printed[0] == "Worker shoot--demo--blue/blue"
    assert printed[1].startswith("  ~ worker pool pool-a: replace all machines: the hash changes ")
    assert printed[2:6] == [
        "      volume.encrypted: absent → false",
        f"      eu-west-1a: 1 machine, at most 1 more and 0 fewer at a time ({POOL}-z1)",
        f"      eu-west-1b: 1 machine, at most 0 more and 1 fewer at a time ({POOL}-z2)",
        f"      eu-west-1c: 1 machine, at most 0 more and 1 fewer at a time ({POOL}-z3)",
    ]
    assert printed[-1] == "pools: 1 to replace"


def test_a_field_that_gardenlet_hashes_replaces_machines_too(planner: Planner) -> None:
    found = planner.pool(lambda pool: pool.update(machineType="g4dn.xlarge", maximum=9))

    assert found["fate"] == "replace"
    (change,) = found["inputs"]
    assert change == {
        "field": "machineType",
        "old": "m5.large",
        "new": "g4dn.xlarge",
        "byGardenlet": True,
    }
    assert found["fields"] == ["maximum"]


def test_a_new_secret_of_the_node_agent_is_the_cause_if_it_is_there(planner: Planner) -> None:
    def change(pool: JsonObject) -> None:
        pool.update(machineType="g4dn.xlarge", nodeAgentSecretName="another")

    found = planner.pool(change)

    assert {each["field"]: each["byGardenlet"] for each in found["inputs"]} == {
        "nodeAgentSecretName": False,
        "machineType": False,
    }
    assert found["oldHash"] != found["newHash"]
    assert found["fields"] == []


def test_percentages_are_numbers_of_machines(planner: Planner) -> None:
    planner.old_pool.update(minimum=12, maximum=12, maxSurge="50%", maxUnavailable="30%")

    found = planner.pool(lambda pool: pool["volume"].update(encrypted=True))

    sizes = [
        (each["machines"], each["maxSurge"], each["maxUnavailable"]) for each in found["zones"]
    ]
    assert sizes == [(4, 2, 1)] * 3


def test_other_fields_replace_nothing(planner: Planner) -> None:
    found = planner.pool(lambda pool: pool.update(maximum=9, labels={"a": "b"}))

    assert (found["fate"], found["inputs"]) == ("change", [])
    assert found["fields"] == ["labels", "maximum"]


def test_without_a_change_the_exit_code_is_0(planner: Planner) -> None:
    assert "nothing would change" in planner.text(lambda _: None, code=0)
    assert "worker pool pool-a: nothing changes" in planner.text(
        lambda _: None, code=0, everything=True
    )


def test_an_added_zone_gets_machines_and_the_others_keep_theirs(planner: Planner) -> None:
    found = planner.pool(lambda pool: pool["zones"].append("eu-west-1d"))

    fates = {each["zone"]: each["fate"] for each in found["zones"]}
    assert fates == {
        "eu-west-1a": "change",
        "eu-west-1b": "change",
        "eu-west-1c": "change",
        "eu-west-1d": "create",
    }


def test_machines_above_the_new_maximum_of_a_zone_are_announced(planner: Planner) -> None:
    planner.old_pool.update(zones=["eu-west-1a"], minimum=6)

    def append(pool: JsonObject) -> None:
        pool.update(zones=["eu-west-1a", "eu-west-1b"])

    found = planner.pool(append)
    printed = planner.text(append)

    assert [each["surplus"] for each in found["zones"]] == [3, 0]
    assert f"6 machines, 3 of them above the zone's new maximum, to delete ({POOL}-z1)" in printed


def test_pools_come_and_go(planner: Planner) -> None:
    printed = planner.text(lambda pool: pool.update(name="pool-b"))

    assert "  + worker pool pool-b: create its machines, with hash " in printed
    assert f"eu-west-1c: 1 machine to delete ({POOL}-z3)" in printed
    assert printed.endswith("pools: 1 to create, 1 to delete\n")


def test_the_bytes_of_the_config_count_before_kubernetes_1_34(planner: Planner) -> None:
    planner.old_pool["kubernetesVersion"] = "1.33.0"
    config = {
        "apiVersion": "aws.provider.extensions.gardener.cloud/v1alpha1",
        "kind": "WorkerConfig",
        "instanceMetadataOptions": {"httpTokens": "required"},
    }

    found = planner.pool(lambda pool: pool.update(providerConfig=config))

    (change,) = found["inputs"]
    assert change["field"] == "providerConfig"
    assert change["new"].startswith('{"apiVersion":')


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"machineType": "none"}, "invalid worker: .*machineType"),
        ({"maxSurge": "some"}, 'maxSurge of worker pool "pool-a"'),
        ({"providerConfig": {"kind": "Other"}}, "invalid worker config"),
        ({"kubernetesVersion": "one"}, "kubernetesVersion"),
        ({"nodeAgentSecretName": None}, "missing node-agent secret name"),
    ],
)
def test_a_wrong_worker_is_refused_with_a_sentence(
    planner: Planner, change: JsonObject, text: str
) -> None:
    with pytest.raises(ExtensionError, match=text):
        planner.text(lambda pool: pool.update(change))


def test_what_does_not_belong_to_a_worker_is_refused(planner: Planner) -> None:
    worker, cluster = planner.old, BASE["cluster"]
    old = planner.write("old.yaml", worker)
    two = planner.write("two.yaml", worker, worker)
    alone = planner.write("alone.yaml", worker)
    both = planner.write("both.yaml", worker, cluster)
    other = planner.write("other.yaml", {**worker, "spec": {**worker["spec"], "type": "gcp"}})

    with pytest.raises(ManifestFileError, match="must contain one Worker"):
        aws_plan.plan(source=Source(file=two), old=old)
    with pytest.raises(AwsCheckError, match="there is no Cluster shoot--demo--blue"):
        aws_plan.plan(source=Source(file=alone), old=old)
    with pytest.raises(AwsCheckError, match="no --delete and no picture"):
        aws_plan.plan(source=Source(file=both), old=old, delete=True)
    with pytest.raises(AwsCheckError, match="another type than aws"):
        aws_plan.plan(source=Source(file=other), old=old)
    with pytest.raises(AwsCheckError, match="--old is for Workers"):
        aws_plan.plan(source=Source(name="web"), old=old)
