/// Decides when the free memory of the heap is returned to the kernel (`malloc_trim(3)`). free(3) returns only the end of a heap, and a few
/// allocations that remain keep the memory of many connections resident.
///
/// Trimming visits the whole heap: 0.2 s with 10,000 targets, and a thread that allocates may wait. So it follows the end of many connections,
/// not each one.
struct HeapTrimming: Hashable, Sendable {
    /// The number of connections whose memory is worth it.
    static let burst = 64
    /// The number of checks without the end of a connection: the threads that served the last ones end a few seconds later, and until then they
    /// keep small pieces of free memory, which divide it.
    static let quietChecks = 10
    /// The number of checks after which connections that never cease no longer delay it.
    static let limit = 60

    /// The number of connections that had ended when the heap was trimmed, and at the last check.
    private var countAtTrimming = 0
    private var last = 0
    /// The number of checks since a connection has ended, and since ``burst`` of them have.
    private var checksWithoutEnd = 0
    private var checksSinceBurst = 0

    /// Checks the number of connections that have ended. - Returns: Whether the heap is trimmed now.
    mutating func isDue(ended count: Int) -> Bool {
        checksWithoutEnd = count == last ? checksWithoutEnd + 1 : 0
        checksSinceBurst = count - countAtTrimming >= Self.burst ? checksSinceBurst + 1 : 0
        last = count
        guard checksSinceBurst > 0, checksWithoutEnd >= Self.quietChecks || checksSinceBurst >= Self.limit else { return false }
        countAtTrimming = count
        return true
    }
}
