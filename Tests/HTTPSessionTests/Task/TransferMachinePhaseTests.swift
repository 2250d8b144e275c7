import Foundation
import HTTPTypes
import Reachability
import Testing

@testable import HTTPSession

/// A task that is suspended, resumed or canceled, wherever it is.
@Suite struct TransferMachinePhaseTests {
    /// Where a task is.
    enum Phase: String, CaseIterable, CustomTestStringConvertible {
        case new, queued, opening, adapting, lookingUp, connecting, connected, receiving, asking, backingOff, waitingForNetwork

        var testDescription: String { rawValue }
    }

    private func task(in phase: Phase) throws -> TransferTranscript {
        let kept = DownloadDestination(URL(fileURLWithPath: "/tmp/file"), partialFile: .keep)
        let handlers: TransferRules.Handlers = phase == .adapting ? .interceptors : phase == .asking ? .response : []
        let task = try TransferTranscript(
            kind: phase == .opening ? .download : .data, to: phase == .opening ? .file(kept) : nil, handlers: handlers,
            waits: phase == .waitingForNetwork)
        if phase == .new { return task }
        _ = task(.resume)
        if phase == .queued { return task }
        _ = task(.admitted)
        if [.opening, .adapting, .lookingUp].contains(phase) { return task }
        _ = task(.lookedUp)
        if phase == .connecting { return task }
        _ = task(.connected)
        switch phase {
        case .receiving, .asking: _ = try task.head(200)
        case .backingOff: _ = task.ends(.connectionLost)
        case .waitingForNetwork:
            task.gate = .missing(Cause(.link, .noCarrier, detail: "no carrier"))
            _ = task.ends(.connectionLost)
        default: break
        }
        return task
    }

    @Test(arguments: [
        (Phase.new, "", "tell resumed, waiting, queue"),
        (.queued, "leave the queue, suspended, suspended, tell suspended", "tell resumed, waiting, queue"),
        (.opening, "hold, suspended, suspended, tell suspended", "tell resumed, running, let go"),
        (.adapting, "hold, suspended, suspended, tell suspended", "tell resumed, running, let go"),
        (.lookingUp, "hold, suspended, suspended, tell suspended", "tell resumed, running, let go"),
        (.connecting, "hold, suspended, suspended, tell suspended", "tell resumed, running, let go"),
        (.connected, "hold, suspended, suspended, tell suspended", "tell resumed, running, let go"),
        (.receiving, "hold, suspended, suspended, tell suspended", "tell resumed, running, let go"),
        (.asking, "hold, suspended, suspended, tell suspended", "tell resumed, running, let go"),
        (.backingOff, "suspended, tell suspended", "backingOff, tell resumed"),
        (.waitingForNetwork, "leave the gate, suspended, tell suspended", "tell resumed, waiting, queue first"),
    ])
    func `suspended and resumed`(_ phase: Phase, _ suspension: String, _ resumption: String) throws {
        let task = try task(in: phase)
        #expect(task(.suspend) == suspension)
        #expect(task(.suspend) == "")
        #expect(task(.resume) == resumption)
        #expect(task(.resume) == "")
    }

    @Test(arguments: [
        (Phase.new, "end cancelled"),
        (.queued, "leave the queue, suspended, end cancelled"),
        (.opening, "abandon, give up the place, end cancelled"),
        (.adapting, "abandon, give up the place, withdraw the question, end cancelled"),
        (.lookingUp, "abandon, give up the place, the look-up goes on, end cancelled"),
        (.connecting, "abandon, give up the place, end cancelled"),
        (.connected, "abandon, give up the place, end cancelled"),
        (.receiving, "abandon, give up the place, end cancelled"),
        (.asking, "abandon, give up the place, withdraw the question, end cancelled"),
        (.backingOff, "end cancelled"),
        (.waitingForNetwork, "leave the gate, end cancelled"),
    ])
    func `cancelled`(_ phase: Phase, _ effects: String) throws {
        let running = try task(in: phase)
        #expect(running(.cancel) == effects)
        let suspended = try task(in: phase)
        _ = suspended(.suspend)
        _ = suspended(.cancel)
        #expect(suspended.ending == "cancelled")
    }

    @Test(arguments: Phase.allCases) func `nothing happens to a task that has ended`(_ phase: Phase) throws {
        let task = try task(in: phase)
        _ = task(.cancel)
        let cause = Cause(.link, .noCarrier, detail: "no carrier")
        let events: [TransferMachine.Event] = [
            .resume, .suspend, .cancel, .admitted, .partOpened(.success(.init())),
            .cannotStart(.init(.timedOut, ""), hasBegun: true),
            .nameStaysUnanswered, .receiverReady, .answered(question: task.question, .response(.allow)),
            .verified(.success(true)), .uploadVerified(true), .explained(.missing(cause)), .networkIsGone(cause),
            .networkIsBack(delay: 0), .networkChanged, .networkIsAllowed, .retryIsPaid, .retryHasToWait(5), .time,
        ]
        for event in events {
            _ = task(event)
            #expect(task.state == .finished, "\(event)")
            #expect(task.ending == "cancelled", "\(event)")
        }
    }

    @Test func `a failure while the task is suspended waits for its resumption`() throws {
        let task = try task(in: .receiving)
        _ = task(.suspend)
        #expect(
            task.ends(.connectionLost) == "tell retry after connection-lost, suspended, give up the place, suspended")
        #expect(task.state == .suspended)
        #expect(task.after(60) == "")
        #expect(task(.resume) == "backingOff, tell resumed")
        #expect(task.after(0) == "waiting, queue first")
    }

    @Test func `a file that is found while the task is suspended is used when it goes on`() throws {
        let task = try task(in: .opening)
        _ = task(.suspend)
        #expect(task(.partOpened(.success(.init()))) == "")
        #expect(task(.resume) == "tell resumed, running, start, let go")
    }
}
