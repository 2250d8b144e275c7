import CLinux
import EventLoop
import NIOCore

// @unchecked: everything is accessed on the server's only event loop, which the compiler cannot check.

/// The open connections of the server, and their limits.
final class Connections: @unchecked Sendable {
    let limits: WebLimits
    let check: RequestCheck
    private var table: ConnectionTable
    private var open: [Int: (channel: any Channel, handler: ConnectionHandler)] = [:]
    private var nextID = 0
    /// The number of connections whose task has ended. It ends after its connection, when the pages that were asked for are rendered.
    let endedTasks = Locked(0)
    private var trimming = HeapTrimming()
    private var whenEmpty: EventLoopPromise<Void>?

    init(limits: WebLimits, check: RequestCheck) {
        (self.limits, self.check) = (limits, check)
        table = ConnectionTable(limits: limits)
    }

    /// The present time, in nanoseconds.
    static var now: Int64 { Int64(clamping: NIODeadline.now().uptimeNanoseconds) }

    /// The number of open connections.
    var count: Int { open.count }

    /// Returns the handler of a new connection; `nil` if there are too many.
    func add(_ channel: any Channel) -> ConnectionHandler? {
        let (id, now, client) = (nextID, Self.now, Self.client(channel.remoteAddress))
        nextID += 1
        var isReserved = false
        switch table.admit(id, client, at: now) {
        case .accepted(let victim): close(victim)
        case .reserved(let victim):
            close(victim)
            isReserved = true
        case .refused: return nil
        }
        let machine = ConnectionMachine(limits: limits, isReserved: isReserved, now: now)
        let handler = ConnectionHandler(self, id, isLocal: client == .socket, machine)
        open[id] = (channel, handler)
        // A connection that is replaced before it is active has no event at its end.
        channel.closeFuture.whenComplete { _ in self.remove(id) }
        return handler
    }

    private func close(_ id: Int?) {
        if let id { open[id]?.channel.close(promise: nil) }
    }

    private static func client(_ address: SocketAddress?) -> ConnectionTable.Client {
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
        open[id] = nil
        if open.isEmpty { finishDraining() }
    }

    private func finishDraining() {
        whenEmpty?.succeed()
        whenEmpty = nil
    }

    /// Closes the connections that have exceeded a time limit.
    func checkTimes() {
        let now = Self.now
        for (channel, handler) in open.values { handler.check(channel, at: now) }
    }

    /// Returns free memory to the kernel if many connections have ended.
    func trimHeap() {
        guard trimming.isDue(ended: endedTasks.withLock { $0 }) else { return }
        // It takes 0.2 s with 10,000 targets; this thread answers meanwhile.
        Task.detached { malloc_trim(0) }
    }

    /// Closes the connections that wait for a request, and returns when the others are closed too, or after ``closeAll()``.
    func drain(on loop: any NIOCore.EventLoop) -> EventLoopFuture<Void> {
        for (channel, handler) in open.values where handler.machine.idleSince != nil { channel.close(promise: nil) }
        guard !open.isEmpty else { return loop.makeSucceededVoidFuture() }
        let promise = loop.makePromise(of: Void.self)
        whenEmpty = promise
        return promise.futureResult
    }

    /// Closes all connections.
    func closeAll() {
        for (channel, _) in open.values { channel.close(promise: nil) }
        finishDraining()
    }
}
