import Console
import Dispatch
import HTTPTypes
import Hummingbird
import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP1
import NIOHTTPTypes
import NIOHTTPTypesHTTP1
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
        connections = Connections(limits: limits, check: RequestCheck(names: names))
        handler = WebConnection(content, limits: limits)
    }

    /// Accepts connections. The server owns the sockets from now on.
    ///
    /// - Throws: ``Failure`` with code 71 if a socket cannot be used.
    func start(_ sockets: [ListeningSocket]) throws(Failure) {
        let (connections, handler) = (connections, handler)
        let bootstrap = ServerBootstrap(group: group)
            .serverChannelInitializer { channel in
                // Without it, a process without a free descriptor would try to accept without a pause.
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(AcceptBackoffHandler())
                }
            }
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            .childChannelInitializer { channel in
                guard let id = connections.add(channel) else {
                    channel.close(promise: nil)
                    return channel.eventLoop.makeSucceededVoidFuture()
                }
                return channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(
                        FirstRequestHandler { channel in
                            guard let first = connections.begin(id) else { return false }
                            let value = try handler.setUp(channel, first)
                            // It ends when the connection is closed.
                            connections.tasks.enter()
                            Task {
                                await handler.handle(value: value, logger: WebConnection.logger)
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
        let loop = group.next()
        let timers = [
            loop.scheduleRepeatedTask(initialDelay: .nanoseconds(limits.checkTime), delay: .nanoseconds(limits.checkTime)) { _ in
                connections.checkTimes()
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
        _ = connections.tasks.wait(timeout: .now() + .nanoseconds(Int(drainTime)))
        try? group.syncShutdownGracefully()
    }
}

/// One connection: its handlers, and the task that answers its requests.
struct WebConnection: HTTPChannelHandler {
    typealias Value = NIOAsyncChannel<HTTPRequestPart, HTTPResponsePart>

    static let logger = Logger(label: "netwatch.web") { _ in SwiftLogNoOpLogHandler() }

    let responder: Responder
    private let limits: WebLimits

    init(_ content: WebContent, limits: WebLimits) {
        self.limits = limits
        let routes = WebRoutes(content: content).makeRouter().buildResponder()
        responder = { request, writer, channel in
            let context = WebContext(source: ApplicationRequestContextSource(channel: channel, logger: Self.logger))
            let isHead = request.method == .head
            var response: Response
            do {
                response = try await routes.respond(to: isHead ? request.asGet : request, context: context)
            } catch {
                response = Response(status: .internalServerError)
            }
            for (name, value) in PageHeaders.all {
                if let name = HTTPField.Name(name), response.headers[name] == nil { response.headers[name] = value }
            }
            response.headers[.date] = HTTPDate.now
            try await writer.write(response: response.head, body: isHead ? ResponseBody() : response.body)
        }
    }

    /// Adds the handlers of a connection, on the event loop.
    func setUp(_ channel: any Channel, _ first: ConnectionHandler) throws -> Value {
        var decoding = NIOHTTPDecoderLimitConfiguration()
        decoding.maxHeaderFieldSize = limits.fieldBytes
        decoding.maxHeaderListSize = limits.fieldsBytes
        decoding.maxHeaderFieldCount = limits.fields
        let pipeline = channel.pipeline.syncOperations
        try pipeline.configureHTTPServerPipeline(
            withPipeliningAssistance: false, withErrorHandling: false, withOutboundHeaderValidation: false,
            withEncoderConfiguration: .init(), withDecoderLimitConfiguration: decoding)
        try pipeline.addHandler(first)
        try pipeline.addHandler(HTTP1ToHTTPServerCodec(secure: false))
        return try NIOAsyncChannel(
            wrappingChannelSynchronously: channel, configuration: .init(isOutboundHalfClosureEnabled: true))
    }

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Value> {
        channel.eventLoop.makeFailedFuture(ChannelError.operationUnsupported)
    }

    func handle(value: Value, logger: Logger) async { await handleHTTP(asyncChannel: value, logger: logger) }
}

extension Request {
    /// The request with the method GET, to which a response to HEAD corresponds.
    fileprivate var asGet: Request {
        var head = head
        head.method = .get
        return Request(head: head, body: RequestBody(buffer: ByteBuffer()))
    }
}
