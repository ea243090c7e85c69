"""The CustomResourceDefinitions of Pergola's API and of other projects, in groups."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pergola.api.objects import JsonObject
    from pergola.manifests.definitions import Group

OWN: Final = "pergola"
OPERATOR: Final = "operator"
ALL: Final = "all"


class UnknownGroup(Exception):
    """No group has this name; the text lists all groups."""


def definitions() -> list["JsonObject"]:
    """Return the CustomResourceDefinitions of Pergola that no chart installs."""
    from pergola.api.bastion_v1alpha1 import bastion_crd
    from pergola.api.extensions_v1alpha1 import cluster_crd, network_crd
    from pergola.api.infrastructure_v1alpha1 import infrastructure_crd
    from pergola.api.resources_v1alpha1 import managed_resource_crd

    return [
        managed_resource_crd(),
        cluster_crd(),
        network_crd(),
        infrastructure_crd(),
        bastion_crd(),
    ]


def operator_definitions() -> list["JsonObject"]:
    """Return the CustomResourceDefinitions that the operator's chart installs.

    Helm refuses to install a chart whose objects exist already.
    """
    from pergola.api.operator_v1alpha1 import extension_crd, garden_crd

    return [garden_crd(), extension_crd()]


def names() -> list[str]:
    """Return the names that `chosen` accepts."""
    return [OWN, OPERATOR, *_foreign(), ALL]


def chosen(groups: Sequence[str]) -> tuple[list["JsonObject"], list["JsonObject"]]:
    """Return the definitions in some groups: Pergola's, and those of other projects.

    Raises:
        UnknownGroup: No group has the name.
    """
    from pergola.garden.components.definitions import load

    unknown = sorted(set(groups) - set(names()))
    if unknown:
        raise UnknownGroup(f"no group is called {unknown[0]}: name {', '.join(names())}")
    own = definitions() if not groups or {OWN, ALL} & set(groups) else []
    if {OPERATOR, ALL} & set(groups):
        own += operator_definitions()
    foreign = _selected(groups)
    return own, [definition for group in foreign for definition in load(group)]


def rendered(objects: Iterable["JsonObject"]) -> str:
    """Return one YAML document per object; equal objects yield equal bytes."""
    from pergola.kube.yaml import dump

    return "".join(f"---\n{dump(obj)}" for obj in objects)


def _selected(groups: Sequence[str]) -> list["Group"]:
    return [each for key, each in _foreign().items() if key in groups or ALL in groups]


def _foreign() -> dict[str, "Group"]:
    from pergola.garden.components.definitions import GROUPS, SHOOT_EXTENSIONS

    return {each.key: each for each in (*GROUPS, SHOOT_EXTENSIONS)}
