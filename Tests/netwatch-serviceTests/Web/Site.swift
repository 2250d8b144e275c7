import Console
import EventLoop
import Foundation
import NetworkLab
import Reachability
import RecordSamples
import Records
import Testing

@testable import netwatch_service

/// Short pages, whose rendering a test counts, blocks and holds.
private struct SitePages: PageRenderer {
    /// 4 MiB, and no document that is counted as unread.
    private static let large = PageAsset(.script, "text/javascript", [UInt8](repeating: 32, count: 4 << 20), tag: "large")

    let boards: BoardSource
    let rendered: Locked<Int>
    let block: Locked<Bool>
    let clients: Locked<[RenderClient.Share]>
    let held: Locked<[CheckedContinuation<Void, Never>]>

    func status(_ query: String) -> PageDocument {
        PageDocument(type: ServicePages.html) {
            if query == "block" { block.withLock { _ in } }
            rendered.withLock { $0 += 1 }
            if query == "medium" { return [UInt8](repeating: 32, count: 1 << 20) }
            if query == "large" { return [UInt8](repeating: 32, count: 32 << 20) }
            return Array("<p>\(boards.current()?.targets.count ?? 0) \(query)".utf8)
        }
    }

    func target(_ target: BoardTarget, on board: Board, _ query: String) -> PageDocument {
        PageDocument(type: ServicePages.html) { Array("<p>\(target.key)".utf8) }
    }

    func history(_ query: String) throws -> PageDocument {
        guard query != "since=x" else { throw WebProblem(.badRequest, "since: not a time") }
        return PageDocument(type: "application/json") { client in
            clients.withLock { $0.append(client.share) }
            if query == "hold" { await withCheckedContinuation { request in held.withLock { $0.append(request) } } }
            return WholeDocument { Array("{\"query\":\"\(query)\"}".utf8) }
        }
    }

    func asset(_ path: PageAsset.StaticPath) -> PageAsset {
        switch path {
        case .style: .style
        case .script: Self.large
        }
    }
}

/// A server with a sample board, on a free port of loopback and on a Unix socket.
final class Site: Sendable {
    let boards = BoardSource()
    let events: EventFeed
    let heartbeats = HeartbeatDesk()
    let port: UInt16
    let path: String
    let isHealthy = Locked(true)
    let reloadOutcome = Locked(ReloadOutcome.loaded(ReloadCounts(), restartKeys: []))
    /// The number of documents that were rendered, and of loads of the configuration.
    let rendered = Locked(0)
    let reloads = Locked(0)
    /// The numbers of removed targets that the loads confirm.
    let confirmed = Locked<[Int?]>([])
    /// Whether the next loads wait for ``release()``.
    let holdsReloads = Locked(false)
    /// The clients whose history was asked for.
    let clients = Locked<[RenderClient.Share]>([])
    /// Blocks the thread of documents while a test holds it (`GET /?block`).
    let block = Locked(false)
    let server: WebServer
    /// The requests that wait for ``release()``.
    let held = Locked<[CheckedContinuation<Void, Never>]>([])
    private let directory: ScratchDirectory

    init(
        limits: WebLimits = WebLimits(), log: EventLog.Limits = EventLog.Limits(),
        unread: RenderQueue.UnreadLimit = RenderQueue.UnreadLimit(), events feed: EventFeed? = nil,
        board: Board? = Site.board()
    ) throws {
        directory = try ScratchDirectory()
        path = directory.file("api.sock")
        events = feed ?? EventFeed(limits: log)
        if let board { boards.publish(board) }
        let (healthy, outcome, held) = (isHealthy, reloadOutcome, held)
        let (reloads, holdsReloads, confirmed) = (reloads, holdsReloads, confirmed)
        let pages = SitePages(boards: boards, rendered: rendered, block: block, clients: clients, held: held)
        let content = WebContent(
            boards: boards, events: events, renders: try RenderQueue(unreadLimit: unread), header: { Site.header($0) },
            reload: { number in
                reloads.withLock { $0 += 1 }
                confirmed.withLock { $0.append(number) }
                if holdsReloads.withLock({ $0 }) { await withCheckedContinuation { load in held.withLock { $0.append(load) } } }
                return outcome.withLock { $0 }
            }, isHealthy: { healthy.withLock { $0 } }, pages: pages, heartbeats: heartbeats)
        // On a busy machine too: LeakSanitizer reports tasks that have not ended.
        var limits = limits
        limits.taskTime = 120 * WebLimits.second
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

    /// Repeats an attempt until it succeeds, for as long as a loaded machine may need. A server without places closes connections.
    func retried(_ attempt: () throws -> Bool) throws -> Bool {
        let deadline = Date(timeIntervalSinceNow: 120)
        while Date() < deadline {
            if (try? attempt()) == true { return true }
        }
        return try attempt()
    }

    /// Waits until a number of requests wait for ``release()``.
    func awaitHeld(_ count: Int) {
        let deadline = Date(timeIntervalSinceNow: 120)
        while held.withLock({ $0.count }) < count, Date() < deadline { sched_yield() }
    }

    /// Answers the requests for `/api/v1/history?hold`.
    func release() {
        let requests = held.withLock { held in
            defer { held = [] }
            return held
        }
        for request in requests { request.resume() }
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

    static func update(_ text: String, _ state: StatusName = .up) -> ServerUpdate {
        ServerUpdate(
            endpoint: Samples.endpoint(text), statusName: state, cause: nil, since: Samples.moment(1), address: nil,
            interface: nil,
            roundTrip: nil, isInitial: false, moment: Samples.moment(1))
    }

    /// Appends a change of a target.
    func change(_ number: Int, _ state: StatusName = .down) {
        let text = "a\(number):80"
        let key = number == 1 ? "office" : text
        events.append(
            Record(event: .server(TargetID(number), Self.update(text, state))), with: RecordEncoder(header: Samples.header),
            key: key)
    }

    /// Appends a record that every reader receives.
    func appendPath() { events.append(Record(event: Samples.path()), with: RecordEncoder(header: Samples.header)) }
}
