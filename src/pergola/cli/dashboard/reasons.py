"""Why an object is as it is: the text of `pergola why`, for the page."""

import re
from io import StringIO
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pergola.api.objects import GroupVersionKind, Key
    from pergola.kube.client import Client

_WIDE: Final = 100_000
"""In characters: the page wraps lines as needed."""
_GUIDES: Final = re.compile("^(?:[│├└ ][ ─]{2} )+", re.MULTILINE)


async def why(client: "Client", gvk: "GroupVersionKind", key: "Key") -> str:
    """Explain an object, using what the client may read; each level is indented by two spaces.

    Raises:
        Unanswered: It does not exist, or may not be read.
        KubeError: The API server refused, or did not answer.
    """
    from rich.console import Console

    from pergola.cli.answers import print_text
    from pergola.cli.why.gardens import GARDEN_TASKS
    from pergola.dashboard.server.answers import Unanswered
    from pergola.why import NothingToExplain, explain

    try:
        found = await explain(client, gvk, key, [GARDEN_TASKS])
    except NothingToExplain as problem:
        raise Unanswered(str(problem)) from None
    printed = StringIO()
    print_text(found, Console(file=printed, width=_WIDE, color_system=None))
    return _GUIDES.sub(lambda guides: "  " * (len(guides[0]) // 4), printed.getvalue()).strip()
