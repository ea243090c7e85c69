"""The topology of instances, which moto does not know (spec 30 §12)."""

from typing import Final

from aiohttp import web

from pergola.sandbox.aws.answers import Call

_OPERATION: Final = "DescribeInstanceTopology"
_EMPTY: Final = (
    f'<{_OPERATION}Response xmlns="http://ec2.amazonaws.com/doc/2016-11-15/">'
    f"<requestId>r</requestId><instanceSet/></{_OPERATION}Response>"
)


def topology(call: Call) -> web.Response | None:
    """Return the answer to a call for the topology of instances; None for all others.

    AWS knows it for some types that compute in groups, and leaves out instances of all others; moto
    fails.
    """
    if call.operation != _OPERATION:
        return None
    return web.Response(text=_EMPTY, content_type="text/xml")
