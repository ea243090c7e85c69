"""`pergola crds`: which definitions it prints."""

import pytest

from pergola.api.objects import JsonObject, name_of
from pergola.cli.crds.app import crds
from pergola.cli.crds.groups import UnknownGroup, chosen, definitions, names
from pergola.kube.yaml import parse_documents
from pergola.operator.components.definitions import GROUPS, SHOOT_EXTENSIONS, load

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


def test_all_has_what_the_operator_installs_and_every_kind_of_extension(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = [name_of(crd) for crd in printed(capsys, "all")]
    assert len(found) == len(set(found))
    assert set(found) >= OWN | EXTENSIONS
    assert set(found) >= {name for group in GROUPS for name in group.names}


def test_groups_are_printed_as_they_ship_each_once(capsys: pytest.CaptureFixture[str]) -> None:
    found = printed(capsys, "shoot-extensions", "etcd", "etcd")
    [etcd] = [group for group in GROUPS if group.key == "etcd"]
    assert found == [*load(etcd), *load(SHOOT_EXTENSIONS)]


def test_an_unknown_group_is_an_error_that_lists_all() -> None:
    with pytest.raises(
        UnknownGroup, match=r"no group is called knative: name pergola, .*istio.*, all$"
    ):
        chosen(["etcd", "knative"])


def test_the_help_names_every_group() -> None:
    assert [name for name in names() if name not in (crds.__doc__ or "")] == []
