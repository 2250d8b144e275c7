import Console
import EventLoop
import Foundation
import NetworkLab
import Reachability
import RecordSamples
import Records
import Testing

@testable import netwatch_service

/// A server with a sample board, on a free port of loopback and on a Unix socket.
final class Site: Sendable {
    let boards = BoardSource()
    let events: EventFeed
    let port: UInt16
    let path: String
    let isHealthy = Locked(true)
    let reloadProblem = Locked<String?>(nil)
    let server: WebServer
    private let directory: ScratchDirectory

    init(
        limits: WebLimits = WebLimits(), log: EventLog.Limits = EventLog.Limits(), board: Board? = Site.board()
    ) throws {
        directory = try ScratchDirectory()
        path = directory.file("api.sock")
        events = EventFeed(limits: log)
        if let board { boards.publish(board) }
        let (healthy, problem) = (isHealthy, reloadProblem)
        let pages = PageRenderer(
            status: { board, query in
                PageContent(type: "text/html; charset=utf-8", bytes: Array("<p>\(board.targets.count) \(query)".utf8))
            },
            target: { board, path, _ in
                guard let key = TargetPath.key(ofPath: path), board.targets.contains(where: { $0.key == key }) else { return nil }
                return PageContent(type: "text/html; charset=utf-8", bytes: Array("<p>\(path)".utf8))
            },
            badge: { board, name in
                guard board.targets.contains(where: { $0.key == name }) else { return nil }
                return PageContent(type: "image/svg+xml", bytes: Array("<svg/>".utf8))
            },
            favicon: { _ in PageContent(type: "image/svg+xml", bytes: Array("<svg/>".utf8)) },
            assets: [
                "/style.css": PageContent(type: "text/css", bytes: Array("a{}".utf8), tag: "t1"),
                "/large.css": PageContent(type: "text/css", bytes: [UInt8](repeating: 32, count: 4 << 20)),
            ],
            problem: { status, detail in
                PageContent(type: "text/html; charset=utf-8", bytes: Array("<h1>\(status)</h1>".utf8))
            })
        let content = WebContent(
            boards: boards, events: events, header: { Site.header($0) },
            history: { query in
                guard query != "since=x" else { throw WebProblem(.badRequest, "since: not a time") }
                return PageContent(type: "application/json", bytes: Array("{\"query\":\"\(query)\"}".utf8))
            },
            reload: { problem.withLock { $0 } }, isHealthy: { healthy.withLock { $0 } }, isReady: { true }, pages: pages)
        server = WebServer(content, limits: limits, names: ["box.example"])
        let listener = try ListeningSocket.tcp(ListenAddress("127.0.0.1:0"))
        port = try #require(listener.endpoint?.port)
        try server.start([listener, ListeningSocket.unix(path: path, mode: 0o660)])
    }

    /// Stops the server. The tests end without its thread.
    func stop() async throws { try await onThread { [server] in server.stop() } }

    /// Runs a conversation on a thread of its own.
    func with<Value: Sendable>(_ body: @escaping @Sendable (Site) throws -> Value) async throws -> Value {
        try await onThread { try body(self) }
    }

    func client() throws -> RawClient { try RawClient(port: port) }

    static func header(_ board: Board) -> StreamHeader {
        StreamHeader(version: "0.1.0", identity: Samples.header.identity, targets: board.targets.map(\.update.endpoint))
    }

    /// A board with targets `a1:80`, `a2:80`, …. The first has the identifier `office`.
    static func board(targets count: Int = 3, sequence: Int = -1) -> Board {
        let targets = (1...count).map { number in
            BoardTarget(
                key: number == 1 ? "office" : "a\(number):80", id: number == 1 ? "office" : nil, title: "a\(number)",
                update: update("a\(number):80"))
        }
        return Board(
            moment: Samples.moment(9), instance: "box", timeZone: "UTC", started: Samples.moment(0), sequence: sequence,
            path: PathUpdate(
                path: Samples.satisfied, reasons: [], isInitial: true, coalescedEventCount: 0, moment: Samples.moment(0)),
            groups: [], targets: targets, incidents: [], recording: RecordingStatus(reason: nil, since: 1_785_672_000_000),
            cells: SpanValues(repeating: []))
    }

    static func update(_ text: String, _ state: ServerState = .up) -> ServerUpdate {
        ServerUpdate(
            endpoint: Samples.endpoint(text), state: state, cause: nil, since: Samples.moment(1), address: nil, interface: nil,
            roundTrip: nil, isInitial: false, moment: Samples.moment(1))
    }

    /// Appends a change of a target.
    func change(_ number: Int, _ state: ServerState = .down) {
        let text = "a\(number):80"
        let key = number == 1 ? "office" : text
        events.append(
            Record(event: .server(TargetID(number), Self.update(text, state))), with: RecordEncoder(header: Samples.header),
            key: key, keys: [key, text])
    }

    /// Appends a record that every reader receives.
    func appendPath() { events.append(Record(event: Samples.path()), with: RecordEncoder(header: Samples.header)) }
}
