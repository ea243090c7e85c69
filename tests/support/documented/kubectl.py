"""Parse the kubectl commands on pages, as far as that is possible without kubectl."""

import argparse
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Final, NoReturn

_OPTIONS: Final = {
    "annotate": (),
    "apply": ("--filename -f",),
    "create": (
        *("--cert", "--key"),
        *("--clusterrole", "--serviceaccount", "--user"),
        *("--filename -f", "--from-literal", "--resource", "--verb"),
    ),
    "delete": ("--dry-run", "--wait"),
    "events": ("--for",),
    "exec": (),
    "expose": ("--port",),
    "get": ("--field-selector", "--label-columns -L", "--output -o", "--selector -l"),
    "label": (),
    "patch": ("--patch -p", "--type"),
    "port-forward": (),
    "rollout": (),
    "run": ("--image",),
    "scale": ("--replicas",),
}
_SWITCHES: Final = {
    "annotate": ("--overwrite",),
    "delete": ("--all",),
    "get": ("--all-namespaces -A", "--watch -w"),
    "run": ("--command",),
}
_WITHOUT_KIND: Final = frozenset({"apply", "exec", "run"})


def read(arguments: Sequence[str]) -> argparse.Namespace:
    """Return a command's verb as `kubectl`, its `words`, and its options; None if not given.

    Raises:
        ValueError: It is not known to be a command of kubectl.
    """
    given, rest = list(arguments), []
    if "--" in given:
        given, rest = given[: given.index("--")], given[given.index("--") + 1 :]
    shared, given = _shared().parse_known_args(given)
    if not given or given[0] not in _OPTIONS:
        raise ValueError(f"kubectl {' '.join(arguments)}: no known verb")
    verb, *given = given
    found = _parser(verb).parse_intermixed_args(given)
    return argparse.Namespace(**{**vars(shared), **vars(found), "kubectl": verb, "rest": rest})


def kinds(found: argparse.Namespace) -> Iterator[str]:
    """Yield the words that name kinds."""
    if found.kubectl == "events":
        yield getattr(found, "for").partition("/")[0]
    elif found.kubectl == "create" and found.filename:
        return
    elif found.kubectl == "create":
        yield from (found.resource or found.words[0]).split(",")
    elif found.kubectl not in _WITHOUT_KIND:
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
    parser.add_argument("--as")
    parser.add_argument("--as-group")
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
