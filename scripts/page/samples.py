"""Serves the sample pages, and checks the script with a stream of events that the check writes."""

import functools
import http.server
import pathlib
import threading

from page import checks
from page.checks import watch

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)


class Files(http.server.SimpleHTTPRequestHandler):
    """The sample pages under the paths of the service, with its security policy."""

    protocol_version = "HTTP/1.1"

    def translate_path(self, path):
        found = pathlib.Path(super().translate_path(path.split("?")[0]))
        for candidate in (found, found.with_name(found.name + ".html"), found / "index.html"):
            if candidate.is_file():
                return str(candidate)
        return str(found)

    def end_headers(self):
        self.send_header("Content-Security-Policy", POLICY)
        super().end_headers()

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        """Ignores clients that close their connections, as a browser does with a page that it leaves."""


def serve(folder, handler=Files):
    server = Server(("127.0.0.1", 0), functools.partial(handler, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_port}"


class Stream(Files):
    """The sample pages with a stream of events that the check writes, and another page as the fragment."""

    clients = []
    fragment = "/calm"
    isSilent = False

    def do_GET(self):
        if Stream.isSilent:
            self.close_connection = True
        elif self.path.startswith("/api/v1/events"):
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            Stream.clients.append(self)
            self.emit("hello", "{}")
            self.connection.settimeout(None)
            self.rfile.read(1)
            Stream.clients.remove(self)
            self.close_connection = True
        else:
            if "part=1" in self.path:
                self.path = Stream.fragment
            super().do_GET()

    def emit(self, event, data):
        self.wfile.write(f"event: {event}\ndata: {data}\n\n".encode())
        self.wfile.flush()


HIDE = """(hidden) => {
    Object.defineProperty(document, 'hidden', { value: hidden, configurable: true });
    document.dispatchEvent(new Event('visibilitychange'));
}"""


def expect(condition, what):
    checks.expect(condition, f"the script: {what}")


def check_script(browser, folder):
    """Checks the script with a stream of its own: a change at once, the fragment, a hidden page, a stream that stalls."""
    server, origin = serve(folder, Stream)
    context = browser.new_context()
    page = context.new_page()
    watch(page, origin, "script")
    Stream.fragment = "/index"
    page.clock.install()
    page.goto(origin + "/")
    expect(lambda: len(Stream.clients) == 1, "a page that is seen opens no stream")
    expect(lambda: page.locator("#fresh.live").count() == 1, "the page does not say that it is live")
    detail = "<img src=x onerror=alert(1)>"
    record = '{"target": "x", "id": "site", "status": "down", "cause": {"layer": "tcp", "code": "refused", "detail": "%s"}, "rtt_ms": null}' % detail
    Stream.clients[0].emit("target", record)
    row = page.locator('tr[data-k="site"]')
    expect(lambda: row.locator(".word").text_content() == "down", "a change of a row is not shown at once")
    expect(lambda: detail in row.locator(".c").text_content(), "the cause of a change is not shown as text")
    expect(lambda: page.locator("#say").text_content() == "Web site is down.", "a change is not announced")
    page.locator("#legend").evaluate("(one) => one.open = true")
    page.locator("#q").focus()
    page.keyboard.type("ca")
    Stream.fragment = "/calm"
    Stream.clients[0].emit("incident", "{}")
    page.clock.run_for(4_000)
    expect(lambda: page.title().startswith("all up"), "the title does not follow the fragment")
    expect(lambda: "state=up" in page.locator("link[rel=icon]").get_attribute("href"), "the icon does not follow the fragment")
    expect(lambda: page.locator("#q").input_value() == "ca" and page.evaluate("document.activeElement.id") == "q",
           "the fragment disturbs the form")
    expect(lambda: page.locator("#legend[open]").count() == 1, "the fragment folds what was open")
    page.evaluate(HIDE, True)
    expect(lambda: not Stream.clients, "a hidden page keeps its stream")
    page.evaluate(HIDE, False)
    expect(lambda: len(Stream.clients) == 1, "a page that is seen again opens no stream")
    Stream.isSilent = True

    def is_stalled():
        # A response that was on its way counts as heard when it arrives.
        page.clock.run_for(5_000)
        return page.locator("body.stalled").count() == 1

    expect(is_stalled, "a stalled stream does not gray the page")
    expect(lambda: "last heard" in page.locator("#fresh").text_content(), "a stalled page does not say when it was last heard")
    context.close()
    Stream.isSilent = False
    server.shutdown()
