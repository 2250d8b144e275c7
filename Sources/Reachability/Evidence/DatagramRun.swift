/// The conversation of a probe by UDP datagrams with one address: it takes the server's datagrams with their times, and returns those to send. The
/// prober owns the socket. Each kind of probe has its own.
///
/// A probe that gets no answer makes further attempts by itself, each with a socket and a conversation of its own.
protocol DatagramRun: AnyObject {
    /// The result; complete if ``hasEnded``. Its ``LevelResult/answerNanoseconds`` is the round trip.
    var result: LevelResult { get }
    var hasEnded: Bool { get }
    /// The time of the next ``tick(_:)`` on the monotonic clock in nanoseconds; `.max` for none.
    var due: Int64 { get }

    /// Begins the conversation.
    func begin(_ now: Int64)
    /// Returns the datagrams to send now.
    func takeOutput() -> [[UInt8]]
    /// Handles a datagram of the server. One that is no answer, such as a forged one, is ignored.
    func receive(_ datagram: UnsafeRawBufferPointer, now: Int64)
    /// Notes that the time of ``due`` is reached.
    func tick(_ now: Int64)
}

/// What most conversations have in common: one question.
extension DatagramRun {
    var due: Int64 { .max }
    func tick(_ now: Int64) {}
}

/// What a kind of probe prepares for the datagrams of an attempt.
protocol DatagramPlan: ProbePlan {
    /// Returns a new conversation. `number` is a random one, which only the server's answer can repeat.
    func makeRun(number: UInt64) -> any DatagramRun
}

extension DatagramPlan {
    var transport: ProbeTransport { .datagrams(self) }
}
