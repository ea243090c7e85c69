"""`pergola version`: the versions of this command and of what runs in the cluster."""

import asyncio
import platform
import sys
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from pergola import __version__
from pergola.cli.cluster_options import ScopeOptions
from pergola.cli.output import ShowOutput, object_name, print_table, show
from pergola.cli.text import say

if TYPE_CHECKING:
    from pergola.api.objects import JsonObject
    from pergola.cli.processes import Process

_DEFAULT: Final = ScopeOptions()
_API: Final = "resources.gardener.cloud/v1alpha1"
_HEADS: Final = ("COMPONENT", "NAMESPACE", "DEPLOYMENT", "VERSION", "READY")


def version(
    *,
    client: Annotated[bool, Parameter(negative="")] = False,
    output: ShowOutput = "text",
    cluster: ScopeOptions = _DEFAULT,
) -> None:
    """Print the versions of this command, of the cluster, and of what Pergola runs there.

    Finds Deployments in all namespaces, unless -n names one, by their command, their image and
    the names that Gardener gives them. The last line says whether versions differ.

    Parameters
    ----------
    client
        Print only the version of this command; needs no cluster.
    """
    if client:
        show(output, data=_own(), text=_print_own)
        return
    from pergola.kube.errors import ConfigurationError, KubeError

    try:
        kubernetes, found = asyncio.run(_observe(cluster))
    except KubeError as error:
        show(output, data=_own(), text=_print_own)
        if not isinstance(error, ConfigurationError):
            raise
        say(f"versions in the cluster are unknown: {error}", file=sys.stderr)
        return
    show(
        output,
        data={**_own(), "kubernetes": kubernetes, "processes": [_data(each) for each in found]},
        text=lambda: _print(kubernetes, found),
        names=[object_name("Deployment", "apps", each.key.name) for each in found],
    )


async def _observe(cluster: ScopeOptions) -> "tuple[str, list[Process]]":
    import orjson

    from pergola.cli.processes import processes

    namespace = cluster.wide_scope()
    async with cluster.connect() as client:
        answer = orjson.loads(await client.get_raw("/version"))
        return str(answer.get("gitVersion") or ""), await processes(client, namespace)


def _print_own() -> None:
    say(f"pergola     {__version__}")
    say(f"api         {_API}")
    say(f"python      {platform.python_version()} ({platform.machine()})")


def _print(kubernetes: str, found: "list[Process]") -> None:
    _print_own()
    say(f"kubernetes  {kubernetes}")
    if found:
        say("")
        print_table(_HEADS, map(_cells, found))
    say(f"\n{skew(found, __version__)}")


def skew(found: "list[Process]", own: str) -> str:
    """Return in one sentence whether the versions of processes and of this command differ."""
    ours = [each for each in found if each.is_pergola]
    if not ours:
        return "no process of Pergola was found in the cluster"
    known = [each for each in ours if each.version]
    others = [each for each in known if each.version != own]
    unknown = len(ours) - len(known)
    rest = f"; {unknown} without a version: their images have only a digest" if unknown else ""
    if not others:
        return f"{len(known)} of {len(ours)} run {own}, as this command{rest}"
    named = ", ".join(f"{each.key} runs {each.version}" for each in others)
    return (
        f"{len(others)} of {len(ours)} run another version than this command, {own}: {named}{rest}"
        "; upgrade the operator first, then what it installs"
    )


def _cells(process: "Process") -> tuple[str, ...]:
    version = process.version or "unknown"
    return (
        process.component,
        process.key.namespace,
        process.key.name,
        version if process.is_pergola else f"{version} (not Pergola)",
        f"{process.ready}/{process.replicas}",
    )


def _own() -> "JsonObject":
    return {"pergola": __version__, "api": _API, "python": platform.python_version()}


def _data(process: "Process") -> "JsonObject":
    return {
        "component": process.component,
        "namespace": process.key.namespace,
        "name": process.key.name,
        "version": process.version or None,
        "image": process.image,
        "isPergola": process.is_pergola,
        "ready": process.ready,
        "replicas": process.replicas,
    }
