"""Running a graph: the engine's rules of spec 20 §9.3 and spec 30 §3.1, under virtual time."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine

import pytest

from pergola.flow.errors import TASK_FAILED, Cycle, FlowFailed
from pergola.flow.graph import Graph
from pergola.flow.outcome import Ended, Outcome, Result
from pergola.flow.retry import Diagnosis, Retry
from pergola.flow.run import Settings, run
from pergola.flow.saving import Saver
from pergola.flow.state import State
from pergola.runtime.retrying import retrying

pytestmark = pytest.mark.looptime(start=0)

Act = Callable[[], Coroutine[None, None, None]]


def now() -> float:
    return round(asyncio.get_running_loop().time(), 3)


class CloudError(Exception):
    """An error of the layers below."""


class Throttled(CloudError):
    """An error that asks for a later retry."""


class Diary:
    """A record of the start and end of each action."""

    def __init__(self) -> None:
        self.began: dict[str, float] = {}
        self.ended: dict[str, float] = {}

    def takes(self, name: str, seconds: float = 0.0, error: Exception | None = None) -> Act:
        async def action() -> None:
            self.began[name] = now()
            await asyncio.sleep(seconds)
            if error:
                raise error
            self.ended[name] = now()

        return action


class Watcher:
    """An observer that records its notifications."""

    def __init__(self) -> None:
        self.reported: list[str] = []

    def started(self, task: str) -> None:
        self.reported.append(f"{task} started")

    def ended(self, task: str, ended: Ended) -> None:
        self.reported.append(f"{task} {ended.outcome}")

    def finished(self, result: Result) -> None:
        self.reported.append(f"{result.flow} finished")


def fails(*errors: Exception) -> Act:
    """Return a task that raises these errors, one per call, and then succeeds."""
    left = list(errors)

    async def action() -> None:
        if left:
            raise left.pop(0)

    return action


async def failed(
    graph: Graph, settings: Settings | None = None, saver: Saver | None = None
) -> FlowFailed:
    with pytest.raises(FlowFailed) as caught:
        await run(graph, settings=settings, saver=saver)
    return caught.value


# Spec 20 §9.3, Must hold.


async def test_an_independent_task_runs_on_a_dependant_never_starts_and_the_error_names_one() -> (
    None
):
    diary, graph = Diary(), Graph("demo")
    graph.add("A", diary.takes("A", 1, CloudError("no more addresses")))
    graph.add("B", diary.takes("B", 5))
    graph.add("C", diary.takes("C"), after=["A"])
    graph.add("D", diary.takes("D"), after=["B"])
    error = await failed(graph)
    assert diary.ended == {"B": 5, "D": 5}
    assert "C" not in diary.began
    assert str(error) == 'failed to "A": no more addresses'
    assert error.result.named(Outcome.NOT_STARTED) == ("C",)
    assert error.result.named(Outcome.DONE) == ("B", "D")


async def test_a_skipped_task_counts_as_done_for_those_after_it() -> None:
    diary, graph = Diary(), Graph("demo")
    graph.add("first", diary.takes("first", 2))
    graph.add("D", diary.takes("D"), after=["first"], skip="it is disabled")
    graph.add("E", diary.takes("E"), after=["D"])
    result = await run(graph)
    assert diary.began == {"first": 0, "E": 2}
    assert result.tasks["D"] == Ended(Outcome.SKIPPED, started=2, why="it is disabled")


# Spec 30 §2 and §3.1.


async def test_an_exception_becomes_the_task_s_error_with_its_type_if_it_is_built_in() -> None:
    graph = Graph("demo")
    graph.add("ensure VPC", fails(CloudError("no more addresses")))
    graph.add("ensure IAM role", fails(KeyError("Role")))
    graph.add("ensure EFS", fails(CloudError()))
    error = await failed(graph)
    assert [str(each) for each in error.failures] == [
        'failed to "ensure VPC": no more addresses',
        "failed to \"ensure IAM role\": KeyError: 'Role'",
        'failed to "ensure EFS": CloudError',
    ]
    assert str(error) == "; ".join(str(each) for each in error.failures)
    assert isinstance(error.failures[1].__cause__, KeyError)


async def test_errors_are_reported_in_the_order_of_the_graph() -> None:
    diary, graph = Diary(), Graph("demo")
    graph.add("slow", diary.takes("slow", 9, CloudError("late")))
    graph.add("fast", diary.takes("fast", 1, CloudError("early")))
    assert [each.task for each in (await failed(graph)).failures] == ["slow", "fast"]


async def test_an_action_that_raises_before_it_is_awaited_fails_like_any_other() -> None:
    def action() -> Awaitable[None]:
        raise CloudError("no session")

    graph = Graph("demo")
    graph.add("A", action)
    assert str(await failed(graph)) == 'failed to "A": no session'


async def test_an_action_whose_own_task_was_cancelled_fails_and_nothing_after_it_starts() -> None:
    async def action() -> None:
        inner = asyncio.ensure_future(asyncio.sleep(9))
        asyncio.get_running_loop().call_later(1, inner.cancel)
        await inner

    diary, graph = Diary(), Graph("demo")
    graph.add("A", action)
    graph.add("B", diary.takes("B"), after=["A"])
    assert str(await failed(graph)) == 'failed to "A": something that it started was cancelled'
    assert diary.began == {}


async def test_an_action_with_several_errors_reports_each_of_them_once() -> None:
    async def action() -> None:
        async with asyncio.TaskGroup() as group:
            for text in ("zone a", "zone b", "zone a"):
                group.create_task(Diary().takes("x", 0, CloudError(text))())

    def diagnose(error: Exception) -> Diagnosis:
        return Diagnosis(codes=("ERR_" + str(error)[-1].upper(),), after=len(str(error)))

    graph = Graph("demo")
    graph.add("ensure zones", action)
    error = await failed(graph, Settings(diagnose=diagnose))
    assert str(error) == 'failed to "ensure zones": zone a; zone b'
    assert error.codes == ("ERR_A", "ERR_B")


async def test_ready_tasks_run_at_once_and_a_flow_takes_as_long_as_its_critical_path() -> None:
    diary, graph = Diary(), Graph("demo")
    graph.add("vpc", diary.takes("vpc", 3))
    graph.add("role", diary.takes("role", 10))
    for zone in "abc":
        graph.add(f"nat {zone}", diary.takes(f"nat {zone}", 60), after=["vpc"])
    graph.add("egress", diary.takes("egress", 1), after=[f"nat {zone}" for zone in "abc"])
    result = await run(graph)
    assert diary.began["role"] == 0
    assert {diary.began[f"nat {zone}"] for zone in "abc"} == {3}
    path = graph.critical_path(result.durations)
    assert result.seconds == pytest.approx(path.seconds) == pytest.approx(64)
    assert path.tasks[0] == "vpc"


async def test_parallelism_can_be_limited_and_follows_the_order_of_the_graph() -> None:
    diary, graph = Diary(), Graph("demo")
    for name in "abcde":
        graph.add(name, diary.takes(name, 2))
    await run(graph, settings=Settings(parallel=2))
    assert diary.began == {"a": 0, "b": 0, "c": 2, "d": 2, "e": 4}


async def test_a_wait_for_a_free_slot_does_not_count_against_the_timeout() -> None:
    diary, graph = Diary(), Graph("demo")
    for name in "abc":
        graph.add(name, diary.takes(name, 2), timeout=3)
    assert (await run(graph, settings=Settings(parallel=1))).seconds == pytest.approx(6)


async def test_a_task_whose_condition_is_false_when_its_turn_comes_is_skipped() -> None:
    state, diary, graph = State({"VPC": "vpc-1"}), Diary(), Graph("demo")
    graph.add("a", fails(), skip=lambda: None)

    async def forget() -> None:
        state.forget("VPC")

    graph.add("b", forget)
    graph.add("c", diary.takes("c"), after=["b"], skip=lambda: None if state.get("VPC") else "gone")
    result = await run(graph)
    assert result.tasks["c"].why == "gone"
    assert result.tasks["a"].outcome is Outcome.DONE


async def test_a_condition_that_raises_fails_only_its_task() -> None:
    def broken() -> str:
        raise CloudError("no such zone")

    diary, graph = Diary(), Graph("demo")
    graph.add("a", diary.takes("a"), skip=broken)
    graph.add("b", diary.takes("b", 1))
    error = await failed(graph)
    assert str(error) == 'failed to "a": no such zone'
    assert diary.ended == {"b": 1}


async def test_an_invalid_graph_is_refused_before_any_task_starts() -> None:
    diary, graph = Diary(), Graph("demo")
    graph.add("free", diary.takes("free"))
    graph.add("a", diary.takes("a"), after=["b"])
    graph.add("b", diary.takes("b"), after=["a"])
    with pytest.raises(Cycle):
        await run(graph)
    assert diary.began == {}


async def test_an_empty_graph_is_done() -> None:
    assert (await run(Graph("nothing"))).tasks == {}


async def test_the_message_of_a_failure_can_be_replaced() -> None:
    graph = Graph("demo")
    graph.add("Deploying {etcd}", fails(CloudError("{no} quorum")))
    error = await failed(graph, Settings(sentence=TASK_FAILED))
    assert str(error) == 'task "Deploying {etcd}" failed: {no} quorum'


async def test_observers_are_notified_of_starts_and_ends() -> None:
    graph, watcher = Graph("demo"), Watcher()
    graph.add("a", fails())
    graph.add("b", fails(), after=["a"], skip="off")
    graph.add("c", fails(CloudError("no")), after=["b"])
    graph.add("d", fails(), after=["c"])
    with pytest.raises(FlowFailed):
        await run(graph, observers=[watcher])
    assert watcher.reported == [
        *("a started", "a done", "b skipped", "c started", "c failed", "demo finished"),
    ]


# Timeouts, retries, and kinds of errors.


async def test_a_task_that_takes_too_long_is_cancelled_and_reported() -> None:
    diary, graph = Diary(), Graph("demo")
    graph.add("ensure NAT", diary.takes("ensure NAT", 200), timeout=90)
    error = await failed(graph)
    assert str(error) == 'failed to "ensure NAT": it took longer than 90 s'
    assert error.result.seconds == pytest.approx(90)
    assert diary.ended == {}


async def test_a_timeout_error_of_an_action_is_an_error_like_any_other() -> None:
    graph = Graph("demo")
    graph.add("A", fails(TimeoutError("read timed out")), timeout=9, retry=Retry.every(1))
    result = await run(graph)
    assert result.tasks["A"].attempts == 2


async def test_a_task_is_repeated_until_it_succeeds() -> None:
    graph = Graph("demo")
    errors = [CloudError("not ready")] * 4
    graph.add("wait", fails(*errors), timeout=30, retry=Retry.every(5))
    result = await run(graph)
    assert result.seconds == pytest.approx(20)
    assert result.tasks["wait"].attempts == 5


async def test_a_retried_task_reports_its_last_error_at_its_timeout() -> None:
    graph = Graph("demo")
    errors = [CloudError(f"{number} of 9 are ready") for number in range(9)]
    graph.add("wait", fails(*errors), timeout=30, retry=Retry.every(5))
    error = await failed(graph)
    assert str(error) == 'failed to "wait": 5 of 9 are ready (6 attempts in 25 s)'


async def test_a_timeout_during_a_later_attempt_reports_the_error_before() -> None:
    attempts = 0

    async def action() -> None:
        nonlocal attempts
        attempts += 1
        if attempts > 1:
            await asyncio.Event().wait()
        raise CloudError("not ready")

    graph = Graph("demo")
    graph.add("wait", action, timeout=30, retry=Retry.every(5))
    error = await failed(graph)
    assert str(error) == 'failed to "wait": it took longer than 30 s; before: not ready'
    assert isinstance(error.failures[0].cause, CloudError)


async def test_the_waits_between_attempts_grow() -> None:
    times: list[float] = []

    async def action() -> None:
        times.append(now())
        raise CloudError("no")

    graph = Graph("demo")
    retry = Retry(attempts=6, first_seconds=1, factor=3, longest_seconds=10, jitter=0)
    graph.add("A", action, retry=retry)
    error = await failed(graph)
    assert times == [0, 1, 4, 13, 23, 33]
    assert error.failures[0].attempts == 6


async def test_a_permanent_error_is_not_retried() -> None:
    graph = Graph("demo")
    graph.add("A", fails(CloudError("bad CIDR")), retry=Retry.every(1, 5))

    def diagnose(error: Exception) -> Diagnosis:
        return Diagnosis(may_pass=False, codes=("ERR_CONFIGURATION_PROBLEM",))

    error = await failed(graph, Settings(diagnose=diagnose))
    assert str(error) == 'failed to "A": bad CIDR'
    assert error.codes == ("ERR_CONFIGURATION_PROBLEM",)
    assert error.failures[0].codes == error.codes


async def test_a_throttled_task_waits_as_long_as_required() -> None:
    graph = Graph("demo")
    graph.add("A", fails(Throttled("slow down")), retry=Retry.every(1, 3))
    settings = Settings(diagnose=lambda error: Diagnosis(after=17))
    assert (await run(graph, settings=settings)).seconds == pytest.approx(17)


async def test_a_diagnosis_that_raises_fails_only_its_task() -> None:
    def diagnose(error: Exception) -> Diagnosis:
        raise LookupError(str(error))

    diary, graph = Diary(), Graph("demo")
    graph.add("A", fails(CloudError("no")), retry=Retry.every(1, 3))
    graph.add("B", diary.takes("B", 9))
    assert str(await failed(graph, Settings(diagnose=diagnose))) == 'failed to "A": no'
    assert diary.ended == {"B": 9}


@pytest.mark.parametrize(
    ("wishes", "after"), [([5.0], 5.0), ([5.0, 20.0], 20.0), ([5.0, None], None), ([None], None)]
)
async def test_a_flow_asks_to_be_requeued_if_all_its_failures_do(
    wishes: list[float | None], after: float | None
) -> None:
    graph = Graph("demo")
    for number, wish in enumerate(wishes):
        graph.add(str(number), fails(CloudError(str(wish))))

    def diagnose(error: Exception) -> Diagnosis:
        return Diagnosis(after=None if str(error) == "None" else float(str(error)))

    assert (await failed(graph, Settings(diagnose=diagnose))).after == after


async def test_an_action_that_turns_its_timeout_into_an_error_is_not_retried() -> None:
    async def action() -> None:
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            raise CloudError("connection closed") from None

    graph = Graph("demo")
    graph.add("A", action, timeout=10, retry=Retry.every(1))
    assert str(await failed(graph)) == 'failed to "A": connection closed'
    assert now() == 10


# Deadline and cancellation.


async def test_running_tasks_are_cancelled_and_reported_at_the_deadline() -> None:
    diary, graph = Diary(), Graph("demo")
    graph.add("a", diary.takes("a", 1))
    graph.add("b", diary.takes("b", 100), after=["a"])
    graph.add("c", diary.takes("c"), after=["b"])
    error = await failed(graph, Settings(deadline=30))
    assert str(error) == 'failed to "b": the flow took longer than 30 s'
    assert [error.result.tasks[name].outcome for name in "abc"] == [
        *(Outcome.DONE, Outcome.INTERRUPTED, Outcome.NOT_STARTED),
    ]
    assert diary.ended == {"a": 1}


async def retry_for_ever() -> None:
    with retrying() as failed:
        while True:
            failed(CloudError("throttled"))
            await asyncio.sleep(1)


async def test_a_task_at_its_timeout_reports_the_retried_error_with_its_codes() -> None:
    def diagnose(error: Exception) -> Diagnosis:
        return Diagnosis(codes=(str(error),))

    graph = Graph("demo")
    graph.add("A", retry_for_ever, timeout=10)
    error = await failed(graph, Settings(diagnose=diagnose))
    assert str(error) == 'failed to "A": it took longer than 10 s; before: throttled'
    assert error.codes == ("throttled",)


async def test_running_tasks_report_retried_errors_at_the_deadline() -> None:
    graph = Graph("demo")
    graph.add("a", retry_for_ever)
    error = await failed(graph, Settings(deadline=30))
    assert str(error) == 'failed to "a": the flow took longer than 30 s; before: throttled'


async def test_a_task_that_ignores_the_deadline_starts_nothing_after_it() -> None:
    async def stubborn() -> None:
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            await asyncio.sleep(1)

    diary, graph = Diary(), Graph("demo")
    graph.add("a", stubborn)
    graph.add("b", diary.takes("b"), after=["a"])
    error = await failed(graph, Settings(deadline=30))
    assert str(error) == "the flow took longer than 30 s"
    assert diary.began == {}


async def test_cancelling_a_flow_cancels_running_tasks_and_starts_no_others() -> None:
    diary, graph, watcher = Diary(), Graph("demo"), Watcher()
    graph.add("a", diary.takes("a", 100))
    graph.add("b", diary.takes("b"), after=["a"])
    flow = asyncio.create_task(run(graph, observers=[watcher]))
    await asyncio.sleep(1)
    flow.cancel()
    with pytest.raises(asyncio.CancelledError):
        await flow
    assert watcher.reported == ["a started", "a interrupted"]
    assert len(asyncio.all_tasks()) == 1


# State.


class Store:
    """A store that records writes; a write takes a second, and can fail."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.data: dict[str, str] = {}
        self.writes = 0

    async def write(self, data: dict[str, str]) -> None:
        await asyncio.sleep(1)
        self.writes += 1
        if self.failures:
            self.failures -= 1
            raise CloudError("conflict")
        self.data = data


def creates(state: State, name: str, seconds: float = 0.0) -> Act:
    async def action() -> None:
        state.created(name, f"{name}-1")
        await asyncio.sleep(seconds)

    return action


def chain(state: State, see: Callable[[], object]) -> Graph:
    graph = Graph("demo")
    graph.add("vpc", creates(state, "vpc"))

    async def observe() -> None:
        see()

    graph.add("subnet", observe, after=["vpc"])
    return graph


async def test_creations_of_a_task_are_saved_before_its_dependants_start() -> None:
    state, store, seen = State(), Store(), list[tuple[float, object]]()
    graph = chain(state, lambda: seen.append((now(), store.data)))
    await run(graph, saver=Saver(state, store.write))
    assert seen == [(1, {"vpc": "vpc-1"})]


async def test_a_failed_save_fails_no_task_but_dependants_wait_for_it() -> None:
    state, store, seen = State(), Store(failures=2), list[object]()
    graph = chain(state, lambda: seen.append(store.data))
    await run(graph, saver=Saver(state, store.write))
    assert seen == [{"vpc": "vpc-1"}]
    assert store.writes == 3


async def test_a_state_that_cannot_be_saved_fails_the_flow_and_not_the_task() -> None:
    state, store, seen = State(), Store(failures=1000), list[object]()
    graph = chain(state, lambda: seen.append(store.data))
    saver = Saver(state, store.write, retry=Retry.every(1, 3))
    error = await failed(graph, saver=saver)
    assert str(error) == "what the tasks created could not be saved: conflict"
    assert error.failures == ()
    assert error.unsaved is not None
    assert error.result.named(Outcome.DONE) == ("vpc",)
    assert seen == []


async def test_a_creation_is_saved_while_its_task_still_waits_for_it_to_become_ready() -> None:
    state, store = State(), Store()
    graph = Graph("demo")
    graph.add("nat", creates(state, "nat", 60))
    graph.add("route", fails(), after=["nat"])
    result = await run(graph, saver=Saver(state, store.write))
    assert result.seconds == pytest.approx(60)
    assert store.writes == 1


async def test_a_creation_is_saved_when_its_task_fails_later() -> None:
    state, store, graph = State(), Store(), Graph("demo")

    async def action() -> None:
        state.created("nat", "nat-1")
        raise CloudError("it is in state failed")

    graph.add("nat", action)
    await failed(graph, saver=Saver(state, store.write))
    assert store.data == {"nat": "nat-1"}


async def test_a_creation_in_an_asyncio_task_belongs_to_the_flow_task() -> None:
    state, store, seen = State(), Store(), list[object]()

    async def action() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(creates(state, "subnet a")())
            group.create_task(creates(state, "subnet b")())

    async def observe() -> None:
        seen.append(store.data)

    graph = Graph("demo")
    graph.add("subnets", action)
    graph.add("after", observe, after=["subnets"])
    await run(graph, saver=Saver(state, store.write))
    assert seen == [{"subnet a": "subnet a-1", "subnet b": "subnet b-1"}]


async def test_a_cancelled_flow_saves_what_its_tasks_created() -> None:
    state, store, graph = State(), Store(), Graph("demo")

    async def action() -> None:
        await asyncio.sleep(5)
        state.set("seen", "yes")
        await asyncio.sleep(100)

    graph.add("a", action)
    flow = asyncio.create_task(run(graph, saver=Saver(state, store.write)))
    await asyncio.sleep(5.5)
    flow.cancel()
    with pytest.raises(asyncio.CancelledError):
        await flow
    assert store.data == {"seen": "yes"}
    assert len(asyncio.all_tasks()) == 1


async def test_a_run_that_changes_nothing_writes_nothing() -> None:
    state, store = State({"vpc": "vpc-1"}), Store()
    await run(chain(state, lambda: None), saver=Saver(state, store.write))
    assert store.writes == 0
