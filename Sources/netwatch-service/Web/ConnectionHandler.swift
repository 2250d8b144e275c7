import Glibc
import NIOCore
import NIOHTTP1
import Wire

/// The first handler of a connection after the HTTP codec: it checks requests, frames responses, and performs the steps of the
/// ``ConnectionMachine``. Requests are passed on when they are complete, with the content that a route reads.
final class ConnectionHandler: ChannelDuplexHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias InboundOut = HTTPServerRequestPart
    typealias OutboundIn = WebResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    private let connections: Connections
    private let id: Int
    private let isLocal: Bool
    private(set) var machine: ConnectionMachine
    /// The handler of the client's bytes, which continues after each step.
    private(set) lazy var gate = RequestGate(
        turns: connections.turns, input: { [unowned self] in machine.input(at: now) },
        delay: { [connections] isDelayed in connections.delayed += isDelayed ? 1 : -1 })
    /// The head of the request whose content is read.
    private var head: HTTPRequestHead?
    /// The end of its content so far; `nil` if nothing reads it.
    private var content: ByteBuffer?
    /// Whether the response ends with its head: one to HEAD, without a length. The encoder does not know the method, and would write the
    /// last chunk.
    private var endsWithHead = false

    init(_ connections: Connections, _ id: Int, isLocal: Bool, _ machine: ConnectionMachine) {
        (self.connections, self.id, self.isLocal, self.machine) = (connections, id, isLocal, machine)
    }

    private var now: Int64 { Connections.now }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        switch unwrapInboundIn(data) {
        case .head(var head):
            let target = RequestTarget(head.uri)
            let step = received(head, target)
            if step == .pass, let target {
                // The routes know paths only.
                head.uri = target.resource
                self.head = head
                content = WebRoute.route(String(target.path))?.readsContent == true ? ByteBuffer() : nil
            }
            perform(step, context)
        case .body(let bytes):
            content?.keepEnd(of: connections.limits.keptContentBytes, adding: bytes)
            perform(machine.receivedContent(bytes.readableBytes, at: now), context)
        case .end:
            guard machine.receivedEnd() == .pass, let head else { return }
            self.head = nil
            connections.update(id, machine)
            // An answer to a request before this one is not complete yet in the other case.
            if machine.answersOneRequest, let response = connections.stateResponse(head) { return send(response, context) }
            context.fireChannelRead(wrapInboundOut(.head(head)))
            if let content, content.readableBytes > 0 { context.fireChannelRead(wrapInboundOut(.body(content))) }
            content = nil
            context.fireChannelRead(wrapInboundOut(.end(nil)))
        }
    }

    private func received(_ head: HTTPRequestHead, _ target: RequestTarget?) -> ConnectionMachine.Step {
        var fields: [String: [String]] = [:]
        for (name, value) in head.headers { fields[name.lowercased(), default: []].append(value) }
        let request = RequestCheck.Head(method: head.method.rawValue, target: target, fields: fields)
        let route = WebRoute.route(String(target?.path ?? ""))
        let isStream = head.method == .GET && route?.isStream == true
        var problem = connections.check.problem(request, isLocal: isLocal)
        if problem == nil, machine.acceptsRequests {
            if machine.isReserved, route?.isState != true {
                problem = WebProblem(.unavailable, "too many connections are open")
            } else if isStream, !connections.beginStream(id) {
                problem = WebProblem(.unavailable, "too many streams are open")
            }
        }
        let exchange = ConnectionMachine.Exchange(
            isHead: head.method == .HEAD, isStream: isStream, keepsAlive: head.isKeepAlive && !machine.isReserved,
            isOldVersion: head.version != .http1_1)
        let length = fields["content-length"]?.first.flatMap { Int($0) }
        return machine.receivedHead(
            exchange, contentLength: length, readsContent: route?.readsContent == true, problem: problem,
            delayed: connections.delayed, at: now)
    }

    func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
        switch unwrapOutboundIn(data) {
        case .head(var head):
            endsWithHead = machine.current?.isHead == true && !head.headers.contains(name: "content-length")
            if machine.current?.isOldVersion == true { head.version = .http1_0 }
            if endsWithHead, head.version == .http1_0 { machine.endAfterResponse() }
            if machine.isLastResponse { head.headers.replaceOrAdd(name: "connection", value: "close") }
            context.write(wrapOutboundOut(.head(head)), promise: promise)
        case .body where machine.current?.isHead == true: promise?.succeed()
        case .body(let bytes): context.write(wrapOutboundOut(.body(.byteBuffer(bytes))), promise: promise)
        case .end:
            connections.endResponse(id, at: now)
            let written = promise ?? context.eventLoop.makePromise(of: Void.self)
            written.futureResult.assumeIsolated().whenComplete { [connections, id] _ in connections.wroteResponse(id) }
            if endsWithHead { written.succeed() } else { context.write(wrapOutboundOut(.end(nil)), promise: written) }
            perform(machine.wroteEnd(at: now), context)
        }
    }

    /// Sends a response that needs nothing of other threads.
    private func send(_ response: WebResponse, _ context: ChannelHandlerContext) {
        connections.beginResponse(id)
        write(context: context, data: NIOAny(OutboundIn.head(response.head)), promise: nil)
        if case .bytes(let bytes) = response.body { write(context: context, data: NIOAny(OutboundIn.body(bytes)), promise: nil) }
        write(context: context, data: NIOAny(OutboundIn.end(nil)), promise: nil)
        context.flush()
    }

    private func perform(_ step: ConnectionMachine.Step, _ context: ChannelHandlerContext) {
        connections.update(id, machine)
        defer { gate.proceed() }
        switch step {
        case .pass, .discard: break
        case .refuse(let problem):
            send(problem, context)
            closeOutput(context)
        case .finish:
            context.flush()
            closeOutput(context)
        case .close: context.close(promise: nil)
        }
    }

    private func closeOutput(_ context: ChannelHandlerContext) {
        let promise = context.eventLoop.makePromise(of: Void.self)
        let channel = context.channel
        promise.futureResult.assumeIsolated().whenComplete { [self] _ in
            let step = machine.closedOutput(at: now)
            connections.update(id, machine)
            if step == .close { channel.close(promise: nil) } else { gate.proceed() }
        }
        context.close(mode: .output, promise: promise)
    }

    private func send(_ problem: WebProblem, _ context: ChannelHandlerContext) {
        let json = problem.json
        var headers = HTTPHeaders(PageHeaders.all + problem.fields)
        headers.add(name: "Date", value: HTTPDate.format(time(nil)))
        headers.add(name: "Content-Length", value: "\(json.count)")
        headers.add(name: "Connection", value: "close")
        let status = HTTPResponseStatus(statusCode: problem.status)
        context.write(wrapOutboundOut(.head(HTTPResponseHead(version: .http1_1, status: status, headers: headers))), promise: nil)
        context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(bytes: json)))), promise: nil)
        context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    }

    /// Makes the response that is written the last one of the connection.
    func endAfterResponse() { machine.endAfterResponse() }

    /// Closes the connection if it has exceeded a time limit.
    func check(_ channel: any Channel, at now: Int64) {
        if machine.isOverdue(at: now) { channel.close(promise: nil) }
    }

    func channelWritabilityChanged(context: ChannelHandlerContext) {
        machine.changedWritability(context.channel.isWritable, at: now)
        connections.update(id, machine)
        gate.proceed()
        context.fireChannelWritabilityChanged()
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if event as? ChannelEvent == .inputClosed { perform(machine.closedInput(at: now), context) }
        context.fireUserInboundEventTriggered(event)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        switch error {
        case HTTPParserError.headerOverflow:
            let problem = WebProblem(.headersTooLarge, "the target or the fields of the request are too large")
            perform(machine.receivedMalformed(problem, at: now), context)
        case is HTTPParserError:
            perform(machine.receivedMalformed(WebProblem(.badRequest, "not a valid HTTP request"), at: now), context)
        // The decoder reports all bytes after the first malformed one.
        case is ByteToMessageDecoderError: break
        default: context.close(promise: nil)
        }
    }
}

extension ByteBuffer {
    /// Adds bytes, and keeps at least so many at the end, at most twice as many.
    fileprivate mutating func keepEnd(of count: Int, adding bytes: ByteBuffer) {
        if bytes.readableBytes >= count { clear() }
        writeBytes(bytes.readableBytesView.suffix(count))
        guard readableBytes > 2 * count else { return }
        moveReaderIndex(forwardBy: readableBytes - count)
        discardReadBytes()
    }
}
