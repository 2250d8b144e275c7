"""Checks that hold for every page, and the findings of all checks."""

import sys
import time

WIDTHS = [390, 820, 1440]
SCHEMES = ["light", "dark"]
findings = []


def find(what):
    findings.append(what)
    print(f"check-page: {what}", file=sys.stderr)


def report(what):
    """Prints a measurement."""
    print(f"check-page: {what}", file=sys.stderr)


def expect(condition, what, seconds=15):
    """Waits for a condition. - Returns: Whether it holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            find(what)
            return False
        time.sleep(0.05)
    return True


def watch(page, origin, name):
    """Reports requests to other origins, refusals by the policy, and errors of the script."""

    def request(request):
        if not request.url.startswith((origin + "/", "data:")):
            find(f"{name}: a request leaves the origin: {request.url}")

    def message(message):
        text = message.text
        if "Content Security Policy" in text or "Content-Security-Policy" in text:
            find(f"{name}: the policy refuses something: {text}")

    page.on("request", request)
    page.on("console", message)
    page.on("pageerror", lambda error: find(f"{name}: the script fails: {error}"))


FACTS = """() => {
    const copy = document.querySelector('main').cloneNode(true);
    for (const one of copy.querySelectorAll('button, [data-fresh], time')) one.remove();
    return copy.textContent.replace(/\\s+/g, ' ').trim();
}"""

FOCUS = """() => {
    const element = document.activeElement, style = getComputedStyle(element), box = element.getBoundingClientRect();
    return {
        name: element.tagName + ' ' + (element.getAttribute('href') ?? element.id ?? ''),
        outline: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2,
        seen: box.width > 0 && box.height > 0, isBody: element === document.body,
    };
}"""


def check_keyboard(page, name):
    """Checks that the first stop is the link to the content, and that each stop is visible."""
    page.evaluate("() => { document.body.tabIndex = -1; document.body.focus(); document.body.removeAttribute('tabindex'); }")
    for number in range(40):
        page.keyboard.press("Tab")
        focus = page.evaluate(FOCUS)
        if focus["isBody"]:
            break
        if number == 0 and "#main" not in focus["name"]:
            find(f"{name}: the first stop of the keyboard is {focus['name']}, not the link to the content")
        if not focus["outline"] or not focus["seen"]:
            find(f"{name}: the focus is not visible at {focus['name']}")


def check_pages(browser, axe, origin, paths, pictures, schemes=SCHEMES, widths=WIDTHS):
    for scheme in schemes:
        for width in widths:
            context = browser.new_context(
                viewport={"width": width, "height": 900}, color_scheme=scheme, device_scale_factor=2 if width < 800 else 1)
            page = context.new_page()
            watch(page, origin, f"{scheme} at {width}")
            for path in paths:
                name = f"{path} at {width} px, {scheme}"
                page.goto(origin + path, wait_until="load")
                page.wait_for_timeout(100)
                if page.evaluate("document.documentElement.scrollWidth") > width:
                    find(f"{name}: the page scrolls sideways")
                page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
                if page.evaluate("document.documentElement.scrollWidth") > width:
                    find(f"{name}: the unfolded page scrolls sideways")
                # The largest page takes axe half a minute; its rows are those of the small ones.
                if "large" not in path:
                    for violation in axe.run(page).response["violations"]:
                        nodes = "; ".join(node["html"][:160] for node in violation["nodes"][:3])
                        find(f"{name}: axe: {violation['id']}: {violation['help']}: {nodes}")
                if width == 1440 and scheme == "light" and "large" not in path:
                    check_keyboard(page, name)
                if pictures:
                    page.goto(origin + path, wait_until="load")
                    file = path.strip("/").replace("/", "-").replace("?", "-") or "index"
                    page.screenshot(path=str(pictures / f"{file}-{width}-{scheme}.png"), full_page="large" not in path)
            context.close()


def check_without_script(browser, origin, paths, facts=FACTS):
    texts = []
    for enabled in (True, False):
        context = browser.new_context(java_script_enabled=enabled)
        page = context.new_page()
        texts.append({})
        for path in paths:
            page.goto(origin + path, wait_until="load")
            texts[-1][path] = page.evaluate(facts)
        context.close()
    for path in paths:
        if texts[0][path] != texts[1][path]:
            find(f"{path}: without script the page has other facts")
