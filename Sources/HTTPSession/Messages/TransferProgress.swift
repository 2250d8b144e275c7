internal import EventLoop

/// How far a task has come. Numbers are bytes of bodies, after decompression.
public struct TransferProgress: Hashable, Sendable {
    /// Received of the final response.
    public var received: Int64 = 0
    /// The response's length, where the server says it.
    public var expectedToReceive: Int64?
    /// Sent with the present request; of an upload that goes on where it stopped, behind what its server has.
    public var sent: Int64 = 0
    /// The body's length, where it is known.
    public var expectedToSend: Int64?

    /// 0 to 1, of sending and receiving together; `nil` while a length is not known.
    public var fractionCompleted: Double? {
        guard let expectedToReceive else { return nil }
        // What a server says may be the greatest number there is.
        let whole = Double(expectedToReceive) + Double(expectedToSend ?? 0)
        return whole > 0 ? min(1, (Double(received) + Double(sent)) / whole) : nil
    }
}

extension TransferProgress: Coalescing {
    package func following(_ earlier: TransferProgress) -> TransferProgress { self }
    package func asInitial() -> TransferProgress { self }
}
