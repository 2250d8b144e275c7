@testable import HTTPSession

/// What lies between a server and a task: libcurl's bits and the bytes that it keeps, the loop that sets the bits later, and a receiver that
/// may be full. The shipped ``PauseMachine`` says what to do; every step compares it with what libcurl has.
struct SimulatedTransport {
    struct Violation: Error {
        let description: String
    }

    /// What reaches the task.
    struct Delivery {
        /// A head that was pending.
        var head: ResponseHead?
        /// Bytes of the body.
        var count: Int64 = 0
        /// The receiver has refused bytes.
        var isRefused = false
    }

    private var pauses = PauseMachine()
    /// libcurl's.
    private var bits: PauseMachine.Directions = []
    private(set) var keptBytes: Int64 = 0
    private var isHeld = false
    private var isReceiverFull = false
    /// Whether the loop sets the bits at the next place for that in its turn.
    private(set) var isListedToSettle = false

    /// Whether libcurl reads the socket.
    var reads: Bool { !bits.contains(.receiving) }
    /// Whether a head waits for what follows it.
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

    /// The head of a response arrives that libcurl may answer by itself.
    mutating func receiveChallenge(_ head: ResponseHead) { pauses.receivedChallenge(head) }

    /// The response has ended.
    mutating func takePendingHead() -> ResponseHead? { pauses.takePendingHead() }

    /// Bytes of a body arrive, and libcurl hands them over.
    mutating func receive(_ count: Int64) throws -> Delivery {
        guard reads else { throw Violation(description: "libcurl hands over bytes in a pause") }
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

    /// Bytes that libcurl has handed over are refused after all: whoever has got the head does not know yet where they go.
    mutating func refuse(_ count: Int64) throws {
        isReceiverFull = true
        pauses.receiverBecameFull()
        keptBytes += count
        bits.insert(.receiving)
        try check()
    }

    /// The loop sets the bits; libcurl hands over what it has kept.
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

    /// A transfer stands still for a reason, or somebody is going to move it.
    private func check() throws {
        if bits != pauses.applied { throw Violation(description: "libcurl has \(bits), the machine believes \(pauses.applied)") }
        if pauses.hasRefusedBytes != (keptBytes > 0) {
            throw Violation(description: "\(keptBytes) bytes kept, and the machine believes otherwise")
        }
        if !reads, !isHeld, !isReceiverFull, !isListedToSettle { throw Violation(description: "stranded") }
    }
}
