"""Messages about missing options that a process needs to start."""

from collections.abc import Callable

import pytest

from pergola.cli.infra import infra_manager
from pergola.cli.resource_manager import resource_manager


@pytest.mark.parametrize(
    ("command", "sentence"),
    [
        (resource_manager, r"--config is required: .*--config examples/resource-manager.yaml"),
        (infra_manager, r"--kind is required: .*--kind AWSCluster.infrastructure"),
    ],
)
def test_a_missing_option_is_reported_with_an_example(
    command: Callable[[], None], sentence: str
) -> None:
    with pytest.raises(Exception, match=sentence):
        command()
