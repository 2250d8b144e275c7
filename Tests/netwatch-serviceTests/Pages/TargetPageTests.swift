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

    @Test func `a degraded target shows its quality as a layer of its own`() throws {
        let page = try render("api")
        #expect(page.contains("<b>quality</b><span class=word>degraded</span>"))
        #expect(page.contains("The round trip of 412 ms is above the limit of 250 ms"))
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
        #expect(object["status"] as? String == "down")
        #expect((object["layers"] as? [[String: Any]])?.count == 10)
        #expect((object["outages"] as? [[String: Any]])?.count == 3)
        #expect((object["timeline"] as? [[String: Any]])?.count == 6)
        #expect(((object["availability"] as? [String: Any])?["24h"] as? [String: Any])?["percent"] is Double)
        let lines = PageSamples.text(document.csv()).split(separator: "\r\n")
        #expect(lines.count == 4)
        #expect(lines[2].hasPrefix("db.example:5432,db-main,Main database,unreachable,2026-11-25T01:03:07.000Z,"))
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
            RoundTripPoint(period: .min ..< .max, minimum: 0, median: .max, high: .max, probes: .max, lost: 0),
            RoundTripPoint(period: 0..<0, minimum: nil, median: nil, high: nil, probes: 0, lost: 0),
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
        #expect(Badge.named("x", on: PageSamples.site).state == nil)
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
        #expect(Set(icons).count == icons.count)
        #expect(Favicon.svg(state: "\"><script>") == Favicon.svg(state: nil))
    }
}
