import Expectations
import Foundation
import HTTPTypes
import Reachability
import Testing

@testable import HTTPSession

/// A task that is suspended, resumed or canceled in each phase.
@Suite struct TaskMachinePhaseTests {
    /// The phase of a task.
    enum Phase: String, CaseIterable, CustomTestStringConvertible {
        case new, queued, opening, adapting, lookingUp, connecting, connected, receiving, asking, backingOff, waitingForNetwork

        var testDescription: String { rawValue }
    }

    private func task(in phase: Phase) throws -> TaskTranscript {
        let destination = DownloadDestination(URL(fileURLWithPath: "/tmp/file"), partialFile: .keep)
        let handlers: TaskMachine.Handlers = phase == .adapting ? .interceptors : phase == .asking ? .response : []
        let task = try TaskTranscript(
            to: phase == .opening ? .file(destination) : .memory(maximumSize: 1 << 20), handlers: handlers,
            waits: phase == .waitingForNetwork)
        if phase == .new { return task }
        _ = task(.resume)
        if phase == .queued { return task }
        _ = task(.admitted)
        if [.opening, .adapting, .lookingUp].contains(phase) { return task }
        _ = task(.nameResolved)
        if phase == .connecting { return task }
        _ = task(.connected)
        switch phase {
        case .receiving, .asking: _ = try task.head(200)
        case .backingOff: _ = task.endTransfer(.connectionLost)
        case .waitingForNetwork:
            task.explanation = .missing(Cause(.link, .noCarrier, detail: "no carrier"))
            _ = task.endTransfer(.connectionLost)
        default: break
        }
        return task
    }

    @Test(arguments: [
        (Phase.new, "", "report resumed, waiting, enqueue"),
        (.queued, "dequeue, suspended, suspended, report suspended", "report resumed, waiting, enqueue"),
        (.opening, "suspend transfer, suspended, suspended, report suspended", "report resumed, running, resume transfer"),
        (.adapting, "suspend transfer, suspended, suspended, report suspended", "report resumed, running, resume transfer"),
        (.lookingUp, "suspend transfer, suspended, suspended, report suspended", "report resumed, running, resume transfer"),
        (.connecting, "suspend transfer, suspended, suspended, report suspended", "report resumed, running, resume transfer"),
        (.connected, "suspend transfer, suspended, suspended, report suspended", "report resumed, running, resume transfer"),
        (.receiving, "suspend transfer, suspended, suspended, report suspended", "report resumed, running, resume transfer"),
        (.asking, "suspend transfer, suspended, suspended, report suspended", "report resumed, running, resume transfer"),
        (.backingOff, "suspended, report suspended", "backingOff, report resumed"),
        (.waitingForNetwork, "leave outage, suspended, report suspended", "report resumed, waiting, enqueue first"),
    ])
    func `a task is suspended and resumed in every phase`(_ phase: Phase, _ suspension: String, _ resumption: String) throws {
        let task = try task(in: phase)
        expectEqual(task(.suspend), suspension)
        expectEqual(task(.suspend), "")
        expectEqual(task(.resume), resumption)
        expectEqual(task(.resume), "")
    }

    @Test(arguments: [
        (Phase.new, "end cancelled"),
        (.queued, "dequeue, suspended, end cancelled"),
        (.opening, "abandon, release slot, end cancelled"),
        (.adapting, "abandon, release slot, withdraw question, end cancelled"),
        (.lookingUp, "abandon, release slot, lookup continues, end cancelled"),
        (.connecting, "abandon, release slot, end cancelled"),
        (.connected, "abandon, release slot, end cancelled"),
        (.receiving, "abandon, release slot, end cancelled"),
        (.asking, "abandon, release slot, withdraw question, end cancelled"),
        (.backingOff, "end cancelled"),
        (.waitingForNetwork, "leave outage, end cancelled"),
    ])
    func `a task is canceled in every phase`(_ phase: Phase, _ effects: String) throws {
        let running = try task(in: phase)
        expectEqual(running(.cancel), effects)
        let suspended = try task(in: phase)
        _ = suspended(.suspend)
        _ = suspended(.cancel)
        expectEqual(suspended.ending, "cancelled")
    }

    @Test(arguments: Phase.allCases) func `no event changes a task that has ended`(_ phase: Phase) throws {
        let task = try task(in: phase)
        _ = task(.cancel)
        let cause = Cause(.link, .noCarrier, detail: "no carrier")
        let events: [TaskMachine.Event] = [
            .resume, .suspend, .cancel, .admitted, .partialFileOpened(.success(.init())),
            .startFailed(.init(.timedOut, ""), hasBegun: true),
            .sharedLookupFailed, .receiverReady, .handlerAnswered(question: task.question, .response(.allow)),
            .digestVerified(.success(true)), .uploadDigestVerified(true), .failureExplained(.missing(cause)), .networkLost(cause),
            .networkRestored(delay: 0), .networkChanged, .networkAllowed, .retryGranted, .retryPostponed(5), .deadlineReached(),
        ]
        for event in events {
            _ = task(event)
            expectEqual(task.state, .finished, "\(event)")
            expectEqual(task.ending, "cancelled", "\(event)")
        }
    }

    @Test func `a failure while the task is suspended backs off after the resumption`() throws {
        let task = try task(in: .receiving)
        _ = task(.suspend)
        expectEqual(
            task.endTransfer(.connectionLost), "report retry after connection-lost, suspended, release slot, suspended")
        expectEqual(task.state, .suspended)
        expectEqual(task.after(60), "")
        expectEqual(task(.resume), "backingOff, report resumed")
        expectEqual(task.after(0), "waiting, enqueue first")
    }

    @Test func `a partial file opened while the task is suspended is used after the resumption`() throws {
        let task = try task(in: .opening)
        _ = task(.suspend)
        expectEqual(task(.partialFileOpened(.success(.init()))), "")
        expectEqual(task(.resume), "report resumed, running, start, resume transfer")
    }
}
