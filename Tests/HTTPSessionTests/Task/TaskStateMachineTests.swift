import Expectations
import HTTPSession
import Testing

/// A machine and the actions that it returned, one line for each event.
private final class Transcript {
    var machine = TaskStateMachine(
        limits: .init(requestTimeout: 60, resourceTimeout: 1_000, handlerTimeout: 30, connectivityTimeout: 100))

    func callAsFunction(_ event: TaskStateMachine.Event, at now: Int64 = 0) -> [TaskStateMachine.Action] {
        machine.handle(event, now: now)
    }

    /// A machine whose task is running.
    static func running(at now: Int64 = 0) -> Transcript {
        let transcript = Transcript()
        _ = transcript(.resume, at: now)
        _ = transcript(.admitted, at: now)
        return transcript
    }
}

@Suite struct TaskStateMachineTests {
    @Test func `a task starts, runs and finishes`() {
        let task = Transcript()
        expectEqual(task(.resume), [.reportResumed, .enqueue])
        expectEqual(task(.admitted), [.begin(attempt: 1)])
        expectEqual(task(.activity, at: 5), [])
        expectEqual(task(.ended, at: 6), [.releaseQueueSlot, .finish(.ended)])
        expectEqual(task.machine.state, .finished)
        expectNil(task.machine.deadline)
    }

    @Test func `an event that is impossible in a state changes nothing`() {
        let task = Transcript()
        for event: TaskStateMachine.Event in [
            .suspend, .admitted, .activity, .handlerAsked, .handlerAnswered, .ended, .attemptEnded(delay: 0), .deadlineReached,
        ] {
            expectEqual(task(event), [])
            expectEqual(task.machine.state, .suspended)
        }
        _ = task(.resume)
        for event: TaskStateMachine.Event in [.resume, .activity, .handlerAsked, .attemptEnded(delay: 5), .deadlineReached] {
            expectEqual(task(event), [])
            expectEqual(task.machine.state, .waiting)
        }
        _ = task(.admitted)
        for event: TaskStateMachine.Event in [.resume, .admitted, .deadlineReached] {
            expectEqual(task(event), [])
            expectEqual(task.machine.state, .running)
        }
    }

    @Test func `a task suspended in the queue leaves it and returns when resumed`() {
        let task = Transcript()
        _ = task(.resume)
        expectEqual(task(.suspend), [.dequeue, .reportSuspended])
        expectEqual(task(.admitted), [])
        expectEqual(task(.resume), [.reportResumed, .enqueue])
        expectEqual(task(.admitted), [.begin(attempt: 1)])
    }

    @Test func `a task suspended while it runs keeps its transfer and its slot`() {
        let task = Transcript.running()
        expectEqual(task(.suspend, at: 10), [.suspendTransfer, .reportSuspended])
        expectEqual(task(.suspend, at: 11), [])
        expectEqual(task(.deadlineReached, at: 500), [])
        expectEqual(task(.resume, at: 500), [.reportResumed, .resumeTransfer])
        expectEqual(task.machine.deadline, 560)
        expectEqual(task(.ended, at: 510), [.releaseQueueSlot, .finish(.ended)])
    }

    @Test func `a transfer that ends while it is suspended ends the task`() {
        let task = Transcript.running()
        _ = task(.suspend)
        expectEqual(task(.ended), [.releaseQueueSlot, .finish(.ended)])
    }

    @Test func `another attempt is enqueued at once or after its delay`() {
        let task = Transcript.running()
        expectEqual(task(.attemptEnded(delay: 0), at: 1), [.releaseQueueSlot, .enqueue])
        expectEqual(task(.admitted, at: 2), [.begin(attempt: 2)])
        expectEqual(task(.attemptEnded(delay: 50), at: 10), [.releaseQueueSlot])
        expectEqual(task.machine.deadline, 60)
        expectEqual(task(.deadlineReached, at: 59), [])
        expectEqual(task(.deadlineReached, at: 60), [.enqueue])
        expectEqual(task(.admitted, at: 61), [.begin(attempt: 3)])
    }

    @Test func `a task suspended while it backs off continues to back off when resumed`() {
        let task = Transcript.running()
        _ = task(.attemptEnded(delay: 50), at: 0)
        expectEqual(task(.suspend, at: 1), [.reportSuspended])
        expectEqual(task(.deadlineReached, at: 2), [])
        expectEqual(task(.resume, at: 3), [.reportResumed])
        expectEqual(task.machine.deadline, 50)
        expectEqual(task(.deadlineReached, at: 49), [])
        expectEqual(task(.deadlineReached, at: 50), [.enqueue])
        // This happens only once.
        expectEqual(task(.suspend, at: 51), [.dequeue, .reportSuspended])
        expectEqual(task(.resume, at: 52), [.reportResumed, .enqueue])
    }

    @Test func `a backoff that passed during the suspension ends at once, and can be postponed`() {
        let task = Transcript.running()
        _ = task(.attemptEnded(delay: 50), at: 0)
        _ = task(.suspend, at: 1)
        expectEqual(task(.resume, at: 70), [.reportResumed])
        expectEqual(task.machine.deadline, 50)
        expectEqual(task(.postponed(delay: 10), at: 70), [])
        expectEqual(task(.deadlineReached, at: 79), [])
        expectEqual(task(.deadlineReached, at: 80), [.enqueue])
    }

    @Test func `a retry with a delay, scheduled while suspended, backs off when resumed`() {
        let task = Transcript.running()
        _ = task(.suspend)
        expectEqual(task(.attemptEnded(delay: 50), at: 10), [.releaseQueueSlot])
        expectEqual(task(.resume, at: 20), [.reportResumed])
        expectEqual(task(.deadlineReached, at: 60), [.enqueue])
    }

    @Test func `a retry without a delay, scheduled while suspended, is enqueued when resumed`() {
        let task = Transcript.running()
        _ = task(.suspend)
        expectEqual(task(.attemptEnded(delay: 0)), [.releaseQueueSlot])
        expectEqual(task.machine.state, .suspended)
        expectEqual(task(.resume), [.reportResumed, .enqueue])
        expectEqual(task(.admitted), [.begin(attempt: 2)])
    }

    @Test func `an error found while the task waits in the queue ends it`() {
        let task = Transcript()
        _ = task(.resume)
        expectEqual(task(.ended), [.dequeue, .finish(.ended)])
        expectEqual(task(.admitted), [])
    }

    @Test func `canceling ends a task once in every state`() {
        var task = Transcript()
        expectEqual(task(.cancel), [.finish(.cancelled)])
        expectEqual(task(.cancel), [])

        task = Transcript()
        _ = task(.resume)
        expectEqual(task(.cancel), [.dequeue, .finish(.cancelled)])

        task = .running()
        expectEqual(task(.cancel), [.abortAttempt, .releaseQueueSlot, .finish(.cancelled)])

        task = .running()
        _ = task(.suspend)
        expectEqual(task(.cancel), [.abortAttempt, .releaseQueueSlot, .finish(.cancelled)])

        task = .running()
        _ = task(.attemptEnded(delay: 5))
        expectEqual(task(.cancel), [.finish(.cancelled)])
        expectEqual(task(.deadlineReached, at: 5), [])
    }

    @Test func `the request timeout ends an attempt without activity only`() {
        let task = Transcript.running()
        expectEqual(task.machine.deadline, 60)
        _ = task(.activity, at: 40)
        expectEqual(task(.deadlineReached, at: 60), [])
        expectEqual(task.machine.deadline, 100)
        expectEqual(task(.deadlineReached, at: 100), [.failAttemptByTimeout])
        expectEqual(task(.ended, at: 100), [.releaseQueueSlot, .finish(.ended)])
    }

    @Test func `the silence of failed attempts counts for the next one, until a byte is received`() {
        let task = Transcript.running()
        _ = task(.activity, at: 10)
        _ = task(.attemptFailed, at: 50)
        _ = task(.attemptEnded(delay: 100), at: 50)
        _ = task(.deadlineReached, at: 150)
        _ = task(.admitted, at: 200)
        // 20 are left of 60, and the waits do not count.
        expectEqual(task.machine.deadline, 220)
        // Bytes that are sent do not end the silence.
        _ = task(.activity, at: 210)
        expectEqual(task.machine.deadline, 230)
        expectEqual(task(.deadlineReached, at: 230), [.failAttemptByTimeout])
        #expect(task.machine.isSilent(now: 230) && !task.machine.isSilent(now: 229))
        _ = task(.silenceEnded, at: 230)
        expectEqual(task.machine.deadline, 290)
    }

    @Test func `silence does not count while the task is suspended, its handler is asked or its receiver is full`() {
        for event in [TaskStateMachine.Event.suspend, .handlerAsked, .receiverFull] {
            let task = Transcript.running()
            _ = task(event, at: 10)
            _ = task(.attemptFailed, at: 20)
            _ = task(.attemptEnded(delay: 0), at: 20)
            _ = task(.resume, at: 20)
            _ = task(.admitted, at: 100)
            expectEqual(task.machine.deadline, 160, "\(event)")
        }
    }

    @Test func `the resource timeout runs from the first start in every state`() {
        var task = Transcript()
        expectNil(task.machine.deadline)
        _ = task(.resume, at: 100)
        expectEqual(task.machine.deadline, 1_100)
        _ = task(.suspend, at: 200)
        _ = task(.resume, at: 300)
        expectEqual(task.machine.deadline, 1_100)
        expectEqual(task(.deadlineReached, at: 1_100), [.dequeue, .finish(.resourceTimedOut)])

        task = .running(at: 0)
        _ = task(.suspend, at: 1)
        expectEqual(task.machine.deadline, 1_000)
        expectEqual(task(.deadlineReached, at: 1_000), [.abortAttempt, .releaseQueueSlot, .finish(.resourceTimedOut)])

        task = .running(at: 0)
        _ = task(.attemptEnded(delay: 5_000), at: 1)
        expectEqual(task.machine.deadline, 1_000)
        expectEqual(task(.deadlineReached, at: 1_000), [.finish(.resourceTimedOut)])
    }

    @Test func `all waits for connectivity count together, until a response arrives or the task is suspended`() {
        let task = Transcript.running()
        _ = task(.attemptEndedOffline)
        expectEqual(task.machine.deadline, 100)
        _ = task(.networkRestored(delay: 0), at: 70)
        _ = task(.admitted, at: 70)
        _ = task(.attemptEndedOffline, at: 80)
        expectEqual(task.machine.deadline, 110)
        expectEqual(task(.deadlineReached, at: 109), [])
        _ = task(.networkRestored(delay: 0), at: 109)
        _ = task(.admitted, at: 109)
        _ = task(.answered, at: 109)
        _ = task(.attemptEndedOffline, at: 120)
        expectEqual(task.machine.deadline, 220)
        _ = task(.suspend, at: 200)
        expectEqual(task.machine.deadline, 1_000)
        _ = task(.resume, at: 500)
        _ = task(.admitted, at: 500)
        _ = task(.attemptEndedOffline, at: 510)
        expectEqual(task(.deadlineReached, at: 609), [])
        expectEqual(task(.deadlineReached, at: 610), [.finish(.connectivityTimedOut)])
    }

    @Test func `without a limit, the wait for connectivity ends with the resource timeout`() {
        let task = Transcript.running()
        task.machine.removeConnectivityTimeout()
        _ = task(.attemptEndedOffline)
        expectEqual(task.machine.deadline, 1_000)
        expectEqual(task(.deadlineReached, at: 999), [])
        expectEqual(task(.deadlineReached, at: 1_000), [.finish(.resourceTimedOut)])
    }

    @Test func `a handler has its own timeout, after which the request timeout restarts`() {
        let task = Transcript.running()
        _ = task(.handlerAsked, at: 50)
        expectEqual(task.machine.deadline, 80)
        expectEqual(task(.deadlineReached, at: 70), [])
        _ = task(.handlerAnswered, at: 75)
        expectEqual(task.machine.deadline, 135)
        _ = task(.handlerAsked, at: 100)
        expectEqual(task(.deadlineReached, at: 130), [.abortAttempt, .releaseQueueSlot, .finish(.handlerTimedOut)])
    }

    @Test func `the handler timeout stops while the task is suspended`() {
        let task = Transcript.running()
        _ = task(.handlerAsked, at: 10)
        _ = task(.suspend, at: 20)
        expectEqual(task(.deadlineReached, at: 200), [])
        _ = task(.resume, at: 300)
        expectEqual(task.machine.deadline, 330)
        _ = task(.suspend, at: 301)
        _ = task(.handlerAnswered, at: 302)
        _ = task(.resume, at: 400)
        expectEqual(task.machine.deadline, 460)
    }

    @Test func `the request timeout stops while the receiver is full`() {
        let task = Transcript.running()
        _ = task(.receiverFull, at: 10)
        expectEqual(task.machine.deadline, 1_000)
        expectEqual(task(.deadlineReached, at: 500), [])
        _ = task(.receiverReady, at: 500)
        expectEqual(task.machine.deadline, 560)
        _ = task(.receiverFull, at: 510)
        _ = task(.attemptEnded(delay: 0), at: 511)
        _ = task(.admitted, at: 512)
        expectEqual(task.machine.deadline, 572)
    }

    @Test func `timeouts of years do not overflow`() {
        var machine = TaskStateMachine(limits: .init(requestTimeout: .max, resourceTimeout: .max, handlerTimeout: .max))
        _ = machine.handle(.resume, now: 5)
        _ = machine.handle(.admitted, now: 5)
        expectEqual(machine.deadline, .max)
        _ = machine.handle(.handlerAsked, now: 6)
        expectEqual(machine.deadline, .max)
        _ = machine.handle(.attemptEnded(delay: .max), now: 7)
        expectEqual(machine.deadline, .max)
    }
}
