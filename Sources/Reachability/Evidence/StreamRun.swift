internal import Certificates

/// The conversation of a probe on its TCP connection: it takes the server's bytes with their times, and returns the bytes to send. The prober owns the
/// socket. Each kind of probe has its own.
protocol StreamRun: AnyObject {
    /// The result; complete if ``hasEnded``.
    var result: LevelResult { get }
    var hasEnded: Bool { get }
    /// Whether the connection ends in the ordinary way. Otherwise it is reset.
    var endsGracefully: Bool { get }
    /// The time at which the conversation ends in any case, on the monotonic clock in nanoseconds.
    var deadline: Int64 { get }
    /// The context of the TLS client, which the prober keeps for later probes; `nil` without TLS.
    var context: TLSClientContext? { get }
    /// Whether the next connection begins with a TLS handshake.
    var beginsWithTLS: Bool { get }

    /// Begins the conversation on a connection that is established.
    func connected(_ now: Int64)
    /// Returns the bytes to send now.
    func takeOutput() -> [UInt8]
    /// Counts bytes that were sent.
    func noteSent(_ count: Int)
    /// Handles bytes of the server.
    func receive(_ bytes: UnsafeRawBufferPointer, now: Int64)
    /// Notes that the server has closed its side of the connection.
    func inputEnded(_ now: Int64)
    /// Notes that the connection has failed, or cannot be established.
    func connectionFailed(_ number: Int32)
    /// Ends the conversation at the deadline, with the connection's progress; `nil` if it is not known.
    func deadlineReached(_ progress: ConnectionProgress?)

    /// Returns the port of another connection to the same address, on which the conversation continues; `nil` for none. `port` is that of the present
    /// one.
    func nextPort(after port: UInt16) -> UInt16?
    /// Notes that the next connection begins.
    func willConnect(_ now: Int64)
    /// Notes that the next connection is established. ``connected(_:)`` continues on it, perhaps later.
    func didConnect(_ now: Int64)
}

/// What most conversations have in common: one connection.
extension StreamRun {
    func nextPort(after port: UInt16) -> UInt16? { nil }
    func willConnect(_ now: Int64) {}
    func didConnect(_ now: Int64) {}
}

/// What a kind of probe prepares for the connection of an attempt.
protocol StreamPlan: ProbePlan {
    /// Returns a new conversation, which ends at the deadline in any case, on the monotonic clock in nanoseconds.
    func makeRun(deadline: Int64) -> any StreamRun
}

extension StreamPlan {
    var transport: ProbeTransport { .stream(self) }
}
