"""Credentials as Secrets: which are generated, reused, renewed, kept as old ones, and deleted."""

import asyncio
import math
import re
from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

from hypothesis.strategies import SearchStrategy
from msgspec.structs import replace

from conformance.comparison import Difference, differences
from conformance.oracles import GARDENER, Answer, OracleModule
from conformance.strategies.credentials import histories
from conformance.subjects.secret_runs import run_all
from pergola.api.objects import JsonObject, JsonValue, map_at, maps_at, without_empty

_PATH: Final = re.compile(r"\[(\d+)\]\.(?:secrets\.[\d.]+ |got\.)([a-z-]+)")
"""A path, with the number of the run and the name of the credential."""


class Secrets:
    """The Secrets after each of several runs.

    Hashes and random values are compared by the step in which they appeared first.
    """

    name = "secrets-manager"
    ask = "secrets-manager"
    title = "Secrets manager"
    of: OracleModule = GARDENER
    code = ("pergola.secrets_manager",)

    def table(self) -> Iterator[JsonObject]:
        """Yield nothing: random questions say it all."""
        yield from ()

    def questions(self) -> SearchStrategy[JsonObject]:
        """Return histories of credentials."""
        return histories()

    def meaning(self, answer: Answer) -> JsonValue:
        """Return everything but texts of errors."""
        return _meaning(answer.output)

    def compare(self, question: JsonObject, answer: Answer) -> Iterable[Difference]:
        """Compare the Secrets after each run."""
        ours = _meaning(asyncio.run(run_all(question)))
        signed = [*_signed_by_expired(question, answer)]
        for each in differences(self.meaning(answer), ours):
            is_about = any(_about(each.path, *which) for which in signed)
            yield replace(each, path=f"expired: {each.path}") if is_about else each


def _signed_by_expired(question: JsonObject, answer: Answer) -> Iterator[tuple[int, str]]:
    """Yield the certificates whose old authority has expired, with the number of the run."""
    for number, (run, found) in enumerate(
        zip(question["runs"], maps_at(answer.output, "runs"), strict=True)
    ):
        now = datetime.fromisoformat(run["now"]).timestamp()
        for each in run["generate"]:
            old = map_at(found, "got", each.get("signedBy", "")).get("old")
            if old is not None and _until(map_at(found, "secrets", str(old))) <= now:
                yield number, each["name"]


def _until(authority: JsonObject) -> float:
    """Return when an authority expires; never, if it is no longer among the Secrets."""
    ends = (each["details"]["until"] for each in maps_at(authority, "data", "ca.crt"))
    return min(ends, default=math.inf)


def _about(path: str, number: int, name: str) -> bool:
    """Return whether a path is about a certificate, in this run or a later one."""
    found = _PATH.match(path)
    return found is not None and int(found[1]) >= number and found[2] == name


def _meaning(output: JsonObject) -> JsonValue:
    runs = [{k: v for k, v in run.items() if k != "why"} for run in maps_at(output, "runs")]
    return [without_empty(run) for run in runs]
