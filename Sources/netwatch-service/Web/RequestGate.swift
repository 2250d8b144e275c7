import NIOCore

/// The handler before the parser of a connection: it passes on one request at a time, and reads nothing while one is answered. Bytes that the
/// client sends meanwhile stay in the kernel, so the client is slowed and takes no memory here.
///
/// ``ConnectionMachine/input(at:)`` decides. The turns of other connections come between two requests.
final class RequestGate: ChannelDuplexHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer
    typealias OutboundIn = IOData
    typealias OutboundOut = IOData

    /// The maximum number of pieces that are passed on in a turn: a client can send many that are no requests.
    private static let turnLimit = 16

    private let input: () -> ConnectionMachine.Input
    private let delay: (_ isDelayed: Bool) -> Void
    private let turns: RequestTurns
    private var context: ChannelHandlerContext?
    /// The bytes that are not passed on.
    private var bytes = ByteBuffer()
    private var isPassing = false
    private var isReadWanted = false
    private var hasInputEnded = false
    private var hasTurn = false
    private var timer: Scheduled<Void>?
    private var isDelayed = false

    /// - Parameters:
    ///   - turns: the turns of all connections.
    ///   - input: returns what happens to the bytes of the client.
    ///   - delay: called when the next request is there and begins to wait for its time or its turn, and when it waits no longer.
    init(
        turns: RequestTurns, input: @escaping () -> ConnectionMachine.Input, delay: @escaping (_ isDelayed: Bool) -> Void
    ) {
        (self.turns, self.input, self.delay) = (turns, input, delay)
    }

    func handlerAdded(context: ChannelHandlerContext) { self.context = context }

    func handlerRemoved(context: ChannelHandlerContext) {
        self.context = nil
        timer?.cancel()
        timer = nil
        endDelay()
    }

    private func beginDelay() {
        if !isDelayed { delay(true) }
        isDelayed = true
    }

    private func endDelay() {
        if isDelayed { delay(false) }
        isDelayed = false
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var part = unwrapInboundIn(data)
        if bytes.readableBytes == 0 { bytes = part } else { bytes.writeBuffer(&part) }
        pass(context)
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        guard event as? ChannelEvent == .inputClosed else { return context.fireUserInboundEventTriggered(event) }
        // The requests before the end are answered first.
        hasInputEnded = true
        pass(context)
    }

    func read(context: ChannelHandlerContext) {
        isReadWanted = true
        if !isPassing { readIfPossible(context) }
    }

    private func readIfPossible(_ context: ChannelHandlerContext) {
        guard isReadWanted, bytes.readableBytes == 0 else { return }
        switch input() {
        case .pass, .discard:
            isReadWanted = false
            context.read()
        case .wait(let time): wake(at: time, context)
        case .hold, .ignore: break
        }
    }

    /// Continues after a step of the connection, in a turn of its own (``RequestTurns``).
    func proceed() {
        guard let context, !hasTurn else { return }
        hasTurn = true
        if bytes.readableBytes > 0 { beginDelay() }
        turns.add(self, on: context.eventLoop)
    }

    /// Passes on what may be passed on now.
    fileprivate func performTurn() {
        hasTurn = false
        endDelay()
        guard let context else { return }
        if pass(context) { context.fireChannelReadComplete() }
    }

    private func wake(at time: Int64, _ context: ChannelHandlerContext) {
        beginDelay()
        guard timer == nil else { return }
        let deadline = NIODeadline.uptimeNanoseconds(UInt64(max(0, time)))
        timer = context.eventLoop.assumeIsolated().scheduleTask(deadline: deadline) { [self] in
            timer = nil
            proceed()
        }
    }

    /// Passes on what may be passed on. - Returns: whether that is anything.
    @discardableResult
    private func pass(_ context: ChannelHandlerContext) -> Bool {
        guard !isPassing else { return false }
        isPassing = true
        var count = 0
        loop: while bytes.readableBytes > 0 {
            switch input() {
            case .pass:
                guard count < Self.turnLimit else {
                    proceed()
                    break loop
                }
                let length = bytes.withUnsafeReadableBytes { RequestPiece.length(of: $0) }
                guard let piece = bytes.readSlice(length: length) else { break loop }
                count += 1
                context.fireChannelRead(wrapInboundOut(piece))
            case .wait(let time):
                wake(at: time, context)
                break loop
            case .hold: break loop
            case .ignore, .discard: bytes.clear()
            }
        }
        isPassing = false
        if bytes.readableBytes == 0 {
            bytes = ByteBuffer()
            if hasInputEnded {
                hasInputEnded = false
                context.fireUserInboundEventTriggered(ChannelEvent.inputClosed)
            }
            readIfPossible(context)
        }
        return count > 0
    }
}

/// The turns of connections whose next request is there already. All calls are on the event loop.
///
/// An event loop of NIO runs tasks until none is due, and only then reads sockets and accepts connections. Requests that cause each other's
/// tasks would keep it from that, so some connections have a turn, and then a pause that is longer than it.
final class RequestTurns {
    /// The maximum number of connections between two pauses.
    private static let limit = 4
    /// The length of a pause, as a multiple of the time of the turns before it.
    private static let pause: Int64 = 3

    private var waiting: [RequestGate] = []
    private var isScheduled = false
    private var readyAt: Int64 = 0

    func add(_ gate: RequestGate, on loop: any EventLoop) {
        waiting.append(gate)
        schedule(on: loop)
    }

    private func schedule(on loop: any EventLoop) {
        guard !isScheduled, !waiting.isEmpty else { return }
        isScheduled = true
        let deadline = NIODeadline.uptimeNanoseconds(UInt64(max(0, max(readyAt, Connections.now))))
        loop.assumeIsolated().scheduleTask(deadline: deadline) { [self] in
            isScheduled = false
            let began = Connections.now
            let gates = waiting.prefix(Self.limit)
            waiting.removeFirst(gates.count)
            for gate in gates { gate.performTurn() }
            let ended = Connections.now
            readyAt = ended + (ended - began) * Self.pause
            schedule(on: loop)
        }
    }
}

/// The division of a client's bytes into pieces with at most one complete request without content.
enum RequestPiece {
    /// The maximum number of bytes of a piece.
    static let limit = 4_096
    /// The number of bytes of the shortest request (`GET / HTTP/1.1` and two line feeds).
    static let leastRequest = 16

    /// Returns the number of bytes of the first piece: to the end of an empty line, which ends a head (RFC 9112 section 2.1).
    static func length(of bytes: some Collection<UInt8>) -> Int {
        let (lf, cr) = (UInt8(ascii: "\n"), UInt8(ascii: "\r"))
        var (length, isLineEmpty) = (0, false)
        for byte in bytes {
            length += 1
            if byte == lf, isLineEmpty, length >= leastRequest { return length }
            if length == limit { break }
            if byte != cr { isLineEmpty = byte == lf }
        }
        return length
    }
}
