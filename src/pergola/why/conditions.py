"""What is wrong with an object of Gardener or Pergola, according to its own conditions."""

from pergola.health.conditions import describe, failing, failing_since
from pergola.why.answer import Asked, Part, Statement, Topic
from pergola.why.reading import Reader


async def explain(asked: Asked, reader: Reader) -> Part:
    """Return the conditions that are not as they should be."""
    del reader
    found = tuple(
        Statement(topic=Topic.PROBLEM, text=describe(each), since=failing_since(each))
        for each in failing(asked.obj)
    )
    return Part(statements=found)
