import CLinux
import Dispatch
import EventLoop
import NIOCore
import NIOHTTP1

// @unchecked: everything is accessed on the server's only event loop, which the compiler cannot check.

/// The open connections of the server, and their limits.
final class Connections: @unchecked Sendable {
    let limits: WebLimits
    let check: RequestCheck
    private let routes: WebRoutes
    private var table: ConnectionTable
    private var open: [Int: Open] = [:]
    private var nextID = 0
    /// The turns of connections that have sent further requests.
    let turns = RequestTurns()
    /// The number of connections whose next request is there and waits, because they send requests faster than they may.
    var delayed = 0
    /// The number of connections that have ended. One with requests ends with its task, when the pages that were asked for are rendered.
    let ended = Locked(0)
    /// The tasks of connections with requests. Each must end before the thread does: it resumes there once more after its connection is closed.
    let tasks = DispatchGroup()
    private var trimming = HeapTrimming()
    private var whenEmpty: EventLoopPromise<Void>?

    private struct Open {
        var channel: any Channel
        var since: Int64
        var client: ConnectionTable.Client
        /// The handler of requests; `nil` until the first one is complete.
        var handler: ConnectionHandler?
        var renderClient: RenderClient?

        /// Whether no request is answered.
        var isIdle: Bool { handler.map { $0.machine.idleSince != nil } ?? true }
    }

    init(limits: WebLimits, check: RequestCheck, routes: WebRoutes) {
        (self.limits, self.check, self.routes) = (limits, check, routes)
        table = ConnectionTable(limits: limits)
    }

    /// The present time, in nanoseconds.
    static var now: Int64 { Int64(clamping: NIODeadline.now().uptimeNanoseconds) }

    /// The number of open connections.
    var count: Int { open.count }

    /// Enters a new connection. - Returns: its number; `nil` if there are too many.
    func add(_ channel: any Channel) -> Int? {
        let (id, now) = (nextID, Self.now)
        nextID += 1
        let client = Self.client(channel.remoteAddress)
        guard case .accepted(let victim) = table.admit(id, client, at: now) else { return nil }
        close(victim)
        open[id] = Open(channel: channel, since: now, client: client)
        // A connection that is replaced before it is active has no event at its end.
        channel.closeFuture.whenComplete { _ in self.remove(id) }
        return id
    }

    /// Returns the handler of a connection whose first request has arrived; `nil` if there are too many.
    func begin(_ id: Int) -> ConnectionHandler? {
        guard let connection = open[id] else { return nil }
        var isReserved = false
        switch table.beginRequests(id, at: Self.now) {
        case .accepted(let victim): close(victim)
        case .reserved(let victim):
            close(victim)
            isReserved = true
        case .refused: return nil
        }
        let isLocal = connection.client == .socket
        let machine = ConnectionMachine(limits: limits, isReserved: isReserved, now: connection.since)
        let handler = ConnectionHandler(self, id, isLocal: isLocal, machine)
        open[id]?.handler = handler
        return handler
    }

    /// Returns the client of an open connection for the thread of documents.
    func renderClient(_ id: Int) -> RenderClient? {
        guard let connection = open[id] else { return nil }
        let user = connection.client == .socket ? PeerCredentials.user(of: connection.channel) : nil
        let client = RenderClient(connection: id, connection.client, user: user)
        connection.channel.closeFuture.whenComplete { _ in client.end() }
        open[id]?.renderClient = client
        return client
    }

    /// Returns the answer to a request for the state of the service; `nil` for another one.
    func stateResponse(_ head: HTTPRequestHead) -> WebResponse? { routes.stateResponse(head) }

    private func close(_ id: Int?) {
        if let id { open[id]?.channel.close(promise: nil) }
    }

    private static func client(_ address: NIOCore.SocketAddress?) -> ConnectionTable.Client {
        guard let address else { return .socket }
        switch address {
        case .unixDomainSocket: return .socket
        case .v4, .v6:
            let text = address.ipAddress ?? ""
            return text.hasPrefix("127.") || text == "::1" || text.hasPrefix("::ffff:127.") ? .loopback : .address(text)
        }
    }

    /// Notes the state of a connection after a step.
    func update(_ id: Int, _ machine: ConnectionMachine) { table.setIdle(id, since: machine.idleSince) }

    /// Makes a connection a stream. - Returns: `false` if there are too many streams.
    func beginStream(_ id: Int) -> Bool {
        guard case .accepted(let victim) = table.beginStream(id) else { return false }
        close(victim)
        return true
    }

    private func remove(_ id: Int) {
        table.remove(id)
        if let connection = open.removeValue(forKey: id), connection.handler == nil { ended.withLock { $0 += 1 } }
        if open.isEmpty { finishDraining() }
    }

    private func finishDraining() {
        whenEmpty?.succeed()
        whenEmpty = nil
    }

    /// Closes the connections that have exceeded a time limit.
    func checkTimes() {
        let now = Self.now
        for connection in open.values {
            if let handler = connection.handler {
                handler.check(connection.channel, at: now)
            } else if now - connection.since >= limits.headTime {
                connection.channel.close(promise: nil)
            }
        }
    }

    /// Closes connections of clients that have documents and have read nothing of them for a second or more, those with the longest time first.
    func closeSlowReaders() {
        let limit = Self.now - WebLimits.second
        var slow: [(channel: any Channel, since: Int64)] = []
        for connection in open.values where connection.renderClient?.hasUnreadDocuments == true {
            // Of a complete response, the channel may have less than what makes it unwritable.
            guard let since = connection.renderClient?.unreadSince ?? connection.handler?.machine.stalledSince, since <= limit
            else {
                continue
            }
            slow.append((connection.channel, since))
        }
        for reader in slow.sorted(by: { $0.since < $1.since }).prefix(16) { reader.channel.close(promise: nil) }
    }

    /// Notes that a response without a document begins.
    func beginResponse(_ id: Int) { open[id]?.renderClient?.begin(nil) }

    /// Notes that a response is written completely, to the kernel.
    func wroteResponse(_ id: Int) { open[id]?.renderClient?.wroteResponse() }

    /// Notes that the end of a response is given to the channel.
    func endResponse(_ id: Int, at now: Int64) { open[id]?.renderClient?.endResponse(at: now) }

    /// Returns free memory to the kernel if many connections have ended.
    func trimHeap() {
        guard trimming.isDue(ended: ended.withLock { $0 }) else { return }
        // It takes 0.2 s with 10,000 targets; this thread answers meanwhile.
        Task.detached { malloc_trim(0) }
    }

    /// Closes the connections that wait for a request, and the others after the response that is being written. Returns when all are closed, or
    /// after ``closeAll()``.
    func drain(on loop: any NIOCore.EventLoop) -> EventLoopFuture<Void> {
        for connection in open.values {
            if connection.isIdle { connection.channel.close(promise: nil) } else { connection.handler?.endAfterResponse() }
        }
        guard !open.isEmpty else { return loop.makeSucceededVoidFuture() }
        let promise = loop.makePromise(of: Void.self)
        whenEmpty = promise
        return promise.futureResult
    }

    /// Closes all connections.
    func closeAll() {
        for connection in open.values { connection.channel.close(promise: nil) }
        finishDraining()
    }
}
