internal import Foundation
internal import HTTPSession

/// The state machine of a durable task: events are its input, and actions, to be performed in order, are its output.
///
/// ```
///            ┌──────────────── its file has been removed ───────────────┐
///            ▼                                                          │
///  waiting ──┬── transferred (download) ───────────────────────▶ arrived(file) ── placed, or placement failed ─┐
///    ▲  │    ├── transferred (upload), failed, expired, its file has changed ────────────────────────────────┐ │
///    │  │    └── cancel ─▶ canceling ─── its transfer has ended ───────────────────────────────────────────┐ │ │
///   not will              ▲                                                                                ▼ ▼ ▼
///  sent be sent           │                                                                          ended(outcome) ─▶ acknowledged
///    │  ▼                 │                                                                                ▲
///  started ───────────────┴── as waiting; reattached without an upload location: interrupted ──────────────┘
/// ```
///
/// The process may end after each action. A later process then sends ``Event/reattached(_:)``, and the missing actions follow: every action
/// can be repeated. The journal stores ``State`` and nothing else of the machine.
struct TaskLifecycle: Hashable, Sendable {
    /// The constant properties of a task.
    struct Terms: Hashable, Sendable {
        var isDownload: Bool
        /// Whether the task is a download that fails if its destination exists.
        var refusesExistingFile = false
        /// Whether the request may be sent again after an attempt that may have been carried out.
        var isRepeatable: Bool
        /// Seconds since 1970.
        var expires: Int64
    }

    enum State: Hashable, Sendable {
        case waiting
        /// A request that must not be repeated may have been sent.
        case started
        case cancelling
        /// The complete file exists, under its hidden name or at its destination.
        case arrived(FileIdentity, FinalResponse?)
        case ended(Outcome)
    }

    enum Event: Hashable, Sendable {
        /// This process takes the task over: it is new, or an earlier process ended at any step.
        case reattached(DiskState)
        /// A request that must not be repeated is about to be sent.
        case requestWillBeSent
        /// The attempts have ended, and no byte of the request was sent.
        case requestWasNotSent
        case transferred(FinalResponse?, hiddenFile: FileIdentity?)
        case transferFailed(Failure)
        case placed
        case placementFailed(Failure)
        case cancel
        case acknowledge
    }

    /// The state of the disk that a task depends on.
    struct DiskState: Hashable, Sendable {
        /// The file under the hidden name, which exists only when it is complete.
        var hiddenFile: FileIdentity?
        var destination: FileIdentity?
        /// Whether the file to upload is the one that the task was made for.
        var isBodyUnchanged = true
        /// Whether the server has announced where the upload continues.
        var hasUploadLocation = false
    }

    enum Action: Hashable, Sendable {
        /// Writes ``TaskLifecycle/state`` to the journal, with the event if the task has ended, in one transaction.
        case write
        case transfer
        case stop
        /// Moves the hidden file to its destination.
        case place
        /// Removes the hidden file and the partial file.
        case clean
        case deliver
        /// Removes the task and its event from the journal.
        case remove
    }

    let terms: Terms
    private(set) var state: State

    init(_ terms: Terms, _ state: State = .waiting) {
        self.terms = terms
        self.state = state
    }

    /// Handles an event at the time `now`, in seconds since 1970.
    mutating func handle(_ event: Event, now: Int64) -> [Action] {
        switch event {
        case .reattached(let disk): return reattach(disk, now)
        case .requestWillBeSent: return change(to: .started, from: .waiting)
        case .requestWasNotSent: return change(to: .waiting, from: .started)
        case .transferred(let response, let hiddenFile): return transferred(response, hiddenFile)
        case .transferFailed(let failure): return failed(failure, now)
        case .placed:
            guard case .arrived(_, let response) = state else { return [] }
            return end(.finished(response))
        case .placementFailed(let failure):
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

    private mutating func reattach(_ disk: DiskState, _ now: Int64) -> [Action] {
        switch state {
        case .waiting, .started: return begin(disk, now)
        case .cancelling: return end(.cancelled)
        case .arrived(let file, let response):
            if disk.hiddenFile != nil { return [.place] }
            if disk.destination == file { return end(.finished(response)) }
            // Another program has removed the file between two steps: it is downloaded again.
            state = terms.isRepeatable ? .waiting : .started
            let actions = begin(disk, now)
            return actions.contains(.write) ? actions : [.write] + actions
        case .ended: return [.clean, .deliver]
        }
    }

    private mutating func begin(_ disk: DiskState, _ now: Int64) -> [Action] {
        if terms.isDownload, let file = disk.hiddenFile { return arrive(file, nil) }
        if state == .started, !disk.hasUploadLocation { return end(.interrupted) }
        guard now < terms.expires else { return end(.expired) }
        guard disk.isBodyUnchanged else { return end(.failed(.fileChanged)) }
        if terms.refusesExistingFile, disk.destination != nil { return end(.failed(.fileExists)) }
        return [.transfer]
    }

    private mutating func change(to next: State, from present: State) -> [Action] {
        guard !terms.isRepeatable, state == present else { return [] }
        state = next
        return [.write]
    }

    private mutating func transferred(_ response: FinalResponse?, _ hiddenFile: FileIdentity?) -> [Action] {
        switch state {
        case .waiting, .started:
            guard terms.isDownload else { return end(.finished(response)) }
            guard let hiddenFile else { return end(.failed(.fileGone)) }
            return arrive(hiddenFile, response)
        // A completed upload cannot be canceled any more, while a downloaded file can be removed.
        case .cancelling: return end(terms.isDownload ? .cancelled : .finished(response))
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

    private mutating func arrive(_ file: FileIdentity, _ response: FinalResponse?) -> [Action] {
        state = .arrived(file, response)
        return [.write, .place]
    }

    private mutating func end(_ outcome: Outcome) -> [Action] {
        state = .ended(outcome)
        // Hidden files are removed after the transaction: before it, a later process may still need them.
        return [.write, .clean, .deliver]
    }
}
