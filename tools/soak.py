"""Run the soak: tests that take minutes each, in parts.

`make test` leaves out every test with the marker `soak("PART")`; a part of the soak runs these, and
the tests with the marker `thorough("PART")` with more cases than `make test`. CI runs one part with
each change, of at most a quarter of an hour, or a portion of a longer part. The hash of the commit
chooses them, so a commit always gets the same.
"""

import os
import subprocess
import sys
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import inf
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from pergola.sandbox import SandboxError, binaries
from pergola.sandbox.images import build
from pergola.sandbox.images.catalogue import GARDEN_IMAGES, SEED_IMAGES, named
from pergola.sandbox.module import (
    CALICO_CONFIG_CHECK,
    CILIUM_CONFIG_CHECK,
    CLUSTER_API_CONFIG,
    CLUSTER_API_MANAGER,
)
from pergola.sandbox.node import requirements
from pergola.sandbox.on_demand import (
    AWS_CLOUD_CONTROLLER_MANAGER,
    AWS_PROVIDER,
    CSI_ATTACHER,
    CSI_DRIVER_AWS,
    CSI_PROVISIONER,
    GARDENADM,
    GARDENER_RESOURCE_MANAGER,
    GARDENLET,
    GARDENLET_CHART,
    LANDSCAPE,
    LOCAL_PROVIDER,
    MACHINE_CONTROLLER_AWS,
    MACHINE_CONTROLLER_MANAGER,
    PREVIOUS_GARDENLET,
    PREVIOUS_GARDENLET_CHART,
    PROMETHEUS_CRDS,
    PROMTOOL,
    PROVIDER_AWS,
    SHARDER,
)
from tools import programs
from tools.programs import say

if TYPE_CHECKING:
    from _pytest.mark.structures import ParameterSet

ROOT: Final = Path(__file__).parents[1]
HOURS: Final = "hours"
"""The part whose duration the caller chooses."""


@dataclass(frozen=True)
class Part:
    """A part of the soak.

    Attributes:
        about: a noun phrase about its tests.
        paths: the folders and modules below `tests/` that contain its tests.
        images: the images that must be built before.
        programs: the programs that must be built before.
        node: whether it needs a real node.
        jobs: the number of pytest's workers.
        portion: how many of its tests CI runs, if it has no time for all; 0 for all.
        is_drawn: whether CI draws it, and `make soak` runs it without being asked for it.
    """

    about: str
    paths: tuple[str, ...]
    images: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    node: bool = False
    jobs: int = 3
    portion: int = 0
    is_drawn: bool = True

    def obstacle(self) -> str | None:
        """Return why the part cannot run on this machine as it is, or None."""
        missing = [offer.name for offer in named(self.images) if not offer.is_built()]
        missing += sorted({*self.programs} - binaries.present(self.programs).keys())
        if missing:
            return f"these are not built here: {', '.join(missing)}"
        try:
            if self.node:
                requirements.check()
        except SandboxError as error:
            return str(error)
        return None

    @property
    def tests(self) -> list[str]:
        """The arguments of pytest that name its folders and modules."""
        return [f"tests/{path}" for path in self.paths]

    def build(self) -> None:
        """Build the missing programs and images.

        Raises:
            SandboxError: one cannot be built.
        """
        binaries.find(self.programs, say)
        build.build(named(self.images), say, os.environ)


_ON_AWS: Final = (
    *(*LANDSCAPE, MACHINE_CONTROLLER_AWS, MACHINE_CONTROLLER_MANAGER),
    *(AWS_CLOUD_CONTROLLER_MANAGER, CSI_ATTACHER, CSI_DRIVER_AWS, CSI_PROVISIONER),
)
_GARDEN: Final = ("gardener-apiserver",)
_OPERATOR: Final = ("integration/operator",)

PARTS: Final[Mapping[str, Part]] = MappingProxyType(
    {
        "aws": Part(
            "infrastructure in AWS, killed after every write, with a fault in every request",
            ("integration/providers/aws",),
        ),
        "chaos": Part(
            "clusters that freeze, restart and vanish, and processes killed at random",
            ("chaos", "integration/sandbox", "integration/externally_managed"),
        ),
        "commands": Part(
            "commands, demonstrations and guides from their first to their last step",
            (
                *("integration/cli", "integration/webhooks", "integration/providers"),
                *("integration/operator", "integration/externally_managed"),
                "integration/process",
            ),
        ),
        "fuzz": Part("properties and fuzzing with a thousand examples each", ("unit",), portion=45),
        "gardens": Part(
            "whole Gardens: a move, a rotation, Seeds and extensions",
            _OPERATOR,
            images=_GARDEN,
            jobs=2,
        ),
        "guides": Part(
            "the commands of all pages, typed as they are written",
            ("integration/docs",),
            images=_GARDEN,
            jobs=1,
        ),
        HOURS: Part(
            "a landscape at work for hours, whose processes must not grow",
            ("landscape",),
            programs=_ON_AWS,
            jobs=1,
            is_drawn=False,
        ),
        "interpreters": Part(
            "the unit tests on newer interpreters",
            ("integration/process",),
            jobs=1,
            portion=1,
        ),
        "kills": Part(
            "a Garden whose operator is killed after each task", _OPERATOR, images=_GARDEN, jobs=1
        ),
        "landscape": Part(
            "a Garden, Seeds by the real gardenlet, and the life of Shoots",
            ("landscape", "integration/docs"),
            programs=(
                *(*_ON_AWS, *AWS_PROVIDER.parts, *LOCAL_PROVIDER.parts),
                *(GARDENADM, GARDENER_RESOURCE_MANAGER),
                *(PREVIOUS_GARDENLET, PREVIOUS_GARDENLET_CHART),
            ),
            jobs=1,
            portion=1,
        ),
        "landscape-node": Part(
            "a landscape whose Seed has a real node",
            ("landscape",),
            images=SEED_IMAGES,
            programs=LANDSCAPE,
            node=True,
            jobs=1,
        ),
        "node": Part(
            "a real node: its life and failures, charts, gateways, network policies",
            ("node", "integration/resource_manager"),
            node=True,
            jobs=2,
        ),
        "node-aws": Part(
            "a Garden in AWS on a real node", ("node",), images=GARDEN_IMAGES, node=True, jobs=1
        ),
        "node-garden": Part(
            "a Garden on a real node", ("node",), images=GARDEN_IMAGES, node=True, jobs=1
        ),
        "node-images": Part(
            "etcd with its backups, Prometheus and Alertmanager on a real node",
            ("node",),
            images=(
                *("etcd-wrapper", "etcd-backup-restore", "prometheus", "alertmanager"),
                *("prometheus-operator", "prometheus-config-reloader"),
            ),
            programs=(PROMETHEUS_CRDS,),
            node=True,
            jobs=1,
        ),
        "node-rotation": Part(
            "a rotation of all credentials on a real node",
            ("node",),
            images=GARDEN_IMAGES,
            node=True,
            jobs=1,
        ),
        "originals": Part(
            "programs of the originals: Cluster API, AWS, promtool, agents",
            ("integration",),
            programs=(
                AWS_CLOUD_CONTROLLER_MANAGER,
                CALICO_CONFIG_CHECK,
                CILIUM_CONFIG_CHECK,
                CLUSTER_API_CONFIG,
                CLUSTER_API_MANAGER,
                CSI_ATTACHER,
                CSI_DRIVER_AWS,
                CSI_PROVISIONER,
                GARDENER_RESOURCE_MANAGER,
                PROMTOOL,
                PROVIDER_AWS,
                SHARDER,
            ),
        ),
        "outages": Part(
            "a Garden with outages, and one with the original's gardenlet",
            _OPERATOR,
            images=_GARDEN,
            programs=(GARDENLET, GARDENLET_CHART),
            jobs=2,
        ),
        "places": Part(
            "the resource manager in all places, deployed by Gardener's own code",
            ("integration/conformance",),
            jobs=2,
        ),
        "pages": Part("every page of the dashboard in Chromium", ("integration/dashboard",)),
    }
)


def in_soak(part: str, values: Iterable[object], *, short: int = 1) -> list["ParameterSet"]:
    """Return parameters of a test: `make test` runs the first ones, and the soak runs all.

    Args:
        short: how many `make test` runs.
    """
    from pytest import mark, param  # noqa: PT013 - tools need no pytest

    marks = {True: mark.thorough(part), False: mark.soak(part)}
    return [
        param(value, marks=marks[number < short], id=str(value) if isinstance(value, int) else None)
        for number, value in enumerate(values)
    ]


def of_commit(commit: str) -> str:
    """Return the name of the part that CI runs with a commit.

    Args:
        commit: the hash of the commit in hexadecimal digits.
    """
    names = drawn()
    return names[int(commit, 16) % len(names)]


def drawn() -> list[str]:
    """Return the names of the parts that CI draws, in order."""
    return sorted(name for name, part in PARTS.items() if part.is_drawn)


def run(name: str, tests: Sequence[str] = ()) -> int:
    """Run a part, or some of its tests, and return the exit code of pytest.

    Args:
        tests: their ids; all if empty.
    """
    part = PARTS[name]
    print(f"soak {name}: {part.about}", flush=True)
    workers = ["-n", str(part.jobs), "--dist", "worksteal"] if part.jobs > 1 else []
    command = [sys.executable, "-m", "pytest", "--soak", name, *workers]
    command += tests or part.tests
    command += ["-s"] if name == HOURS else []  # its tables
    return subprocess.run(command, check=False, cwd=ROOT).returncode


def run_of_commit(commit: str) -> int:
    """Run the part of a commit, or a portion of it; return the exit code of pytest."""
    name = of_commit(commit)
    part = PARTS[name]
    if obstacle := part.obstacle():
        print(f"soak {name}: skipped: {obstacle}", flush=True)
        return 0
    if not part.portion:
        return run(name)
    found = cases_of(name)
    first = int(commit, 16) // len(drawn()) % len(found)
    return run(name, (found[first:] + found[:first])[: part.portion])


def cases_of(name: str) -> list[str]:
    """Return the ids of the tests of a part, in order."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "--soak", name]
    listed = subprocess.run(
        [*command, *PARTS[name].tests], check=False, cwd=ROOT, stdout=subprocess.PIPE, text=True
    )
    if listed.returncode:
        raise SystemExit(listed.stdout)
    return sorted(line for line in listed.stdout.splitlines() if "::" in line)


def _hours(text: str) -> float:
    """Return a duration of the command line in hours."""
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0 < found < inf:
        raise ArgumentTypeError(f'"{text}" is not a number of hours, such as 2 or 0.5')
    return found


def main() -> int:
    """Run the parts that the arguments name, or the one of a commit."""
    parser = ArgumentParser(prog="python -m tools.soak", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("parts", nargs="*", metavar="PART", help="default: all that CI draws")
    parser.add_argument(
        "--commit",
        metavar="HASH",
        help="run the part that belongs to a commit, unless something must be built for it",
    )
    parser.add_argument(
        "--hours",
        metavar="HOURS",
        type=_hours,
        help=f"run the part {HOURS} for so many hours, as in 2 or 0.5",
    )
    parser.add_argument("--save", metavar="FILE", help=f"write the figures of the part {HOURS}")
    parser.add_argument("--list", action="store_true", help="list all parts")
    given = parser.parse_args()
    if given.hours and given.parts:
        parser.error(f"--hours runs the part {HOURS}; name no other")
    if unknown := sorted({*given.parts} - PARTS.keys()):
        parser.error(f"there is no part {', '.join(unknown)}; --list shows all parts")
    if given.list:
        for name, part in PARTS.items():
            print(f"{name:<14} {part.about}")
        return 0
    programs.build()
    if given.commit:
        return run_of_commit(given.commit)
    if given.hours:
        os.environ |= {
            "PERGOLA_SOAK_HOURS": f"{given.hours}",
            "PERGOLA_SOAK_SAVE": given.save or "",
        }
        given.parts = [HOURS]
    chosen = given.parts or drawn()
    for name in chosen:
        PARTS[name].build()
    return max(run(name) for name in chosen)


if __name__ == "__main__":
    sys.exit(main())
