"""Test an HTML page in a browser: `python docs/make/browser.py out/report.html shots`.

Chromium opens it at the widths of a phone, a tablet and a desktop, in light and in dark mode. Each
time the page must not be wider than the window, load nothing, and report no error. It must also
scroll when the mouse wheel is over an embedded view. Screenshots are written to the folder. Needs
chromium on the path, and tornado, which comes with ipykernel of the extra `dev`.
"""

import asyncio
import base64
import itertools
import json
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path
from typing import Any

from tornado.websocket import websocket_connect

WIDTHS, SCHEMES, HIGH = (360, 900, 1600), ("light", "dark"), 900  # pixels
TALL = 3000  # pixels of a page in one screenshot
QUIET = """--headless --no-sandbox --disable-gpu --disable-quic --no-first-run
    --disable-background-networking --disable-component-update --disable-sync
    --remote-debugging-port=0 --remote-allow-origins=*""".split()
# scrolls to the center of the first embedded view, and returns its position
VIEW = """(() => { const one = document.querySelector("iframe"); if (!one) return null;
    one.scrollIntoView({block: "center"}); const box = one.getBoundingClientRect();
    return [box.x + box.width / 2, box.y + box.height / 2]; })()"""


class Tab:
    """A tab of the browser, controlled through the DevTools protocol."""

    def __init__(self, socket: Any):
        self.socket, self.count, self.errors = socket, itertools.count(1), []

    async def ask(self, method: str, **given: Any) -> Any:
        """Return the answer to a command; errors that the page reports meanwhile are stored."""
        number = next(self.count)
        await self.socket.write_message(
            json.dumps({"id": number, "method": method, "params": given})
        )
        while True:
            said = json.loads(await self.socket.read_message())
            if said.get("id") == number:
                return said.get("result", said)
            entry = said.get("params", {}).get("entry", {})
            if said.get("method") == "Runtime.exceptionThrown" or entry.get("level") == "error":
                self.errors.append(json.dumps(said["params"])[:300])

    async def value(self, expression: str) -> Any:
        """Return the value of an expression in the page."""
        found = await self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        return found["result"].get("value")


async def look(tab: Tab, page: Path, width: int, scheme: str, out: Path) -> list[str]:
    """Return the errors of the page at one width."""
    feature = {"name": "prefers-color-scheme", "value": scheme}
    size = {"width": width, "height": HIGH, "deviceScaleFactor": 1, "mobile": width < 500}
    await tab.ask("Emulation.setDeviceMetricsOverride", **size)
    await tab.ask("Emulation.setEmulatedMedia", features=[feature])
    await tab.ask("Page.navigate", url=page.resolve().as_uri())
    await asyncio.sleep(4)
    high = (await tab.ask("Page.getLayoutMetrics"))["cssContentSize"]["height"]
    for i, top in enumerate(range(0, int(high), TALL)):
        clip = {"x": 0, "y": top, "width": width, "height": min(TALL, high - top), "scale": 1}
        shot = await tab.ask("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        (out / f"{scheme}-{width}-{i}.png").write_bytes(base64.b64decode(shot["data"]))
    faults, tab.errors = tab.errors, []
    wide = await tab.value("document.documentElement.scrollWidth")
    faults += [f"the page is {wide} pixels wide"] if wide > width else []
    if (at := await tab.value(VIEW)) is None:
        return faults
    before = await tab.value("scrollY")
    turn = {"type": "mouseWheel", "x": at[0], "y": at[1], "deltaX": 0, "deltaY": -200}
    await tab.ask("Input.dispatchMouseEvent", **turn)
    await asyncio.sleep(1)
    moved = before - await tab.value("scrollY")
    return faults + ([] if moved > 100 else ["a wheel over a view does not scroll the page"])


async def main(page: Path, out: Path) -> int:
    """Check all widths and color schemes, and return the number of those with errors."""
    if not page.is_file():
        raise SystemExit(f"browser: no page {page}")
    out.mkdir(parents=True, exist_ok=True)
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        raise SystemExit("browser: no chromium on the path; install it, for instance by apt")
    with tempfile.TemporaryDirectory() as profile:
        command = [browser, *QUIET, f"--user-data-dir={profile}", "about:blank"]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        try:
            said = next(line for line in process.stderr or () if "DevTools listening on" in line)
            tab = await _open_tab(said.split(":")[-1].split("/")[0])
            bad = 0
            for width, scheme in itertools.product(WIDTHS, SCHEMES):
                faults = await look(tab, page, width, scheme, out)
                print(f"{width} {scheme}: {'; '.join(faults) or 'good'}", flush=True)
                bad += bool(faults)
        finally:
            process.terminate()
            process.wait()
    return bad


async def _open_tab(port: str) -> Tab:
    """Return the tab that the browser started with."""
    tabs = json.load(urllib.request.urlopen(f"http://127.0.0.1:{port}/json"))
    address = next(one["webSocketDebuggerUrl"] for one in tabs if one["type"] == "page")
    tab = Tab(await websocket_connect(address, max_message_size=1 << 28))
    for domain in ("Log", "Runtime", "Page"):
        await tab.ask(f"{domain}.enable")
    return tab


if __name__ == "__main__":
    sys.exit(asyncio.run(main(Path(sys.argv[1]), Path(sys.argv[2]))))
