"""A page in headless Chromium that chats with quire from another port: with and without a key, from admitted origins and
from one that is not."""

import http.server
import json
import os
import queue
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path
from urllib.parse import urlencode

from server_runner import Server

PAGE = Path(__file__).parent / "page.html"
LIMIT_S = 60
FOREIGN = "app.example"  # leads to this machine, in Chromium only


class PageHandler(http.server.BaseHTTPRequestHandler):
    """Gives the page, and takes what it found."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.end_headers()
        self.wfile.write(PAGE.read_bytes())

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(204)
        self.end_headers()
        self.server.results.put(json.loads(body))

    def log_message(self, *_):
        pass


class Browser:
    """Opens the page, one at a time."""

    def __init__(self):
        self.program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        self.pages = http.server.ThreadingHTTPServer(("127.0.0.1", 0), PageHandler)
        self.pages.results = queue.Queue()
        self.port = self.pages.server_address[1]
        threading.Thread(target=self.pages.serve_forever, daemon=True).start()

    def version(self):
        return subprocess.run([self.program, "--version"], capture_output=True, text=True).stdout.split()[1]

    def visit(self, host, server, key=""):
        """What a page of http://HOST:PORT finds."""
        with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:  # its processes may still write
            process = subprocess.Popen(
                [self.program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
                 "--disable-background-networking", "--disable-component-update", f"--user-data-dir={profile}",
                 f"--host-resolver-rules=MAP {FOREIGN} 127.0.0.1",
                 f"http://{host}:{self.port}/?" + urlencode({"api": server.url, "key": key})],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=dict(os.environ, HOME=profile))
            try:
                return self.pages.results.get(timeout=LIMIT_S)
            finally:
                process.terminate()
                process.wait()


def chats(found, what, key=True):
    """That the page could do everything."""
    for name, feature in found.items():
        assert "failed" not in feature, f"{what}, {name}: {feature['failed']}"
    assert found["models"] == {"status": 200, "models": 1}, found
    chat = found["chat"]
    assert chat["status"] == 200 and chat["characters"] > 0 and chat["requestId"], chat
    assert chat["ignored"] == "messages.cache_control", chat
    assert found["stream"] == {"status": 200, "ended": True}, found
    assert found["error"] == {"status": 400, "param": "tools"}, found
    assert found["wrongKey"]["status"] == (401 if key else 200), found


def main(model, options):
    """The features that work; raises where one does not."""
    browser = Browser()
    with Server("--model", model, *options) as server:
        chats(browser.visit("localhost", server), "without a key, a page of localhost", key=False)
        foreign = browser.visit(FOREIGN, server)
        assert all("failed" in feature for feature in foreign.values()), f"a foreign page without a key: {foreign}"
    with Server("--model", model, *options, "--cors-origin", f"http://{FOREIGN}:{browser.port}") as server:
        chats(browser.visit(FOREIGN, server), "without a key, a page of --cors-origin", key=False)
    with Server("--model", model, *options, env=dict(os.environ, QUIRE_API_KEY="sk-page")) as server:
        chats(browser.visit("localhost", server, "sk-page"), "with a key, a page of localhost")
        chats(browser.visit(FOREIGN, server, "sk-page"), "with a key, a foreign page")
    return browser.version(), ["chat", "streams", "errors", "with and without key", "--cors-origin", "foreign pages refused"]
