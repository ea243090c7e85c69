"""`pergola garden rotate`: start or complete a rotation of credentials, and follow it."""

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from pergola.cli.cluster_options import DEFAULT_CLUSTER, ClusterOptions
from pergola.cli.garden.rotate_steps import Options, take_step
from pergola.cli.garden.runtime_cluster import Source
from pergola.cli.output import ReportOutput

if TYPE_CHECKING:
    from pergola.operator.rotation.requested import Action

Flag = Annotated[bool, Parameter(negative="")]
Credential = Literal[
    "all",
    "ca",
    "service-account-key",
    "etcd-encryption-key",
    "observability",
    "workload-identity-key",
]


class WrongOptions(Exception):
    """Options of a command line exclude each other, or one lacks another that it needs."""


def rotate(
    kind: Credential = "all",
    /,
    *,
    start: Flag = False,
    complete: Flag = False,
    skip_seed: Annotated[list[str] | None, Parameter(negative="")] = None,
    dry_run: Flag = False,
    no_wait: Flag = False,
    garden: str = "",
    config: Path | None = None,
    output: ReportOutput = "text",
    cluster: ClusterOptions = DEFAULT_CLUSTER,
) -> None:
    """Start or complete the rotation of a Garden's credentials, and follow it.

    A rotation has two steps. Between them old and new credentials are valid, so that clients can
    change over. Without --start and --complete, prints where each rotation is, and the age of each
    credential. Says what will happen before it requests anything, and what the webhook would
    refuse.

    Parameters
    ----------
    kind
        Which credentials; all by default.
    start
        Generate new credentials, which are valid alongside the old ones. Passwords of observability
        are replaced, and the key of etcd as well from Kubernetes 1.34.
    complete
        Remove the old credentials.
    skip_seed
        Name of a Seed that this rotation and later ones do not wait for; repeat it for more. Its
        gardenlet loses access when the rotation is completed.
    dry_run
        Only say what would happen.
    no_wait
        Exit as soon as the request is written.
    garden
        Name of the Garden; by default the only one.
    config
        Configuration file of the operator, whose feature gates decide which tasks run; by
        default that of the operator in the cluster.
    """
    if start and complete:
        raise WrongOptions("a rotation is either started or completed: use --start or --complete")
    if skip_seed and not (start or complete):
        raise WrongOptions("--skip-seed is a part of a rotation: use it with --start or --complete")
    source = Source(garden, config, cluster)
    action: Action | None = "start" if start else "complete" if complete else None
    if action and output != "text" and not (dry_run or no_wait):
        raise WrongOptions(
            f"a rotation is followed in text: use -o {output} with --no-wait or --dry-run, and "
            "without an action for the state"
        )
    options = Options(tuple(skip_seed or ()), output, dry_run=dry_run, waits=not no_wait)
    if not asyncio.run(take_step(source, kind, action, options)):
        sys.exit(1)
