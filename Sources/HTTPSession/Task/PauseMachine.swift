/// Decides which directions of a transfer are paused, and which of libcurl's pause bits have to change.
///
/// A direction is paused for one of three reasons: the task is suspended (both), the receiver is full (receiving), the source is
/// empty (sending). libcurl has a bit for each direction. It is set by curl_easy_pause(3), or by a callback that returns "pause".
///
/// ```
///   suspend, resume ──▶ isSuspended ────────────┐
///   callback, receiverReady ──▶ isReceiverFull ─┼──▶ desired ──applyChange()──▶ applied (libcurl's bits)
///   callback, sourceReady ──▶ isSourceEmpty ────┘                                  ▲
///   a callback returned "pause" ───────────────────────────────────────────────────┘
/// ```
///
/// The machine also holds the head of a response that libcurl may still handle itself (401, 407). Such a head is delivered with
/// the first bytes behind it, or at the end; a suspension delays it together with the bytes.
///
/// A change is applied by ``applyChange()``, at one place of the loop's turn. libcurl 7.88 reads a socket in the turn after a
/// pause has ended even if a new pause began in between. It then appends the header lines to one piece (lib/sendf.c,
/// `pausewrite`).
///
/// Receiving pauses at the first byte of a body, not before. During a pause libcurl 7.88 stores at most three kinds of pieces; it
/// fails with `CURLE_OUT_OF_MEMORY` if an interim response, a final head and a body arrive. A head is bounded in size and may be
/// delivered to a suspended task.
package struct PauseMachine: Hashable, Sendable {
    /// The directions of a transfer.
    package struct Directions: OptionSet, Hashable, Sendable {
        package let rawValue: UInt8
        package init(rawValue: UInt8) { self.rawValue = rawValue }
        package static let receiving = Directions(rawValue: 1 << 0)
        package static let sending = Directions(rawValue: 1 << 1)
        package static let both: Directions = [.receiving, .sending]
    }

    /// Whether the task is suspended. If so, no body bytes move in either direction.
    package private(set) var isSuspended = false
    /// Whether the receiver has refused bytes and has not become ready since.
    package private(set) var isReceiverFull = false
    /// Whether the source had nothing to send and has not become ready since.
    package private(set) var isSourceEmpty = false
    /// The bits that libcurl has.
    package private(set) var applied: Directions = []
    /// Whether libcurl stores bytes that a callback has refused.
    package private(set) var hasRefusedBytes = false
    /// Whether the body of the response has begun.
    private var hasBody = false
    /// Whether received bytes have ever been delayed.
    package private(set) var hasDelayedBytes = false
    /// A head that has been received and not delivered.
    package private(set) var pendingHead: ResponseHead?

    /// The treatment of bytes that the write callback receives.
    package enum Reception: Hashable, Sendable {
        /// The callback returns "pause", and libcurl stores the bytes.
        case refused
        /// The receiver gets the head, if there is one, and then the bytes.
        case accepted(ResponseHead?)
    }

    package init() {}

    /// The bits that libcurl should have.
    package var desired: Directions {
        guard !isSuspended else { return hasBody ? .both : .sending }
        var desired: Directions = []
        if isReceiverFull { desired.insert(.receiving) }
        if isSourceEmpty { desired.insert(.sending) }
        return desired
    }

    /// Whether libcurl has the desired bits.
    package var isApplied: Bool { applied == desired }

    /// The task was suspended or resumed.
    package mutating func setSuspended(_ isSuspended: Bool) {
        self.isSuspended = isSuspended
        hasDelayedBytes = hasDelayedBytes || isSuspended
    }

    /// The receiver can take bytes again.
    package mutating func receiverReady() { isReceiverFull = false }

    /// The source can send again, or nothing more is requested of it.
    package mutating func sourceReady() { isSourceEmpty = false }

    /// The head of a challenge is complete: libcurl may repeat the request, or deliver the body.
    package mutating func receivedChallenge(_ head: ResponseHead) { pendingHead = head }

    /// Returns the pending head for delivery, or before another head replaces it.
    package mutating func takePendingHead() -> ResponseHead? {
        defer { pendingHead = nil }
        return pendingHead
    }

    /// The write callback has received bytes. It refuses them while the task is suspended.
    package mutating func receivedBytes() -> Reception {
        hasBody = true
        guard isSuspended else { return .accepted(takePendingHead()) }
        refuseBytes()
        return .refused
    }

    /// The receiver is full: the write callback returns "pause".
    package mutating func receiverBecameFull() {
        isReceiverFull = true
        refuseBytes()
    }

    /// Records that libcurl stores the bytes and sets its bit.
    private mutating func refuseBytes() {
        applied.insert(.receiving)
        (hasRefusedBytes, hasDelayedBytes) = (true, true)
    }

    /// The read callback returned "pause", so libcurl has set its bit. `isEmpty`: the source was empty; otherwise the task is
    /// suspended.
    package mutating func readPaused(isEmpty: Bool) {
        if isEmpty { isSourceEmpty = true }
        applied.insert(.sending)
    }

    /// Returns the bits for curl_easy_pause(3), or `nil` if libcurl has them already. libcurl delivers the stored bytes during
    /// the call that ends a receiving pause: ``receivedBytes()`` is called before that call returns.
    package mutating func applyChange() -> Directions? {
        guard !isApplied else { return nil }
        applied = desired
        if !applied.contains(.receiving) { hasRefusedBytes = false }
        return applied
    }

    /// libcurl has no connection for the transfer, and therefore no bits.
    package mutating func connectionRemoved() { applied = [] }
}
