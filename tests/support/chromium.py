"""A real browser without a window: Chromium, driven over the DevTools protocol.

Debian's package `chromium` is enough. The protocol is JSON over a WebSocket, which aiohttp speaks,
so that no driver and no second browser have to be installed.
"""

import asyncio
import base64
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from tempfile import TemporaryDirectory
from typing import Any, Final

import aiohttp
import orjson

from pergola.api.objects import JsonObject
from pergola.testing.waiting import PATIENCE

_NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
_FLAGS: Final = (
    "--headless=new",
    "--no-sandbox",  # tests may run as root, and the page is our own
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-extensions",
    "--no-first-run",
    "--hide-scrollbars",
    "--remote-debugging-port=0",
)


class ChromiumMissing(Exception):
    """Chromium is not installed; the text says how to install it."""


class PageError(AssertionError):
    """A script failed in the page."""


def executable() -> str:
    """Return the path of Chromium.

    Raises:
        ChromiumMissing: It is not installed.
    """
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    if found is None:
        raise ChromiumMissing(
            "Chromium is not installed: run `apt-get install --no-install-recommends chromium`"
        )
    return found


class Tab:
    """One page of the browser.

    Attributes:
        complaints: Errors of scripts, and violations of the security policy.
    """

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self.complaints: list[str] = []
        self._socket = socket
        self._answers: dict[int, asyncio.Future[JsonObject]] = {}

    async def open(self, url: str) -> None:
        """Begin to load a page."""
        await self.call("Page.navigate", url=url)

    async def run(self, script: str) -> Any:
        """Return the value of an expression in the page; promises are awaited.

        Raises:
            PageError: It raised an error.
        """
        answer = await self.call(
            "Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in answer:
            raise PageError(orjson.dumps(answer["exceptionDetails"]).decode())
        return answer["result"].get("value")

    async def until(self, condition: str, patience: float = PATIENCE) -> None:
        """Wait until an expression is true, in the same or a later page of this tab."""
        wait = f"""new Promise((done) => {{
          const look = () => (({condition}) ? done(true) : setTimeout(look, 20));
          look();
        }})"""
        try:
            async with asyncio.timeout(patience):
                while True:
                    with suppress(PageError, _Gone):
                        await self.run(wait)
                        return
        except TimeoutError:
            text = await self.run("document.body.innerText")
            raise PageError(f"{condition} did not become true; the page says: {text}") from None

    async def press(self, key: str) -> None:
        """Press a key, as a person does."""
        text = "\r" if key == "Enter" else key if len(key) == 1 else ""
        await self.call("Input.dispatchKeyEvent", type="keyDown", key=key, text=text)
        await self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    async def type(self, text: str) -> None:
        """Type into the field that has the focus."""
        await self.call("Input.insertText", text=text)

    async def resize(self, width: int, height: int) -> None:
        """Give the page the size of a window; a narrow one is a phone."""
        await self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    async def prefer(self, scheme: str) -> None:
        """Prefer a `light` or a `dark` page, without animations."""
        features = [
            {"name": "prefers-color-scheme", "value": scheme},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ]
        await self.call("Emulation.setEmulatedMedia", features=features)

    async def screenshot(self) -> bytes:
        """Return a screenshot of the page as PNG."""
        answer = await self.call("Page.captureScreenshot", format="png")
        return base64.b64decode(answer["data"])

    async def call(self, method: str, **parameters: Any) -> JsonObject:
        """Return the result of a method of the protocol."""
        number = len(self._answers) + 1
        answer = self._answers[number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": number, "method": method, "params": parameters})
        message = await answer
        if "error" in message:
            raise _Gone(f"{method}: {message['error'].get('message')}")
        result: JsonObject = message["result"]
        return result

    async def listen(self) -> None:
        """Take the answers of the browser until it is closed."""
        async for each in self._socket:
            message: JsonObject = orjson.loads(each.data)
            if "id" in message:
                self._answers[message["id"]].set_result(message)
            elif message["method"] == "Log.entryAdded":
                entry = message["params"]["entry"]
                if entry["source"] != "network":  # an object may be gone before it is read
                    self.complaints.append(f"{entry['text']} {entry.get('url', '')}".strip())
            elif message["method"] == "Runtime.exceptionThrown":
                self.complaints.append(orjson.dumps(message["params"]).decode())


class _Gone(Exception):
    """The page was replaced while a script ran in it."""


@asynccontextmanager
async def browser_tab() -> AsyncGenerator[Tab]:
    """Yield a tab of a new browser, without any data of other ones.

    Raises:
        ChromiumMissing: It is not installed.
    """
    with TemporaryDirectory(prefix="pergola-chromium-", ignore_cleanup_errors=True) as folder:
        process = await asyncio.create_subprocess_exec(
            executable(),
            *_FLAGS,
            f"--user-data-dir={folder}",
            "about:blank",
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            async with aiohttp.ClientSession() as session:
                address = await _page_address(session, await _address(process))
                async with session.ws_connect(address, max_msg_size=0) as socket:
                    tab = Tab(socket)
                    listening = asyncio.create_task(tab.listen())
                    for domain in ("Page", "Runtime", "Log"):
                        await tab.call(f"{domain}.enable")
                    yield tab
                    listening.cancel()
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.communicate()


async def _address(process: asyncio.subprocess.Process) -> str:
    """Return the address that the browser prints once it listens."""
    assert process.stderr is not None
    said = []
    async with asyncio.timeout(PATIENCE):
        async for line in process.stderr:
            said.append(line.decode(errors="replace"))
            _, found, url = said[-1].partition("DevTools listening on ws://")
            if found:
                return url.partition("/")[0]
    raise ChromiumMissing(f"Chromium ended at once: {''.join(said)}")


async def _page_address(session: aiohttp.ClientSession, host: str) -> str:
    async with session.get(f"http://{host}/json/list") as answer:
        pages = orjson.loads(await answer.read())
    address: str = next(each["webSocketDebuggerUrl"] for each in pages if each["type"] == "page")
    return address
