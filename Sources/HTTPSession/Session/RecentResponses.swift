internal import Pacing

/// The responses of the latest tasks. A busy session keeps them for a few milliseconds, until their readers have usually released them. Its own thread
/// then frees them.
///
/// The session's thread allocates the parts of a response. free(3) of another thread locks the arena of the thread that allocated the memory, and
/// the two threads then wait for each other: each small request took 1.25 calls of futex(2), instead of 0.2.
struct RecentResponses {
    /// The number of responses after which the older ones are released before their time.
    static let maximumCount = 512
    /// The size of the largest body that is kept, in bytes.
    static let maximumSize = 64 << 10
    /// The minimum time for which a response is kept, in nanoseconds; 0 to keep none.
    let duration: Int64
    private var older: [TransferResponse] = []
    private var newer: [TransferResponse] = []
    /// The time at which ``expire(now:)`` is due; `nil` without responses.
    private(set) var deadline: Int64?

    init(duration: Int64) { self.duration = duration }

    /// The number of responses.
    var count: Int { older.count + newer.count }

    mutating func add(_ response: TransferResponse, now: Int64) {
        guard duration > 0, response.data.count <= RecentResponses.maximumSize else { return }
        if newer.count >= RecentResponses.maximumCount { rotate(now: now) }
        newer.append(response)
        if deadline == nil { deadline = now.addingSaturated(duration) }
    }

    /// Releases the responses that have been kept long enough.
    mutating func expire(now: Int64) {
        if let deadline, deadline <= now { rotate(now: now) }
    }

    /// Releases all responses. Called when no task is under way, because an idle thread does not contend for its arena.
    mutating func removeAll() {
        guard deadline != nil else { return }
        older = []
        newer.removeAll(keepingCapacity: true)
        deadline = nil
    }

    private mutating func rotate(now: Int64) {
        swap(&older, &newer)
        newer.removeAll(keepingCapacity: true)
        deadline = older.isEmpty ? nil : now.addingSaturated(duration)
    }
}
