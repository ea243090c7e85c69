"""The AWS client library; no other module imports it.

Its retries are disabled: ours are the same for all services, can be tested without waiting, and
notify an observer of every attempt (`retry`). Import this module lazily: it takes half a second.
"""

import asyncio
import functools
import logging
from contextlib import AbstractAsyncContextManager
from typing import Any, Final

from aiobotocore.config import AioConfig
from aiobotocore.session import AioSession
from botocore import xform_name
from botocore.loaders import Loader

from pergola.api.objects import JsonObject
from pergola.cloud.aws.credentials import Credentials
from pergola.cloud.errors import InvalidRequest

_CONNECT_SECONDS: Final = 10.0
_READ_SECONDS: Final = 60.0
_CONNECTIONS: Final = 20
_LOGGERS: Final = ("botocore", "aiobotocore")
_MODELS: Final = ("service-2", "endpoint-rule-set-1")


class Session:
    """An AWS session, which opens clients of services."""

    def __init__(self) -> None:
        for name in _LOGGERS:
            # Below warnings, they log where credentials were found and the contents of requests.
            logging.getLogger(name).setLevel(logging.WARNING)
        self._session = AioSession()
        self._session.register_component("data_loader", _loader())

    async def open(
        self, service: str, region: str, credentials: Credentials | None, endpoint_url: str
    ) -> AbstractAsyncContextManager[object]:
        """Return a context manager of a service client.

        Its description is parsed outside the event loop: that of ec2 has several megabytes.
        """
        for model in _MODELS:
            await asyncio.to_thread(_loader().load_service_model, service, model)
        found: AbstractAsyncContextManager[object] = self._session.create_client(
            service,
            region_name=region,
            endpoint_url=endpoint_url or None,
            aws_access_key_id=credentials.access_key_id if credentials else None,
            aws_secret_access_key=credentials.secret_access_key if credentials else None,
            aws_session_token=credentials.session_token if credentials else None,
            config=AioConfig(
                connect_timeout=_CONNECT_SECONDS,
                read_timeout=_READ_SECONDS,
                max_pool_connections=_CONNECTIONS,
                retries={"mode": "standard", "total_max_attempts": 1},
            ),
        )
        return found


async def invoke(client: object, operation: str, parameters: JsonObject) -> JsonObject:
    """Call an operation and return its answer without metadata.

    Raises:
        InvalidRequest: the service has no such operation.
        Exception: an error of the library; see `failures`.
    """
    method: Any = getattr(client, xform_name(operation), None)
    if method is None:
        raise InvalidRequest(f"the service has no operation {operation}", code="UnknownOperation")
    answer: JsonObject = await method(**parameters)
    answer.pop("ResponseMetadata", None)
    return answer


@functools.cache
def _loader() -> Loader:
    """Return the loader of service descriptions, which are parsed once per process."""
    return Loader(include_default_search_paths=True)
