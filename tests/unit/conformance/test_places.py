"""The places without clusters: their catalogue, audit logs, outcomes and arguments."""

import re
from collections import Counter
from datetime import date
from pathlib import Path

import orjson
import pytest

from conformance.oracles import SOURCES
from conformance.places.__main__ import main
from conformance.places.audit import AuditLog, refused
from conformance.places.catalogue import PLACES
from conformance.places.place import SORTS, Place
from conformance.places.results import RESULTS, Result, save, saved
from conformance.places.run import Outcome
from pergola.api.objects import JsonObject

USER = "system:serviceaccount:garden:gardener-resource-manager"


def event(code: int) -> JsonObject:
    return {
        "verb": "list",
        "requestURI": "/api/v1/secrets",
        "user": {"username": USER},
        "responseStatus": {"code": code, "message": "secrets is forbidden"},
    }


def test_the_oracle_and_the_catalogue_have_the_same_places() -> None:
    source = (SOURCES / "gardener" / "placevalues.go").read_text()

    assert re.findall(r'^\t"([a-z-]+)": \{$', source, re.MULTILINE) == [p.name for p in PLACES]
    assert len(PLACES) == 9


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.name)
def test_each_place_checks_what_is_applied_and_refused(place: Place) -> None:
    sorts = {check.sort for check in place.checks}

    assert {"applied", "refused"} <= sorts <= set(SORTS)
    assert len({check.title for check in place.checks}) == len(place.checks)


def test_an_unknown_place_is_answered_with_the_known_ones(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit) as error:
        main(["nowhere"])

    assert error.value.code == 2
    names = ", ".join(place.name for place in PLACES)
    assert f"unknown place nowhere: choose from {names}" in capsys.readouterr().err


def test_a_forbidden_request_is_described(tmp_path: Path) -> None:
    log = AuditLog(tmp_path, "source", (USER,))
    assert [*log.requests()] == []
    lines = [orjson.dumps(event(code)) for code in (200, 403, 404)]
    (tmp_path / "source-audit.jsonl").write_bytes(b"\n".join(lines))

    assert [*refused(log.requests())] == [f"{USER}: list /api/v1/secrets: secrets is forbidden"]


def test_an_audit_log_has_the_requests_of_its_users_only(tmp_path: Path) -> None:
    policy, _ = AuditLog(tmp_path, "source", (USER,)).flags()

    text = Path(policy.partition("=")[2]).read_text()
    assert USER in text
    assert "level: None" in text


def test_an_outcome_is_one_line_and_one_for_each_problem() -> None:
    outcome = Outcome(PLACES[0], Counter(applied=2, refused=1), requests=7, seconds=1.2)
    line = f"{PLACES[0].name:20} applied 2, mutated 0, approved 0, refused 1; 7 requests, 0 of them"
    assert str(outcome) == f"{line} forbidden; 1 s"
    assert outcome.is_good

    outcome.refused = [f"request {number}" for number in range(7)]
    outcome.problems = ["applied, a thing: waited for it"]
    assert str(outcome).splitlines()[1:] == [
        "  applied, a thing: waited for it",
        *(f"  forbidden: request {number}" for number in range(5)),
        "  forbidden: 2 more",
    ]
    assert not outcome.is_good


def test_results_replace_those_of_the_same_places(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    old = Result({"x": "v1"}, date(2026, 1, 1), {"applied": 1}, 0, 5, 0)
    new = Result({"x": "v2"}, date(2026, 1, 2), {}, 1, 6, 1)
    save({"seed": old, "garden": old}, path)
    save({"seed": new}, path)

    assert saved(path) == {"garden": old, "seed": new}


def test_all_places_have_a_saved_outcome() -> None:
    assert saved(RESULTS).keys() == {place.name for place in PLACES}
    assert all(not result.failed and not result.refused for result in saved(RESULTS).values())
