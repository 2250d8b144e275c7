import HTTPSession
import Pacing
import Testing

/// The surroundings of a machine: a slot in the queue, a current transfer. An illegal action is a fault of the machine.
private struct Surroundings {
    var isWaiting = false
    var hasTransfer = false
    var isSuspended = false
    var begun = 0
    var finished = 0
    var faults: [String] = []

    mutating func perform(_ action: TaskStateMachine.Action) {
        if finished > 0 { faults.append("\(action) after the end") }
        switch action {
        case .enqueue:
            if isWaiting || hasTransfer { faults.append("enqueued twice") }
            isWaiting = true
        case .dequeue:
            if !isWaiting { faults.append("dequeued without waiting") }
            isWaiting = false
        case .begin(let attempt):
            if hasTransfer { faults.append("began twice") }
            begun += 1
            if attempt != begun { faults.append("attempt \(attempt) is the \(begun)th") }
            if !isWaiting { faults.append("began without waiting") }
            (isWaiting, hasTransfer, isSuspended) = (false, true, false)
        case .suspendTransfer:
            if !hasTransfer || isSuspended { faults.append("suspended without a moving transfer") }
            isSuspended = true
        case .resumeTransfer:
            if !hasTransfer || !isSuspended { faults.append("resumed without a suspended transfer") }
            isSuspended = false
        case .abortAttempt:
            if !hasTransfer { faults.append("aborted nothing") }
        case .failAttemptByTimeout:
            if !hasTransfer || isSuspended { faults.append("timed out without a moving transfer") }
        case .releaseQueueSlot:
            if !hasTransfer { faults.append("released a slot that it does not have") }
            hasTransfer = false
        case .finish:
            if isWaiting || hasTransfer { faults.append("finished with a slot") }
            finished += 1
        case .reportResumed, .reportSuspended: break
        }
    }
}

@Suite struct TaskStateMachineRandomTests {
    private static func event(_ surroundings: Surroundings, _ generator: inout SplitMix64) -> TaskStateMachine.Event? {
        switch Int.random(in: 0..<29, using: &generator) {
        case 0...3: return .resume
        case 4...5: return .suspend
        case 6...9: return surroundings.isWaiting ? .admitted : nil
        case 10: return .activity
        case 11: return .handlerAsked
        case 12: return .handlerAnswered
        case 13: return surroundings.hasTransfer && Bool.random(using: &generator) ? .ended : nil
        case 14...16: return surroundings.hasTransfer ? .attemptEnded(delay: .random(in: 0...40, using: &generator)) : nil
        case 17: return .receiverFull
        case 18: return .receiverReady
        case 19: return Int.random(in: 0..<10, using: &generator) == 0 ? .cancel : nil
        case 20: return .postponed(delay: .random(in: 0...40, using: &generator))
        case 21: return surroundings.hasTransfer ? .attemptEndedOffline : nil
        case 22: return .networkLost
        case 23: return .networkRestored(delay: .random(in: 0...40, using: &generator))
        case 24: return .answered
        case 25: return .silenceEnded
        case 26: return surroundings.hasTransfer ? .attemptFailed : nil
        default: return .deadlineReached
        }
    }

    /// Handles an event as a task does: after a timeout, another attempt or the end follows.
    private static func run(
        _ machine: inout TaskStateMachine, _ event: TaskStateMachine.Event, now: Int64, _ surroundings: inout Surroundings,
        _ generator: inout SplitMix64
    ) {
        for action in machine.handle(event, now: now) {
            surroundings.perform(action)
            guard action == .failAttemptByTimeout else { continue }
            let next = Bool.random(using: &generator) ? TaskStateMachine.Event.ended : .attemptEnded(delay: 30)
            run(&machine, next, now: now, &surroundings, &generator)
        }
    }

    @Test func `at random, a task finishes once, releases one slot for each attempt, and does nothing after its end`() {
        let seed = UInt64.random(in: 0 ... .max)
        var generator = SplitMix64(seed: seed)
        for _ in 0..<5_000 {
            var machine = TaskStateMachine(
                limits: .init(requestTimeout: 50, resourceTimeout: 900, handlerTimeout: 20, connectivityTimeout: 60))
            var surroundings = Surroundings()
            var now: Int64 = 0
            var events: [String] = []
            for _ in 0..<80 {
                now += .random(in: 0...20, using: &generator)
                guard let event = TaskStateMachineRandomTests.event(surroundings, &generator) else { continue }
                events.append("\(now) \(event)")
                TaskStateMachineRandomTests.run(&machine, event, now: now, &surroundings, &generator)
            }
            // A due deadline acts or moves; otherwise a loop would turn forever.
            for _ in 0..<20 {
                guard let deadline = machine.deadline else { break }
                now = max(now, deadline)
                TaskStateMachineRandomTests.run(&machine, .deadlineReached, now: now, &surroundings, &generator)
                if let next = machine.deadline, next <= now { surroundings.faults.append("still due at \(next)") }
            }
            TaskStateMachineRandomTests.run(&machine, .cancel, now: now, &surroundings, &generator)
            let isGood = surroundings.faults.isEmpty && surroundings.finished == 1 && machine.state == .finished
            #expect(isGood, "seed \(seed): \(surroundings.faults): \(events)")
            if !isGood { return }
        }
    }
}
