import HTTPSession
import Testing

/// A machine and the actions that it gave, one line for each event.
private final class Transcript {
    var machine = TaskMachine(limits: .init(requestTimeout: 60, resourceTimeout: 1_000, handlerTimeout: 30))

    func callAsFunction(_ event: TaskMachine.Event, at now: Int64 = 0) -> [TaskMachine.Action] {
        machine.handle(event, now: now)
    }

    /// A machine that has come so far.
    static func running(at now: Int64 = 0) -> Transcript {
        let transcript = Transcript()
        _ = transcript(.resume, at: now)
        _ = transcript(.admitted, at: now)
        return transcript
    }
}

@Suite struct TaskMachineTests {
    @Test func `a task that runs to its end`() {
        let task = Transcript()
        #expect(task(.resume) == [.announceResumed, .enqueue])
        #expect(task(.admitted) == [.begin(attempt: 1)])
        #expect(task(.activity, at: 5) == [])
        #expect(task(.ended, at: 6) == [.leave, .finish(.ended)])
        #expect(task.machine.state == .finished)
        #expect(task.machine.deadline == nil)
    }

    @Test func `what cannot be in a state changes nothing`() {
        let task = Transcript()
        for event: TaskMachine.Event in [
            .suspend, .admitted, .activity, .handlerAsked, .handlerAnswered, .ended, .endedForNow(delay: 0), .time,
        ] {
            #expect(task(event) == [])
            #expect(task.machine.state == .suspended)
        }
        _ = task(.resume)
        for event: TaskMachine.Event in [.resume, .activity, .handlerAsked, .endedForNow(delay: 5), .time] {
            #expect(task(event) == [])
            #expect(task.machine.state == .waiting)
        }
        _ = task(.admitted)
        for event: TaskMachine.Event in [.resume, .admitted, .time] {
            #expect(task(event) == [])
            #expect(task.machine.state == .running)
        }
    }

    @Test func `a task suspended while it waits leaves the queue and comes back`() {
        let task = Transcript()
        _ = task(.resume)
        #expect(task(.suspend) == [.dequeue, .announceSuspended])
        #expect(task(.admitted) == [])
        #expect(task(.resume) == [.announceResumed, .enqueue])
        #expect(task(.admitted) == [.begin(attempt: 1)])
    }

    @Test func `a task suspended while it runs holds its transfer and its place`() {
        let task = Transcript.running()
        #expect(task(.suspend, at: 10) == [.hold, .announceSuspended])
        #expect(task(.suspend, at: 11) == [])
        #expect(task(.time, at: 500) == [])
        #expect(task(.resume, at: 500) == [.announceResumed, .letGo])
        #expect(task.machine.deadline == 560)
        #expect(task(.ended, at: 510) == [.leave, .finish(.ended)])
    }

    @Test func `a transfer that ends while it is held ends the task`() {
        let task = Transcript.running()
        _ = task(.suspend)
        #expect(task(.ended) == [.leave, .finish(.ended)])
    }

    @Test func `another attempt waits in the queue at once, or after its delay`() {
        let task = Transcript.running()
        #expect(task(.endedForNow(delay: 0), at: 1) == [.leave, .enqueue])
        #expect(task(.admitted, at: 2) == [.begin(attempt: 2)])
        #expect(task(.endedForNow(delay: 50), at: 10) == [.leave])
        #expect(task.machine.deadline == 60)
        #expect(task(.time, at: 59) == [])
        #expect(task(.time, at: 60) == [.enqueue])
        #expect(task(.admitted, at: 61) == [.begin(attempt: 3)])
    }

    @Test func `a task suspended while it backs off goes on backing off when it is resumed`() {
        let task = Transcript.running()
        _ = task(.endedForNow(delay: 50), at: 0)
        #expect(task(.suspend, at: 1) == [.announceSuspended])
        #expect(task(.time, at: 2) == [])
        #expect(task(.resume, at: 3) == [.announceResumed])
        #expect(task.machine.deadline == 50)
        #expect(task(.time, at: 49) == [])
        #expect(task(.time, at: 50) == [.enqueue])
        // Once.
        #expect(task(.suspend, at: 51) == [.dequeue, .announceSuspended])
        #expect(task(.resume, at: 52) == [.announceResumed, .enqueue])
    }

    @Test func `a wait that has passed while the task was suspended is over at once, and can be prolonged like any other`() {
        let task = Transcript.running()
        _ = task(.endedForNow(delay: 50), at: 0)
        _ = task(.suspend, at: 1)
        #expect(task(.resume, at: 70) == [.announceResumed])
        #expect(task.machine.deadline == 50)
        #expect(task(.postponed(delay: 10), at: 70) == [])
        #expect(task(.time, at: 79) == [])
        #expect(task(.time, at: 80) == [.enqueue])
    }

    @Test func `an attempt that ends for a while while it is held backs off when resumed`() {
        let task = Transcript.running()
        _ = task(.suspend)
        #expect(task(.endedForNow(delay: 50), at: 10) == [.leave])
        #expect(task(.resume, at: 20) == [.announceResumed])
        #expect(task(.time, at: 60) == [.enqueue])
    }

    @Test func `an attempt that ends for now while it is held begins again when resumed`() {
        let task = Transcript.running()
        _ = task(.suspend)
        #expect(task(.endedForNow(delay: 0)) == [.leave])
        #expect(task.machine.state == .suspended)
        #expect(task(.resume) == [.announceResumed, .enqueue])
        #expect(task(.admitted) == [.begin(attempt: 2)])
    }

    @Test func `an error found while the task waits ends it`() {
        let task = Transcript()
        _ = task(.resume)
        #expect(task(.ended) == [.dequeue, .finish(.ended)])
        #expect(task(.admitted) == [])
    }

    @Test func `cancelling works in every state, once`() {
        var task = Transcript()
        #expect(task(.cancel) == [.finish(.cancelled)])
        #expect(task(.cancel) == [])

        task = Transcript()
        _ = task(.resume)
        #expect(task(.cancel) == [.dequeue, .finish(.cancelled)])

        task = .running()
        #expect(task(.cancel) == [.abort, .leave, .finish(.cancelled)])

        task = .running()
        _ = task(.suspend)
        #expect(task(.cancel) == [.abort, .leave, .finish(.cancelled)])

        task = .running()
        _ = task(.endedForNow(delay: 5))
        #expect(task(.cancel) == [.finish(.cancelled)])
        #expect(task(.time, at: 5) == [])
    }

    @Test func `a server that says nothing is given up, one that says something is not`() {
        let task = Transcript.running()
        #expect(task.machine.deadline == 60)
        _ = task(.activity, at: 40)
        #expect(task(.time, at: 60) == [])
        #expect(task.machine.deadline == 100)
        #expect(task(.time, at: 100) == [.failTimedOut])
        #expect(task(.ended, at: 100) == [.leave, .finish(.ended)])
    }

    @Test func `the resource timeout runs from the first start, in every state`() {
        var task = Transcript()
        #expect(task.machine.deadline == nil)
        _ = task(.resume, at: 100)
        #expect(task.machine.deadline == 1_100)
        _ = task(.suspend, at: 200)
        _ = task(.resume, at: 300)
        #expect(task.machine.deadline == 1_100)
        #expect(task(.time, at: 1_100) == [.dequeue, .finish(.resourceTimedOut)])

        task = .running(at: 0)
        _ = task(.suspend, at: 1)
        #expect(task.machine.deadline == 1_000)
        #expect(task(.time, at: 1_000) == [.abort, .leave, .finish(.resourceTimedOut)])

        task = .running(at: 0)
        _ = task(.endedForNow(delay: 5_000), at: 1)
        #expect(task.machine.deadline == 1_000)
        #expect(task(.time, at: 1_000) == [.finish(.resourceTimedOut)])
    }

    @Test func `a handler has its own time, and the server's begins anew behind it`() {
        let task = Transcript.running()
        _ = task(.handlerAsked, at: 50)
        #expect(task.machine.deadline == 80)
        #expect(task(.time, at: 70) == [])
        _ = task(.handlerAnswered, at: 75)
        #expect(task.machine.deadline == 135)
        _ = task(.handlerAsked, at: 100)
        #expect(task(.time, at: 130) == [.abort, .leave, .finish(.handlerTimedOut)])
    }

    @Test func `a handler's time stands still while the task is suspended`() {
        let task = Transcript.running()
        _ = task(.handlerAsked, at: 10)
        _ = task(.suspend, at: 20)
        #expect(task(.time, at: 200) == [])
        _ = task(.resume, at: 300)
        #expect(task.machine.deadline == 330)
        _ = task(.suspend, at: 301)
        _ = task(.handlerAnswered, at: 302)
        _ = task(.resume, at: 400)
        #expect(task.machine.deadline == 460)
    }

    @Test func `a reader that takes nothing is not the server's fault`() {
        let task = Transcript.running()
        _ = task(.receiverFull, at: 10)
        #expect(task.machine.deadline == 1_000)
        #expect(task(.time, at: 500) == [])
        _ = task(.receiverReady, at: 500)
        #expect(task.machine.deadline == 560)
        _ = task(.receiverFull, at: 510)
        _ = task(.endedForNow(delay: 0), at: 511)
        _ = task(.admitted, at: 512)
        #expect(task.machine.deadline == 572)
    }

    @Test func `timeouts of years do not overflow`() {
        var machine = TaskMachine(limits: .init(requestTimeout: .max, resourceTimeout: .max, handlerTimeout: .max))
        _ = machine.handle(.resume, now: 5)
        _ = machine.handle(.admitted, now: 5)
        #expect(machine.deadline == .max)
        _ = machine.handle(.handlerAsked, now: 6)
        #expect(machine.deadline == .max)
        _ = machine.handle(.endedForNow(delay: .max), now: 7)
        #expect(machine.deadline == .max)
    }
}
