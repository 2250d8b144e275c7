internal import Foundation
internal import HTTPSession

/// The life of a durable task: what has happened goes in, what is to be done comes out, in this order.
///
/// ```
///            ┌────────── its hidden file is not here after all ──────────┐
///            ▼                                                           │
///  waiting ──┬── transferred (download) ─────────────────────────▶ arrived(mark) ── placed, or not ──┐
///   │  ▲     ├── transferred (upload), failed, expired, its file has changed ──────────────────────┐ │
/// leaves stayed └── cancel ─▶ cancelling ── its transfer has ended ──────────────────────────────┐ │ │
///   ▼  │                       ▲                                                                 ▼ ▼ ▼
///  started ────────────────────┘   as waiting; found so by a later process: interrupted ─────▶ ended(outcome) ─▶ acknowledged
/// ```
///
/// Whatever is done may be the last thing that the process does. Then a later one says ``Event/reattached(_:)``, and what has not been done
/// follows: every action can be done twice. ``State`` is what is written down; nothing else is remembered.
struct TaskLife: Hashable, Sendable {
    /// What does not change.
    struct Terms: Hashable, Sendable {
        var isDownload: Bool
        /// A download whose destination must not be there.
        var refusesExistingFile = false
        /// Whether its request may be made a second time after one that may have been carried out.
        var isRepeatable: Bool
        /// Seconds since 1970.
        var expires: Int64
    }

    enum State: Hashable, Sendable {
        case waiting
        /// A request that is not to be made twice may have left.
        case started
        case cancelling
        /// The whole file is here, under its hidden name or already under its own.
        case arrived(FileMark, Answer?)
        case ended(Outcome)
    }

    enum Event: Hashable, Sendable {
        /// A process has this task: it is new, or its former process has ended wherever it was.
        case reattached(Surroundings)
        /// An attempt at a request that is not to be made twice is about to be made.
        case leaves
        /// It has ended, and nothing of any has been sent.
        case stayed
        case transferred(Answer?, hidden: FileMark?)
        case transferFailed(Failure)
        case placed
        case notPlaced(Failure)
        case cancel
        case acknowledge
    }

    /// What a task finds around it.
    struct Surroundings: Hashable, Sendable {
        /// The file under the hidden name: there is one only when it is whole.
        var hidden: FileMark?
        var destination: FileMark?
        /// Whether the file to be uploaded is the one that was meant.
        var bodyIsSame = true
        /// Whether the server has said where the upload goes on.
        var hasPlace = false
    }

    enum Action: Hashable, Sendable {
        /// Puts ``state`` into the journal, with its event if it is an end: one transaction.
        case write
        case transfer
        case stop
        /// Gives the hidden file its name.
        case place
        /// Removes what lies under hidden names.
        case clean
        case deliver
        /// Takes the task and its event out of the journal.
        case remove
    }

    let terms: Terms
    private(set) var state: State

    init(_ terms: Terms, _ state: State = .waiting) {
        self.terms = terms
        self.state = state
    }

    /// `now`: seconds since 1970.
    mutating func handle(_ event: Event, now: Int64) -> [Action] {
        switch event {
        case .reattached(let surroundings): return reattach(surroundings, now)
        case .leaves: return turn(.started, from: .waiting)
        case .stayed: return turn(.waiting, from: .started)
        case .transferred(let answer, let hidden): return transferred(answer, hidden)
        case .transferFailed(let failure): return failed(failure, now)
        case .placed:
            guard case .arrived(_, let answer) = state else { return [] }
            return end(.finished(answer))
        case .notPlaced(let failure):
            guard case .arrived = state else { return [] }
            return end(.failed(failure))
        case .cancel:
            guard state == .waiting || state == .started else { return [] }
            state = .cancelling
            return [.write, .stop]
        case .acknowledge:
            guard case .ended = state else { return [] }
            return [.clean, .remove]
        }
    }

    private mutating func reattach(_ around: Surroundings, _ now: Int64) -> [Action] {
        switch state {
        case .waiting, .started: return begin(around, now)
        case .cancelling: return end(.cancelled)
        case .arrived(let mark, let answer):
            if around.hidden != nil { return [.place] }
            if around.destination == mark { return end(.finished(answer)) }
            // Somebody has taken it away between two steps of ours: the file is fetched again.
            state = terms.isRepeatable ? .waiting : .started
            let rest = begin(around, now)
            return rest.contains(.write) ? rest : [.write] + rest
        case .ended: return [.clean, .deliver]
        }
    }

    private mutating func begin(_ around: Surroundings, _ now: Int64) -> [Action] {
        if terms.isDownload, let hidden = around.hidden { return arrive(hidden, nil) }
        if state == .started, !around.hasPlace { return end(.interrupted) }
        guard now < terms.expires else { return end(.expired) }
        guard around.bodyIsSame else { return end(.failed(.fileChanged)) }
        if terms.refusesExistingFile, around.destination != nil { return end(.failed(.fileExists)) }
        return [.transfer]
    }

    private mutating func turn(_ next: State, from present: State) -> [Action] {
        guard !terms.isRepeatable, state == present else { return [] }
        state = next
        return [.write]
    }

    private mutating func transferred(_ answer: Answer?, _ hidden: FileMark?) -> [Action] {
        switch state {
        case .waiting, .started:
            guard terms.isDownload else { return end(.finished(answer)) }
            guard let hidden else { return end(.failed(.fileGone)) }
            return arrive(hidden, answer)
        // What has been sent is there, whatever was wanted meanwhile; a file that has come can be taken away again.
        case .cancelling: return end(terms.isDownload ? .cancelled : .finished(answer))
        case .arrived, .ended: return []
        }
    }

    private mutating func failed(_ failure: Failure, _ now: Int64) -> [Action] {
        switch state {
        case .waiting, .started:
            if failure.code == .cancelled { return end(.cancelled) }
            return end(failure.code == .timedOut && now >= terms.expires ? .expired : .failed(failure))
        case .cancelling: return end(.cancelled)
        case .arrived, .ended: return []
        }
    }

    private mutating func arrive(_ hidden: FileMark, _ answer: Answer?) -> [Action] {
        state = .arrived(hidden, answer)
        return [.write, .place]
    }

    private mutating func end(_ outcome: Outcome) -> [Action] {
        state = .ended(outcome)
        // What lies under hidden names goes behind the transaction: until then it may be wanted.
        return [.write, .clean, .deliver]
    }
}
