"""Rules about the annotations of a Garden, except for the one that requests operations."""

import re
from collections.abc import Iterator
from typing import Final

from pergola.api.field_errors import Cause, invalid
from pergola.api.operator_v1alpha1 import Garden
from pergola.garden.landscape.lost_secrets import REPLACE_LOST_SECRET, REPLACEABLE, given_up

_NAME: Final = re.compile(rf"({'|'.join(map(re.escape, REPLACEABLE))})(-[0-9a-f]+)+")


def check_annotations(garden: Garden, old: Garden | None = None) -> Iterator[Cause]:
    """Yield a finding if the annotation that gives up a Secret names one that it cannot.

    Args:
        old: The Garden before a change, which is not refused because of what it does not change.
    """
    name = given_up({"metadata": garden.metadata})
    if old is not None and name == given_up({"metadata": old.metadata}):
        return
    if name and not _NAME.fullmatch(name):
        yield invalid(
            f"metadata.annotations[{REPLACE_LOST_SECRET}]",
            name,
            f"must be the name of a Secret of {' or '.join(REPLACEABLE)}",
        )
