"""Announcements of builds, before they begin."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from pergola.sandbox import binaries

if TYPE_CHECKING:
    from pergola.cli.up.story import Story
    from pergola.sandbox.components import Components

_NAMED_AT_MOST: Final = 5


def announce(story: "Story", missing: Sequence[str], about: str) -> None:
    """Report that the missing programs are built first, and how long that takes.

    Args:
        about: The duration if none has been built before.
    """
    if not missing:
        return
    many = f"{len(missing)} programs and images"
    names = many if len(missing) > _NAMED_AT_MOST else ", ".join(missing)
    story.say(f"Building {names} from source: {about}, once. They stay in {binaries.cache()}.")


def missing_programs(components: "Components") -> list[str]:
    """Return the programs that were not built yet."""
    found = binaries.present(components)
    return [component for component in components if component not in found]


def missing_for_a_node() -> list[str]:
    """Return the programs and images of a Garden on a real node that must be compiled first.

    Images with Pergola itself are rebuilt after each change of it, which takes a minute.
    """
    from pergola.sandbox.images.catalogue import GARDEN_IMAGES
    from pergola.sandbox.on_demand import HELM

    return _missing((HELM,), GARDEN_IMAGES)


def missing_for_a_landscape(*, simulated: bool, aws: bool) -> list[str]:
    """Return the programs and images of a landscape that must be compiled first.

    Args:
        simulated: Whether the nodes of the Seed are simulated.
        aws: Whether it has machines in AWS.
    """
    from pergola.sandbox.images.catalogue import SEED_IMAGES
    from pergola.sandbox.on_demand import LANDSCAPE, MACHINES

    programs = (*LANDSCAPE, *(MACHINES.packages if aws else ()))
    return missing_programs(programs) if simulated else _missing(programs, SEED_IMAGES)


def _missing(programs: "Components", names: Sequence[str]) -> list[str]:
    """Return what a real node lacks to run these programs and images."""
    from pergola.sandbox import WITH_NODE
    from pergola.sandbox.components import OWN_COMPONENTS
    from pergola.sandbox.images.build import built
    from pergola.sandbox.images.catalogue import named
    from pergola.sandbox.images.pergola import PergolaImage
    from pergola.sandbox.node.components import TOOLS

    programs = tuple(c for c in (*WITH_NODE, *TOOLS, *programs) if c not in OWN_COMPONENTS)
    compiled = [each for each in named(names) if not isinstance(each, PergolaImage)]
    images = [offer.name for offer in compiled if built(offer) is None]
    return list(dict.fromkeys([*missing_programs(programs), *images]))
