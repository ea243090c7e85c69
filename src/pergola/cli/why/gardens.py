"""The tasks of a Garden for answers: what it waits for, and which component requires an object.

The states of tasks depend on the configuration of the running operator, which this room can find.
"""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Final

from pergola.api.objects import GroupVersionKind, JsonObject, Key, namespace_of
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.why import Asked, Explainer, Part, Reader, Statement, Topic

if TYPE_CHECKING:
    from pergola.operator.reconcile.picture import Picture

_NAMESPACE: Final = "garden"
_SHOWN: Final = 3


async def explain(asked: Asked, reader: Reader) -> Part:
    """Return the tasks that delay a Garden, or the component that an object belongs to."""
    gardens = [Key.of(each).name for each in await reader.listed(GARDEN)]
    name = asked.key.name if _is_garden(asked.obj) else gardens[0] if len(gardens) == 1 else ""
    if name not in gardens:
        return Part()
    # All components are imported only where a Garden is.
    from pergola.cli.garden.operator_settings import SettingsError
    from pergola.garden.landscape.errors import OperatorError
    from pergola.kube.errors import KubeError
    from pergola.why.gardens import component_of

    try:
        picture = await _picture(name, reader)
        if not _is_garden(asked.obj):
            return Part(statements=component_of(asked, picture))
        return Part(statements=tuple([each async for each in _tasks(picture, reader)]))
    except (KubeError, OperatorError, SettingsError) as error:
        reader.note(f"the tasks of Garden {name} are unknown: {error}")
        return Part()


async def _picture(name: str, reader: Reader) -> "Picture":
    from pergola.cli.garden.runtime_cluster import runtime_template
    from pergola.operator.reconcile.picture import following

    template = await runtime_template(reader.client, None)
    async with following(reader.client, name, template) as pictures:
        return await anext(pictures)


async def _tasks(picture: "Picture", reader: Reader) -> AsyncIterator[Statement]:
    """Yield the tasks that failed, are running or are no longer ready, with the causes."""
    from pergola.operator.reconcile.picture import State
    from pergola.why.garden_parts import answer

    held = [*picture.of(State.FAILED), *picture.of(State.UNHEALTHY), *picture.of(State.RUNNING)]
    for task in held[:_SHOWN]:
        found = await answer(reader, task.name, picture)
        yield Statement(
            topic=Topic.WAITS if task.state is State.RUNNING else Topic.PROBLEM,
            text=found.sentence,
            since=task.since,
            below=found.statements,
            advice="".join(found.next_steps),
        )


def _is_garden(obj: JsonObject) -> bool:
    return GroupVersionKind.of(obj).group_kind == GARDEN.group_kind


GARDEN_TASKS: Final = Explainer(
    "tasks of a Garden", lambda obj: _is_garden(obj) or namespace_of(obj) == _NAMESPACE, explain
)
