import EventLoop

/// Holds replies back until the test opens it, once and for all.
///
/// ```swift
/// let gate = try Gate()
/// let server = try TestServer { _ in StubResponse(body: "late").held(by: gate) }
/// // … send a request …
/// try await server.awaitRequests(1)
/// gate.open()
/// ```
public final class Gate: Sendable {
    // Readable from the moment of opening on: nobody takes the wake-up away.
    private let waker: Waker
    private let opened = Locked(false)

    /// A closed gate.
    ///
    /// - Throws: ``TestServerError`` when the process has no descriptor left.
    public init() throws {
        do { waker = try Waker() } catch { throw TestServerError(error) }
    }

    /// Lets everything through that waits here, and everything that comes later.
    public func open() {
        let isFirst = opened.withLock { opened in
            defer { opened = true }
            return !opened
        }
        if isFirst { waker.wake() }
    }

    /// Whether it has been opened.
    public var isOpen: Bool { opened.withLock { $0 } }

    var descriptor: Int32 { waker.descriptor }
}
