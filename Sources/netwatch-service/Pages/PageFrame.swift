import Reachability

/// The parts that all pages have: the head, the line with the machine's name and the time, and the foot.
struct PageFrame {
    let board: Board
    /// The present time; later than the board's if the keeper is late.
    let now: Moment
    let clock: LocalClock

    /// The time after which a board is old, in milliseconds. The keeper publishes one at least each second.
    static let patience: Int64 = 10_000
    /// The seconds after which a browser without script loads the page again.
    private static let refresh = 10

    init(_ board: Board, now: Moment) {
        (self.board, self.now) = (board, now)
        clock = LocalClock(board)
    }

    private var age: Int64 { now.milliseconds.elapsed(since: clock.now) }

    /// The name of the machine, as pages show it.
    var host: String { MarkupText.shortened(board.instance, to: 80) }

    /// Returns a complete document. Its title begins with `title`, before the name of this machine, and its icon shows `state`.
    func document(title: String, state: RecordedState?, content: Markup) -> [UInt8] {
        let page: Markup = """
            <!doctype html><html lang=en><head><meta charset=utf-8>\(titleElement(title))\
            <meta name=viewport content="width=device-width, initial-scale=1"><meta name=color-scheme content="light dark">\
            <meta name=referrer content=no-referrer>\
            <link rel=icon type="image/svg+xml" href="\(Favicon.address(state))"><link rel=stylesheet href="\(PageAsset.style.address)">\
            <script src="\(PageAsset.script.address)" defer></script>\
            <noscript><meta http-equiv=refresh content=\(Self.refresh)></noscript></head><body>\(PageSymbol.definitions)\
            <a class=skip href="#main">Skip to the content</a>\(header)<main id=main tabindex=-1>\(content)</main>\(footer)\
            <p id=say class=v role=status aria-live=polite></p></body></html>
            """
        return page.bytes
    }

    /// Returns the parts of a page that its script exchanges.
    func fragment(title: String, content: Markup) -> [UInt8] {
        let parts: Markup = "<!doctype html><html lang=en>\(titleElement(title))\(freshness)\(content)"
        return parts.bytes
    }

    private func titleElement(_ title: String) -> Markup { "<title>\(title) · netwatch on \(host)</title>" }

    private var header: Markup {
        """
        <header class=top><a class=brand href="/">netwatch</a><span class=host>on <bdi>\(host)</bdi></span>\(freshness)</header>
        """
    }

    /// The time of the values on the page. The script replaces the text.
    var freshness: Markup {
        let isOld = age > Self.patience
        let text: Markup =
            isOld
            ? "last heard \(clock.element(clock.now)), \(LocalClock.duration(milliseconds: age)) ago"
            : "as of \(clock.element(clock.now))"
        return """
            <p id=fresh data-part class="fresh\(isOld ? " old" : "")" data-ts=\(clock.now) data-seq=\(board.eventID)>\
            <i class=dot></i><span data-fresh>\(text)</span> <span class=zone>\(clock.zoneText)</span></p>
            """
    }

    private var footer: Markup {
        """
        <footer><p>netwatch \(PackageVersion.text) has run on <bdi>\(host)</bdi> \(clock.since(board.started.milliseconds)). \
        All times are \(clock.zoneText).</p><p><a href="/api/v1/status">Status as JSON</a> \
        <a href="/api/v1/history">History as JSON</a></p></footer>
        """
    }
}

/// A page for people about a request that has no answer.
struct ProblemPage {
    let board: Board
    let now: Moment
    /// The problem in a few words.
    var title: String
    /// The problem in one sentence.
    var detail: String

    func render() -> [UInt8] {
        let content: Markup = """
            <h1>\(title)</h1><p>\(MarkupText.shortened(detail, to: 400))</p><p><a href="/">All targets</a></p>
            """
        return PageFrame(board, now: now).document(title: title, state: board.counts.worst, content: content)
    }
}
