import Foundation
import Reachability
import Testing

@testable import netwatch_service

/// Sample pages in a folder, to be looked at and to be checked by `scripts/check-page`: `NETWATCH_PAGES=FOLDER` names it. The folder has the
/// paths of the service.
@Suite struct PageGalleryTests {
    @Test func `the sample pages are written to a folder on request`() throws {
        guard let folder = ProcessInfo.processInfo.environment["NETWATCH_PAGES"] else { return }
        func write(_ name: String, _ bytes: [UInt8]) throws {
            let url = URL(fileURLWithPath: folder).appendingPathComponent(name)
            try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
            try Data(bytes).write(to: url)
        }
        func status(_ board: Board, _ query: String = "", now: Int64 = PageSamples.now + 400) -> [UInt8] {
            StatusPage.pieces(board: board, query: BoardQuery(QueryParameters(query)), now: PageSamples.moment(now)).rendered()
        }
        for asset in PageAsset.all { try write(asset.path.rawValue, asset.bytes) }
        try write("favicon.svg", Favicon.svg(state: "down"))
        try write("index.html", status(PageSamples.site))
        try write("span-90d.html", status(PageSamples.site, "span=90d"))
        try write("span-7d.html", status(PageSamples.site, "span=7d"))
        try write("filter.html", status(PageSamples.site, "q=192.0.2&group=Plant&status=up,degraded&limit=x"))
        try write("empty.html", status(PageSamples.board()))
        let large = PageSamples.large(10_000)
        try write("large.html", status(large))
        try write("large-90d.html", status(large, "span=90d&after=3.2.5000"))
        try write("unreachable.html", status(PageSamples.withoutLink))
        try write("calm.html", status(PageSamples.board(PageSamples.site.targets.filter { $0.state == .up })))
        try write("failing-canary.html", status(PageSamples.failingCanary))
        try write("failing-canary-90d.html", status(PageSamples.failingCanary, "span=90d"))
        try write("starting.html", status(PageSamples.board([], path: nil)))
        try write("old.html", status(PageSamples.notRecording, now: PageSamples.now + 45_000))
        try write("hostile.html", status(PageSamples.hostile))
        for (key, state, cause) in [
            ("db-main", RecordedState.down, PageSamples.refused), ("shop", .down, PageSamples.expired),
            ("site", .up, PageSamples.refused),
            ("line-2", .unreachable, PageSamples.gatewaySilent), ("api", .degraded, PageSamples.latency),
        ] {
            let target = try #require(PageSamples.site.targets.first { $0.key == key })
            for span in BarSpan.allCases {
                var query = TargetQuery()
                query.span = span
                let page = TargetPage(
                    board: PageSamples.site, target: target,
                    detail: key == "site"
                        ? PageSamples.probed(span: span) : PageSamples.detail(state, cause: cause, span: span),
                    query: query,
                    now: PageSamples.moment())
                try write("target/\(key)\(span == .day ? "" : "-\(span.rawValue)").html", page.render())
            }
        }
        let expiring = try #require(PageSamples.expiringSite.targets.first { $0.key == "site" })
        try write(
            "target/expiring.html",
            TargetPage(
                board: PageSamples.expiringSite, target: expiring,
                detail: PageSamples.probed(.degraded, cause: PageSamples.expiring), query: TargetQuery(),
                now: PageSamples.moment()
            ).render())
        let new = try #require(PageSamples.site.targets.first { $0.key == "new" })
        try write(
            "target/new.html",
            TargetPage(
                board: PageSamples.site, target: new, detail: TargetDetail(), query: TargetQuery(), now: PageSamples.moment()
            ).render())
        for name in ["db-main", "site", "api", "Web", "nobody"] {
            try write("badge/\(name).svg", Badge.named(name, on: PageSamples.site).svg())
        }
        try write(
            "missing.html",
            ProblemPage(
                board: PageSamples.site, now: PageSamples.moment(), title: "There is no such target",
                detail: "No target has the key 'db-mian'."
            ).render())
    }
}

extension PageSamples {
    /// A board whose machine has lost its link: the targets behind it are unreachable, one on this machine is up.
    static let withoutLink: Board = {
        var board = site
        board.path = path(unsatisfied)
        for index in board.targets.indices where index % 9 != 8 {
            board.targets[index].update = update(
                board.targets[index].update.endpoint.text, .unreachable, noCarrier, since: now - 65_000)
        }
        board.canary = update("http://canary.example/generate_204", .unreachable, noCarrier)
        board.incidents.insert(
            incident(
                "i9", .local, .init(.interface, "eth0"), noCarrier, board.targets.prefix(10).map(\.update.endpoint.text),
                count: 32, from: now - 65_000), at: 0)
        return board
    }()

    static let notRecording: Board = {
        var board = site
        board.recording = RecordingStatus(reason: "no space left on the disk of /var/lib/netwatch", since: now - 7_200_000)
        board.reloadProblem = "/etc/netwatch/netwatch.yaml:14:3: the key 'tagrets' is not known; did you mean 'targets'?"
        return board
    }()

    /// Names that try to leave their place.
    static let hostileNames = [
        "<script>alert(1)</script>", "\"><img src=x onerror=alert(1)>", "' onmouseover='alert(1)", "]]></title><b>",
        "a\u{202e}gpj.exe\u{2066}",
        "\u{0}\u{1}\u{1b}[31mred\u{7f}\u{9b}", "=cmd|' /C calc'!A0", "&lt;b&gt;&amp;",
        "</textarea></script><svg onload=alert(1)>",
        "javascript:alert(1)", String(repeating: "long ", count: 2_000), "العربية", "日本語の名前", "👩‍👩‍👧", "\u{feff}@SUM(A1)",
        "{{7*7}} ${7*7}",
        "--><!--", "\u{2028}line", "%3Cscript%3E", "\\\"; alert(1)//",
    ]

    static let hostile: Board = {
        let eth = NetworkInterface(
            name: "<b>eth&0", index: 9, type: .wired, isVirtual: false, isExpensive: false, level: .routable,
            addresses: [IPPrefix(address("192.0.2.7"), length: 24)])
        let path = NetworkPath(status: .satisfied, interface: eth, interfaceV4: eth, supportsDNS: true, interfaces: [eth])
        let targets = hostileNames.enumerated().map { index, name -> BoardTarget in
            let cause = Cause(.http, .init(rawValue: name), detail: name, evidence: ["reason": .text(name), name: .text("x")])
            return target(
                name, title: name, group: index % 2 == 0 ? name : nil,
                index % 3 == 0 ? update("192.0.2.\(index + 1):80", .down, cause) : update("192.0.2.\(index + 1):80"),
                shape: { $0 == 3 ? (.down, 0.4) : nil })
        }
        var board = Self.board(targets, path: path, groups: [.init(name: hostileNames[0], isFolded: true)])
        board.instance = hostileNames[1]
        board.timeZone = hostileNames[2]
        board.recording = RecordingStatus(reason: hostileNames[0], since: now)
        board.reloadProblem = hostileNames[8]
        board.incidents = [
            incident(
                "<i>", .path, .init(.gateway, hostileNames[1]), Cause(.neighbor, .gatewaySilent, detail: hostileNames[0]),
                ["192.0.2.1:80"], from: now - 5_000)
        ]
        return board
    }()
}
