/// Decides when the free memory of the heap is returned to the kernel (`malloc_trim(3)`). free(3) returns only the end of a heap, and a few
/// allocations that remain keep the memory of hundreds of closed connections resident.
///
/// Trimming visits the whole heap: 0.2 s with 10,000 targets, and a thread that allocates may wait. So it follows the end of many connections,
/// not each one, and clients that replace each other at the limit of connections cause none.
struct HeapTrimming: Hashable, Sendable {
    /// The number of connections whose memory is worth it: each takes about 14 kB.
    static let burst = 64
    /// The number of checks for which the connections must have ended: the threads that served them end a few seconds later, and until then
    /// they keep small pieces of free memory, which divide it.
    static let patience = 10

    /// The largest number of connections since the heap was trimmed.
    private var largest = 0
    /// The number of checks, one after the other, that found ``burst`` connections less than that.
    private var checks = 0

    /// Checks the number of connections that are served. - Returns: Whether the heap is trimmed now.
    mutating func isDue(open count: Int) -> Bool {
        largest = max(largest, count)
        checks = largest - count >= Self.burst ? checks + 1 : 0
        guard checks == Self.patience else { return false }
        (largest, checks) = (count, 0)
        return true
    }
}
