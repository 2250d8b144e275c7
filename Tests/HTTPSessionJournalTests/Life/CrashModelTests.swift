import Foundation
import HTTPSession
import Pacing
import Testing

@testable import HTTPSessionJournal

/// A world of one task: what is on the disk survives its process, and nothing else does.
private struct World {
    // The disk.
    var state = TaskLife.State.waiting
    var isKnown = true
    var hidden: FileMark?
    var destination: FileMark?
    var lastInode: UInt64 = 0
    var hasPlace = false
    /// How often the server has carried the request out, or may have.
    var executions = 0
    // What the program has heard.
    var delivered: [Outcome] = []
    var isAcknowledged = false

    let terms: TaskLife.Terms
    var random: SplitMix64
    /// Whether the transfer is still under way when what else happens has happened.
    var isSlow = false
    /// Steps until the next crash.
    var left = 0

    struct Crash: Error {}

    private enum Happening {
        case event(TaskLife.Event)
        /// The transfer gets through.
        case send
    }

    init(_ terms: TaskLife.Terms, seed: UInt64) {
        self.terms = terms
        random = SplitMix64(seed: seed)
    }

    mutating func step() throws {
        guard left > 0 else { throw Crash() }
        left -= 1
    }

    /// The life of one process.
    mutating func live(now: Int64, cancels: Bool) throws {
        guard isKnown else { return }
        var life = TaskLife(terms, state)
        var happenings: [Happening] = [
            .event(.reattached(.init(hidden: hidden, destination: destination, bodyIsSame: true, hasPlace: hasPlace)))
        ]
        if cancels { happenings.append(.event(.cancel)) }
        isSlow = cancels && Bool.random(using: &random)
        while !happenings.isEmpty {
            switch happenings.removeFirst() {
            case .send: happenings.insert(.event(try send()), at: 0)
            case .event(let event):
                for action in life.handle(event, now: now) {
                    try step()
                    if case .transfer = action {
                        happenings.insert(contentsOf: isSlow ? [] : attempts(), at: 0)
                    } else if let event = try perform(action, life) {
                        happenings.insert(.event(event), at: 0)
                    }
                }
            }
        }
    }

    /// Some that stay here, and one that gets through.
    private mutating func attempts() -> [Happening] {
        guard !terms.isRepeatable else { return [.send] }
        let vain = (0..<Int.random(in: 0...2, using: &random)).flatMap { _ in [TaskLife.Event.leaves, .stayed] }
        return (vain + [.leaves]).map { .event($0) } + [.send]
    }

    private mutating func send() throws -> TaskLife.Event {
        executions += 1
        guard terms.isDownload else {
            try step()
            if Bool.random(using: &random) { hasPlace = true }
            try step()
            return .transferred(nil, hidden: nil)
        }
        if Int.random(in: 0..<4, using: &random) == 0 { return .transferFailed(Failure(.connectionLost, "")) }
        lastInode += 1
        hidden = FileMark(inode: lastInode, size: 1, modified: 0)
        try step()
        return .transferred(nil, hidden: hidden)
    }

    private mutating func perform(_ action: TaskLife.Action, _ life: TaskLife) throws -> TaskLife.Event? {
        switch action {
        case .write:
            if case .ended = state { Issue.record("a second end") }
            state = life.state
        case .transfer: break
        case .stop: return .transferFailed(Failure(.cancelled, ""))
        case .place:
            guard let hidden else {
                Issue.record("nothing to place")
                return nil
            }
            if hidden != destination {
                if destination != nil, terms.refusesExistingFile { return .notPlaced(.fileExists) }
                destination = hidden
                // Between link(2) and unlink(2).
                try step()
            }
            self.hidden = nil
            try step()
            return .placed
        case .clean: hidden = nil
        case .deliver:
            guard case .ended(let outcome) = state else {
                Issue.record("an event before its end is written")
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
    func `wherever its process is killed, a download ends once, and its file is there if it says so`(
        refuses: Bool, cancels: Bool
    ) {
        var outcomes = Set<String>()
        for seed in 0..<3_000 as Range<UInt64> {
            var world = World(
                .init(isDownload: true, refusesExistingFile: refuses, isRepeatable: true, expires: 2_000), seed: seed)
            if seed % 7 == 0, !refuses { world.destination = FileMark(inode: 999, size: 1, modified: 0) }
            run(&world, cancels: cancels)
            #expect(world.hidden == nil)
            if case .finished = world.delivered.last {
                #expect(world.destination != nil && world.destination?.inode != 999)
            }
            outcomes.insert("\(world.delivered.last.map { "\($0)".prefix(6) } ?? "")")
        }
        #expect(outcomes.contains("finish") && outcomes.contains("failed"))
        if cancels { #expect(outcomes.contains("cancel")) }
    }

    @Test(arguments: [true, false]) func `wherever its process is killed, what may do harm twice is sent once`(isDownload: Bool) {
        var sent = 0
        for seed in 0..<3_000 as Range<UInt64> {
            var world = World(.init(isDownload: isDownload, isRepeatable: false, expires: 2_000), seed: seed)
            run(&world, cancels: false)
            #expect(world.executions <= 1 || world.hasPlace)
            // Interrupted is what may have been sent: by its last attempt, before which it was killed at most.
            if world.executions > 0 { sent += 1 }
        }
        #expect(sent > 1_500)
    }

    private func run(_ world: inout World, cancels: Bool) {
        var lives = 0
        while !world.isAcknowledged {
            lives += 1
            // The longer it takes, the later the crash.
            world.left = Int.random(in: 0...(4 + lives), using: &world.random)
            let cancels = cancels && Int.random(in: 0..<5, using: &world.random) == 0
            do { try world.live(now: 1_000, cancels: cancels) } catch {}
            guard lives < 1_000 else {
                Issue.record("it never ends")
                return
            }
        }
        #expect(!world.delivered.isEmpty)
        #expect(Set(world.delivered).count == 1, "the event is another one at every delivery")
    }
}
