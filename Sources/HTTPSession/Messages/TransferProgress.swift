internal import EventLoop

/// The progress of a task. Numbers are bytes of bodies, after decompression.
public struct TransferProgress: Hashable, Sendable {
    /// The bytes received of the final response.
    public var received: Int64 = 0
    /// The length of the response, if the server states it.
    public var expectedToReceive: Int64?
    /// The bytes sent with the current request. A resumed upload includes the bytes that its server already has.
    public var sent: Int64 = 0
    /// The length of the request's body, if it is known.
    public var expectedToSend: Int64?

    /// The fraction of all bytes to send and receive that are done, from 0 to 1; `nil` while a length is unknown.
    public var fractionCompleted: Double? {
        guard let expectedToReceive else { return nil }
        // The sum is a `Double` because a server may state the largest integer as length.
        let total = Double(expectedToReceive) + Double(expectedToSend ?? 0)
        return total > 0 ? min(1, (Double(received) + Double(sent)) / total) : nil
    }
}

extension TransferProgress: Coalescing {
    package func following(_ earlier: TransferProgress) -> TransferProgress { self }
    package func asInitial() -> TransferProgress { self }
}
