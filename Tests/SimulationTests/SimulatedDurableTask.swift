import FoundationEssentials
import HTTPSession
import Pacing

@testable import HTTPSessionJournal

/// A task of a durable session: what of it outlives its process, the life that its process gives it, joined as `TaskCoordinator` joins it, and beside
/// both what must be true. Every action of the machine is checked before it is done.
struct SimulatedDurableTask {
    struct Violation: Error, CustomStringConvertible {
        let description: String
    }

    /// The process ends here.
    struct Crash: Error {}

    /// The disk takes nothing.
    struct Refusal: Error {}

    let id: Int
    let terms: TaskLifecycle.Terms

    // The disk, and the server.
    private(set) var written = TaskLifecycle.State.waiting
    private(set) var isInJournal = true
    private var hidden: FileIdentity?
    /// Its name would not outlive a power loss.
    private var isHiddenLoose = false
    private var destination: FileIdentity?
    /// The file there is ours, and nobody else has touched it since.
    private var isOurs = false
    private var bodyIsSame = true
    private var hasPlace = false
    /// Something of the request may have left a process.
    private var hasLeft = false
    /// The server has all of the upload.
    private var isUploaded = false

    // The process.
    private var life: TaskLifecycle?
    private(set) var isTransferring = false
    private var isStopping = false
    /// An attempt is about to be made, or is under way: of a request that is not to be made twice, that is written.
    private var isDeparting = false
    private(set) var hasDelivery = false

    // The program, whose memory outlives it.
    private(set) var heard: [Outcome] = []
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

    /// Nothing is left but the disk. After a power loss not all of that either.
    mutating func die(powerFails: Bool, _ world: inout JournalSimulation) {
        (life, isTransferring, isStopping, isDeparting, hasDelivery) = (nil, false, false, false, false)
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

    /// Its handler has the event, and keeps it or acknowledges it.
    mutating func hear(acknowledges: Bool, _ world: inout JournalSimulation) throws {
        guard hasDelivery, case .ended(let outcome) = written else { return }
        hasDelivery = false
        if isAcknowledged { throw violation("told again behind its acknowledgement") }
        heard.append(outcome)
        if let first = heard.first, first != outcome { throw violation("told \(first) before, and \(outcome) now") }
        if acknowledges { try acknowledge(&world) }
    }

    mutating func acknowledge(_ world: inout JournalSimulation) throws {
        guard isInJournal, isKept else { return }
        if heard.isEmpty { throw violation("acknowledged, and never told") }
        _ = try handle(.acknowledge, &world)
        if !isInJournal { isAcknowledged = true }
    }

    /// What comes too late, or from nobody.
    mutating func stray(_ event: TaskLifecycle.Event, _ world: inout JournalSimulation) throws {
        guard isInJournal, let before = life, case .ended = before.state else { return }
        _ = try handle(event, &world)
        guard life?.state == before.state, isInJournal else { throw violation("\(event) moved an end") }
    }

    // MARK: The transfer

    mutating func advanceTransfer(_ world: inout JournalSimulation) throws {
        guard isTransferring else { return }
        if isStopping, world.chance(70) { return try completed(.transferFailed(Failure(.cancelled, "")), &world) }
        guard isDeparting else { return try depart(&world) }
        if !hasLeft, world.chance(40) {
            isDeparting = false
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

    /// What the session asks before each attempt; where the disk refuses, the transfer ends and begins again later.
    private mutating func depart(_ world: inout JournalSimulation) throws {
        if !terms.isRepeatable, try !handle(.requestWillBeSent, &world) {
            (isTransferring, isStopping) = (false, false)
            return
        }
        isDeparting = true
    }

    private mutating func send() throws {
        if !terms.isRepeatable, written != .started, written != .cancelling { throw violation("sent before that is written") }
        hasLeft = true
    }

    private mutating func finishTransfer(_ world: inout JournalSimulation) throws {
        guard terms.isDownload else {
            isUploaded = true
            return try completed(.transferred(nil, hiddenFile: nil), &world)
        }
        hidden = world.newFile()
        isHiddenLoose = true
        // The process may end between the file's arrival and what it learns of it; or somebody takes the file away.
        try world.burn()
        if world.chance(1) { hidden = nil }
        isHiddenLoose = false
        try world.burn()
        try completed(.transferred(nil, hiddenFile: hidden), &world)
    }

    private mutating func completed(_ event: TaskLifecycle.Event, _ world: inout JournalSimulation) throws {
        (isTransferring, isStopping, isDeparting) = (false, false, false)
        _ = try handle(event, &world)
    }

    // MARK: Others

    /// Somebody else changes what lies around the task.
    mutating func meddle(_ world: inout JournalSimulation) {
        switch world.random(in: 0...3) {
        case 0: (destination, isOurs) = (nil, false)
        case 1: (destination, isOurs) = (world.newFile(), false)
        case 2: bodyIsSame = false
        default: break
        }
    }

    // MARK: Actions

    /// - Returns: whether everything was done that follows.
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
            guard written == .cancelling else { throw violation("stopped, and it is not written that it is to be") }
            guard isTransferring else {
                _ = try handle(.transferFailed(Failure(.cancelled, "")), &world)
                return
            }
            isStopping = true
        case .place: try place(&world)
        case .clean:
            guard isKept else { throw violation("what may be wanted is removed") }
            (hidden, isHiddenLoose) = (nil, false)
        case .deliver:
            guard isKept else { throw violation("told before it is written") }
            hasDelivery = true
        case .remove:
            guard isKept, !heard.isEmpty else { throw violation("forgotten, and nobody has heard of it") }
            guard hidden == nil else { throw violation("forgotten with its hidden file") }
            try world.write()
            (isInJournal, life) = (false, nil)
        }
    }

    private mutating func write(_ state: TaskLifecycle.State, _ world: inout JournalSimulation) throws {
        if isKept { throw violation("\(state) behind an end") }
        switch (written, state) {
        case (.cancelling, .ended), (.waiting, _), (.arrived, _): break
        case (.started, .waiting): if hasLeft { throw violation("what may have been carried out is to be done again") }
        case (.started, _): break
        case (_, _): throw violation("\(state) follows")
        }
        if case .ended(let outcome) = state { try check(outcome, world) }
        if case .arrived(let mark, _) = state, hidden != mark { throw violation("arrived, and it is not there") }
        try world.write()
        written = state
    }

    /// Whether an end says the truth.
    private func check(_ outcome: Outcome, _ world: JournalSimulation) throws {
        switch outcome {
        case .finished:
            if terms.isDownload, case .arrived(let mark, _) = written, destination != mark || !isOurs {
                throw violation("finished, and the file is not there")
            }
            if terms.isDownload, case .arrived = written {
            } else if terms.isDownload {
                throw violation("finished before it had arrived")
            }
            if !terms.isDownload, !isUploaded { throw violation("finished, and the server has not got it") }
        case .expired: if world.now < terms.expires { throw violation("expired before its time") }
        case .cancelled: if written != .cancelling { throw violation("nobody has cancelled it") }
        case .interrupted:
            // Its process may have ended before the request left: nobody knows.
            if terms.isRepeatable || written == .waiting { throw violation("interrupted, and it could be done") }
        case .failed: break
        }
    }

    private mutating func transfer(_ world: inout JournalSimulation) throws {
        if isTransferring { throw violation("transferred twice at a time") }
        switch written {
        case .waiting, .started: break
        case .cancelling, .arrived, .ended: throw violation("transferred")
        }
        if hasAskedToCancel { throw violation("begun again, and it is cancelled") }
        if terms.isDownload, hidden != nil { throw violation("fetched, and it is here") }
        if world.now >= terms.expires { throw violation("begun when its time is over") }
        if !bodyIsSame { throw violation("another file than was meant is sent") }
        if !terms.isRepeatable, !hasPlace, hasLeft { throw violation("carried out twice") }
        isTransferring = true
    }

    private mutating func place(_ world: inout JournalSimulation) throws {
        guard case .arrived = written else { throw violation("placed before that is written") }
        // Somebody has taken it away: then there is nothing to move.
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
            // Between link(2) and unlink(2).
            try world.burn()
        }
        hidden = nil
        try world.burn()
        _ = try handle(.placed, &world)
    }

    /// Nothing goes wrong any more.
    func checkEnd() throws {
        if isInJournal { throw violation("it never ends") }
        if heard.isEmpty { throw violation("lost") }
        if Set(heard).count != 1 { throw violation("told \(heard)") }
        if hidden != nil { throw violation("its hidden file is left behind") }
    }
}
