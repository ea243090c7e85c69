"""`pergola garden check`: admission of Gardens and Extensions, offline."""

import asyncio
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from pergola.cli.cluster_options import DEFAULT_CLUSTER, ClusterOptions
from pergola.cli.manifest_files import ManifestFileError, named, read_objects
from pergola.cli.output import ReportOutput, show
from pergola.cli.text import say

if TYPE_CHECKING:
    from pergola.api.objects import JsonObject, JsonValue
    from pergola.kube.client import Client
    from pergola.operator.webhooks.offline import Checked, Stored


def check(
    *,
    file: Annotated[str, Parameter(alias="-f", allow_leading_hyphen=True)],
    old: str = "",
    output: ReportOutput = "text",
    cluster: ClusterOptions = DEFAULT_CLUSTER,
) -> None:
    """Check a Garden or an Extension as admission would, without a cluster.

    Sets the defaults, then checks the schema and every rule of the webhooks. Prints all findings,
    each with its path, and warnings about valid but risky settings; exits with 1 if there are
    findings. With --kubeconfig or --context, looks up objects in the runtime cluster, and
    checks changes of them as well; otherwise, reads no cluster.

    Parameters
    ----------
    file
        Manifests with Gardens or Extensions, or - for the standard input. Extensions and
        ConfigMaps with audit policies in the same file are looked up.
    old
        Manifests with the current objects, to check the change as well.
    """
    from pergola.operator.webhooks.offline import check_manifests

    objects = read_objects(file)
    stored = asyncio.run(_stored(objects, old, cluster))
    found = list(check_manifests(objects, stored, datetime.now(UTC)))
    if not found:
        raise ManifestFileError(
            f"{file} must contain a Garden or an Extension of operator.gardener.cloud/v1alpha1, "
            f"but contains {', '.join(map(named, objects)) or 'nothing'}"
        )
    show(output, data=_rows(found), text=lambda: _print_text(found))
    if any(each.causes for each in found):
        sys.exit(1)


async def _stored(objects: "list[JsonObject]", old: str, cluster: ClusterOptions) -> "Stored":
    """Return the current objects: those of a file, or of a cluster if one is named."""
    from pergola.operator.webhooks.offline import Stored

    if old:
        if cluster.are_given:
            raise ManifestFileError("--old cannot be combined with --kubeconfig or --context")
        return Stored(_with_each(objects, read_objects(old)))
    if not cluster.are_given:
        return Stored()

    async with cluster.connect() as client:
        return Stored(await observed_objects(client, objects), is_complete=True)


def _with_each(objects: "list[JsonObject]", before: "list[JsonObject]") -> "list[JsonObject]":
    """Return the current objects, after checking that each object to compare has one."""
    names = set(map(named, before))
    for obj in objects:
        if obj.get("kind") in ("Garden", "Extension") and named(obj) not in names:
            raise ManifestFileError(f"--old does not contain {named(obj)}")
    return before


async def observed_objects(client: "Client", objects: "list[JsonObject]") -> "list[JsonObject]":
    """Return the Gardens and Extensions of a cluster, and the audit policies that Gardens name."""
    from pergola.api.objects import Key
    from pergola.cli.manifest_files import of_kind
    from pergola.operator.webhooks.audit_policy import references_of
    from pergola.operator.webhooks.lookups import ClusterLookups
    from pergola.operator.webhooks.namespace import GARDEN_NAMESPACE

    lookups = ClusterLookups(client)
    gardens, extensions = await lookups.gardens(), await lookups.extensions()
    given = of_kind(objects, "operator.gardener.cloud", "Garden")
    names = {name for garden in (*gardens, *given) for name in references_of(garden).values()}
    policies = [await lookups.config_map(Key(GARDEN_NAMESPACE, name)) for name in sorted(names)]
    return [*gardens, *extensions, *(each for each in policies if each is not None)]


def _print_text(found: "list[Checked]") -> None:
    """Print findings, with the object before each; warnings go to standard error."""
    for each in found:
        for cause in each.causes:
            say(f"{named(each.obj)}: {cause}")
        if not each.causes:
            say(f"{named(each.obj)} is valid")
        for warning in each.warnings:
            say(f"warning: {named(each.obj)}: {warning}", file=sys.stderr)


def _rows(found: "list[Checked]") -> "list[JsonValue]":
    return [
        {
            "object": named(each.obj),
            "findings": [cause._asdict() for cause in each.causes],
            "warnings": list(each.warnings),
        }
        for each in found
    ]
