"""`python -m bench [NAME [OPTION...]] [--save FILE] [--compare FILE]`.

NAME is one of the benches below; without it, all but `peer` run, in about a quarter of an hour. The
figures of a run can be kept in a file, and a later run prints what differs from them.
"""

import argparse
import sys
from pathlib import Path
from typing import Final

from bench import (
    admission,
    aws_flow,
    garden,
    managed_resources,
    network_policies,
    peer,
    shards,
    tables,
)

BENCHES: Final = {
    "managed-resources": managed_resources,
    "network-policies": network_policies,
    "admission": admission,
    "aws-flow": aws_flow,
    "garden": garden,
    "shards": shards,
    "peer": peer,
}
# All but the one that builds another project, with what keeps the whole short.
ALL: Final = {
    "managed-resources": [],
    "network-policies": ["--quiet", "20"],
    "admission": [],
    "aws-flow": [],
    "garden": ["--rest", "60", "-n", "1"],
    "shards": [],
}


def main() -> None:
    """Run one bench, or all."""
    parser = argparse.ArgumentParser(prog="python -m bench", add_help=False)
    parser.add_argument("--save", type=Path)
    parser.add_argument("--compare", type=Path)
    given, rest = parser.parse_known_args()
    if rest[:1] and rest[0] in BENCHES:
        run(rest[0], rest[1:])
    elif rest:
        raise SystemExit(f"name one of {', '.join(BENCHES)}, or nothing for all but peer")
    else:
        for name, options in ALL.items():
            print(f"\n{name}\n")
            run(name, options)
    if given.save:
        tables.save(given.save)
    if given.compare:
        print()
        tables.compare(given.compare)


def run(name: str, options: list[str]) -> None:
    """Run a bench with these options."""
    sys.argv = [f"bench {name}", *options]
    BENCHES[name].main()


main()
