"""Requests to AWS and their answers: how an `AwsDouble` reads, changes and forges them."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, urlencode
from xml.etree.ElementTree import Element, SubElement, fromstring, tostring

from aiohttp import web

from pergola.sandbox.aws.rest import REST, operation_at

_READS: Final = ("Describe", "Get", "List", "Search", "Lookup")
_SCOPE: Final = 5
"""Key, day, region, service, version."""
_JSON: Final = ("elasticfilesystem", "servicequotas")


class Call(NamedTuple):
    """A request to AWS.

    Attributes:
        service: the service in the signature, such as `ec2` or `elasticfilesystem`.
        operation: such as `CreateTags`.
        parameters: flat, as in the query protocol: `Tag.1.Key`; empty for REST and JSON.
    """

    service: str
    operation: str
    parameters: Mapping[str, str]

    @property
    def is_write(self) -> bool:
        """Whether the call may change something."""
        return not self.operation.startswith(_READS)

    def values(self, name: str) -> list[str]:
        """Return the values of a parameter: one, or all elements of a list."""
        return [
            value
            for key, value in self.parameters.items()
            if key == name or (key.startswith(f"{name}.") and key[len(name) + 1 :].isdigit())
        ]

    def filters(self) -> dict[str, list[str]]:
        """Return the filters of a Describe call: values by filter name."""
        found: dict[str, list[str]] = {}
        for key, name in self.parameters.items():
            if key.startswith("Filter.") and key.endswith(".Name"):
                found[name] = self.values(f"{key.removesuffix('.Name')}.Value")
        return found

    def without_filter(self, name: str) -> "Call":
        """Return the same call without one of its filters."""
        prefixes = tuple(
            key.removesuffix("Name")
            for key, value in self.parameters.items()
            if key.startswith("Filter.") and key.endswith(".Name") and value == name
        )
        kept = {
            key: value
            for key, value in self.parameters.items()
            if not (prefixes and key.startswith(prefixes))
        }
        return self._replace(parameters=kept)

    def body(self) -> bytes:
        """Return the request body of the query protocol."""
        return urlencode(self.parameters).encode()

    def __str__(self) -> str:
        return f"{self.service} {self.operation}"


class Refusal(NamedTuple):
    """An error with which AWS refuses a call."""

    code: str
    message: str = ""
    status: int = 400

    def answer(self, service: str) -> web.Response:
        """Return the HTTP response, in the format of the service."""
        message = self.message or self.code
        if service in _JSON:
            body = {"ErrorCode": self.code, "Message": message}
            return web.json_response(
                body, status=self.status, headers={"x-amzn-ErrorType": self.code}
            )
        said = f"<Code>{self.code}</Code><Message>{message}</Message>"
        if service == "s3":
            text = f"<Error>{said}<RequestId>r</RequestId></Error>"
        elif service == "ec2":
            errors = f"<Errors><Error>{said}</Error></Errors>"
            text = f"<Response>{errors}<RequestID>r</RequestID></Response>"
        else:
            error = f"<Error><Type>Sender</Type>{said}</Error>"
            text = f"<ErrorResponse>{error}<RequestId>r</RequestId></ErrorResponse>"
        return web.Response(status=self.status, text=text, content_type="text/xml")


def call_of(service: str, request: web.Request, body: bytes) -> Call:
    """Return the call that an HTTP request makes."""
    method, path = request.method, request.path
    if service in REST:
        return Call(service, operation_at(service, method, path, request.query_string), {})
    if target := request.headers.get("X-Amz-Target"):  # services with JSON
        return Call(service, target.rpartition(".")[2], {})
    parameters = dict(parse_qsl(body.decode(), keep_blank_values=True))
    return Call(service, parameters.get("Action") or f"{method} {path}", parameters)


def identity_of(authorization: str) -> str:
    """Return the access key id in the header of that name; empty if the request is not signed."""
    return authorization.partition("Credential=")[2].partition("/")[0]


def signed_for(authorization: str) -> str:
    """Return the service in the header of that name; empty if the request is not signed."""
    scope = authorization.partition("Credential=")[2].partition(",")[0].split("/")
    return scope[3] if len(scope) == _SCOPE else ""


class Answer:
    """An XML answer of moto, open to changes."""

    def __init__(self, body: bytes) -> None:
        self.root = fromstring(body)  # noqa: S314 - moto's own answers

    def items(self, name: str) -> Iterator[tuple[Element, Element]]:
        """Yield the items of a set below the root, each with its set."""
        for found in list(self.root):
            if local(found) == name:
                yield from ((found, item) for item in list(found))

    def named(self, name: str) -> list[Element]:
        """Return all elements with a name, at any depth."""
        return [each for each in self.root.iter() if local(each) == name]

    def text(self, name: str) -> str:
        """Return the text of the first element with a name, at any depth."""
        return next((each.text or "" for each in self.named(name)), "")

    def body(self) -> bytes:
        """Return the XML as bytes."""
        return tostring(self.root)


def local(element: Element) -> str:
    """Return the name of an element without its namespace."""
    return element.tag.rpartition("}")[2]


def child(element: Element, *path: str) -> Element | None:
    """Return the first element at a path."""
    for name in path:
        found = next((each for each in element if local(each) == name), None)
        if found is None:
            return None
        element = found
    return element


def children(element: Element, *path: str) -> list[Element]:
    """Return the children of the first element at a path, if it exists."""
    found = child(element, *path)
    return [] if found is None else list(found)


def text_at(element: Element, *path: str) -> str:
    """Return the text at a path; empty if there is none."""
    found = child(element, *path)
    return "" if found is None else found.text or ""


def put(element: Element, name: str, text: str = "") -> Element:
    """Set the text of the child with a name, creating it if necessary, and return the child."""
    found = child(element, name)
    if found is None:
        namespace = element.tag.rpartition("}")
        found = SubElement(element, f"{namespace[0]}{namespace[1]}{name}")
    found.text = text
    return found


def add(element: Element, name: str, children: Iterable[tuple[str, str]]) -> None:
    """Append a child that has children of its own."""
    namespace = "".join(element.tag.rpartition("}")[:2])
    item = SubElement(element, f"{namespace}{name}")
    for key, text in children:
        put(item, key, text)


def drop(element: Element, *names: str) -> None:
    """Remove children."""
    for each in [each for each in element if local(each) in names]:
        element.remove(each)


def tags_of_item(item: Element) -> dict[str, str]:
    """Return the tags of an item."""
    return {text_at(tag, "key"): text_at(tag, "value") for tag in children(item, "tagSet")}
