/// The events that no handler receives, in their order of delivery, and the iterators that wait for one.
///
/// The queue holds identifiers only: the journal keeps the events, so that a slow reader costs little memory.
struct EventQueue {
    /// One call of `next()` that is suspended.
    struct Reader {
        let id: ObjectIdentifier
        let continuation: CheckedContinuation<DurableEvent?, Never>
    }

    // Those before `start` have been taken.
    private var ids: [String] = []
    private var start = 0
    private var queued: Set<String> = []
    private(set) var readers: [Reader] = []

    /// Adds an event at the end, unless it is in the queue already.
    mutating func append(_ id: String) {
        if queued.insert(id).inserted { ids.append(id) }
    }

    /// Removes and returns the first event.
    mutating func popFirst() -> String? {
        guard start < ids.count else { return nil }
        let id = ids[start]
        start += 1
        queued.remove(id)
        // Removing the front of an array moves all elements: that is done once for many.
        if start == ids.count || start >= 1_000 {
            ids.removeFirst(start)
            start = 0
        }
        return id
    }

    mutating func add(_ reader: Reader) { readers.append(reader) }

    /// Removes and returns the reader that has waited longest.
    mutating func popFirstReader() -> Reader? { readers.isEmpty ? nil : readers.removeFirst() }

    /// Removes and returns a reader, unless it has received an event already.
    mutating func removeReader(_ id: ObjectIdentifier) -> Reader? {
        readers.firstIndex { $0.id == id }.map { readers.remove(at: $0) }
    }
}
