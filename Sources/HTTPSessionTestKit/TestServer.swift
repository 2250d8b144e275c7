import EventLoop
public import Reachability
public import struct FoundationEssentials.URL

/// An HTTP/1.1 server on a real socket, which sends the responses of a test, with their faults.
///
/// ```swift
/// let server = try TestServer { request in
///     request.path == "/cut" ? StubResponse(body: .pattern(10_000)).cut(afterBodyBytes: 5_000, .reset) : StubResponse(body: "hello")
/// }
/// // … requests to server.url("/cut") …
/// #expect(server.requests.map(\.method) == ["GET"])
/// ```
///
/// Each connection has a thread. All threads end with ``stop()``, or with the last reference to the server: keep a reference, and none in
/// the closures of the server.
public final class TestServer: Sendable {
    /// The configuration of a server besides its responses.
    public struct Configuration: Sendable {
        /// The largest number of connections; 256 by default. Further ones wait in the kernel's queue until one ends.
        public var maximumConnections = 256
        /// The number of requests that are kept, 4,096 by default; then the oldest are dropped.
        package var recordedRequests = 4096
        /// The number of bytes that are kept of each body; 1 MiB by default.
        public var recordedBodyBytes = 1 << 20
        /// The receive buffer of the connections (SO_RCVBUF), in bytes; `nil` for the kernel's default. The kernel takes this much of an
        /// upload while the server does not read.
        package var receiveBuffer: Int?
        /// The network namespace to listen in; `nil` for the namespace of the caller. The closures that answer then run inside the
        /// namespace, and must not start work on queues or tasks: Dispatch would create its threads there.
        public var namespace: NetworkNamespace?
        /// The closure that decides about a new connection (counted from 1) before the first byte, and before TLS.
        public var arrival: @Sendable (_ connection: Int) -> Arrival = { _ in .serve }
        /// The closure that decides about a request whose head has been read, and whose body has not.
        public var onHead: @Sendable (ReceivedRequest) -> HeadDecision = { _ in .readBody() }
        /// The closure that receives the delivery of each response, once, when the next request of its connection has arrived or the connection has
        /// ended. Responses that either side has cut are reported too.
        package var onDelivery: @Sendable (ReceivedRequest, Delivery) -> Void = { _, _ in }

        /// Creates the configuration of a server whose only faults are those of its responses.
        public init() {}
    }

    /// The delivery of a response's body as the server sees it. The number of bytes that have arrived lies between the last two
    /// numbers. With TLS these numbers are a little too small, because the missing bytes are counted in records.
    package struct Delivery: Hashable, Sendable {
        /// The number of bytes of the body that the kernel has taken.
        package var sentBytes: Int64
        /// The number of bytes that have been transmitted at least once.
        package var transmittedBytes: Int64
        /// The number of bytes that the other side's kernel has acknowledged. An acknowledgment may be 40 ms late, or lost with its
        /// connection.
        package var acknowledgedBytes: Int64

        /// Creates a delivery with these numbers.
        package init(sentBytes: Int64, transmittedBytes: Int64, acknowledgedBytes: Int64) {
            (self.sentBytes, self.transmittedBytes, self.acknowledgedBytes) = (sentBytes, transmittedBytes, acknowledgedBytes)
        }
    }

    /// A decision about a new connection.
    @nonexhaustive public enum Arrival: Sendable {
        /// Requests are read and answered, after the TLS handshake if there is one.
        case serve
        /// The connection ends at once.
        case end(StubResponse.Ending)
        /// A response is sent before any request, without TLS, and the connection ends: a banner with ``StubResponse/raw(_:_:)``, or ``StubResponse/never``.
        case respond(StubResponse)
    }

    /// A decision about a request whose head has been read.
    @nonexhaustive public enum HeadDecision: Sendable {
        /// The body is read, after these waits and at most at this rate. Before, `100 Continue` is sent to a client that expects it.
        case readBody(after: [StubResponse.Wait] = [], bytesPerSecond: Int? = nil, sendsContinue: Bool = true)
        /// A response is sent, the body is not read, and the connection ends.
        case refuse(StubResponse)
        /// The connection ends.
        case end(StubResponse.Ending)
    }

    /// The counts and records of a server so far.
    public struct Seen: Sendable {
        /// The requests whose head and body have been read, or that were refused after the head; oldest first.
        public fileprivate(set) var requests: [ReceivedRequest] = []
        /// The number of requests, including those that are no longer kept.
        public fileprivate(set) var requestCount = 0
        /// The number of complete responses on connections that were kept.
        public internal(set) var answered = 0
        /// The number of accepted connections.
        public internal(set) var connections = 0
        /// The number of connections that are open.
        public internal(set) var openConnections = 0 {
            didSet { peakConnections = max(peakConnections, openConnections) }
        }
        /// The greatest number of connections that were open at a time.
        public private(set) var peakConnections = 0
        /// The number of TLS handshakes that succeeded.
        public internal(set) var handshakes = 0
        /// The number of TLS handshakes that resumed a session.
        public internal(set) var resumedHandshakes = 0
        /// The number of TLS handshakes that failed, most often because the client refused the certificate.
        public internal(set) var failedHandshakes = 0
        /// The number of bytes of request bodies that have been read, including those of incomplete requests.
        public internal(set) var bodyBytes: Int64 = 0
        /// The number of bytes of responses' bodies that the kernel has taken, including those of responses that were cut.
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

    /// The TCP port; 0 for a Unix domain socket.
    public let port: UInt16
    /// The address that the server listens at.
    public let address: ListeningAddress
    private let isEncrypted: Bool
    private let listener: Listener
    private let log: ServerLog<Seen>

    /// Starts a server.
    ///
    /// - Parameters:
    ///   - address: the address to listen at; by default a free port of 127.0.0.1.
    ///   - tls: the TLS settings; `nil` for plain text.
    ///   - configuration: everything else.
    ///   - reply: makes the response to each request, called on the connection's thread when the request has been read.
    /// - Throws: ``TestServerError`` if the address is in use or not of this machine, or if the certificate, the key or the namespace cannot
    ///   be used.
    public init(
        at address: ListeningAddress = .loopback, tls: ServerTLS? = nil, configuration: Configuration = Configuration(),
        reply: @escaping @Sendable (ReceivedRequest) -> StubResponse
    ) throws {
        let context = try tls.map(TLSServerContext.init)
        let log = ServerLog(Seen())
        listener = try Listener(
            at: address, namespace: configuration.namespace?.path, maximumConnections: configuration.maximumConnections,
            receiveBuffer: configuration.receiveBuffer
        ) { socket, stop in
            let number = log.change { seen in
                seen.connections += 1
                seen.openConnections += 1
                return seen.connections
            }
            do {
                // The connection closes with this scope, before the log has it.
                let channel = Channel(socket, stop: stop)
                Conversation(number: number, channel: channel, tls: context, configuration: configuration, log: log, reply: reply)
                    .run()
            }
            log.change { $0.openConnections -= 1 }
        }
        self.log = log
        self.address = address
        port = listener.port
        isEncrypted = tls != nil
    }

    /// Ends all connections and threads, and waits until they have ended. New connections are refused from now on. Do not call it from a
    /// closure of the server, which would wait for itself.
    public func stop() {
        listener.end()
    }

    /// The origin of the server, such as `http://127.0.0.1:PORT`; for a Unix domain socket the host is `localhost`.
    public var origin: String {
        let scheme = isEncrypted ? "https" : "http"
        return switch address {
        case .ip(let host, _): "\(scheme)://\(host.contains(":") ? "[\(host)]" : host):\(port)"
        case .unix: "\(scheme)://localhost"
        }
    }

    /// Returns the URL of a target on this server. A target that no URL can have is a mistake of the test and traps.
    public func url(_ target: String = "/") -> URL {
        guard let url = URL(string: origin + target) else { preconditionFailure("no URL: \(origin + target)") }
        return url
    }

    /// The counts and records at this moment.
    public var seen: Seen { log.state }

    /// The requests that have been received, oldest first. They are complete, unless they were refused after the head.
    public var requests: [ReceivedRequest] { log.state.requests }

    /// Waits until this total number of requests has been received, for at most `limit`; 30 s by default.
    ///
    /// - Returns: the requests that are kept.
    /// - Throws: ``TestServerError`` if they do not come in time.
    @discardableResult
    public func awaitRequests(_ count: Int, within limit: Duration = .seconds(30)) async throws -> [ReceivedRequest] {
        try await log.wait(for: "\(count) requests", within: limit) { $0.requestCount >= count }.requests
    }

    /// Waits until exactly this number of connections is open; 0 shows that the clients have closed theirs. The wait
    /// lasts at most `limit`; 30 s by default.
    ///
    /// - Throws: ``TestServerError`` if that does not happen in time.
    public func awaitOpenConnections(_ count: Int, within limit: Duration = .seconds(30)) async throws {
        _ = try await log.wait(for: "\(count) open connections", within: limit) { $0.openConnections == count }
    }

    /// Waits until the counts and records meet a condition, for at most `limit`; 30 s by default.
    ///
    /// - Returns: the counts and records that met the condition.
    /// - Throws: ``TestServerError`` if that does not happen in time.
    @discardableResult
    public func awaitSeen(
        within limit: Duration = .seconds(30), where isMet: @escaping @Sendable (Seen) -> Bool
    ) async throws -> Seen {
        try await log.wait(for: "such state", within: limit, until: isMet)
    }
}
