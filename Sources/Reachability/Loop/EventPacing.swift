/// When the loop reads the kernel's events: at once, or together with those of the next millisecond.
///
/// A link that goes up or down causes five to seven datagrams within a millisecond, and its consequences must not wait. A storm, such as a
/// routing daemon that replaces its table, brings thousands that change nothing for the path, and most of their cost is that the thread
/// wakes for each.
struct EventPacing: Hashable, Sendable {
    /// The time in nanoseconds without events after which the next event begins a change.
    private static let quietTime: Int64 = 1_000_000
    /// The number of turns in a row without an update of the path after which events wait. A change of a link has fewer.
    private static let silentTurnsBeforeStorm = 16
    /// The time in nanoseconds for which they wait.
    static let pause: Int64 = 1_000_000

    /// The time until which events wait.
    private(set) var pauseEnd: Int64?
    private var last: Int64 = .min / 2
    private var silentTurns = 0
    /// Whether the events of this turn have caused no update of the path; `nil` if none were read.
    private var isSilent: Bool?

    private var isStorm: Bool { silentTurns > Self.silentTurnsBeforeStorm }

    /// Accounts events that are read at the start of a turn. - Returns: whether they follow others closely.
    mutating func begin(at now: Int64) -> Bool {
        let isClose = now - last < (isStorm ? 4 * Self.pause : Self.quietTime)
        if !isClose { silentTurns = 0 }
        (last, isSilent) = (now, true)
        return isClose
    }

    /// Accounts an update of the path: further events do not wait.
    mutating func noteUpdate() { if isSilent == true { isSilent = false } }

    /// Accounts the end of a turn. - Returns: whether further events wait until ``pauseEnd``.
    mutating func endTurn(at now: Int64) -> Bool {
        guard let isSilent else { return false }
        silentTurns = isSilent ? silentTurns + 1 : 0
        self.isSilent = nil
        guard isStorm else { return false }
        pauseEnd = now + Self.pause
        return true
    }

    /// Ends the wait.
    mutating func resume() { pauseEnd = nil }
}
