import Expectations
import Foundation
import Glibc
import Pacing
import Reachability
import Testing

@testable import netwatch_service

@Suite struct StatusPageTests {
    private func render(_ board: Board, _ query: String = "", late: Int64 = 400) -> String {
        let query = BoardQuery(QueryParameters(query))
        return PageSamples.text(
            StatusPage.pieces(board: board, query: query, now: PageSamples.moment(PageSamples.now + late)).rendered())
    }

    @Test func `the page has its facts without a script`() {
        let page = render(PageSamples.site)
        let facts = [
            "<title>2 down, 1 unreachable, 1 degraded · netwatch on edge-07</title>", "http-equiv=refresh", "30 of 36 targets up",
            "The gateway 192.0.2.1 does not answer on its link", "not recorded", "2 incidents over", "a fault of this machine",
            "31 targets", "198.51.100.9 refuses the connection to port 5432</bdi> <code>tcp/refused</code>",
            "for 12 min, since <time datetime=\"2026-11-25T12:50:45+01:00\"", "412 ms", "91.27\u{a0}% with local causes",
            "% not observed",
            "Europe/Berlin, UTC+01:00", "as of <time", "href=\"/target/db-main?at=", "/favicon.svg?state=down",
        ]
        for fact in facts { #expect(page.contains(fact), "\(fact)") }
        #expect(!page.contains("style="))
        #expect(!page.contains("<script>"))
    }

    @Test func `an incident stands apart if all its targets are in maintenance, also those that it does not list`() {
        var targets = ["a:1", "b:1"].map { PageSamples.target($0, PageSamples.update($0, .down, PageSamples.refused)) }
        for place in targets.indices { targets[place].number = 7 + place }
        targets[0].isInMaintenance = true
        var board = PageSamples.board(targets)
        var incident = PageSamples.incident(
            "1", .server, .init(.target, "a:1"), PageSamples.refused, ["a:1"], from: PageSamples.now - 60_000)
        incident.targets = TargetSet([7, 8])
        board.incidents = [incident]
        #expect(!render(board).contains("of targets in maintenance"))
        board.targets[1].isInMaintenance = true
        let page = render(board)
        #expect(page.contains("1 incident of targets in maintenance") && page.contains("No incident is open now."))
    }

    @Test func `an incident says that it flaps, was merged, or has lost its targets`() {
        func incident(
            _ id: String, kind: Incident.Kind = .fault, end: Incident.State = .over, into: String? = nil, isOpen: Bool = false
        ) -> BoardIncident {
            PageSamples.incident(
                id, .server, .init(.host, "192.0.2.9"), PageSamples.refused, ["a:1", "b:1"], kind: kind, end: end, into: into,
                from: PageSamples.now - 60_000, to: isOpen ? nil : PageSamples.now)
        }
        var board = PageSamples.board()
        func tags() -> [Bool] {
            let page = render(board)
            #expect(page.contains("<bdi>Host 192.0.2.9</bdi>"))
            return ["flapping", "merged", "target removed"].map { page.contains("<em class=tag>\($0)</em>") }
        }
        board.incidents = [incident("1", isOpen: true), incident("2")]
        expectEqual(tags(), [false, false, false])
        board.incidents = [incident("1", kind: .flapping, isOpen: true)]
        expectEqual(tags(), [true, false, false])
        board.incidents = [incident("1", end: .merged, into: "2")]
        expectEqual(tags(), [false, true, false])
        board.incidents = [incident("1", end: .removed)]
        expectEqual(tags(), [false, false, true])
    }

    @Test func `problems are before the groups, and a folded group is one line`() throws {
        let page = render(PageSamples.site)
        let order = [
            "Main database", "Shop", "Line 2 controller", "Public API", "Web site", "Backup", "Line 1 controller", "New sensor",
            "Tills",
        ]
        let places = try order.map { name in try #require(page.range(of: "<bdi>\(name)</bdi>"), "\(name)").lowerBound }
        expectEqual(places, places.sorted())
        #expect(page.contains("Show the 24 targets"))
        #expect(!page.contains("Till 7"))
        #expect(render(PageSamples.site, "q=till").contains("Till 7"))
    }

    @Test func `a page without targets says how to add one`() {
        let page = render(PageSamples.board())
        #expect(page.contains("netwatch serve HOST:PORT"))
        #expect(page.contains("<title>no targets · netwatch on edge-07</title>"))
        #expect(page.contains("This machine is connected"))
        #expect(!page.contains("<form"))
    }

    @Test func `a calm page says so`() {
        let page = render(PageSamples.board([PageSamples.target("a", PageSamples.update("192.0.2.9:80"))]))
        #expect(page.contains("<title>all up · netwatch on edge-07</title>"))
        #expect(page.contains("The target is up"))
    }

    @Test func `the headline says why its symbol is not that of targets that are up`() {
        let targets = (0..<300).map { PageSamples.target("t\($0)", PageSamples.update("192.0.2.9:80")) }
        var board = PageSamples.board(targets)
        let up = "<h1 class=\"u\">\(PageSamples.text(PageSymbol.state(.up).bytes))<span>All 300 targets are up</span></h1>"
        #expect(render(board).contains(up))
        let failing =
            "<h1 class=\"r\">\(PageSamples.text(PageSymbol.state(.unreachable).bytes))<span>All 300 targets are up, but the "
        board.canary = PageSamples.update("http://canary.example/204", .down, PageSamples.refused)
        #expect(render(board).contains("\(failing)Internet check fails</span></h1>"))
        board.canary = nil
        board.path = PageSamples.path(PageSamples.withoutNameServer)
        // No target has a name.
        #expect(render(board).contains(up))
        board.targets[7] = PageSamples.target("t7", PageSamples.update("localhost:80"))
        #expect(render(board).contains("\(failing)resolver of this machine fails</span></h1>"))
    }

    @Test func `a machine without a link is at fault, not the targets`() {
        let page = render(PageSamples.withoutLink)
        #expect(page.contains("<title>31 unreachable · netwatch on edge-07</title>"))
        #expect(page.contains("Interface eth0 has no carrier</bdi> <code>link/no-carrier</code>"))
        #expect(!page.contains("31 down"))
        let alone = render(PageSamples.board(path: PageSamples.unsatisfied))
        #expect(alone.contains("<title>Link fails · netwatch on edge-07</title>"))
    }

    @Test func `a board that is old, not recorded or not reloaded says so`() {
        let page = render(PageSamples.notRecording, late: 45_000)
        #expect(page.contains("last heard <time"))
        #expect(page.contains("45 s ago"))
        #expect(page.contains("<b>Nothing is recorded</b> for 2 h, since"))
        #expect(page.contains("no space left on the disk"))
        #expect(page.contains("did you mean &#39;targets&#39;?"))
    }

    @Test func `a configuration that needs a restart is named until then`() {
        var board = PageSamples.site
        #expect(!render(board).contains("A restart is needed"))
        board.restartKeys = ["state", "time_zone"]
        #expect(render(board).contains("<b>A restart is needed</b> for <code>state, time_zone</code>"))
    }

    @Test func `time before the history counts as not observed`() throws {
        var target = PageSamples.target("a", PageSamples.update("192.0.2.9:80"))
        for place in 0..<BarSpan.day.cells - 1 { target.bars.day.replace(place, BarCell()) }
        let board = PageSamples.board([target])
        #expect(abs(board.times(of: target, in: .day)[.notRecorded] - 23 * PageSamples.hour) < 10)
        let page = render(board)
        let observed = try #require(Availability(board.times(of: target, in: .day)).observed)
        let share = PageText.percent(1 - observed)
        #expect(share.hasPrefix("9"))
        #expect(page.contains("100\u{a0}%<small>\(share) not observed</small>"))
        #expect(page.contains("aria-label=\"Last 24 hours: up 3 min 6 s, not recorded 23 h\""))
    }

    @Test(arguments: [(9_997, 3, "99.97"), (9_999_999, 1, "99.99"), (500, 9_500, "5"), (51, 9_949, "0.51")])
    func `the time that was not observed is rounded down, as the availability is`(missing: Int64, up: Int64, text: String) {
        var times = StateTimes()
        times[.notRecorded] = missing
        times[.up] = up
        let markup = PageSamples.text(AvailabilityText(times).markup.bytes)
        expectEqual(markup, "100\u{a0}%<small>\(text)\u{a0}% not observed</small>")
    }

    @Test func `a parameter that is ignored is named, and the form keeps the query`() {
        let page = render(PageSamples.site, "q=%22%3E%3Cb%3E&group=Plant&span=7d&limit=zero")
        #expect(page.contains("value=\"&quot;&gt;&lt;b&gt;\""))
        #expect(page.contains("<code>limit</code> is ignored: write a number from 1 to 1000"))
        #expect(page.contains("name=span value=\"7d\""))
        #expect(page.contains("<option value=\"Plant\" selected>"))
        #expect(page.contains("No target matches."))
        #expect(page.contains("href=\"/?q=%22%3E%3Cb%3E&amp;group=Plant&amp;span=90d\""))
    }

    @Test func `the fragment has the parts alone`() {
        let part = render(PageSamples.site, "part=1")
        for id in ["id=fresh", "id=overview", "id=list"] { #expect(part.contains(id)) }
        #expect(!part.contains("<form"))
        #expect(!part.contains("<footer"))
    }

    @Test func `pages follow each other`() {
        let board = PageSamples.large(250)
        let first = render(board)
        #expect(first.contains("<span>1–100 of 250</span>"))
        #expect(first.contains("<span class=off>Previous</span>"))
        let next = BoardView(board, BoardQuery()).next
        let second = render(board, "after=\(next?.description ?? "")")
        #expect(second.contains("<span>101–200 of 250</span>"))
        #expect(second.contains("<a rel=prev href=\"/\">Previous</a>"))
    }

    @Test func `the list has response times, round trips and the days of certificates`() {
        let page = render(PageSamples.site)
        for fact in [
            "<th scope=col class=l>Response</th><th scope=col class=k>Certificate</th>",
            "<td class=l>61 ms<small>round trip 23 ms</small></td><td class=k>64 days</td>",
            "<td class=l></td><td class=k><b>expired today</b></td>",
            // A target that is down has no times, and one without TLS no certificate.
            "<td class=l></td><td class=k></td>", "<td class=l>9.3 ms<small>round trip 1.8 ms</small></td><td class=k></td>",
        ] { #expect(page.contains(fact), "\(fact)") }
    }

    @Test func `names from outside never become markup`() {
        let hostile = render(PageSamples.hostile)
        for tag in ["<script>alert", "<img", "<svg onload", "onerror=alert(1)>", "<b>eth"] {
            #expect(!hostile.contains(tag), "\(tag)")
        }
        expectEqual(Self.tags(hostile), Self.tags(render(PageSamples.tame)), "other names change no tag")
        #expect(!hostile.unicodeScalars.contains { $0.value < 0x20 || $0 == "\u{202e}" })
    }

    /// The names of a page's tags, in their order.
    private static func tags(_ page: String) -> [Substring] {
        page.split(separator: "<").dropFirst().map { $0.prefix { $0.isLetter || $0 == "/" || $0 == "!" } }
    }

    @Test(.skippedByThreadSanitizer)
    func `the first page of 10,000 targets has at most 150 kilobytes, also if each cell of each bar differs`() {
        let board = PageSamples.large(10_000)
        for span in BarSpan.allCases { #expect(render(board, "span=\(span.rawValue)").utf8.count <= 150_000, "\(span)") }
        var restless = board
        for index in restless.targets.indices.prefix(300) {
            restless.targets[index] = PageSamples.target(
                "shop-\(index)", title: "Shop \(index), branch office", group: "Region 1",
                PageSamples.update("shop-\(index).branches.example:443", .down, PageSamples.refused),
                shape: { $0 / 24 % 2 == 0 ? (.down, 0.5) : (.degraded, 0.5) })
        }
        for span in BarSpan.allCases { #expect(render(restless, "span=\(span.rawValue)").utf8.count <= 150_000, "\(span)") }
    }

    @Test(.skippedByThreadSanitizer) func `a page of 10,000 targets is rendered fast`() {
        let board = PageSamples.large(10_000)
        let count = ProcessInfo.processInfo.environment["NETWATCH_RENDERS"].flatMap { Int($0) } ?? 5
        // The time of the thread: other tests and programs do not use it.
        func processorTime() -> Duration {
            var time = timespec()
            clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
            return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
        }
        var times: [Duration] = []
        for _ in 0..<count {
            let start = processorTime()
            _ = StatusPage.pieces(board: board, query: BoardQuery(), now: PageSamples.moment()).rendered()
            times.append(processorTime() - start)
        }
        times.sort()
        let last = times[min(times.count - 1, times.count * 99 / 100)]
        print("render of 10,000 targets: median \(times[times.count / 2]), p99 \(last) of \(count)")
        // A build for debugging.
        #expect(last < .seconds(3))
    }
}

extension PageSamples {
    /// The board of hostile names with harmless ones of the same places.
    static let tame: Board = {
        var board = hostile
        for index in board.targets.indices {
            let target = board.targets[index]
            let cause = target.update.cause.map { _ in
                Cause(.http, .status, detail: "x", evidence: ["reason": .text("x"), "y": .text("x")])
            }
            board.targets[index] = BoardTarget(
                key: "k\(index)", id: nil, title: "k\(index)",
                group: target.group == nil ? nil : index == 0 ? hostileNames[0] : "g\(index)",
                update: update(target.update.endpoint.text, target.update.statusName, cause), bars: target.bars)
        }
        board.instance = "host"
        board.timeZone = "UTC"
        board.recording.reason = "x"
        board.reloadProblem = "x"
        board.path = path()
        return board
    }()
}
