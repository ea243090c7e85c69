"""InfrastructureConfigs of AWS."""

from collections.abc import Iterable, Iterator
from typing import Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.comparison import Difference
from conformance.oracles import Answer
from conformance.strategies.aws import CANONICAL, ZONES
from conformance.strategies.aws_infrastructure import BASES, FIELDS, TYPED
from conformance.strategies.fields import ABSENT, Change, changed, changes
from conformance.subjects.aws_verdicts import OfAws, compared
from pergola.api.objects import JsonObject
from pergola.providers.aws.validation import ShootFacts, check_written

_PATH: Final = "config"
_V4: Final = {
    "ipFamilies": ["IPv4"],
    "nodes": "10.250.0.0/16",
    "pods": "100.96.0.0/11",
    "services": "100.64.0.0/13",
    "zones": list(ZONES),
}
_DUAL: Final = {**_V4, "ipFamilies": ["IPv4", "IPv6"]}


class AwsInfrastructure(OfAws):
    """The verdict about an InfrastructureConfig, and about its change."""

    name = "aws-infrastructure"
    title = "AWS: InfrastructureConfig"
    code = ("pergola.providers.aws.validation",)

    def table(self) -> Iterator[JsonObject]:
        """Yield valid configs, and no change of each."""
        for base in BASES:
            question = {"config": base, **_DUAL} if base is BASES[-1] else {"config": base, **_V4}
            yield question
            yield {**question, "old": base}
        without = changed(BASES[-1], [Change("networks.zones.0.workers", ABSENT)])
        yield {"config": without, **_V4, "ipFamilies": ["IPv6"]}

    def questions(self) -> SearchStrategy[JsonObject]:
        """Return configs with a few odd fields, of Shoots with and without IPv6."""
        return st.one_of(list(map(_question, BASES)))

    def compare(self, question: JsonObject, answer: Answer) -> Iterable[Difference]:
        """Compare the verdicts."""
        zones = question.get("zones")
        facts = ShootFacts(
            families=tuple(question.get("ipFamilies") or ("IPv4",)),
            nodes=question.get("nodes") or "",
            pods=question.get("pods") or "",
            services=question.get("services") or "",
            zones=None if zones is None else tuple(zones),
        )
        ours = check_written(question["config"], facts, question.get("old"), path=_PATH)
        return compared(answer, list(ours), under=_PATH)


def _question(base: JsonObject) -> SearchStrategy[JsonObject]:
    families = st.sampled_from([["IPv4"], ["IPv4"], ["IPv6"], ["IPv4", "IPv6"], ["IPv6", "IPv4"]])
    if base is BASES[-1]:
        families = st.sampled_from([["IPv6"], ["IPv4", "IPv6"], ["IPv4"]])
    shoot = st.fixed_dictionaries(
        {
            "ipFamilies": families,
            "nodes": st.sampled_from([_V4["nodes"]] * 6 + [None]) | CANONICAL,
            "pods": st.sampled_from([_V4["pods"]] * 6 + [None]) | CANONICAL,
            "services": st.sampled_from([_V4["services"]] * 6 + [None]) | CANONICAL,
            "zones": st.sampled_from([list(ZONES)] * 6 + [list(ZONES[:1]), None]),
        }
    )
    old = st.none() | changes(TYPED, most=1).map(lambda made: changed(base, made))
    drawn = st.tuples(shoot | st.just(_V4), old, changes(FIELDS))
    return drawn.map(
        lambda parts: {
            **parts[0],
            "config": changed(parts[1] or base, parts[2]),
            **({"old": parts[1]} if parts[1] is not None else {}),
        }
    )
