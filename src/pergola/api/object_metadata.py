"""The metadata of an object that no API server has checked, such as one from a file."""

from collections.abc import Iterator

from pergola.api.objects import JsonObject, JsonValue

_TEXTS = ("name", "namespace", "generateName", "uid", "resourceVersion")
_TEXTS_BY_NAME = ("annotations", "labels")


def metadata_problem(obj: JsonObject) -> str | None:
    """Return the first value that is not of its type, with its path; None if there is none."""
    return next(_problems(obj.get("metadata")), None)


def _problems(metadata: JsonValue) -> Iterator[str]:
    if not isinstance(metadata, dict):
        if metadata is not None:
            yield "metadata must be a map"
        return
    for field in _TEXTS:
        yield from _text(f"metadata.{field}", metadata.get(field))
    for field in _TEXTS_BY_NAME:
        texts = metadata.get(field)
        if isinstance(texts, dict):
            for name, text in texts.items():
                yield from _text(f"metadata.{field}[{name}]", text)
        elif texts is not None:
            yield f"metadata.{field} must be a map of texts"
    yield from _finalizers(metadata.get("finalizers"))
    owners = metadata.get("ownerReferences")
    if owners is not None and not (
        isinstance(owners, list) and all(isinstance(owner, dict) for owner in owners)
    ):
        yield "metadata.ownerReferences must be a list of maps"


def _finalizers(value: JsonValue) -> Iterator[str]:
    if isinstance(value, list):
        for index, name in enumerate(value):
            yield from _text(f"metadata.finalizers[{index}]", name)
    elif value is not None:
        yield "metadata.finalizers must be a list of texts"


def _text(path: str, value: JsonValue) -> Iterator[str]:
    if value is None or isinstance(value, str):
        return
    if isinstance(value, bool | int | float):
        written = str(value).lower() if isinstance(value, bool) else value
        yield f'{path} must be a text: write "{written}"'
    else:
        yield f"{path} must be a text"
