/// Which directions of a transfer stand still, and what libcurl has to be told of it.
///
/// Three reasons stop a direction: the task is suspended (both), the receiver is full (receiving), the source is empty (sending). libcurl has
/// a bit for each direction, which curl_easy_pause(3) sets, and which a callback sets that returns "pause".
///
/// ```
///   suspend, resume ──▶ isHeld ────────┐
///   callback, receiverReady ──▶ isFull ┼──▶ wanted ──settle()──▶ applied (libcurl's bits)
///   callback, sourceReady ──▶ isEmpty ─┘                            ▲
///   a callback returned "pause" ────────────────────────────────────┘
/// ```
///
/// It also has the head of a response that libcurl may still answer by itself (401, 407). Such a head is delivered with the first bytes behind
/// it, or at the end: a suspension in between delays it with the bytes.
///
/// A change is applied by ``settle()``, at one place of the loop's turn. libcurl 7.88 reads a socket in the turn after a pause has ended even
/// if a new pause began in between, and appends the header lines that it reads then to one piece (lib/sendf.c, `pausewrite`).
///
/// Receiving pauses at the first byte of a body, not before: in a pause libcurl 7.88 keeps at most three kinds of pieces, and fails with
/// `CURLE_OUT_OF_MEMORY` when an interim response, a final head and a body come. A head is bounded, and may be delivered to a suspended task.
package struct PauseMachine: Hashable, Sendable {
    /// The directions of a transfer.
    package struct Directions: OptionSet, Hashable, Sendable {
        package let rawValue: UInt8
        package init(rawValue: UInt8) { self.rawValue = rawValue }
        package static let receiving = Directions(rawValue: 1 << 0)
        package static let sending = Directions(rawValue: 1 << 1)
        package static let both: Directions = [.receiving, .sending]
    }

    /// Whether the task is suspended: no body moves, whatever the buffers say.
    package private(set) var isHeld = false
    /// Whether the receiver has refused bytes and has not been ready since.
    package private(set) var isReceiverFull = false
    /// Whether the source had nothing to send and has not been ready since.
    package private(set) var isSourceEmpty = false
    /// libcurl's bits.
    package private(set) var applied: Directions = []
    /// Whether libcurl keeps bytes that a callback has refused.
    package private(set) var keepsBytes = false
    /// Whether the body of the response has begun.
    private var hasBody = false
    /// Whether received bytes have ever had to wait.
    package private(set) var hasWaited = false
    /// A head that has been received and not delivered.
    package private(set) var pendingHead: ResponseHead?

    /// What becomes of bytes for the write callback.
    package enum Reception: Hashable, Sendable {
        /// The callback returns "pause": libcurl keeps the bytes.
        case refused
        /// The receiver gets the head, if there is one, and then the bytes.
        case accepted(ResponseHead?)
    }

    package init() {}

    /// The bits that libcurl should have.
    package var wanted: Directions {
        guard !isHeld else { return hasBody ? .both : .sending }
        var wanted: Directions = []
        if isReceiverFull { wanted.insert(.receiving) }
        if isSourceEmpty { wanted.insert(.sending) }
        return wanted
    }

    /// Whether libcurl's bits are the wanted ones.
    package var isSettled: Bool { applied == wanted }

    /// The task is suspended, or resumed.
    package mutating func hold(_ isHeld: Bool) {
        self.isHeld = isHeld
        hasWaited = hasWaited || isHeld
    }

    /// The receiver has room again.
    package mutating func receiverReady() { isReceiverFull = false }

    /// The source has something to send again, or nothing more is asked of it.
    package mutating func sourceReady() { isSourceEmpty = false }

    /// The head of a challenge is complete: libcurl may send the request again, or hand over a body.
    package mutating func receivedChallenge(_ head: ResponseHead) { pendingHead = head }

    /// The pending head is delivered, or another one takes its place.
    package mutating func takePendingHead() -> ResponseHead? {
        defer { pendingHead = nil }
        return pendingHead
    }

    /// The write callback has bytes. While the task is suspended it refuses them.
    package mutating func receivedBytes() -> Reception {
        hasBody = true
        guard isHeld else { return .accepted(takePendingHead()) }
        refuseBytes()
        return .refused
    }

    /// The receiver is full: the write callback returns "pause".
    package mutating func receiverIsFull() {
        isReceiverFull = true
        refuseBytes()
    }

    /// libcurl keeps the bytes, and sets its bit.
    private mutating func refuseBytes() {
        applied.insert(.receiving)
        (keepsBytes, hasWaited) = (true, true)
    }

    /// The read callback returns "pause": libcurl sets its bit. `isEmpty`: the source had nothing, it was not the suspension.
    package mutating func providedNothing(isEmpty: Bool) {
        if isEmpty { isSourceEmpty = true }
        applied.insert(.sending)
    }

    /// The bits to set by curl_easy_pause(3), or `nil` if libcurl has them. libcurl hands over the bytes that it keeps while the call that ends
    /// a receiving pause runs: ``receivedBytes()`` follows before it returns.
    package mutating func settle() -> Directions? {
        guard !isSettled else { return nil }
        applied = wanted
        if !applied.contains(.receiving) { keepsBytes = false }
        return applied
    }

    /// libcurl has no connection for the transfer, and so no bits.
    package mutating func hasNoConnection() { applied = [] }
}
