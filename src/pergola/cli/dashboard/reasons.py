"""Why an object is as it is: the JSON of `pergola why`, for the page."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pergola.api.objects import GroupVersionKind, JsonObject, Key
    from pergola.kube.client import Client


async def why(client: "Client", gvk: "GroupVersionKind", key: "Key") -> "JsonObject":
    """Explain an object, using what the client may read.

    Raises:
        Unanswered: It does not exist, or may not be read.
        KubeError: The API server refused, or did not answer.
    """
    from pergola.cli.why.gardens import GARDEN_TASKS
    from pergola.dashboard.server.answers import Unanswered
    from pergola.why import NothingToExplain, data_of, explain

    try:
        return data_of(await explain(client, gvk, key, [GARDEN_TASKS]))
    except NothingToExplain as problem:
        raise Unanswered(str(problem)) from None
