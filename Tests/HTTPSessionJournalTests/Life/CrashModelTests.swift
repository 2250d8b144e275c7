import Expectations
import Foundation
import HTTPSession
import Pacing
import Testing

@testable import HTTPSessionJournal

/// A model of one task with its disk, its server and its program. Only the disk survives the end of a process.
private struct World {
    // The disk.
    var state = TaskLifecycle.State.waiting
    var isKnown = true
    var hiddenFile: FileIdentity?
    var destination: FileIdentity?
    var lastInode: UInt64 = 0
    var hasUploadLocation = false
    /// How often the server may have carried out the request.
    var executions = 0
    // The events that the program has received.
    var delivered: [Outcome] = []
    var isAcknowledged = false

    let terms: TaskLifecycle.Terms
    var random: SplitMix64
    /// Whether a cancellation precedes the end of the transfer.
    var isSlow = false
    /// The number of steps until the next crash.
    var remainingSteps = 0

    struct Crash: Error {}

    private enum Step {
        case event(TaskLifecycle.Event)
        /// The server receives the request.
        case send
    }

    init(_ terms: TaskLifecycle.Terms, seed: UInt64) {
        self.terms = terms
        random = SplitMix64(seed: seed)
    }

    mutating func step() throws {
        guard remainingSteps > 0 else { throw Crash() }
        remainingSteps -= 1
    }

    /// Runs one process.
    mutating func runProcess(now: Int64, cancels: Bool) throws {
        guard isKnown else { return }
        var task = TaskLifecycle(terms, state)
        var steps: [Step] = [
            .event(
                .reattached(
                    .init(
                        hiddenFile: hiddenFile, destination: destination, isBodyUnchanged: true,
                        hasUploadLocation: hasUploadLocation)))
        ]
        if cancels { steps.append(.event(.cancel)) }
        isSlow = cancels && Bool.random(using: &random)
        while !steps.isEmpty {
            switch steps.removeFirst() {
            case .send: steps.insert(.event(try send()), at: 0)
            case .event(let event):
                for action in task.handle(event, now: now) {
                    try step()
                    if case .transfer = action {
                        steps.insert(contentsOf: isSlow ? [] : attempts(), at: 0)
                    } else if let event = try perform(action, task) {
                        steps.insert(.event(event), at: 0)
                    }
                }
            }
        }
    }

    /// Attempts that are not sent, and one that is.
    private mutating func attempts() -> [Step] {
        guard !terms.isRepeatable else { return [.send] }
        let unsent = (0..<Int.random(in: 0...2, using: &random)).flatMap { _ in
            [TaskLifecycle.Event.requestWillBeSent, .requestWasNotSent]
        }
        return (unsent + [.requestWillBeSent]).map { .event($0) } + [.send]
    }

    private mutating func send() throws -> TaskLifecycle.Event {
        executions += 1
        guard terms.isDownload else {
            try step()
            if Bool.random(using: &random) { hasUploadLocation = true }
            try step()
            return .transferred(nil, hiddenFile: nil)
        }
        if Int.random(in: 0..<4, using: &random) == 0 { return .transferFailed(Failure(.connectionLost, "")) }
        lastInode += 1
        hiddenFile = FileIdentity(inode: lastInode, size: 1, modified: 0)
        try step()
        return .transferred(nil, hiddenFile: hiddenFile)
    }

    private mutating func perform(_ action: TaskLifecycle.Action, _ task: TaskLifecycle) throws -> TaskLifecycle.Event? {
        switch action {
        case .write:
            if case .ended = state { Issue.record("the task ended twice") }
            state = task.state
        case .transfer: break
        case .stop: return .transferFailed(Failure(.cancelled, ""))
        case .place:
            guard let hiddenFile else {
                Issue.record("there is no file to place")
                return nil
            }
            if hiddenFile != destination {
                if destination != nil, terms.refusesExistingFile { return .placementFailed(.fileExists) }
                destination = hiddenFile
                // After link(2) and before unlink(2).
                try step()
            }
            self.hiddenFile = nil
            try step()
            return .placed
        case .clean: hiddenFile = nil
        case .deliver:
            guard case .ended(let outcome) = state else {
                Issue.record("an event was delivered before it was written")
                return nil
            }
            delivered.append(outcome)
            try step()
            return .acknowledge
        case .remove:
            isKnown = false
            isAcknowledged = true
        }
        return nil
    }
}

struct CrashModelTests {
    @Test(arguments: [true, false], [true, false])
    func `a download killed at any step ends once, and its file exists if it ends as finished`(
        refuses: Bool, cancels: Bool
    ) {
        var outcomes = Set<String>()
        for seed in 0..<3_000 as Range<UInt64> {
            var world = World(
                .init(isDownload: true, refusesExistingFile: refuses, isRepeatable: true, expires: 2_000), seed: seed)
            if seed % 7 == 0, !refuses { world.destination = FileIdentity(inode: 999, size: 1, modified: 0) }
            run(&world, cancels: cancels)
            expectNil(world.hiddenFile)
            if case .finished = world.delivered.last {
                #expect(world.destination != nil && world.destination?.inode != 999)
            }
            outcomes.insert("\(world.delivered.last.map { "\($0)".prefix(6) } ?? "")")
        }
        #expect(outcomes.contains("finish") && outcomes.contains("failed"))
        if cancels { #expect(outcomes.contains("cancel")) }
    }

    @Test(arguments: [true, false])
    func `a request that must not be repeated is sent once, although its process is killed at any step`(isDownload: Bool) {
        var sent = 0
        for seed in 0..<3_000 as Range<UInt64> {
            var world = World(.init(isDownload: isDownload, isRepeatable: false, expires: 2_000), seed: seed)
            run(&world, cancels: false)
            #expect(world.executions <= 1 || world.hasUploadLocation)
            // A task that was killed just before its only attempt also ends as interrupted.
            if world.executions > 0 { sent += 1 }
        }
        #expect(sent > 1_500)
    }

    private func run(_ world: inout World, cancels: Bool) {
        var processes = 0
        while !world.isAcknowledged {
            processes += 1
            // Each process may do more steps than the one before, so that one completes.
            world.remainingSteps = Int.random(in: 0...(4 + processes), using: &world.random)
            let cancels = cancels && Int.random(in: 0..<5, using: &world.random) == 0
            do { try world.runProcess(now: 1_000, cancels: cancels) } catch {}
            guard processes < 1_000 else {
                Issue.record("the task never ends")
                return
            }
        }
        #expect(!world.delivered.isEmpty)
        expectEqual(Set(world.delivered).count, 1, "deliveries of one event differ")
    }
}
