"""Graphs of tasks: `pergola.flow`."""

from pergola.flow import (
    CriticalPath,
    Diagnosis,
    Ended,
    FlowFailed,
    Graph,
    Outcome,
    Progress,
    Report,
    Result,
    Retry,
    Saver,
    Settings,
    State,
    Task,
    run,
)


async def tasks() -> None:
    """Run tasks in the order of their dependencies, and save what they created."""
    state = State({})
    saved: list[dict[str, str]] = []
    reports: list[Report] = []

    async def create_network() -> None:
        state.created("network", "net-1")

    async def create_gateway() -> None:
        assert state.get("network") == "net-1"

    async def write(snapshot: dict[str, str]) -> None:
        saved.append(snapshot)

    async def report(progress: Report) -> None:
        reports.append(progress)

    graph = Graph("create a landscape")
    network = graph.add("create network", create_network, timeout=30, retry=Retry(attempts=3))
    graph.add("create gateway", create_gateway, after=[network])
    graph.add("create balancer", create_gateway, skip="not requested")
    assert isinstance(network, Task)
    saver, progress = Saver(state, write), Progress(graph, report)
    async with saver.running(), progress.running():
        result = await run(graph, saver=saver, progress=progress, settings=Settings(parallel=4))
    assert isinstance(result, Result)
    assert isinstance(result.tasks["create network"], Ended)
    assert result.named(Outcome.SKIPPED) == ("create balancer",)
    longest = graph.critical_path(result.durations)
    assert isinstance(longest, CriticalPath)
    assert longest.tasks[-1] == "create gateway"
    assert saved[-1] == {"network": "net-1"}


async def failures() -> None:
    """Retry what may pass; a diagnosis says what will not."""

    async def fail() -> None:
        raise ValueError("the quota is used up")

    def hopeless(_error: Exception) -> Diagnosis:
        return Diagnosis(may_pass=False, codes=("ERR_INFRA_QUOTA_EXCEEDED",))

    graph = Graph("create")
    graph.add("create machine", fail, retry=Retry.every(60, attempts=3))
    try:
        await run(graph, settings=Settings(diagnose=hopeless))
    except FlowFailed as error:
        assert "the quota is used up" in str(error)
