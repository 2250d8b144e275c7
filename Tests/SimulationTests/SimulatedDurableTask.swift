import FoundationEssentials
import HTTPSession
import Pacing

@testable import HTTPSessionJournal

/// A task of a durable session: its state that outlives a process, the life that its process gives it, connected as `TaskCoordinator` does
/// it, and the invariants. Every action of the machine is checked before it is performed.
struct SimulatedDurableTask {
    struct Violation: Error, CustomStringConvertible {
        let description: String
    }

    /// The process is killed here.
    struct Crash: Error {}

    /// The disk refuses a write.
    struct Refusal: Error {}

    let id: Int
    let terms: TaskLifecycle.Terms

    // MARK: The disk and the server
    private(set) var written = TaskLifecycle.State.waiting
    private(set) var isInJournal = true
    private var hidden: FileIdentity?
    /// True if the hidden file's name would not survive a power loss.
    private var isHiddenLoose = false
    private var destination: FileIdentity?
    /// True if the file at the destination is ours and unchanged since.
    private var isOurs = false
    private var bodyIsSame = true
    private var hasPlace = false
    /// True if a part of the request may have been sent.
    private var mayBeSent = false
    /// True if the server has the complete upload.
    private var isUploaded = false

    // MARK: The process
    private var life: TaskLifecycle?
    private(set) var isTransferring = false
    private var isStopping = false
    /// True if an attempt is about to be made or runs. For a request that must not be repeated, that is written to the journal.
    private var isAttempting = false
    private(set) var hasDelivery = false

    // MARK: The program, whose memory outlives the process here
    private(set) var delivered: [Outcome] = []
    private(set) var isAcknowledged = false
    private var hasAskedToCancel = false

    init(id: Int, terms: TaskLifecycle.Terms, isTaken: Bool) {
        (self.id, self.terms) = (id, terms)
        if isTaken { destination = FileIdentity(inode: 1, size: 5, modified: 0) }
    }

    var isOver: Bool { !isInJournal }
    var isKept: Bool { if case .ended = written { true } else { false } }

    private func violation(_ text: String) -> Violation {
        Violation(description: "task \(id), written \(written), life \(life.map { "\($0.state)" } ?? "none"): \(text)")
    }

    // MARK: The process

    /// Ends the process and keeps the disk only. A power loss may also lose a file's name.
    mutating func die(powerFails: Bool, _ world: inout JournalSimulation) {
        (life, isTransferring, isStopping, isAttempting, hasDelivery) = (nil, false, false, false, false)
        guard powerFails, isHiddenLoose, world.chance(50) else { return }
        (hidden, isHiddenLoose) = (nil, false)
    }

    mutating func reattach(_ world: inout JournalSimulation) throws {
        guard isInJournal, !isTransferring else { return }
        if life == nil { life = TaskLifecycle(terms, written) }
        let around = TaskLifecycle.DiskState(
            hiddenFile: hidden, destination: destination, isBodyUnchanged: bodyIsSame, hasUploadLocation: hasPlace)
        try handle(.reattached(around), &world)
    }

    mutating func cancel(_ world: inout JournalSimulation) throws {
        guard isInJournal else { return }
        if try handle(.cancel, &world) { hasAskedToCancel = true }
    }

    /// Delivers the event to the handler, which keeps it or acknowledges it.
    mutating func deliver(acknowledges: Bool, _ world: inout JournalSimulation) throws {
        guard hasDelivery, case .ended(let outcome) = written else { return }
        hasDelivery = false
        if isAcknowledged { throw violation("delivered again after its acknowledgment") }
        delivered.append(outcome)
        if let first = delivered.first, first != outcome { throw violation("delivered \(first) before, and now \(outcome)") }
        if acknowledges { try acknowledge(&world) }
    }

    mutating func acknowledge(_ world: inout JournalSimulation) throws {
        guard isInJournal, isKept else { return }
        if delivered.isEmpty { throw violation("acknowledged before it was delivered") }
        _ = try handle(.acknowledge, &world)
        if !isInJournal { isAcknowledged = true }
    }

    /// Handles an event that comes too late or from no transfer.
    mutating func stray(_ event: TaskLifecycle.Event, _ world: inout JournalSimulation) throws {
        guard isInJournal, let before = life, case .ended = before.state else { return }
        _ = try handle(event, &world)
        guard life?.state == before.state, isInJournal else { throw violation("\(event) moved an end") }
    }

    // MARK: The transfer

    mutating func advanceTransfer(_ world: inout JournalSimulation) throws {
        guard isTransferring else { return }
        if isStopping, world.chance(70) { return try completed(.transferFailed(Failure(.cancelled, "")), &world) }
        guard isAttempting else { return try beginAttempt(&world) }
        if !mayBeSent, world.chance(40) {
            isAttempting = false
            if !terms.isRepeatable { _ = try handle(.requestWasNotSent, &world) }
            return
        }
        try send()
        if !terms.isDownload, !hasPlace, world.chance(30) { hasPlace = true }
        switch world.random(in: 0...9) {
        case 0: try completed(.transferFailed(Failure(world.chance(50) ? .timedOut : .connectionLost, "")), &world)
        case 1...3: break
        default: try finishTransfer(&world)
        }
    }

    /// Asks the life before each attempt, as the session does. If the disk refuses, the transfer ends and starts again later.
    private mutating func beginAttempt(_ world: inout JournalSimulation) throws {
        if !terms.isRepeatable, try !handle(.requestWillBeSent, &world) {
            (isTransferring, isStopping) = (false, false)
            return
        }
        isAttempting = true
    }

    private mutating func send() throws {
        if !terms.isRepeatable, written != .started, written != .cancelling { throw violation("sent before that was written") }
        mayBeSent = true
    }

    private mutating func finishTransfer(_ world: inout JournalSimulation) throws {
        guard terms.isDownload else {
            isUploaded = true
            return try completed(.transferred(nil, hiddenFile: nil), &world)
        }
        hidden = world.newFile()
        isHiddenLoose = true
        // The process may end between the file's arrival and its event. Another program may also remove the file.
        try world.burn()
        if world.chance(1) { hidden = nil }
        isHiddenLoose = false
        try world.burn()
        try completed(.transferred(nil, hiddenFile: hidden), &world)
    }

    private mutating func completed(_ event: TaskLifecycle.Event, _ world: inout JournalSimulation) throws {
        (isTransferring, isStopping, isAttempting) = (false, false, false)
        _ = try handle(event, &world)
    }

    // MARK: Other programs

    /// Lets another program change the files around the task.
    mutating func meddle(_ world: inout JournalSimulation) {
        switch world.random(in: 0...3) {
        case 0: (destination, isOurs) = (nil, false)
        case 1: (destination, isOurs) = (world.newFile(), false)
        case 2: bodyIsSame = false
        default: break
        }
    }

    // MARK: Actions

    /// - Returns: true if all actions were performed.
    @discardableResult
    private mutating func handle(_ event: TaskLifecycle.Event, _ world: inout JournalSimulation) throws -> Bool {
        guard var next = life else { return false }
        let actions = next.handle(event, now: world.now)
        life = next
        do {
            for action in actions {
                try world.burn()
                try perform(action, next, &world)
            }
            return true
        } catch is Refusal {
            life = TaskLifecycle(terms, written)
            return false
        }
    }

    private mutating func perform(
        _ action: TaskLifecycle.Action, _ next: TaskLifecycle, _ world: inout JournalSimulation
    ) throws {
        switch action {
        case .write: try write(next.state, &world)
        case .transfer: try transfer(&world)
        case .stop:
            guard written == .cancelling else { throw violation("stopped before the cancellation was written") }
            guard isTransferring else {
                _ = try handle(.transferFailed(Failure(.cancelled, "")), &world)
                return
            }
            isStopping = true
        case .place: try place(&world)
        case .clean:
            guard isKept else { throw violation("files of a task that has not ended are removed") }
            (hidden, isHiddenLoose) = (nil, false)
        case .deliver:
            guard isKept else { throw violation("delivered before it was written") }
            hasDelivery = true
        case .remove:
            guard isKept, !delivered.isEmpty else { throw violation("removed before its event was delivered") }
            guard hidden == nil else { throw violation("removed while its hidden file remains") }
            try world.write()
            (isInJournal, life) = (false, nil)
        }
    }

    private mutating func write(_ state: TaskLifecycle.State, _ world: inout JournalSimulation) throws {
        if isKept { throw violation("\(state) after an end") }
        switch (written, state) {
        case (.cancelling, .ended), (.waiting, _), (.arrived, _): break
        case (.started, .waiting): if mayBeSent { throw violation("a request that may have been executed is repeated") }
        case (.started, _): break
        case (_, _): throw violation("\(state) follows")
        }
        if case .ended(let outcome) = state { try check(outcome, world) }
        if case .arrived(let mark, _) = state, hidden != mark { throw violation("arrived, and the file is missing") }
        try world.write()
        written = state
    }

    /// Checks that an outcome is true.
    private func check(_ outcome: Outcome, _ world: JournalSimulation) throws {
        switch outcome {
        case .finished:
            if terms.isDownload, case .arrived(let mark, _) = written, destination != mark || !isOurs {
                throw violation("finished, and the file is missing")
            }
            if terms.isDownload, case .arrived = written {
            } else if terms.isDownload {
                throw violation("finished before it arrived")
            }
            if !terms.isDownload, !isUploaded { throw violation("finished, and the server does not have it") }
        case .expired: if world.now < terms.expires { throw violation("expired before its time") }
        case .cancelled: if written != .cancelling { throw violation("canceled without a request to cancel") }
        case .interrupted:
            // The process may have ended before the request was sent, which nobody can know afterwards.
            if terms.isRepeatable || written == .waiting { throw violation("interrupted, although it could be repeated") }
        case .failed: break
        }
    }

    private mutating func transfer(_ world: inout JournalSimulation) throws {
        if isTransferring { throw violation("two transfers at a time") }
        switch written {
        case .waiting, .started: break
        case .cancelling, .arrived, .ended: throw violation("transferred in this state")
        }
        if hasAskedToCancel { throw violation("restarted after its cancellation") }
        if terms.isDownload, hidden != nil { throw violation("downloaded again, although the file is here") }
        if world.now >= terms.expires { throw violation("started after it expired") }
        if !bodyIsSame { throw violation("a changed file is sent") }
        if !terms.isRepeatable, !hasPlace, mayBeSent { throw violation("executed twice") }
        isTransferring = true
    }

    private mutating func place(_ world: inout JournalSimulation) throws {
        guard case .arrived = written else { throw violation("placed before that was written") }
        // If another program removed the file, there is nothing to move.
        guard let file = hidden else {
            _ = try handle(.placementFailed(.fileGone), &world)
            return
        }
        if destination != file {
            if destination != nil, terms.refusesExistingFile {
                _ = try handle(.placementFailed(.fileExists), &world)
                return
            }
            (destination, isOurs) = (file, true)
            // The process may be killed between link(2) and unlink(2).
            try world.burn()
        }
        hidden = nil
        try world.burn()
        _ = try handle(.placed, &world)
    }

    /// Checks the task after the simulation, when every fault has ended.
    func checkEnd() throws {
        if isInJournal { throw violation("it never ends") }
        if delivered.isEmpty { throw violation("its event was never delivered") }
        if Set(delivered).count != 1 { throw violation("delivered \(delivered)") }
        if hidden != nil { throw violation("its hidden file is left behind") }
    }
}
