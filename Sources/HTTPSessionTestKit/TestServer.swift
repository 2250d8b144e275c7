import EventLoop
public import struct FoundationEssentials.URL

/// An HTTP/1.1 server that answers what its test tells it, and goes wrong as it is told.
///
/// ```swift
/// let server = try TestServer { request in
///     request.path == "/cut" ? StubResponse(body: .pattern(10_000)).cut(afterBodyBytes: 5_000, .reset) : StubResponse(body: "hello")
/// }
/// // … requests to server.url("/cut") …
/// #expect(server.requests.map(\.method) == ["GET"])
/// ```
///
/// Each connection has a thread. All of them end with ``stop()``, or with the last reference to the server; so keep one, and none in
/// the server's own closures.
public final class TestServer: Sendable {
    /// What a server can be told besides its replies.
    public struct Options: Sendable {
        /// Further connections wait in the kernel's queue until one ends.
        public var maximumConnections = 256
        /// So many requests are kept; then the oldest go.
        public var recordedRequests = 4096
        /// So much of each body is kept.
        public var recordedBodyBytes = 1 << 20
        /// SO_RCVBUF of the connections, in bytes: how much of an upload the kernel takes while nobody reads. Nil for its own choice.
        public var receiveBuffer: Int?
        /// The file of the network namespace to listen in; nil for that of the caller. The closures that answer then run inside it, and
        /// must not give queues or tasks something to do: dispatch would make its threads there.
        public var namespace: String?
        /// What happens to a connection (they are counted from 1) before the first byte, also before TLS.
        public var arrival: @Sendable (_ connection: Int) -> Arrival = { _ in .serve }
        /// What happens when a request's head has been read, and its body has not.
        public var onHead: @Sendable (ReceivedRequest) -> HeadDecision = { _ in .readBody() }
        /// What became of a reply, when the next request of its connection has come, or the connection has ended: told for each reply once,
        /// also for those that were broken off, by either side.
        public var onDelivery: @Sendable (ReceivedRequest, Delivery) -> Void = { _, _ in }

        /// A server that behaves until its replies do not.
        public init() {}
    }

    /// How far the body of a reply has come, as the server's side sees it. What has arrived lies between the last two; with TLS these are a
    /// little too small, because what is not there yet is counted in records.
    public struct Delivery: Hashable, Sendable {
        /// Bytes of the body that the kernel has taken.
        public var sentBytes: Int64
        /// Of these, how many have been on the way at least once.
        public var transmittedBytes: Int64
        /// Of these, how many the other side's kernel has acknowledged. An acknowledgement may be 40 ms late, or lost with its connection.
        public var acknowledgedBytes: Int64

        /// So many of each.
        public init(sentBytes: Int64, transmittedBytes: Int64, acknowledgedBytes: Int64) {
            (self.sentBytes, self.transmittedBytes, self.acknowledgedBytes) = (sentBytes, transmittedBytes, acknowledgedBytes)
        }
    }

    /// What becomes of a new connection.
    public enum Arrival: Sendable {
        /// Requests are read and answered, after the TLS handshake where there is one.
        case serve
        /// It ends at once.
        case end(StubResponse.Ending)
        /// This is said unasked, without TLS, and the connection ends: a banner with ``StubResponse/raw(_:_:)``, or ``StubResponse/never``.
        case respond(StubResponse)
    }

    /// What becomes of a request whose head has been read.
    public enum HeadDecision: Sendable {
        /// The body is read, after these waits and at this speed at most; `100 Continue` is sent before to whoever expects it.
        case readBody(after: [StubResponse.Wait] = [], bytesPerSecond: Int? = nil, sendsContinue: Bool = true)
        /// This is the answer, the body is not read, and the connection ends.
        case refuse(StubResponse)
        /// The connection ends.
        case end(StubResponse.Ending)
    }

    /// What a server has seen so far.
    public struct Seen: Sendable {
        /// Requests whose head and body have been read, or that were refused after the head; oldest first.
        public fileprivate(set) var requests: [ReceivedRequest] = []
        /// How many requests there were, also those that are no longer kept.
        public fileprivate(set) var requestCount = 0
        /// How many replies went out whole, on connections that were kept.
        public internal(set) var answered = 0
        /// How many connections were accepted.
        public internal(set) var connections = 0
        /// How many of them are open.
        public internal(set) var openConnections = 0 {
            didSet { peakConnections = max(peakConnections, openConnections) }
        }
        /// The most that were open at once.
        public private(set) var peakConnections = 0
        /// TLS handshakes that succeeded.
        public internal(set) var handshakes = 0
        /// Those of them that resumed a session.
        public internal(set) var resumedHandshakes = 0
        /// TLS handshakes that failed, most often because the client did not like the certificate.
        public internal(set) var failedHandshakes = 0
        /// Bytes of request bodies that have been read, also of requests that are not complete yet.
        public internal(set) var bodyBytes: Int64 = 0
        /// Bytes of replies' bodies that the kernel has taken, also of replies that were broken off.
        public internal(set) var sentBodyBytes: Int64 = 0
        private var arrivals = 0

        mutating func nextArrival() -> Int {
            arrivals += 1
            return arrivals
        }

        mutating func record(_ request: ReceivedRequest, limit: Int) {
            requestCount += 1
            requests.append(request)
            if requests.count > limit { requests.removeFirst(requests.count - limit) }
        }
    }

    /// The port; 0 for a Unix socket.
    public let port: UInt16
    /// Where it listens.
    public let address: ListeningAddress
    private let isEncrypted: Bool
    private let listener: Listener
    private let log: ServerLog<Seen>

    /// Starts a server.
    ///
    /// - Parameters:
    ///   - address: where it listens; a free port of 127.0.0.1 unless told.
    ///   - tls: how it speaks TLS; nil for plain text.
    ///   - options: what else there is to tell.
    ///   - reply: the answer to each request, asked for on the connection's thread when the request has been read.
    /// - Throws: ``TestServerError``: the address is taken or not of this machine, or the certificate, the key or the namespace is
    ///   not usable.
    public init(
        at address: ListeningAddress = .loopback, tls: ServerTLS? = nil, options: Options = Options(),
        reply: @escaping @Sendable (ReceivedRequest) -> StubResponse
    ) throws {
        let context = try tls.map(TLSContext.init)
        let log = ServerLog(Seen())
        listener = try Listener(
            at: address, namespace: options.namespace, maximumConnections: options.maximumConnections,
            receiveBuffer: options.receiveBuffer
        ) { socket, stop in
            let number = log.change { seen in
                seen.connections += 1
                seen.openConnections += 1
                return seen.connections
            }
            do {
                // Closes with this scope, before the log says so.
                let channel = Channel(socket, stop: stop)
                Conversation(number: number, channel: channel, tls: context, options: options, log: log, reply: reply).run()
            }
            log.change { $0.openConnections -= 1 }
        }
        self.log = log
        self.address = address
        port = listener.port
        isEncrypted = tls != nil
    }

    /// Ends all connections and threads, and waits for that. Whoever connects from now on is refused. Not to be called from one of
    /// the server's own closures: it would wait for itself.
    public func stop() {
        listener.end()
    }

    /// `http://127.0.0.1:PORT` or the like, without a path; for a Unix socket the host is `localhost`.
    public var origin: String {
        let scheme = isEncrypted ? "https" : "http"
        return switch address {
        case .ip(let host, _): "\(scheme)://\(host.contains(":") ? "[\(host)]" : host):\(port)"
        case .unix: "\(scheme)://localhost"
        }
    }

    /// The URL of a target on this server; a target that no URL can have is the test's mistake, and traps.
    public func url(_ target: String = "/") -> URL {
        guard let url = URL(string: origin + target) else { preconditionFailure("no URL: \(origin + target)") }
        return url
    }

    /// All that was seen, at one moment.
    public var seen: Seen { log.state }

    /// The requests that were seen, oldest first; complete ones, unless they were refused after the head.
    public var requests: [ReceivedRequest] { log.state.requests }

    /// Waits for so many requests in all.
    ///
    /// - Returns: the requests that are kept then.
    /// - Throws: ``TestServerError`` when they did not come in time.
    @discardableResult
    public func awaitRequests(_ count: Int, within limit: Duration = .seconds(30)) async throws -> [ReceivedRequest] {
        try await log.wait(for: "\(count) requests", within: limit) { $0.requestCount >= count }.requests
    }

    /// Waits until exactly so many connections are open; 0 shows that the clients have closed theirs.
    ///
    /// - Throws: ``TestServerError`` when that did not happen in time.
    public func awaitOpenConnections(_ count: Int, within limit: Duration = .seconds(30)) async throws {
        _ = try await log.wait(for: "\(count) open connections", within: limit) { $0.openConnections == count }
    }

    /// Waits for anything that ``Seen`` tells.
    ///
    /// - Returns: what was seen when it held.
    /// - Throws: ``TestServerError`` when that did not happen in time.
    @discardableResult
    public func awaitSeen(
        within limit: Duration = .seconds(30), where isMet: @escaping @Sendable (Seen) -> Bool
    ) async throws -> Seen {
        try await log.wait(for: "such state", within: limit, until: isMet)
    }
}
