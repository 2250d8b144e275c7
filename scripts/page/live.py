"""Starts the service, and checks its page while targets and links change."""

import json
import pathlib
import signal
import socket
import subprocess
import tempfile
import threading
import time
import urllib.request

from page.checks import check_pages, check_without_script, expect, find, report, watch


class Target:
    """A server on loopback whose port can be closed and opened again."""

    def __init__(self):
        self.socket = None
        self.port = 0
        self.open()

    def open(self):
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(("127.0.0.1", self.port))
        self.socket.listen(64)
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self.accept, args=(self.socket,), daemon=True).start()

    @staticmethod
    def accept(listener):
        while True:
            try:
                listener.accept()[0].close()
            except OSError:
                return

    def close(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


class Service:
    """The service with a configuration of its own, on a free port."""

    def __init__(self, program, configuration):
        self.folder = tempfile.TemporaryDirectory()
        folder = pathlib.Path(self.folder.name)
        # JSON is YAML.
        (folder / "netwatch.yaml").write_text(json.dumps(configuration))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.origin = f"http://127.0.0.1:{self.port}"
        self.process = subprocess.Popen(
            [program, "serve", "-q", "--config", str(folder / "netwatch.yaml"), "--state", str(folder / "state"),
             "--listen", f"127.0.0.1:{self.port}"],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            find("the service does not stop within 20 s")
        self.folder.cleanup()

    def get(self, path):
        """Returns a document; `None` if there is none."""
        try:
            with urllib.request.urlopen(self.origin + path, timeout=10) as answer:
                return answer.read()
        except OSError:
            return None

    def is_ready(self, seconds):
        """Waits until each target has a result."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                find(f"the service ended with {self.process.returncode}: {self.process.stderr.read()[:300]}")
                return False
            document = self.get("/api/v1/status?status=unknown&limit=1")
            if document and json.loads(document)["total"] == 0:
                return True
            time.sleep(0.2)
        find(f"the service has no results of all targets within {seconds} s")
        return False


LIVE_FACTS = """() => [...document.querySelectorAll('h1, .strip li, tr[data-k]')].map((one) => [
    one.dataset.k ?? one.tagName, one.querySelector('.word')?.textContent ?? '',
    one.querySelector('code')?.textContent ?? '', one.querySelector('bdi')?.textContent ?? ''].join(' '))"""


def check_live(browser, axe, program, uplink):
    """Checks the page of a running service. Its targets are on loopback, and behind the uplink if there is one."""
    target, other = Target(), Target()
    key = f"/target/127.0.0.1%3A{target.port}"
    targets = [f"127.0.0.1:{target.port}", f"127.0.0.1:{other.port}"]
    if uplink:
        # The default interval: a cut is seen by the kernel's events, not by the next probe.
        targets.append({"target": uplink.target, "class": "default"})
    configuration = {"interval": "200ms", "classes": {"default": {"interval": "10s"}}, "targets": targets}
    with Service(program, configuration) as service:
        if service.is_ready(20):
            check_changes(browser, service.origin, target)
            if uplink:
                check_cuts(browser, service.origin, uplink)
            check_tasks(browser, service.origin, target)
            check_without_script(browser, service.origin, ["/", key], LIVE_FACTS)
            check_pages(browser, axe, service.origin, ["/", key], None)


def check_changes(browser, origin, target):
    """Checks that the page is live, shows a change at once, and reads no stream while it is hidden."""
    context = browser.new_context()
    page = context.new_page()
    watch(page, origin, "live")
    page.goto(origin + "/")
    row = page.locator(f'tr[data-k="127.0.0.1:{target.port}"]')
    try:
        page.wait_for_selector("#fresh.live", timeout=5_000)
        row.locator(".word", has_text="up").wait_for(timeout=15_000)
        target.close()
        start = time.monotonic()
        row.locator(".word", has_text="down").wait_for(timeout=30_000)
        report(f"a closed port is on the page after {time.monotonic() - start:.2f} s")
        expect(lambda: page.title().startswith("1 down"), "the live page: the title does not show the fault")
        icon = page.locator("link[rel=icon]")
        expect(lambda: icon.get_attribute("href").endswith("state=down"), "the live page: the icon does not show the fault")
        target.open()
        row.locator(".word", has_text="up").wait_for(timeout=30_000)
    except Exception as error:  # a timeout of Playwright
        find(f"the live page: {str(error).splitlines()[0]}")
    context.close()


# Notes each state that the row of a target shows, and the time.
OBSERVE = """(key) => {
    window.seen = [];
    const note = () => {
        const word = document.querySelector(`tr[data-k="${key}"] .word`)?.textContent;
        if (word && word !== window.seen.at(-1)?.word) window.seen.push({ word, time: Date.now() / 1000 });
    };
    new MutationObserver(note).observe(document.body, { subtree: true, childList: true, characterData: true });
    note();
}"""


def check_cuts(browser, origin, uplink):
    """Cuts the uplink, and checks that the page shows it within a second."""
    context = browser.new_context()
    page = context.new_page()
    watch(page, origin, "cut")
    page.goto(origin + "/")
    expect(lambda: page.locator("#fresh.live").count() == 1, "cut: the page is not live")
    page.evaluate(OBSERVE, uplink.target)

    def shown(word, since):
        """The time at which the row has shown the state."""
        return next((one["time"] for one in page.evaluate("window.seen") if one["word"] == word and one["time"] >= since), None)

    expect(lambda: shown("up", 0), "cut: the target behind the uplink is not up")
    for name, cut, mend in uplink.cuts:
        start = time.time()
        cut()
        if expect(lambda: shown("unreachable", start), f"cut: '{name}' is not on the page", seconds=30):
            delay = shown("unreachable", start) - start
            report(f"cut: '{name}' is on the page after {delay:.2f} s")
            if delay > 1:
                find(f"cut: '{name}' is on the page after {delay:.2f} s, not within 1 s")
        expect(lambda: "fails" in page.locator(".strip").text_content(), f"cut: '{name}': this machine's strip does not show it")
        mended = time.time()
        mend()
        expect(lambda: shown("up", mended), f"cut: the page does not show the end of '{name}'", seconds=30)
    context.close()


def check_tasks(browser, origin, target):
    """Runs tasks of an operator, with the keyboard and without script, in at most two clicks each."""
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    tasks = {
        "name the failing layer": lambda: page.locator("a.name").first.press("Enter") or page.locator(".layers li").count() == 10,
        "find an outage": lambda: page.locator("a.name").first.press("Enter") or page.locator("#outages").count() == 1,
        "tell this machine's faults from the target's": lambda: page.locator(".strip li").count() == 5,
        "find one target": lambda: page.locator("#q").fill(str(target.port)) or page.locator("#q").press("Enter")
        or page.locator("tr[data-k]").count() == 1,
        "copy the evidence": lambda: page.locator("a.name").first.press("Enter") or page.locator("#copy summary").press("Enter")
        or page.locator("#json").input_value().startswith("{"),
    }
    for name, task in tasks.items():
        page.goto(origin + "/")
        try:
            if not task():
                find(f"the task '{name}' fails")
        except Exception as error:  # a timeout of Playwright
            find(f"the task '{name}': {str(error).splitlines()[0]}")
    context.close()
