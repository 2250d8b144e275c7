/// The jobs that wait for one worker, and their order: each share begins one job in turn, however many jobs it has.
///
/// A share is a connection, or a user of the Unix socket. A job that needs more than one piece of work is put back after each. Few jobs are
/// begun at a time, because a begun job needs memory; their pieces alternate with the first pieces of others.
struct TurnOrder<Share: Hashable & Sendable, Job: Sendable>: Sendable {
    /// The maximum number of jobs that are begun and not finished.
    static var begunLimit: Int { 4 }

    private var waiting: [Share: [Job]] = [:]
    /// The shares with jobs that are not begun, in the order of their turns, from `first` on.
    private var turns: [Share] = []
    private var first = 0
    private var begun: [Job] = []
    private var hasBegunLast = false

    /// Whether a job waits.
    var hasJobs: Bool { !waiting.isEmpty || !begun.isEmpty }

    /// Adds a job at the end of its share.
    mutating func add(_ job: Job, of share: Share) {
        if waiting[share] == nil { turns.append(share) }
        waiting[share, default: []].append(job)
    }

    /// Puts back a job with further pieces.
    mutating func putBack(_ job: Job) { begun.append(job) }

    /// Removes the job of the next piece; `nil` if none waits.
    mutating func next() -> Job? {
        let isBegun = !begun.isEmpty && (hasBegunLast || begun.count >= Self.begunLimit)
        if !isBegun, let job = begin() {
            hasBegunLast = true
            return job
        }
        hasBegunLast = false
        return begun.isEmpty ? nil : begun.removeFirst()
    }

    private mutating func begin() -> Job? {
        guard first < turns.count else { return nil }
        let share = turns[first]
        first += 1
        if first > 64, first * 2 > turns.count {
            turns.removeFirst(first)
            first = 0
        }
        guard var jobs = waiting.removeValue(forKey: share), !jobs.isEmpty else { return nil }
        let job = jobs.removeFirst()
        if !jobs.isEmpty {
            waiting[share] = jobs
            turns.append(share)
        }
        return job
    }
}
