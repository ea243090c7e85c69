"""Parse the kubectl commands of references, which no test types."""

import argparse
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final, NoReturn

_OPTIONS: Final = {
    "apply": ("--filename -f",),
    "create": ("--clusterrole", "--user"),
    "delete": (),
    "get": ("--output -o",),
    "rollout": (),
}
_SWITCHES: Final = {"get": ("--all-namespaces -A",)}


def read(arguments: Sequence[str]) -> argparse.Namespace:
    """Return a command's verb as `kubectl`, its `words`, and its options; None if not given.

    Raises:
        ValueError: It is not known to be a command of kubectl.
    """
    shared, given = _shared().parse_known_args(arguments)
    if not given or given[0] not in _OPTIONS:
        raise ValueError(f"kubectl {' '.join(arguments)}: no known verb")
    verb, *given = given
    found = _parser(verb).parse_intermixed_args(given)
    return argparse.Namespace(**{**vars(shared), **vars(found), "kubectl": verb})


def kinds(found: argparse.Namespace) -> Iterator[str]:
    """Yield the words that name kinds."""
    if found.kubectl != "apply":
        words = found.words[1:] if found.kubectl == "rollout" else found.words
        yield from words[0].partition("/")[0].split(",")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise ValueError(f"{self.prog}: {message}")


@cache
def _shared() -> argparse.ArgumentParser:
    parser = _Parser("kubectl", allow_abbrev=False)
    parser.add_argument("--namespace", "-n", default="")
    parser.add_argument("--kubeconfig")
    return parser


@cache
def _parser(verb: str) -> argparse.ArgumentParser:
    parser = _Parser(f"kubectl {verb}", allow_abbrev=False)
    for names in _OPTIONS[verb]:
        parser.add_argument(*names.split())
    for names in _SWITCHES.get(verb, ()):
        parser.add_argument(*names.split(), action="store_true")
    parser.add_argument("words", nargs="*")
    return parser
