import Console
import Expectations
import Foundation
import Reachability
import Testing

@testable import netwatch_service

@Suite struct TargetPageTests {
    private func render(
        _ key: String, _ detail: TargetDetail = TargetDetail(), _ query: String = "", board: Board = PageSamples.site
    ) throws -> String {
        let target = try #require(board.targets.first { $0.key == key })
        let page = TargetPage(
            board: board, target: target, detail: detail, query: TargetQuery(QueryParameters(query)), now: PageSamples.moment())
        return PageSamples.text(page.render())
    }

    @Test func `the page names the failing layer with its evidence`() throws {
        let page = try render("db-main", PageSamples.detail())
        let facts = [
            "<title>down: Main database · netwatch on edge-07</title>", "for 12 min, since", "db.example:5432",
            "<b>tcp</b><span class=word>fails</span>", "198.51.100.9 refuses the connection to port 5432",
            "<i>errno</i> <bdi>ECONNREFUSED</bdi>",
            "<b>dns</b><span class=word>ok</span>", "db.example is resolved to 198.51.100.9",
            "<b>tls</b><span class=word>not used</span>",
            "99.01\u{a0}%", "91.27\u{a0}% with local causes", "Last 90 days", "Interface eth0 has no carrier", "1 h 48 min",
            "class=median",
            "The path is satisfied over eth0.", "the service was stopped", "<textarea id=json readonly", "format=json",
            "format=csv",
        ]
        for fact in facts { #expect(page.contains(fact), "\(fact)") }
        #expect(!page.contains("style="))
    }

    @Test func `the addresses of a target that are all probed are listed on its page, and folded in the list`() throws {
        var board = PageSamples.site
        let index = try #require(board.targets.firstIndex { $0.key == "site" })
        board.targets[index].update = PageSamples.update(
            "https://site.example/",
            addresses: [
                AddressStatus(PageSamples.address("198.51.100.9"), .up, since: PageSamples.moment()),
                AddressStatus(
                    PageSamples.address("2001:db8::9"), .down, cause: Cause(.tcp, .refused, detail: "2001:db8::9 refuses <b>"),
                    since: PageSamples.moment()),
                AddressStatus(PageSamples.address("198.51.100.10"), .unreachable, since: PageSamples.moment()),
            ])
        let page = try render("site", board: board)
        for fact in [
            "<h2 id=addresses>", "<bdi>2001:db8::9</bdi>", "2001:db8::9 refuses &lt;b&gt;", "This machine has no route to it.",
        ] {
            #expect(page.contains(fact), "\(fact)")
        }
        var budget = BarBudget()
        let clock = PageFrame(board, now: PageSamples.moment()).clock
        let row = PageSamples.text(
            TargetRow(target: board.targets[index], span: .day, board: board, clock: clock, isProblem: false).markup(&budget)
                .bytes)
        #expect(
            row.contains("<details class=addresses id=\"addresses-site\"><summary>2 of 3 addresses not up</summary>"), "\(row)")
    }

    @Test func `layers behind the failing one are not reached`() throws {
        let page = try render("line-2")
        #expect(page.contains("<b>neighbor</b><span class=word>fails</span>"))
        #expect(page.contains("<b>tcp</b><span class=word>not reached</span>"))
        #expect(page.contains("No outage is recorded."))
        #expect(page.contains("Nothing changed in this time."))
    }

    @Test func `a target that is up has no failing layer`() throws {
        let page = try render("site", PageSamples.detail(.up))
        for layer in ["link", "address", "route", "neighbor", "dns", "firewall", "network", "tcp", "tls", "http"] {
            #expect(page.contains("<b>\(layer)</b><span class=word>ok</span>"), "\(layer)")
        }
    }

    @Test func `a target that is up has the times, the route and the certificate of its last probe`() throws {
        let page = try render("site", PageSamples.probed())
        let facts = [
            "<dt>Response time</dt><dd><bdi>48 ms</bdi>", "<dt>Round trip</dt><dd><bdi>11 ms</bdi>",
            "<dt>Certificate</dt><dd><bdi>64 days</bdi>", "<dt>Last probe</dt>",
            "dns 2.3 ms, connect 12 ms, tls 14 ms, first byte 21 ms, transfer 1.1 ms", "<h3>Response time</h3>",
            "Response times from ", "<path class=tail d=\"M0 ", ", 99 % within ", "<h3>Round trip</h3>",
            "<b>dns</b><span class=word>ok</span><span class=l>2.3 ms</span>", "by the name server 192.0.2.53",
            "<b>tls</b><span class=word>ok</span><span class=l>14 ms</span>", "TLS_AES_256_GCM_SHA384",
            "<b>http</b><span class=word>ok</span><span class=l>22 ms</span>", "The request is answered with 200",
            "198.51.100.9 is routed over eth0 via 192.0.2.1", "Packets are sent from 192.0.2.7", "The gateway 192.0.2.1 answers",
            "<i>neighbor_state</i> <bdi>REACHABLE</bdi>", "<dt>Subject</dt><dd><bdi>CN=www.example</bdi>",
            "<dt>Issuer</dt><dd><bdi>CN=Example CA R3,O=Example</bdi>", "<dt>Valid until</dt><dd><bdi>2027-01-28T",
        ]
        for fact in facts { #expect(page.contains(fact), "\(fact)") }
    }

    @Test func `times without the facts of the last probe are shown beside the proof of the verdict`() throws {
        var detail = PageSamples.detail(.up)
        let endpoint = PageSamples.endpoint("https://www.example/")
        detail.report = ProbeTimes(PageSamples.report())?.report(of: endpoint)
        let page = try render("site", detail)
        for fact in [
            "<b>tls</b><span class=word>ok</span><span class=l>14 ms</span><div><bdi>The handshake is complete</bdi>",
            "<b>http</b><span class=word>ok</span><span class=l>22 ms</span>", "<dt>Response time</dt><dd><bdi>48 ms</bdi>",
            "dns 2.3 ms, connect 12 ms, tls 14 ms, first byte 21 ms, transfer 1.1 ms",
        ] { #expect(page.contains(fact), "\(fact)") }
        #expect(!page.contains("<h2 id=cert>"))
    }

    @Test func `a failed last probe of a target that is up is named`() throws {
        var detail = PageSamples.detail(.up)
        detail.report = ProbeReport(
            endpoint: PageSamples.endpoint("https://www.example/"), cause: PageSamples.refused, moment: PageSamples.moment())
        let page = try render("site", detail)
        #expect(page.contains(", failed: <bdi>198.51.100.9 refuses the connection"))
    }

    @Test func `a silent target has no round trip and no response time`() throws {
        var board = PageSamples.site
        let place = try #require(board.targets.firstIndex { $0.key == "db-main" })
        let timeout = Cause(.tcp, .timeout, detail: "198.51.100.9 does not answer on port 5432")
        board.targets[place].update = PageSamples.update("db.example:5432", .down, timeout)
        // The last successful probe has measured something.
        board.targets[place].measured = MeasuredTimes(roundTrip: 1_200, responseTime: 4_500)
        var detail = PageSamples.detail(.down)
        detail.report = ProbeReport(
            endpoint: PageSamples.endpoint("db.example:5432"), connection: .seconds(3), cause: timeout,
            moment: PageSamples.moment())
        let page = try render("db-main", detail, board: board)
        #expect(!page.contains("<dt>Round trip</dt>") && !page.contains("<dt>Response time</dt>"))
        let current = board.targets[place].current
        #expect(current.roundTrip == nil && current.responseTime == nil)
        let document = TargetDocument(board: board, target: board.targets[place], detail: detail, query: TargetQuery())
        let object = try #require(JSONSerialization.jsonObject(with: Data(document.json())) as? [String: Any])
        for key in ["rtt_ms", "response_ms", "certificate_days_left"] { #expect(object[key] is NSNull, "\(key)") }
    }

    @Test func `a target has the times and the certificate of its last probe, however old its status is`() throws {
        var target = try #require(PageSamples.site.targets.first { $0.key == "site" })
        target.measured.add(
            .init(target: 0, state: .up, roundTrip: 3_000, responseTime: 9_000, certificateEnd: 1_795_694_587, time: 0))
        #expect(target.current.roundTrip == .milliseconds(30) && target.current.responseTime == .milliseconds(90))
        expectEqual(target.current.certificateDaysLeft(at: PageSamples.moment()), 1)
        var phases = PhaseTimes()
        (phases[.connect], phases[.transfer]) = (.milliseconds(31), .microseconds(500))
        // A retransmission prevents the measurement of the round trip.
        target.measured.add(
            .init(target: 0, state: .up, roundTrip: 100_000, isRoundTripMeasured: false, responseTime: 110_000, time: 0))
        #expect(target.current.roundTrip == .milliseconds(30) && target.current.responseTime == .milliseconds(1_100))
        target.measured.add(
            .init(target: 0, state: .up, roundTrip: 3_000, responseTime: 9_000, phases: phases, time: 0))
        // A failed probe has none of them.
        target.measured.add(.init(target: 0, state: .up, time: 0))
        #expect(target.current.responseTime == .milliseconds(90) && target.current.certificateEnd == 1_795_694_587)
        var writer = JSONWriter()
        target.write(seq: 3, at: PageSamples.moment(), to: &writer)
        let record = PageSamples.text(writer.bytes)
        #expect(
            record.contains(
                #""rtt_ms":30,"response_ms":90,"phases_ms":{"dns":null,"connect":31,"tls":null,"first_byte":null,"transfer":0.5},"#
            ), "\(record)")
    }

    @Test(arguments: [
        (-400, "expired 399 days ago"), (-2, "expired 1 day ago"), (-1, "expired today"), (0, "less than a day"), (1, "1 day"),
        (36_500, "36,500 days"),
    ])
    func `the days of a certificate are words`(days: Int, text: String) { expectEqual(PageText.certificate(days), text) }

    @Test func `the present route never contradicts the verdict`() throws {
        var detail = PageSamples.detail(.unreachable)
        detail.inspection = RouteInspection(
            PageSamples.routed.query, route: PageSamples.routed.route, neighbor: .state(.failed))
        let timeout = Cause(.tcp, .timeout, detail: "198.51.100.9 does not answer on port 80")
        var board = PageSamples.site
        let place = try #require(board.targets.firstIndex { $0.key == "site" })
        board.targets[place].update = PageSamples.update("https://www.example/", .unreachable, timeout)
        let page = try render("site", detail, board: board)
        #expect(page.contains("<b>tcp</b><span class=word>fails</span>"))
        #expect(!page.contains("<b>neighbor</b><span class=word>fails</span>"))
    }

    @Test func `a degraded target shows its quality as a layer of its own`() throws {
        let page = try render("api")
        #expect(page.contains("<b>quality</b><span class=word>degraded</span>"))
        #expect(page.contains("The round trip of 412 ms is above the limit of 250 ms"))
    }

    @Test func `a certificate that expires soon is a warning of its layer`() throws {
        let (board, expiring) = (PageSamples.expiringSite, PageSamples.expiring)
        let place = try #require(board.targets.firstIndex { $0.key == "site" })
        for detail in [PageSamples.detail(.degraded), PageSamples.probed(.degraded)] {
            let page = try render("site", detail, board: board)
            #expect(
                page.contains(
                    "<li class=\"g\">\(PageSamples.text(PageSymbol.state(.degraded).bytes))<b>tls</b><span class=word>degraded</span>"
                ))
            #expect(
                page.contains(
                    "<bdi>The certificate of www.example expires in 9 days</bdi><p class=evidence><span><i>days_left</i>"))
            #expect(page.contains("<b>tcp</b><span class=word>ok</span>"))
            let document = TargetDocument(board: board, target: board.targets[place], detail: detail, query: TargetQuery())
            let object = try #require(JSONSerialization.jsonObject(with: Data(document.json())) as? [String: Any])
            let layers = try #require(object["layers"] as? [[String: Any]])
            let tls = layers.first { $0["layer"] as? String == "tls" }
            #expect(tls?["ok"] as? Bool == true && tls?["detail"] as? String == expiring.detail)
        }
    }

    @Test func `the certificate of the cause is shown`() throws {
        let page = try render("shop")
        for fact in ["CN=shop.example", "Valid until", "2026-11-24T23:59:59Z", "shop.example, www.shop.example"] {
            #expect(page.contains(fact), "\(fact)")
        }
    }

    @Test func `an interval has its own timeline, and a link back to the span`() throws {
        let page = try render("db-main", PageSamples.detail(), "span=7d&at=1795600800-1795604400")
        #expect(page.contains("Timeline of 11:00–12:00"))
        #expect(page.contains("href=\"/target/db-main?span=7d#timeline\""))
    }

    @Test func `the evidence is JSON with the same facts`() throws {
        let target = try #require(PageSamples.site.targets.first { $0.key == "db-main" })
        let document = TargetDocument(board: PageSamples.site, target: target, detail: PageSamples.detail(), query: TargetQuery())
        let object = try #require(JSONSerialization.jsonObject(with: Data(document.json())) as? [String: Any])
        expectEqual(object["status"] as? String, "down")
        expectEqual((object["layers"] as? [[String: Any]])?.count, 10)
        expectEqual((object["outages"] as? [[String: Any]])?.count, 3)
        expectEqual((object["timeline"] as? [[String: Any]])?.count, 6)
        #expect(((object["availability"] as? [String: Any])?["24h"] as? [String: Any])?["percent"] is Double)
        #expect(object["last_probe"] is NSNull)
        let lines = PageSamples.text(document.csv()).split(separator: "\r\n")
        expectEqual(lines.count, 4)
        #expect(lines[2].hasPrefix("db.example:5432,db-main,Main database,unreachable,2026-11-25T01:03:07.000Z,"))
    }

    @Test func `the evidence has the last probe with its phases and the certificate`() throws {
        let target = try #require(PageSamples.site.targets.first { $0.key == "site" })
        let document = TargetDocument(
            board: PageSamples.site, target: target, detail: PageSamples.probed(), query: TargetQuery())
        let object = try #require(JSONSerialization.jsonObject(with: Data(document.json())) as? [String: Any])
        let probe = try #require(object["last_probe"] as? [String: Any])
        #expect(probe["ts"] as? String == "2026-11-25T12:03:03.000Z" && probe["ok"] as? Bool == true)
        #expect(probe["address"] as? String == "198.51.100.9" && probe["rtt_ms"] as? Double == 11.8)
        let phases = try #require(probe["phases_ms"] as? [String: Double])
        expectEqual(phases, ["dns": 2.3, "connect": 12.1, "tls": 14.2, "first_byte": 21.4, "transfer": 1.1])
        let layers = try #require(object["layers"] as? [[String: Any]])
        let tls = try #require(layers.first { $0["layer"] as? String == "tls" }?["evidence"] as? [String: Any])
        #expect(tls["issuer"] as? String == "CN=Example CA R3,O=Example" && tls["not_after"] != nil)
    }

    @Test func `names from outside never become markup`() throws {
        for target in PageSamples.hostile.targets {
            var detail = PageSamples.detail(cause: target.update.cause)
            detail.outages[0].incident = target.key
            detail.pathEvents[0].interface = target.key
            detail.pathEvents[0].reasons = [target.key]
            let page = try render(target.key, detail, board: PageSamples.hostile)
            for tag in ["<script>alert", "<img", "<svg onload", "<b>eth", "</textarea></script>"] {
                #expect(!page.contains(tag), "\(tag) in the page of \(target.key.debugDescription)")
            }
            #expect(page.utf8.count < 400_000)
            let document = TargetDocument(board: PageSamples.hostile, target: target, detail: detail, query: TargetQuery())
            #expect(throws: Never.self) { try JSONSerialization.jsonObject(with: Data(document.json())) }
        }
    }

    @Test func `extreme histories are drawn`() throws {
        var detail = TargetDetail()
        detail.roundTrips = [
            TimePoint(period: .min ..< .max, minimum: 0, median: .max, high: .max, probes: .max, lost: 0),
            TimePoint(period: 0..<0, minimum: nil, median: nil, high: nil, probes: 0, lost: 0),
        ]
        detail.responseTimes = [
            TimePoint(period: .min ..< .max, minimum: 0, median: 0, high: .max, highest: .max, probes: .max, lost: 0)
        ]
        detail.outages = [.init(start: .min, end: .max, state: .down), .init(start: .max, end: nil, state: .down)]
        detail.changes = [.init(time: .min, state: .up), .init(time: .max, state: .down)]
        detail.gaps = [.init(period: .min ..< .max, reason: .suspend)]
        detail.isComplete = false
        let page = try render("db-main", detail)
        #expect(page.contains("The history did not answer in time"))
        let document = TargetDocument(
            board: PageSamples.site, target: PageSamples.site.targets[0], detail: detail, query: TargetQuery())
        #expect(!document.json().isEmpty && !document.csv().isEmpty)
    }
}

@Suite struct BadgeTests {
    @Test func `a badge has its text for readers, and escapes names`() throws {
        let badge = PageSamples.text(Badge.named("db-main", on: PageSamples.site).svg())
        #expect(badge.contains("aria-label=\"Main database: down\""))
        #expect(badge.contains("<title>Main database: down</title>"))
        #expect(PageSamples.text(Badge.named("Web", on: PageSamples.site).svg()).contains("3 of 4 up"))
        let lines = Badge(name: "two\nlines", state: .up, text: "up")
        #expect(PageSamples.text(lines.svg()).contains("<title>two lines: up</title>"))
        expectNil(Badge.named("x", on: PageSamples.site).state)
        #expect(PageSamples.text(Badge.named("x", on: PageSamples.site).svg()).contains("x: not known"))
        #expect(PageSamples.text(Badge.named("site", on: PageSamples.site, span: .quarter).svg()).contains("% in 90d"))
        for name in PageSamples.hostileNames {
            let svg = Badge.named(name, on: PageSamples.hostile).svg()
            #expect(!PageSamples.text(svg).contains("<script") && !PageSamples.text(svg).contains("<img"))
            #expect(svg.count < 3_000)
        }
    }

    @Test func `the icon of a state is a shape of its own`() {
        let icons = RecordedState.bySeverity.map { Favicon.svg(state: $0.name) }
        expectEqual(Set(icons).count, icons.count)
        expectEqual(Favicon.svg(state: "\"><script>"), Favicon.svg(state: nil))
    }
}
