import EventLoop
public import FoundationEssentials
package import HTTPSession
public import HTTPTypes
package import Reachability

/// A transport without a socket. It answers the requests of a session from a script, and the test controls its time.
///
/// ```swift
/// let transport = ScriptedTransport()
/// transport.stub("/v1/users/7", with: StubResponse(503), StubResponse(body: #"{"name": "Ada"}"#))
/// let session = try HTTPSessionManager(baseURL: "https://api.example.com/v1/", transport: transport)
/// let user: User = try await session.get("users/7").decode()      // 503, a retry, 200: without waiting
/// transport.requests.map(\.path)                                  // ["/v1/users/7", "/v1/users/7"]
/// ```
///
/// The session above the transport is the real one. Its queue, retries, redirects, resumed downloads, digests, handlers, interceptors,
/// progress, timeouts and validation work as over a network. The transport replaces libcurl, so a scripted session lacks the features of
/// libcurl. It neither decompresses bodies nor requests compressed ones. It does not
/// verify certificates, does not upgrade http to https (Strict-Transport-Security), and uses no proxy. It applies no rate limit
/// (`maximumReceiveRate`, `lowSpeedLimit`), and answers challenges by Basic, Digest and Bearer only. Every exchange is HTTP/1.1 on a connection of
/// its own.
///
/// Give the session the monitor of a `ScriptedNetwork` (ReachabilityTestKit). If its path is unsatisfied, new connections fail as without a
/// route, and connections in use end. If the path moves to another interface, connections over the former one end: all if the path does not
/// list that interface any more, otherwise those whose request is idempotent. Tasks that may not use the new interface wait for another one. Tasks that wait for connectivity continue when the path is satisfied again; no server is probed.
///
/// The random numbers of a session, which spread retries, begin with the transport's seed. If a test awaits each request before the next one, two
/// runs have the same ``elapsedTime``. In automatic time, time may pass between two requests that the test does not await; manual time prevents it.
///
/// A transport carries one session at a time. `HTTPSessionManager.waitUntilEnded()` returns when the transport is free for the next session. A session that
/// is only released frees its transport when its last reference is released, which may be later on the session's queue.
public final class ScriptedTransport: Sendable {
    /// The rule by which the transport's time passes.
    @nonexhaustive public enum Time: Hashable, Sendable {
        /// Time passes to the next deadline when every task of the session waits for a deadline or a server's delay. No task waits in real
        /// time. Time stops while a file is read or written. If a task waits for a handler, a reader, a ``Gate``, a network or
        /// `TransferTask.resume()`, its own deadlines do not make time pass.
        case automatic
        /// Time passes only by calls of ``ScriptedTransport/advance(by:)``.
        case manual
    }

    /// The largest number of bytes that ``ReceivedRequest/body`` keeps of a request: 1 MiB.
    public static let recordedBodyBytes = 1 << 20

    private let script: Locked<Script>
    private let respond: Respond?
    package let seed: UInt64
    let clock: ScriptedClock

    /// Creates a transport.
    ///
    /// - Parameters:
    ///   - time: the rule by which time passes.
    ///   - seed: the seed of the random numbers of each session, which spread retries; by default 0. Other seeds give other delays.
    ///   - date: the date at the beginning of the transport's time, for metrics and for fields such as `Retry-After`; by default the present.
    ///     The wait for a date in `Retry-After` depends on it.
    ///   - respond: the response to each request that no stub answers. It is called as the closure of ``stub(where:with:)``. If it is `nil`, such a
    ///     request fails; see ``unmatchedRequests``.
    public init(
        time: Time = .automatic, seed: UInt64 = 0, startingAt date: Date = Date(),
        respond: (@Sendable (ReceivedRequest) -> StubResponse)? = nil
    ) {
        clock = ScriptedClock(passesTime: time == .automatic, startingAt: date)
        self.seed = seed
        script = Locked(Script())
        self.respond = respond.map(Respond.init)
    }

    // MARK: Stubs

    /// Answers the requests for a path with these responses, one after the other; the last one repeats.
    ///
    /// If several stubs match a request, the one that was made last answers, whether it has a path or a closure. A stub without responses has no
    /// effect.
    ///
    /// The path is compared with that of the complete URL, so a session with the base URL `https://api.example.com/v1/` requests `/v1/users/7`. The
    /// paths must be equal, including a slash at the end. Percent-encoding is compared by its meaning: `/caf%c3%a9`, `/caf%C3%A9` and `/café` are
    /// equal, and `%2F` is not a slash (RFC 3986 section 6.2.2). A slash at the beginning may be omitted, and an empty path is `/`. A fragment is
    /// ignored, because requests have none.
    ///
    /// - Parameters:
    ///   - path: the path, or an absolute URL, with or without a query. Without a query, any query matches. With a query, the request has the same
    ///     names and values, in any order; only values of one name keep their order. `/users?` matches requests without a query. An absolute URL
    ///     also matches scheme, host and port: the case of scheme and host does not matter, and the default port may be omitted.
    ///   - method: the method; `nil` for any method.
    ///   - responses: the responses.
    public func stub(_ path: String, method: HTTPRequest.Method? = nil, with responses: StubResponse...) {
        add(Stub(matcher: .path(StubPattern(path), method: method), responses: responses))
    }

    /// Answers the requests that a closure chooses with these responses, one after the other; the last one repeats.
    ///
    /// The closure is called on the session's thread when the body of the request has been read, and must not wait. The request is not in
    /// ``requests`` yet. With ``StubResponse/failing(_:)`` no connection is made, as with a path: the body counts as not sent.
    ///
    /// - Parameters:
    ///   - matches: returns whether the stub answers the request. The closure may be called for requests that a stub with a path answers.
    ///   - responses: the responses.
    public func stub(where matches: @escaping @Sendable (ReceivedRequest) -> Bool, with responses: StubResponse...) {
        add(Stub(matcher: .predicate(matches), responses: responses))
    }

    private func add(_ stub: Stub) { script.withLock { $0.stubs.append(stub) } }

    /// The requests that have been sent, in their order, with their bodies. A request that got no connection is not among them.
    public var requests: [ReceivedRequest] { script.withLock { $0.requests } }

    /// The requests that no stub matched. Each failed with `HTTPSessionError.Code.misuse`.
    public var unmatchedRequests: [ReceivedRequest] { script.withLock { $0.unmatched } }

    // MARK: Time

    /// The time that has passed for the session.
    public var elapsedTime: Duration { .nanoseconds(clock.elapsed) }

    /// The present date for the session: the transport's start date plus ``elapsedTime``.
    public var currentDate: Date { clock.date }

    /// Lets time pass, deadline by deadline, and returns when the session has finished all due work.
    ///
    /// The session first handles all that was done before the call, such as a path that was published. Time stops while a file is read or
    /// written. The method does not wait for user-supplied handlers: call ``waitUntilIdle()`` before.
    public func advance(by duration: Duration) async { await clock.advance(by: duration) }

    /// Returns when the session only waits for a deadline, a network, a reader, a gate, or `TransferTask.resume()`.
    ///
    /// The session has then handled all that was done before the call: requests, calls of tasks, opened gates, and paths that were published by the
    /// `ScriptedNetwork` of its path monitor.
    public func waitUntilIdle() async { await clock.waitUntilIdle() }
}

extension ScriptedTransport: SessionTransport {
    package var probesServers: Bool { false }
    package var handoverDelay: Int64 { 0 }
    package var verifiesCertificates: Bool { false }
    package func now() -> Int64 { clock.now }
    package func date() -> Date { clock.date }
    package func sleep(for duration: Duration) async throws { try await clock.sleep(for: duration) }

    package func makeEngine(
        _ network: EngineConfiguration, path: PathMonitor?
    ) throws(HTTPSessionError) -> any TransferEngine {
        try ScriptedEngine(self, path: path)
    }
}

// MARK: The script

extension ScriptedTransport {
    /// The script's answer to a request.
    enum Answer {
        case response(StubResponse)
        /// The answer depends on the body of the request.
        case later
        case unmatched(HTTPSessionError)
    }

    private struct Respond: Sendable {
        let body: @Sendable (ReceivedRequest) -> StubResponse
    }

    private struct Stub: Sendable {
        enum Matcher: Sendable {
            case path(StubPattern, method: HTTPRequest.Method?)
            case predicate(@Sendable (ReceivedRequest) -> Bool)
        }

        let matcher: Matcher
        let responses: [StubResponse]
        var next = 0

        var name: String {
            switch matcher {
            case .path(let path, let method): "\(method?.rawValue ?? "any method of") \(path.text)"
            case .predicate: "requests that a closure chooses"
            }
        }
    }

    private struct Script: Sendable {
        var stubs: [Stub] = []
        var requests: [ReceivedRequest] = []
        var unmatched: [ReceivedRequest] = []
        var arrivals = 0
    }

    /// The number of the next request, counted from 1.
    func nextArrival() -> Int {
        script.withLock { script in
            script.arrivals += 1
            return script.arrivals
        }
    }

    /// Records a request whose body has been read.
    func record(_ request: ReceivedRequest) { script.withLock { $0.requests.append(request) } }

    /// Takes the response to a request. Closures are called outside of the lock, because they may read ``requests``.
    func takeAnswer(to request: ReceivedRequest, url: String, isComplete: Bool) -> Answer {
        let stubs = script.withLock { $0.stubs }
        let address = StubPattern(url)
        for index in stubs.indices.reversed() where !stubs[index].responses.isEmpty {
            switch stubs[index].matcher {
            case .path(let path, let method):
                guard method.map({ $0.rawValue == request.method }) ?? true, path.matches(address) else { continue }
            case .predicate(let predicate):
                guard isComplete else { return .later }
                guard predicate(request) else { continue }
            }
            return .response(takeResponse(at: index).resolved(for: request))
        }
        guard let respond else {
            let names = stubs.isEmpty ? "none" : stubs.map(\.name).joined(separator: ", ")
            script.withLock { $0.unmatched.append(request) }
            return .unmatched(
                HTTPSessionError(
                    .misuse, "no stub of the scripted transport matches \(request.method) \(request.path); stubs: \(names)"))
        }
        return isComplete ? .response(respond.body(request).resolved(for: request)) : .later
    }

    private func takeResponse(at index: Int) -> StubResponse {
        script.withLock { script in
            let stub = script.stubs[index]
            script.stubs[index].next = min(stub.next + 1, stub.responses.count - 1)
            return stub.responses[stub.next]
        }
    }
}
