import HTTPSession
import Testing

/// A machine and the actions that it returned, one line for each event.
private final class Transcript {
    var machine = TaskStateMachine(limits: .init(requestTimeout: 60, resourceTimeout: 1_000, handlerTimeout: 30))

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
        #expect(task(.resume) == [.reportResumed, .enqueue])
        #expect(task(.admitted) == [.begin(attempt: 1)])
        #expect(task(.activity, at: 5) == [])
        #expect(task(.ended, at: 6) == [.releaseQueueSlot, .finish(.ended)])
        #expect(task.machine.state == .finished)
        #expect(task.machine.deadline == nil)
    }

    @Test func `an event that is impossible in a state changes nothing`() {
        let task = Transcript()
        for event: TaskStateMachine.Event in [
            .suspend, .admitted, .activity, .handlerAsked, .handlerAnswered, .ended, .attemptEnded(delay: 0), .deadlineReached,
        ] {
            #expect(task(event) == [])
            #expect(task.machine.state == .suspended)
        }
        _ = task(.resume)
        for event: TaskStateMachine.Event in [.resume, .activity, .handlerAsked, .attemptEnded(delay: 5), .deadlineReached] {
            #expect(task(event) == [])
            #expect(task.machine.state == .waiting)
        }
        _ = task(.admitted)
        for event: TaskStateMachine.Event in [.resume, .admitted, .deadlineReached] {
            #expect(task(event) == [])
            #expect(task.machine.state == .running)
        }
    }

    @Test func `a task suspended in the queue leaves it and returns when resumed`() {
        let task = Transcript()
        _ = task(.resume)
        #expect(task(.suspend) == [.dequeue, .reportSuspended])
        #expect(task(.admitted) == [])
        #expect(task(.resume) == [.reportResumed, .enqueue])
        #expect(task(.admitted) == [.begin(attempt: 1)])
    }

    @Test func `a task suspended while it runs keeps its transfer and its slot`() {
        let task = Transcript.running()
        #expect(task(.suspend, at: 10) == [.suspendTransfer, .reportSuspended])
        #expect(task(.suspend, at: 11) == [])
        #expect(task(.deadlineReached, at: 500) == [])
        #expect(task(.resume, at: 500) == [.reportResumed, .resumeTransfer])
        #expect(task.machine.deadline == 560)
        #expect(task(.ended, at: 510) == [.releaseQueueSlot, .finish(.ended)])
    }

    @Test func `a transfer that ends while it is suspended ends the task`() {
        let task = Transcript.running()
        _ = task(.suspend)
        #expect(task(.ended) == [.releaseQueueSlot, .finish(.ended)])
    }

    @Test func `another attempt is enqueued at once or after its delay`() {
        let task = Transcript.running()
        #expect(task(.attemptEnded(delay: 0), at: 1) == [.releaseQueueSlot, .enqueue])
        #expect(task(.admitted, at: 2) == [.begin(attempt: 2)])
        #expect(task(.attemptEnded(delay: 50), at: 10) == [.releaseQueueSlot])
        #expect(task.machine.deadline == 60)
        #expect(task(.deadlineReached, at: 59) == [])
        #expect(task(.deadlineReached, at: 60) == [.enqueue])
        #expect(task(.admitted, at: 61) == [.begin(attempt: 3)])
    }

    @Test func `a task suspended while it backs off continues to back off when resumed`() {
        let task = Transcript.running()
        _ = task(.attemptEnded(delay: 50), at: 0)
        #expect(task(.suspend, at: 1) == [.reportSuspended])
        #expect(task(.deadlineReached, at: 2) == [])
        #expect(task(.resume, at: 3) == [.reportResumed])
        #expect(task.machine.deadline == 50)
        #expect(task(.deadlineReached, at: 49) == [])
        #expect(task(.deadlineReached, at: 50) == [.enqueue])
        // This happens only once.
        #expect(task(.suspend, at: 51) == [.dequeue, .reportSuspended])
        #expect(task(.resume, at: 52) == [.reportResumed, .enqueue])
    }

    @Test func `a backoff that passed during the suspension ends at once, and can be postponed`() {
        let task = Transcript.running()
        _ = task(.attemptEnded(delay: 50), at: 0)
        _ = task(.suspend, at: 1)
        #expect(task(.resume, at: 70) == [.reportResumed])
        #expect(task.machine.deadline == 50)
        #expect(task(.postponed(delay: 10), at: 70) == [])
        #expect(task(.deadlineReached, at: 79) == [])
        #expect(task(.deadlineReached, at: 80) == [.enqueue])
    }

    @Test func `a retry with a delay, scheduled while suspended, backs off when resumed`() {
        let task = Transcript.running()
        _ = task(.suspend)
        #expect(task(.attemptEnded(delay: 50), at: 10) == [.releaseQueueSlot])
        #expect(task(.resume, at: 20) == [.reportResumed])
        #expect(task(.deadlineReached, at: 60) == [.enqueue])
    }

    @Test func `a retry without a delay, scheduled while suspended, is enqueued when resumed`() {
        let task = Transcript.running()
        _ = task(.suspend)
        #expect(task(.attemptEnded(delay: 0)) == [.releaseQueueSlot])
        #expect(task.machine.state == .suspended)
        #expect(task(.resume) == [.reportResumed, .enqueue])
        #expect(task(.admitted) == [.begin(attempt: 2)])
    }

    @Test func `an error found while the task waits in the queue ends it`() {
        let task = Transcript()
        _ = task(.resume)
        #expect(task(.ended) == [.dequeue, .finish(.ended)])
        #expect(task(.admitted) == [])
    }

    @Test func `canceling ends a task once in every state`() {
        var task = Transcript()
        #expect(task(.cancel) == [.finish(.cancelled)])
        #expect(task(.cancel) == [])

        task = Transcript()
        _ = task(.resume)
        #expect(task(.cancel) == [.dequeue, .finish(.cancelled)])

        task = .running()
        #expect(task(.cancel) == [.abortAttempt, .releaseQueueSlot, .finish(.cancelled)])

        task = .running()
        _ = task(.suspend)
        #expect(task(.cancel) == [.abortAttempt, .releaseQueueSlot, .finish(.cancelled)])

        task = .running()
        _ = task(.attemptEnded(delay: 5))
        #expect(task(.cancel) == [.finish(.cancelled)])
        #expect(task(.deadlineReached, at: 5) == [])
    }

    @Test func `the request timeout ends an attempt without activity only`() {
        let task = Transcript.running()
        #expect(task.machine.deadline == 60)
        _ = task(.activity, at: 40)
        #expect(task(.deadlineReached, at: 60) == [])
        #expect(task.machine.deadline == 100)
        #expect(task(.deadlineReached, at: 100) == [.failAttemptByTimeout])
        #expect(task(.ended, at: 100) == [.releaseQueueSlot, .finish(.ended)])
    }

    @Test func `the resource timeout runs from the first start in every state`() {
        var task = Transcript()
        #expect(task.machine.deadline == nil)
        _ = task(.resume, at: 100)
        #expect(task.machine.deadline == 1_100)
        _ = task(.suspend, at: 200)
        _ = task(.resume, at: 300)
        #expect(task.machine.deadline == 1_100)
        #expect(task(.deadlineReached, at: 1_100) == [.dequeue, .finish(.resourceTimedOut)])

        task = .running(at: 0)
        _ = task(.suspend, at: 1)
        #expect(task.machine.deadline == 1_000)
        #expect(task(.deadlineReached, at: 1_000) == [.abortAttempt, .releaseQueueSlot, .finish(.resourceTimedOut)])

        task = .running(at: 0)
        _ = task(.attemptEnded(delay: 5_000), at: 1)
        #expect(task.machine.deadline == 1_000)
        #expect(task(.deadlineReached, at: 1_000) == [.finish(.resourceTimedOut)])
    }

    @Test func `a handler has its own timeout, after which the request timeout restarts`() {
        let task = Transcript.running()
        _ = task(.handlerAsked, at: 50)
        #expect(task.machine.deadline == 80)
        #expect(task(.deadlineReached, at: 70) == [])
        _ = task(.handlerAnswered, at: 75)
        #expect(task.machine.deadline == 135)
        _ = task(.handlerAsked, at: 100)
        #expect(task(.deadlineReached, at: 130) == [.abortAttempt, .releaseQueueSlot, .finish(.handlerTimedOut)])
    }

    @Test func `the handler timeout stops while the task is suspended`() {
        let task = Transcript.running()
        _ = task(.handlerAsked, at: 10)
        _ = task(.suspend, at: 20)
        #expect(task(.deadlineReached, at: 200) == [])
        _ = task(.resume, at: 300)
        #expect(task.machine.deadline == 330)
        _ = task(.suspend, at: 301)
        _ = task(.handlerAnswered, at: 302)
        _ = task(.resume, at: 400)
        #expect(task.machine.deadline == 460)
    }

    @Test func `the request timeout stops while the receiver is full`() {
        let task = Transcript.running()
        _ = task(.receiverFull, at: 10)
        #expect(task.machine.deadline == 1_000)
        #expect(task(.deadlineReached, at: 500) == [])
        _ = task(.receiverReady, at: 500)
        #expect(task.machine.deadline == 560)
        _ = task(.receiverFull, at: 510)
        _ = task(.attemptEnded(delay: 0), at: 511)
        _ = task(.admitted, at: 512)
        #expect(task.machine.deadline == 572)
    }

    @Test func `timeouts of years do not overflow`() {
        var machine = TaskStateMachine(limits: .init(requestTimeout: .max, resourceTimeout: .max, handlerTimeout: .max))
        _ = machine.handle(.resume, now: 5)
        _ = machine.handle(.admitted, now: 5)
        #expect(machine.deadline == .max)
        _ = machine.handle(.handlerAsked, now: 6)
        #expect(machine.deadline == .max)
        _ = machine.handle(.attemptEnded(delay: .max), now: 7)
        #expect(machine.deadline == .max)
    }
}
