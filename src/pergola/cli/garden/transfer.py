"""`pergola garden export` and `pergola garden import`: move a Garden to another runtime cluster."""

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from pergola.cli.cluster_options import DEFAULT_CLUSTER, ClusterOptions
from pergola.cli.garden.passphrase import new_passphrase, passphrase
from pergola.cli.garden.runtime_cluster import chosen
from pergola.cli.garden.sealed_files import read_sealed, write_sealed
from pergola.cli.text import say

if TYPE_CHECKING:
    from pergola.operator.transfer import Export, Missing

Flag = Annotated[bool, Parameter(negative="")]
File = Annotated[Path, Parameter(alias="-f")]


def export(
    garden: str = "",
    /,
    *,
    file: File,
    passphrase_file: Path | None = None,
    cluster: ClusterOptions = DEFAULT_CLUSTER,
) -> None:
    """Write what a new runtime cluster needs to run the same Garden into an encrypted file.

    These are the authorities, keys and passwords that keep certificates, tokens, kubeconfigs and
    encrypted objects valid; the Secrets and ConfigMaps that the Garden names; and the Garden. The
    content of etcd is not in it. Only reads from the cluster.

    Parameters
    ----------
    garden
        Name of the Garden; by default the only one.
    file
        The file to write. An older export is replaced, any other file is not.
    passphrase_file
        A file with the passphrase, of 12 characters or more. Otherwise it is in the environment
        variable PERGOLA_PASSPHRASE, or is asked for on the terminal.
    """
    from pergola.api.texts import counted

    found = asyncio.run(_collect(garden, cluster))
    write_sealed(file, found, new_passphrase(passphrase_file))
    say(
        f"Garden {found.name}: {counted(len(found.credentials), 'credential')} and "
        f"{counted(len(found.provided), 'provided object')} are in {file}"
    )
    _warn_of_rotations(found)


def import_(
    *,
    file: File,
    passphrase_file: Path | None = None,
    create_garden: Flag = False,
    show_garden: Flag = False,
    dry_run: Flag = False,
    cluster: ClusterOptions = DEFAULT_CLUSTER,
) -> None:
    """Create the credentials of an exported Garden in a new runtime cluster.

    Checks everything before it writes anything; repeat it after an interruption. Refuses a cluster
    that has other credentials, or another Garden. What users provide is created only if it is
    missing.

    Parameters
    ----------
    file
        The file that `pergola garden export` wrote.
    passphrase_file
        A file with the passphrase. Otherwise it is in the environment variable PERGOLA_PASSPHRASE,
        or is asked for on the terminal.
    create_garden
        Create the Garden as well. It starts etcd: put the volumes or backups into place before.
    show_garden
        Only print the Garden in the file, such as to edit and apply it.
    dry_run
        Only say what would be created.
    """
    from pergola.kube.yaml import dump

    found = read_sealed(file, passphrase(passphrase_file))
    if show_garden:
        say(dump(found.garden), end="")
        return
    missing = asyncio.run(_import(found, cluster, dry_run=dry_run, creates_garden=create_garden))
    _print_import(found, missing, dry_run=dry_run, creates_garden=create_garden)


async def _collect(garden: str, cluster: ClusterOptions) -> "Export":
    from pergola.operator.transfer import collect
    from pergola.runtime.logging import configure

    configure("error", "text")
    async with cluster.connect() as client:
        return await collect(client, await chosen(client, garden))


async def _import(
    export: "Export",
    cluster: ClusterOptions,
    *,
    dry_run: bool,
    creates_garden: bool,
) -> "Missing":
    """Create the missing objects; return them, or those that would be created."""
    from pergola.operator import transfer
    from pergola.runtime.logging import configure

    configure("error", "text")
    async with cluster.connect() as client:
        missing = await transfer.observe_missing(client, export)
        if not dry_run:
            await transfer.apply_import(client, missing)
            if creates_garden and missing.garden:
                await transfer.create_garden(client, export)
        return missing


def _print_import(
    export: "Export", missing: "Missing", *, dry_run: bool, creates_garden: bool
) -> None:
    verb = "would be created" if dry_run else "created"
    say(
        f"Garden {export.name}: "
        f"{_of(len(missing.credentials), len(export.credentials), 'credential')} and "
        f"{_of(len(missing.provided), len(export.provided), 'provided object')} {verb}; "
        "the others exist"
    )
    for kept in missing.kept:
        say(f"{kept} exists with other content than in the file, and is kept", file=sys.stderr)
    _warn_of_rotations(export)
    if not missing.garden:
        say("the Garden exists")
    elif creates_garden:
        say(f"the Garden {verb}; follow it with: pergola garden status {export.name}")
    else:
        say(
            "next, put the volumes or backups of etcd into place, then create the Garden with "
            "--create-garden, or edit what --show-garden prints and apply that"
        )


def _warn_of_rotations(export: "Export") -> None:
    if export.rotations:
        say(
            f"rotations are in progress ({', '.join(export.rotations)}): old and new credentials "
            "are in the file, but the new cluster does not know that they are being rotated; "
            "complete the rotations and export again, or start them anew after the import",
            file=sys.stderr,
        )


def _of(number: int, total: int, noun: str) -> str:
    from pergola.api.texts import counted

    return f"{number} of {counted(total, noun)}"
