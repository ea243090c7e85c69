import re

import pytest

from pergola.runtime.process.sharding.ring import Assignment, Share
from pergola.runtime.process.sharding.shard import shard_name

SHARE = Share("widgets", "shard-a")
MINE = {"shard.alpha.sharding.timebertt.dev/widgets": "shard-a"}
DRAIN = {"drain.alpha.sharding.timebertt.dev/widgets": ""}


@pytest.mark.parametrize(
    ("labels", "assignment"),
    [
        (MINE, Assignment.HERE),
        (MINE | DRAIN, Assignment.DRAINING),
        ({}, Assignment.ELSEWHERE),
        (DRAIN, Assignment.ELSEWHERE),
        ({SHARE.shard_label: "shard-b"}, Assignment.ELSEWHERE),
        ({"shard.alpha.sharding.timebertt.dev/other": "shard-a"}, Assignment.ELSEWHERE),
    ],
)
def test_labels_assign_an_object_to_a_shard(labels: dict[str, str], assignment: Assignment) -> None:
    assert SHARE.assignment(labels) is assignment


def test_the_selector_selects_the_objects_of_the_shard() -> None:
    assert SHARE.selector == "shard.alpha.sharding.timebertt.dev/widgets=shard-a"


@pytest.mark.parametrize("host", ["vm", "web-5d7c.prod.example", "A_b", "-", "x" * 63])
def test_the_name_of_a_shard_is_the_value_of_a_label_and_unique(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: host)

    names = {shard_name() for _ in range(3)}

    assert len(names) == 3
    for name in names:
        assert re.fullmatch(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?", name)
        assert len(name) <= 63
