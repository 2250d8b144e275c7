import EventLoop

/// A gate that holds responses back until the test opens it. It cannot be closed again.
///
/// ```swift
/// let gate = try Gate()
/// let server = try TestServer { _ in StubResponse(body: "late").held(by: gate) }
/// // … send a request …
/// try await server.awaitRequests(1)
/// gate.open()
/// ```
public final class Gate: Sendable {
    // Readable once the gate is open: the wake-up is never acknowledged.
    private let waker: Waker
    private let state = Locked(State())

    private struct State: Sendable {
        var isOpen = false
        /// The loops of scripted sessions that wait here.
        var wakers: [Waker] = []
    }

    /// Creates a closed gate.
    ///
    /// - Throws: ``TestServerError`` if the process has no descriptor left.
    public init() throws {
        do { waker = try Waker() } catch { throw TestServerError(error) }
    }

    /// Opens the gate. Every response that waits for it continues, and later ones do not wait.
    public func open() {
        let wakers = state.withLock { state in
            defer { state = State(isOpen: true) }
            return state.isOpen ? [] : state.wakers + [waker]
        }
        for waker in wakers { waker.wake() }
    }

    /// Whether the gate has been opened.
    public var isOpen: Bool { state.withLock { $0.isOpen } }

    /// Wakes a loop when the gate is opened.
    func wakeWhenOpen(_ waker: Waker) {
        let isOpen = state.withLock { state in
            if !state.isOpen, !state.wakers.contains(where: { $0 === waker }) { state.wakers.append(waker) }
            return state.isOpen
        }
        if isOpen { waker.wake() }
    }

    var descriptor: Int32 { waker.descriptor }
}
