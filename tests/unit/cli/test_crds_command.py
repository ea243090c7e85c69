"""The definitions that `pergola crds` prints."""

import pytest

from pergola.api.objects import JsonObject, name_of
from pergola.cli.crds.app import crds
from pergola.cli.crds.groups import UnknownGroup, chosen, definitions, names
from pergola.garden.components.definitions import GROUPS, SHOOT_EXTENSIONS, load
from pergola.kube.yaml import parse_documents

OWN = {name_of(definition) for definition in definitions()}
EXTENSIONS = {
    f"{plural}.extensions.gardener.cloud"
    for plural in (
        "backupbuckets",
        "backupentries",
        "bastions",
        "clusters",
        "containerruntimes",
        "controlplanes",
        "dnsrecords",
        "extensions",
        "infrastructures",
        "networks",
        "operatingsystemconfigs",
        "selfhostedshootexposures",
        "workers",
    )
}


def printed(capsys: pytest.CaptureFixture[str], *groups: str) -> list[JsonObject]:
    crds(*groups)
    documents = parse_documents(capsys.readouterr().out)
    return [document.value for document in documents if isinstance(document.value, dict)]


def test_without_a_group_only_the_kinds_of_pergola_are_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert [name_of(crd) for crd in printed(capsys)] == [name_of(crd) for crd in definitions()]


def test_all_prints_the_kinds_of_the_operator_and_of_extensions(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = [name_of(crd) for crd in printed(capsys, "all")]
    assert len(found) == len(set(found))
    assert set(found) >= OWN | EXTENSIONS
    assert set(found) >= {name for group in GROUPS for name in group.names}


def test_each_group_is_printed_once_as_shipped(capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(capsys, "shoot-extensions", "etcd", "etcd")
    [etcd] = [group for group in GROUPS if group.key == "etcd"]
    assert found == [*load(etcd), *load(SHOOT_EXTENSIONS)]


def test_the_error_about_an_unknown_group_lists_all_groups() -> None:
    with pytest.raises(
        UnknownGroup, match=r"no group is called knative: name pergola, .*istio.*, all$"
    ):
        chosen(["etcd", "knative"])


def test_the_help_lists_every_group() -> None:
    assert [name for name in names() if name not in (crds.__doc__ or "")] == []
