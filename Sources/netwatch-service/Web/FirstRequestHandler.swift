import NIOCore

/// The only handler of a connection until the head of its first request is complete. A connection without a request costs little: no parser
/// and no task exists for it, and it takes none of the places of ``WebLimits/connections``.
final class FirstRequestHandler: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = ByteBuffer

    private let begin: (any Channel) throws -> Bool
    private var bytes = ByteBuffer()
    private var hasBegun = false

    /// - Parameter begin: adds the handlers of requests; `false` if there is no place for them, which closes the connection.
    init(begin: @escaping (any Channel) throws -> Bool) { self.begin = begin }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        guard !hasBegun else { return context.fireChannelRead(data) }
        var part = unwrapInboundIn(data)
        bytes.writeBuffer(&part)
        if FirstRequest.isDue(bytes.readableBytesView) { start(context) }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        // Nothing follows, so no request can become complete.
        if event as? ChannelEvent == .inputClosed, !hasBegun { return context.close(promise: nil) }
        context.fireUserInboundEventTriggered(event)
    }

    private func start(_ context: ChannelHandlerContext) {
        hasBegun = true
        guard (try? begin(context.channel)) == true else { return context.close(promise: nil) }
        context.fireChannelRead(wrapInboundOut(bytes))
        context.fireChannelReadComplete()
        bytes = ByteBuffer()
        context.pipeline.syncOperations.removeHandler(self, promise: nil)
    }
}

/// The decision when the parser of HTTP receives the first bytes of a connection.
enum FirstRequest {
    /// The number of bytes for which a head is waited for. A longer one is parsed while it arrives.
    static let limit = 1_024

    /// Returns whether a head is complete (RFC 9112 section 2.1), or longer than ``limit``, or begins with something else than a
    /// request line, which the parser refuses at once.
    static func isDue(_ bytes: some BidirectionalCollection<UInt8>) -> Bool {
        let (lf, cr) = (UInt8(ascii: "\n"), UInt8(ascii: "\r"))
        // A server ignores empty lines before a request line (section 2.2).
        let head = bytes.drop { $0 == lf || $0 == cr }
        guard bytes.count < limit else { return true }
        guard let method = head.first else { return false }
        guard UInt8(ascii: "A")...UInt8(ascii: "Z") ~= method else { return true }
        guard let end = head.firstIndex(of: lf) else { return false }
        let version = head[..<end].split(separator: UInt8(ascii: " ")).last
        guard version?.starts(with: Array("HTTP/".utf8)) == true else { return true }
        // An empty line ends the head.
        var isLineEmpty = false
        for byte in head[end...] where byte != cr {
            if byte == lf, isLineEmpty { return true }
            isLineEmpty = byte == lf
        }
        return false
    }
}
