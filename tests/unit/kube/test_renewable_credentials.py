"""Credentials that are exchanged while a client uses them."""

import asyncio

from pergola.kube.credentials import ClientCertificate, Constant, StaticToken, bearer
from pergola.kube.renewable import Renewable


class WithCertificate(Constant):
    """Credentials with a client certificate."""

    def __init__(self, name: bytes) -> None:
        super().__init__()
        self._certificate = ClientCertificate(name, name)

    def client_certificate(self) -> ClientCertificate:  # type: ignore[override] # of a test
        return self._certificate


class Source:
    """A source with a newer token, which counts its reads."""

    def __init__(self) -> None:
        self.reads = 0
        self.credentials = Renewable(StaticToken("old"), self.read)

    async def read(self) -> None:
        self.reads += 1
        await asyncio.sleep(0)
        self.credentials.renew(StaticToken("new"))


async def test_a_renewed_token_is_in_the_next_request() -> None:
    source = Source()
    assert await source.credentials.headers() == bearer("old")
    source.credentials.renew(StaticToken("other"))
    assert await source.credentials.headers() == bearer("other")
    assert source.reads == 0


async def test_a_rejected_token_is_read_again_once_for_all_requests() -> None:
    source = Source()
    assert source.credentials.rejected()
    assert source.credentials.rejected()
    headers = await asyncio.gather(*(source.credentials.headers() for _ in range(3)))
    assert headers == [bearer("new")] * 3
    assert source.reads == 1


async def test_a_token_renewed_in_between_is_not_read_again() -> None:
    source = Source()
    source.credentials.rejected()
    source.credentials.renew(StaticToken("other"))
    assert await source.credentials.headers() == bearer("other")
    assert source.reads == 0


async def test_only_a_new_certificate_requires_new_connections() -> None:
    source = Source()
    versions = [source.credentials.version]
    for credentials in (StaticToken("new"), WithCertificate(b"a"), WithCertificate(b"a")):
        source.credentials.renew(credentials)
        versions.append(source.credentials.version)
    source.credentials.renew(WithCertificate(b"b"))
    versions.append(source.credentials.version)
    assert versions[0] == versions[1] < versions[2] == versions[3] < versions[4]
