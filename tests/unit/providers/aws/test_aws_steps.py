"""Steps decide once: a plan prints the decision that a run carries out."""

import pytest

from pergola.cloud.aws import AwsClient, Credentials
from pergola.extension_api.errors import ExtensionError
from pergola.flow import FlowFailed, Saver, State, run
from pergola.flow.picture import Fate, Note
from pergola.providers.aws.config import InfrastructureConfig, Networks, Vpc
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.flows.run import foresee
from pergola.providers.aws.resources.decision import Call, Decision, together
from pergola.providers.aws.resources.step import Step, Work, graph_of
from pergola.providers.aws.snapshot import Snapshot

KEY = "VPC"


@pytest.fixture
def work() -> Work:
    config = InfrastructureConfig(networks=Networks(vpc=Vpc(cidr="10.0.0.0/16"), zones=[]))
    return Work(
        aws=AwsClient("eu-west-1", credentials=Credentials("a", "b")),
        desired=Desired(technical_id="shoot--p--s", region="eu-west-1", config=config),
        state=State(),
        snapshot=Snapshot(),
    )


class Calls(list[str]):
    """Calls that only note their names."""

    def __call__(self, name: str) -> Call:
        async def call() -> None:
            self.append(name)

        return call


async def carried_out(work: Work, *steps: Step) -> None:
    async def store(data: dict[str, str]) -> None:
        del data

    await run(graph_of("steps", list(steps), work), saver=Saver(work.state, store))


async def test_values_are_recorded_before_the_calls_and_forgotten_after_them(work: Work) -> None:
    seen: list[str | None] = []

    async def call() -> None:
        seen.append(work.state.get(KEY))

    decision = Decision(Note(Fate.DELETE), (call,), {KEY: "vpc-1"}, forget=(KEY,))
    await carried_out(work, Step(name="a", decide=lambda _: decision))

    assert seen == ["vpc-1"]
    assert work.state.get(KEY) is None


async def test_what_was_created_is_completed(work: Work) -> None:
    calls = Calls()

    def decide(work: Work) -> Decision:
        del work
        if "create" in calls:
            return Decision.change_or_keep("it", {"its tags": calls("tag")})
        return Decision.creation("it", calls("create"))

    await carried_out(work, Step(name="a", decide=decide))

    assert calls == ["create", "tag"]


async def test_what_is_not_recognized_after_its_creation_is_not_created_again(work: Work) -> None:
    calls = Calls()
    step = Step(name="a", decide=lambda _: Decision.creation("it", calls("create")))

    with pytest.raises(FlowFailed, match="does not describe what was created"):
        await carried_out(work, step)

    assert calls == ["create"]


async def test_only_a_run_observes_and_calls(work: Work) -> None:
    calls = Calls()

    async def observe(_: Work) -> None:
        calls.append("observe")

    decision = Decision.change("it", together(calls("one"), calls("two")))
    step = Step(name="a", observe=observe, decide=lambda _: decision)

    assert foresee([step], work) == {"a": Note(Fate.CHANGE, "it")}
    assert calls == []
    await carried_out(work, step)
    assert calls == ["observe", "one", "two"]


async def test_a_refusal_fails_in_the_plan_and_in_the_run(work: Work) -> None:
    step = Step(name="a", decide=lambda _: Decision.refuse(ExtensionError("no")))

    assert foresee([step], work) == {"a": Note(Fate.FAILED, "no")}
    with pytest.raises(FlowFailed, match="no"):
        await carried_out(work, step)


def test_steps_of_a_plan_know_what_those_before_them_have_found(work: Work) -> None:
    steps = [
        Step(name="a", decide=lambda _: Decision.keep("vpc-1", {KEY: "vpc-1"})),
        Step(name="b", decide=lambda work: Decision.keep(work.state.get(KEY) or "nothing")),
    ]

    assert foresee(steps, work)["b"] == Note(Fate.KEEP, "vpc-1")
    assert work.state.get(KEY) is None


async def test_the_warnings_of_both_decisions_are_reported_once(work: Work) -> None:
    calls = Calls()

    def decide(work: Work) -> Decision:
        del work
        fate, todo = (Fate.KEEP, ()) if calls else (Fate.CREATE, (calls("create"),))
        return Decision(Note(fate), todo, warnings=("mind this",))

    await carried_out(work, Step(name="a", decide=decide))

    assert work.warnings == ["mind this"]
