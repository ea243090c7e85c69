"""`python -m bench [NAME [OPTION...]] [--times N] [--save FILE] [--compare FILE]`.

NAME is one of the benchmarks below. Without it, all except `peer` and `seeds` run, in about 15
minutes. `--times` repeats the run and prints medians. `--save` writes the figures to a file,
`--compare` prints differences from an earlier run.

The files in `runs` are those of the page docs/explanation/performance.md (`tools/figures.py`).
"""

import argparse
import sys
from pathlib import Path
from typing import Final

from bench import (
    admission,
    aws_flow,
    control_planes,
    dashboard,
    flood,
    garden,
    managed_resources,
    network_policies,
    peer,
    seeds,
    shards,
    tables,
    workers,
)

BENCHES: Final = {
    "managed-resources": managed_resources,
    "network-policies": network_policies,
    "admission": admission,
    "flood": flood,
    "dashboard": dashboard,
    "aws-flow": aws_flow,
    "workers": workers,
    "control-planes": control_planes,
    "garden": garden,
    "shards": shards,
    "peer": peer,
    "seeds": seeds,
}
# All except those that build another project, with options that shorten them.
ALL: Final = {
    "managed-resources": [],
    "network-policies": ["--quiet", "20"],
    "admission": [],
    "flood": [],
    "dashboard": [],
    "aws-flow": [],
    "workers": [],
    "control-planes": [],
    "garden": ["--rest", "60", "-n", "1"],
    "shards": [],
}


def main() -> None:
    """Run one benchmark, or all."""
    parser = argparse.ArgumentParser(prog="python -m bench", add_help=False)
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--save", type=Path)
    parser.add_argument("--compare", type=Path)
    given, rest = parser.parse_known_args()
    if rest and rest[0] not in BENCHES:
        raise SystemExit(f"name one of {', '.join(BENCHES)}, or nothing for all but peer and seeds")
    if given.times > 1:
        tables.repeat(given.times, lambda: measure(rest))
    else:
        measure(rest)
    if given.save:
        tables.save(given.save, given.times)
    if given.compare:
        print()
        tables.compare(given.compare)


def measure(arguments: list[str]) -> None:
    """Run the benchmark that the arguments name, or all."""
    if arguments:
        run(arguments[0], arguments[1:])
        return
    for name, options in ALL.items():
        print(f"\n{name}\n")
        run(name, options)


def run(name: str, options: list[str]) -> None:
    """Run a benchmark with these options."""
    sys.argv = [f"bench {name}", *options]
    BENCHES[name].main()


main()
