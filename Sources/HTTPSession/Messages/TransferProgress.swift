internal import EventLoop

/// The progress of a task. Numbers are bytes of bodies, after decompression.
public struct TransferProgress: Hashable, Sendable {
    /// The bytes received of the final response.
    public var bytesReceived: Int64
    /// The length of the response; `nil` if the server does not announce it.
    public var expectedToReceive: Int64?
    /// The bytes sent with the present request. A resumed upload counts the bytes that its server already has.
    public var bytesSent: Int64
    /// The length of the request's body; `nil` if it is not known.
    public var expectedToSend: Int64?

    /// Creates a progress. Without arguments, it is the progress of a task that has not started.
    public init(
        bytesReceived: Int64 = 0, expectedToReceive: Int64? = nil, bytesSent: Int64 = 0, expectedToSend: Int64? = nil
    ) {
        self.bytesReceived = bytesReceived
        self.expectedToReceive = expectedToReceive
        self.bytesSent = bytesSent
        self.expectedToSend = expectedToSend
    }

    /// The fraction from 0 to 1 of all bytes to send and to receive; `nil` while a length is not known.
    public var fractionCompleted: Double? {
        guard let expectedToReceive else { return nil }
        // As floating-point numbers, because a server may announce the largest integer.
        let total = Double(expectedToReceive) + Double(expectedToSend ?? 0)
        return total > 0 ? min(1, (Double(bytesReceived) + Double(bytesSent)) / total) : nil
    }
}

extension TransferProgress: Coalescing {
    package func merged(after earlier: TransferProgress) -> TransferProgress { self }
    package func asInitial() -> TransferProgress { self }
}
