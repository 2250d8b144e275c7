@testable import HTTPSession

/// The transport between a server and a task: libcurl's pause bits and the bytes that it keeps, the loop that sets the bits
/// later, and a receiver that may be full. The real ``PauseMachine`` decides. Every step compares it with libcurl's state.
struct SimulatedTransport {
    struct Violation: Error {
        let description: String
    }

    /// The head and bytes that reach the task.
    struct Delivery {
        /// A head that was pending.
        var head: ResponseHead?
        /// The number of body bytes.
        var count: Int64 = 0
        /// True if the receiver has refused bytes.
        var isRefused = false
    }

    private var pauses = PauseMachine()
    /// The pause bits that libcurl has.
    private var bits: PauseMachine.Directions = []
    private(set) var keptBytes: Int64 = 0
    private var isHeld = false
    private var isReceiverFull = false
    /// True if the loop will set the bits at the next place for that in its turn.
    private(set) var isListedToSettle = false

    /// True if libcurl reads the socket.
    var reads: Bool { !bits.contains(.receiving) }
    /// True if a head waits for the bytes or the end that follow it.
    var hasPendingHead: Bool { pauses.pendingHead != nil }

    mutating func hold(_ isHeld: Bool) throws {
        self.isHeld = isHeld
        try change { $0.setSuspended(isHeld) }
    }

    mutating func fillReceiver() { isReceiverFull = true }

    mutating func emptyReceiver() throws {
        isReceiverFull = false
        try change { $0.receiverReady() }
    }

    /// Receives the head of a response that libcurl may answer itself.
    mutating func receiveChallenge(_ head: ResponseHead) { pauses.receivedChallenge(head) }

    /// Ends the response. - Returns: the head that was pending.
    mutating func takePendingHead() -> ResponseHead? { pauses.takePendingHead() }

    /// Receives bytes of a body, which libcurl passes on.
    mutating func receive(_ count: Int64) throws -> Delivery {
        guard reads else { throw Violation(description: "libcurl passes on bytes while paused") }
        guard case .accepted(let head) = pauses.receivedBytes() else {
            keptBytes += count
            bits.insert(.receiving)
            try check()
            return Delivery()
        }
        guard isReceiverFull else { return Delivery(head: head, count: count) }
        pauses.receiverBecameFull()
        keptBytes += count
        bits.insert(.receiving)
        try check()
        return Delivery(head: head, isRefused: true)
    }

    /// Refuses bytes that libcurl has passed on, because the receiver of the head does not know yet where they go.
    mutating func refuse(_ count: Int64) throws {
        isReceiverFull = true
        pauses.receiverBecameFull()
        keptBytes += count
        bits.insert(.receiving)
        try check()
    }

    /// Sets libcurl's bits, as the loop does. libcurl then passes on the bytes that it kept.
    mutating func settle() throws -> Delivery {
        isListedToSettle = false
        guard let wanted = pauses.applyChange() else { return Delivery() }
        bits = wanted
        guard reads, keptBytes > 0 else {
            try check()
            return Delivery()
        }
        let count = keptBytes
        keptBytes = 0
        return try receive(count)
    }

    private mutating func change(_ body: (inout PauseMachine) -> Void) throws {
        body(&pauses)
        if !pauses.isApplied { isListedToSettle = true }
        try check()
    }

    /// Checks that a paused transfer has a reason to be paused, or is about to be resumed.
    private func check() throws {
        if bits != pauses.applied { throw Violation(description: "libcurl has \(bits), the machine assumes \(pauses.applied)") }
        if pauses.hasRefusedBytes != (keptBytes > 0) {
            throw Violation(description: "\(keptBytes) bytes kept, and the machine assumes the opposite")
        }
        if !reads, !isHeld, !isReceiverFull, !isListedToSettle { throw Violation(description: "paused without a reason") }
    }
}
