"""The fields of an object that an API server drops because it does not know them."""

from collections.abc import Iterator


def lost_fields(sent: object, kept: object, path: str = "") -> Iterator[str]:
    """Yield the paths of the fields that were sent, and that the API server did not keep."""
    if isinstance(sent, dict):
        for name, value in sent.items():
            if not isinstance(kept, dict) or name not in kept:
                yield f"{path}.{name}"
            else:
                yield from lost_fields(value, kept[name], f"{path}.{name}")
    elif isinstance(sent, list):
        others = kept if isinstance(kept, list) else []
        for index, (each, other) in enumerate(zip(sent, others, strict=True)):
            yield from lost_fields(each, other, f"{path}[{index}]")
