"""`pergola support-bundle`: one archive with what support needs, without values of Secrets."""

import asyncio
import os
import secrets as random
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from pergola.cli.cluster_options import ScopeOptions
from pergola.cli.text import say

if TYPE_CHECKING:
    from pergola.api.objects import JsonObject
    from pergola.cli.support.collect import Collected, Collector
    from pergola.cli.support.masking import Masker

_DEFAULT: Final = ScopeOptions()
_SALT_BYTES: Final = 32


class SupportBundleError(Exception):
    """The archive cannot be written; the text says why and what to do."""


def support_bundle(
    *,
    file: Path | None = None,
    log_lines: int = 2000,
    cluster: ScopeOptions = _DEFAULT,
) -> None:
    """Write an archive with what support needs to see, and print what is in it.

    It has the objects that Pergola serves, with their status; Deployments, pods, configuration and
    logs of its processes; Events, Leases, webhook configurations, names of Namespaces and
    CustomResourceDefinitions; Secrets without values; and versions. Covers all namespaces, unless
    -n names one.

    Values of Secrets are replaced wherever they appear, also in logs, variables, annotations and
    ConfigMaps, and in base64. For this, you must be allowed to list the Secrets of all namespaces.
    Only you can read the file; have a look at it before you send it.

    Parameters
    ----------
    file
        The archive to write, which must not exist; by default pergola-support-TIME.tar.gz here.
    log_lines
        The last lines of each container's log.
    """
    from pergola.cli.support.archive import write

    now = datetime.now(UTC)
    path = file or Path(f"pergola-support-{now:%Y%m%d-%H%M%S}.tar.gz")
    if path.exists():
        raise SupportBundleError(f"{path} exists: name another file with --file")
    namespace = cluster.wide_scope()
    files = asyncio.run(_files(cluster, namespace, log_lines))
    write(path, files, now)
    say(files["contents.txt"], end="")
    say(f"\n{path} is written, {path.stat().st_size // 1024 + 1} KiB; only {_user()} can read it")


async def _files(cluster: ScopeOptions, namespace: str | None, log_lines: int) -> dict[str, str]:
    """Return the texts of the archive, by their names, without values of Secrets."""
    from pergola.cli.support.collect import Collector
    from pergola.cli.support.masking import Masker

    masker = Masker(random.token_bytes(_SALT_BYTES))
    async with cluster.connect() as client:
        collector = Collector(client, namespace, log_lines)
        masker.learn(await _secrets(collector))
        found = await collector.collect()
        # Secrets may have been written in the meantime, and then be in objects and logs.
        secrets = await _secrets(collector)
        masker.learn(secrets)
        version = (await client.get_raw("/version")).decode()
    here = [each for each in secrets if namespace in (None, each["metadata"]["namespace"])]
    if here:
        found.objects["cluster/Secret.yaml"] = here
    return _texts(found, masker, version)


async def _secrets(collector: "Collector") -> "list[JsonObject]":
    from pergola.kube.errors import Forbidden

    try:
        return await collector.secrets()
    except Forbidden as error:
        raise SupportBundleError(
            f"{error}: values of Secrets in logs and other objects could not be recognized; use "
            "credentials that may list Secrets in all namespaces"
        ) from None


def _texts(found: "Collected", masker: "Masker", version: str) -> dict[str, str]:
    from pergola import __version__
    from pergola.kube.yaml_writer import dump

    texts = {"versions.yaml": dump({"command": __version__, "server": version})}
    counts: dict[str, int] = {}
    for name, objects in sorted(found.objects.items()):
        documents = [f"---\n{dump(masker.object(obj))}" for obj in objects]
        texts[name] = "".join(documents)
        counts[name] = len(objects)
    texts |= found.logs
    texts = {masker.text(name): masker.text(text) for name, text in texts.items()}
    texts["contents.txt"] = masker.text(_contents(texts, counts, found.missing))
    return texts


def _contents(texts: dict[str, str], counts: dict[str, int], missing: list[str]) -> str:
    """Return the list of files, each with the number of its objects or lines."""
    from pergola.api.texts import counted

    lines = []
    for name, text in texts.items():
        size = counted(counts[name], "object") if name in counts else f"{text.count(chr(10))} lines"
        lines.append(f"{name}: {size}")
    if missing:
        lines += ["", "not in the archive:", *(f"  {each}" for each in missing)]
    return "\n".join(lines) + "\n"


def _user() -> str:
    return f"user {os.getuid()}" if hasattr(os, "getuid") else "its owner"
