"""Landscapes to compare with: dumps in files, and live ones."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pergola.cli.cluster_options import ClusterOptions
from pergola.cli.garden.operator_settings import settings_of
from pergola.cli.garden.runtime_cluster import runtime_template, template_of
from pergola.cli.manifest_files import STDIN, content, read_objects

if TYPE_CHECKING:
    from pergola.api.objects import GroupVersionKind, JsonObject
    from pergola.kube.client import Client
    from pergola.operator.compare import Placed, Recorded
    from pergola.operator.run.observed import Template


class CompareError(Exception):
    """Nothing can be compared; the text says why and what to do."""


class Sides(NamedTuple):
    """The two sides of a comparison.

    Attributes:
        notes: The fields that could not be compared because of missing data.
    """

    there: "list[Placed]"
    here: "list[Placed]"
    recorded: "Recorded"
    notes: list[str]


def is_file(source: str) -> bool:
    """Return whether a source is a dump rather than a kubeconfig context."""
    return source == STDIN or os.sep in source or Path(source).exists()


def from_file(source: str, garden: str, config: Path | None) -> Sides:
    """Return the sides of a comparison with a dump.

    Raises:
        CompareError: There is not exactly one Garden to compare.
        ManifestFileError: The file cannot be read.
    """
    recorded = _read(source)
    template = template_of(settings_of(config), _newest_kubernetes())
    return _sides(_chosen(garden, recorded), recorded, template)


async def from_cluster(cluster: ClusterOptions, garden: str, config: Path | None) -> Sides:
    """Return the sides of a comparison with a live landscape, without writing to it.

    Raises:
        CompareError: There is not exactly one Garden to compare.
        KubeError: The runtime cluster refused, or did not answer.
    """
    from pergola.api.kinds import CONFIG_MAP, SECRET, SERVICE
    from pergola.api.operator_v1alpha1 import EXTENSION, GARDEN
    from pergola.garden.landscape import NAMESPACE
    from pergola.operator.compare import Recorded, from_objects

    async with cluster.connect() as client:
        template = await runtime_template(client, config)
        gardens = await _listed(client, GARDEN, None)
        extensions = await _listed(client, EXTENSION, None)
        first = [*gardens, *extensions]
        for gvk in (SECRET, CONFIG_MAP, SERVICE):
            first += await _listed(client, gvk, NAMESPACE)
        chosen = _chosen(garden, Recorded(all=first))
        expected = _sides(chosen, Recorded(all=first), template).here
        objects = await _objects(client, expected)
    return _sides(chosen, from_objects([*gardens, *extensions, *objects]), template)


async def _objects(client: "Client", expected: "Iterable[Placed]") -> "list[JsonObject]":
    """Return the objects of all kinds and namespaces that our side has in the runtime cluster."""
    from pergola.api.kinds import SECRET
    from pergola.api.objects import GroupVersionKind, Key, namespace_of
    from pergola.garden.components.component import Target
    from pergola.runtime.task_group import gathered

    direct = [each.obj for each in expected if not each.managed and each.cluster is Target.RUNTIME]
    namespaces = sorted({namespace_of(obj) for obj in direct} - {""})
    kinds = {GroupVersionKind.of(obj): bool(namespace_of(obj)) for obj in direct} | {SECRET: True}
    lists = [
        _listed(client, gvk, namespace)
        for gvk, is_namespaced in kinds.items()
        for namespace in namespaces
        if is_namespaced
    ]
    others = [obj for obj in direct if not namespace_of(obj)]
    found = [obj for items in await gathered(lists) for obj in items]
    for obj in others:
        live = await client.find(GroupVersionKind.of(obj), Key.of(obj))
        found += [live] if live is not None else []
    return found


async def _listed(
    client: "Client", gvk: "GroupVersionKind", namespace: str | None
) -> "list[JsonObject]":
    """Return the objects of a kind; none if the cluster does not serve it."""
    from pergola.kube.errors import UnknownKind

    try:
        return await client.list(gvk, namespace)
    except UnknownKind:
        return []


def _read(source: str) -> "Recorded":
    import orjson

    from pergola.operator.compare import from_objects, from_rows

    text = content(source)
    try:
        rows = [orjson.loads(line) for line in text.splitlines() if line.strip()]
    except ValueError:
        rows = []
    if rows and all(isinstance(row, dict) and "where" in row for row in rows):
        return from_rows(rows)
    return from_objects(read_objects(source, text))


def _chosen(garden: str, recorded: "Recorded") -> "JsonObject":
    """Return the Garden in a file, the one with a name, or the only one."""
    from pergola.api.objects import name_of
    from pergola.cli.manifest_files import of_kind

    if garden and is_file(garden):
        found = of_kind(read_objects(garden), "operator.gardener.cloud", "Garden")
    else:
        found = [each for each in recorded.gardens if garden in ("", name_of(each))]
    if len(found) == 1:
        return found[0]
    names = ", ".join(sorted(map(name_of, found))) or "none"
    raise CompareError(
        f"one Garden is needed, but there is {names}: name its manifest, or one of the "
        "landscape, with --garden"
    )


def _sides(garden: "JsonObject", recorded: "Recorded", template: "Template") -> Sides:
    from pergola.garden.components.catalog import CATALOG
    from pergola.operator.compare import landscape_of, rendered
    from pergola.operator.run.references import references_of

    landscape = landscape_of(garden, recorded, template, CATALOG)
    given = {(str(obj.get("kind")), _key(obj)) for obj in recorded.all}
    notes = [
        f"{each.kind} {each.key} ({each.field}) is not given: what is made of it differs"
        for each in references_of(garden)
        if (each.kind, each.key) not in given
    ]
    here = rendered(landscape, CATALOG, recorded.all)
    return Sides(recorded.made_for(garden), here, recorded, [*recorded.problems, *notes])


def _key(obj: "JsonObject") -> object:
    from pergola.api.objects import Key

    return Key.of(obj)


def _newest_kubernetes() -> str:
    """Return the version to assume if that of the runtime cluster is unknown."""
    from pergola.api.known.kubernetes_versions import SUPPORTED

    return f"{SUPPORTED[-1]}.0"
