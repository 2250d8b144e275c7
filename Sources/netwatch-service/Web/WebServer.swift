import Console
import Dispatch
import NIOCore
import NIOHTTP1
import NIOPosix
import EventLoop

/// The server of pages, documents and streams. One thread does all its input and output; pages are rendered on Swift's threads.
final class WebServer: Sendable {
    private struct State {
        var listeners: [any Channel] = []
        var sockets: [ListeningSocket] = []
        var timers: [RepeatedTask] = []
    }

    private let content: WebContent
    private let limits: WebLimits
    private let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    private let connections: Connections
    private let handler: WebConnection
    private let state = Locked(State())

    /// Creates a server. `Host` may have these names of this machine, beside those of loopback.
    init(_ content: WebContent, limits: WebLimits = .ofProcess, names: [String] = []) {
        (self.content, self.limits) = (content, limits)
        let routes = WebRoutes(content: content)
        connections = Connections(limits: limits, check: RequestCheck(names: names), routes: routes)
        handler = WebConnection(routes: routes, limits: limits)
        let loop = group.next()
        content.renders.onShortage { [connections, weak renders = content.renders] in
            guard let renders else { return }
            loop.execute { if renders.isShort { connections.closeSlowReaders() } }
        }
    }

    /// Accepts connections. The server owns the sockets from now on.
    ///
    /// - Throws: ``Failure`` with code 71 if a socket cannot be used.
    func start(_ sockets: [ListeningSocket]) throws(Failure) {
        let (connections, handler, limits) = (connections, handler, limits)
        let bootstrap = ServerBootstrap(group: group)
            .serverChannelInitializer { channel in
                // Without it, a process without a free descriptor would try to accept without a pause.
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(AcceptBackoffHandler())
                }
            }
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            // What a client sends while its request is answered stays in the kernel.
            .childChannelOption(.maxMessagesPerRead, value: 1)
            .childChannelOption(.recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: limits.readBytes))
            .childChannelInitializer { channel in
                guard let id = connections.add(channel) else {
                    channel.close(promise: nil)
                    return channel.eventLoop.makeSucceededVoidFuture()
                }
                return channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(
                        FirstRequestHandler { channel in
                            guard let first = connections.begin(id), let client = connections.renderClient(id) else {
                                return false
                            }
                            let value = try handler.setUp(channel, first)
                            // It ends when the connection is closed.
                            connections.tasks.enter()
                            Task {
                                await handler.answer(value, client)
                                connections.ended.withLock { $0 += 1 }
                                connections.tasks.leave()
                            }
                            return true
                        })
                }
            }
        for socket in sockets {
            do {
                let listener = try bootstrap.withBoundSocket(socket.descriptor).wait()
                socket.restoreBacklog()
                state.withLock { $0.listeners.append(listener) }
            } catch {
                throw Failure(ExitCode.system, "the web server: cannot accept connections: \(error)")
            }
        }
        let (loop, renders) = (group.next(), content.renders)
        let timers = [
            loop.scheduleRepeatedTask(initialDelay: .nanoseconds(limits.checkTime), delay: .nanoseconds(limits.checkTime)) { _ in
                connections.checkTimes()
                if renders.isShort { connections.closeSlowReaders() }
                connections.trimHeap()
            },
            loop.scheduleRepeatedTask(
                initialDelay: .nanoseconds(limits.keepAliveTime), delay: .nanoseconds(limits.keepAliveTime)
            ) { [events = content.events] _ in events.keepAlive() },
        ]
        state.withLock { state in
            state.sockets = sockets
            state.timers = timers
        }
    }

    /// The number of open connections.
    var connectionCount: Int { (try? group.next().submit { [connections] in connections.count }.wait()) ?? 0 }

    /// Stops: new connections are refused, streams end, and the requests that are being answered have ``WebLimits/drainTime``. Returns when the
    /// thread has ended.
    func stop() {
        let state = state.withLock { state in
            let former = state
            state = State()
            return former
        }
        for timer in state.timers { timer.cancel() }
        for listener in state.listeners { try? listener.close().wait() }
        for socket in state.sockets { socket.removeFile() }
        content.events.end()
        let (loop, connections, drainTime) = (group.next(), connections, limits.drainTime)
        try? loop.flatSubmit {
            loop.scheduleTask(in: .nanoseconds(drainTime)) { connections.closeAll() }
            return connections.drain(on: loop)
        }.wait()
        _ = connections.tasks.wait(timeout: .now() + .nanoseconds(Int(limits.taskTime)))
        // The closure keeps the connections, whose routes keep the queue and its thread.
        content.renders.onShortage(nil)
        try? group.syncShutdownGracefully()
    }
}

/// One connection: its handlers, and the task that answers its requests.
struct WebConnection: Sendable {
    typealias AsyncChannel = NIOAsyncChannel<HTTPServerRequestPart, WebResponsePart>
    /// The number of bytes of a document that are written at once. A client that reads slowly keeps no more in the kernel's queue.
    private static let pieceSize = 1 << 16

    private let routes: WebRoutes
    private let limits: WebLimits

    init(routes: WebRoutes, limits: WebLimits) { (self.routes, self.limits) = (routes, limits) }

    /// Adds the handlers of a connection, on the event loop.
    func setUp(_ channel: any Channel, _ first: ConnectionHandler) throws -> AsyncChannel {
        var decoding = NIOHTTPDecoderLimitConfiguration()
        decoding.maxHeaderFieldSize = limits.fieldBytes
        decoding.maxHeaderListSize = limits.fieldsBytes
        decoding.maxHeaderFieldCount = limits.fields
        let pipeline = channel.pipeline.syncOperations
        try pipeline.addHandler(first.gate)
        try pipeline.configureHTTPServerPipeline(
            withPipeliningAssistance: false, withErrorHandling: false, withOutboundHeaderValidation: false,
            withEncoderConfiguration: .init(), withDecoderLimitConfiguration: decoding)
        try pipeline.addHandler(first)
        return try NIOAsyncChannel(
            wrappingChannelSynchronously: channel, configuration: .init(isOutboundHalfClosureEnabled: true))
    }

    /// Answers requests until the connection is closed. ``ConnectionHandler`` answers malformed ones.
    func answer(_ channel: AsyncChannel, _ client: RenderClient) async {
        try? await channel.executeThenClose { inbound, outbound in
            var request: WebRequest?
            requests: for try await part in inbound {
                switch part {
                case .head(let head): request = WebRequest(head: head, client: client)
                case .body(let bytes): request?.content = bytes
                case .end:
                    guard let complete = request else { continue }
                    request = nil
                    try await answer(complete, on: channel.channel, outbound)
                    if complete.head.headers["Connection"] == ["close"] { break requests }
                }
            }
            outbound.finish()
            try await channel.channel.closeFuture.get()
        }
    }

    private func answer(
        _ request: WebRequest, on channel: any Channel, _ outbound: NIOAsyncChannelOutboundWriter<WebResponsePart>
    ) async throws {
        let response = await routes.respond(to: request, on: channel)
        request.client.begin(response.document)
        let head = WebResponsePart.head(response.head)
        guard request.head.method != .HEAD else { return try await outbound.write(contentsOf: [head, .end(nil)]) }
        switch response.body {
        case .bytes(var bytes):
            guard bytes.readableBytes > Self.pieceSize else {
                let body = bytes.readableBytes == 0 ? [] : [WebResponsePart.body(bytes)]
                return try await outbound.write(contentsOf: [head] + body + [.end(nil)])
            }
            try await outbound.write(head)
            while let piece = bytes.readSlice(length: min(Self.pieceSize, bytes.readableBytes)), piece.readableBytes > 0 {
                try await outbound.write(.body(piece))
            }
        case .omitted: try await outbound.write(head)
        case .stream(let stream):
            try await outbound.write(head)
            try await stream { try await outbound.write(.body($0)) }
        }
        try await outbound.write(.end(nil))
    }
}
