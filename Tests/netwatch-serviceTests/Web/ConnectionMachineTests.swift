import Expectations
import Testing

@testable import netwatch_service

@Suite struct ConnectionMachineTests {
    typealias Machine = ConnectionMachine

    private let limits = WebLimits()
    private let problem = WebProblem(.misdirectedRequest, "no name")

    private func machine() -> Machine { Machine(limits: limits, now: 0) }

    private func seconds(_ number: Int64) -> Int64 { number * WebLimits.second }

    /// A complete request without content.
    private func request(_ machine: inout Machine, _ exchange: Machine.Exchange = .init(), at now: Int64 = 0) -> [Machine.Step] {
        [machine.receivedHead(exchange, contentLength: nil, problem: nil, at: now), machine.receivedEnd()]
    }

    @Test func `a request is passed on at its end, and the connection waits after its response`() {
        var machine = machine()
        expectEqual(machine.idleSince, 0)
        expectEqual(request(&machine, at: 1), [.pass, .pass])
        #expect(machine.idleSince == nil && !machine.isLastResponse)
        expectEqual(machine.wroteEnd(at: 5), .pass)
        expectEqual(machine.idleSince, 5)
    }

    @Test func `a refusal is sent at once, or after the responses before it`() {
        var machine = machine()
        expectEqual(machine.receivedHead(.init(), contentLength: nil, problem: problem, at: 0), .refuse(problem))
        expectEqual(request(&machine), [.discard, .discard])
        machine = self.machine()
        _ = request(&machine)
        _ = request(&machine)
        expectEqual(machine.receivedHead(.init(), contentLength: nil, problem: problem, at: 0), .discard)
        expectEqual(request(&machine), [.discard, .discard])
        expectEqual(machine.wroteEnd(at: 1), .pass)
        expectEqual(machine.wroteEnd(at: 2), .refuse(problem))
        expectEqual(machine.closedOutput(at: 3), .discard)
        expectEqual(machine.closedInput(at: 4), .close)
    }

    @Test func `content above the limit is refused, whether its length is known or not`() {
        var machine = machine()
        guard case .refuse(let declared) = machine.receivedHead(.init(), contentLength: 65_537, problem: nil, at: 0) else {
            Issue.record("not refused")
            return
        }
        expectEqual(declared.status, 413)
        machine = self.machine()
        expectEqual(machine.receivedHead(.init(), contentLength: nil, problem: nil, at: 0), .pass)
        expectEqual(machine.receivedContent(65_536, at: 0), .discard)
        expectEqual(machine.receivedContent(1, at: 0), .refuse(declared))
        expectEqual(machine.receivedContent(.max, at: 0), .discard)
        expectEqual(machine.receivedEnd(), .discard)
    }

    @Test func `a connection that does not stay open is finished after its response`() {
        var machine = machine()
        _ = request(&machine, .init(keepsAlive: false))
        #expect(machine.isLastResponse)
        expectEqual(request(&machine), [.discard, .discard])
        expectEqual(machine.wroteEnd(at: 1), .finish)
        expectNil(machine.idleSince)
        expectEqual(machine.closedOutput(at: 2), .discard)
        expectEqual(machine.idleSince, 2)
    }

    @Test func `a client that only reads receives its responses`() {
        var machine = machine()
        _ = request(&machine)
        expectEqual(machine.closedInput(at: 1), .discard)
        #expect(machine.isLastResponse)
        expectEqual(machine.wroteEnd(at: 2), .finish)
        expectEqual(machine.closedOutput(at: 3), .close)
        // Without a request there is nothing to wait for, and a stream has no end.
        machine = self.machine()
        expectEqual(machine.closedInput(at: 1), .close)
        machine = self.machine()
        _ = request(&machine, .init(isStream: true))
        expectEqual(machine.closedInput(at: 1), .close)
    }

    @Test func `each state has its time limit`() {
        var machine = machine()
        #expect(!machine.isOverdue(at: seconds(10) - 1) && machine.isOverdue(at: seconds(10)))
        _ = machine.receivedHead(.init(), contentLength: 9, problem: nil, at: seconds(1))
        #expect(!machine.isOverdue(at: seconds(11) - 1) && machine.isOverdue(at: seconds(11)))
        _ = machine.receivedEnd()
        // The service itself has no limit here; a client that reads nothing has one.
        #expect(!machine.isOverdue(at: .max))
        machine.changedWritability(false, at: seconds(20))
        machine.changedWritability(false, at: seconds(49))
        #expect(!machine.isOverdue(at: seconds(50) - 1) && machine.isOverdue(at: seconds(50)))
        machine.changedWritability(true, at: seconds(50))
        _ = machine.wroteEnd(at: seconds(60))
        #expect(!machine.isOverdue(at: seconds(120) - 1) && machine.isOverdue(at: seconds(120)))
        _ = machine.receivedMalformed(problem, at: seconds(70))
        #expect(!machine.isOverdue(at: seconds(100) - 1) && machine.isOverdue(at: seconds(100)))
        _ = machine.closedOutput(at: seconds(71))
        #expect(!machine.isOverdue(at: seconds(72) - 1) && machine.isOverdue(at: seconds(72)))
    }

    @Test func `nothing is read until the response is written and the client has read it`() {
        var machine = machine()
        expectEqual(machine.input(at: 0), .pass)
        _ = machine.receivedHead(.init(), contentLength: 3, problem: nil, at: 0)
        expectEqual(machine.input(at: 0), .pass)
        _ = machine.receivedEnd()
        #expect(machine.input(at: 0) == .hold && machine.answersOneRequest)
        machine.changedWritability(false, at: 1)
        _ = machine.wroteEnd(at: 2)
        expectEqual(machine.input(at: 2), .hold)
        machine.changedWritability(true, at: 3)
        expectEqual(machine.input(at: 3), .pass)
    }

    @Test func `what follows the last request is discarded, and during a stream nothing is read`() {
        var machine = machine()
        _ = request(&machine, .init(keepsAlive: false))
        expectEqual(machine.input(at: 0), .hold)
        _ = machine.wroteEnd(at: 1)
        expectEqual(machine.input(at: 1), .discard)
        machine = self.machine()
        _ = request(&machine, .init(isStream: true))
        expectEqual(machine.input(at: 0), .ignore)
        machine = self.machine()
        _ = machine.receivedMalformed(problem, at: 0)
        expectEqual(machine.input(at: 0), .discard)
    }

    @Test func `a connection has at most 50 requests a second after a burst of 10`() {
        var machine = machine()
        var now: Int64 = 0
        var times: [Int64] = []
        for _ in 0..<1_300 {
            switch machine.input(at: now) {
            case .pass: break
            case .wait(let time): now = time
            default: Issue.record("\(machine.input(at: now)) at \(now)")
            }
            expectEqual(machine.input(at: now), .pass)
            _ = request(&machine, at: now)
            _ = machine.wroteEnd(at: now)
            times.append(now)
        }
        expectEqual(times.prefix { $0 == 0 }.count, 10)
        #expect(times[1_299] >= seconds(25) && times[1_299] <= seconds(26))
        for start in stride(from: 0, to: 1_240, by: 50) { #expect(times[start + 60] - times[start] >= seconds(1)) }
    }

    @Test(arguments: [(0, 50), (10, 50), (60, 8), (300, 1)])
    func `the more connections send too fast, the slower is each`(delayed: Int, rate: Int) {
        // All of them together have at most 500 requests a second.
        #expect(delayed * rate <= 500)
        var machine = machine()
        var (now, count): (Int64, Int) = (0, 0)
        while now < seconds(10) {
            if case .wait(let time) = machine.input(at: now) { now = time }
            _ = machine.receivedHead(.init(), contentLength: nil, problem: nil, delayed: delayed, at: now)
            _ = machine.receivedEnd()
            _ = machine.wroteEnd(at: now)
            count += 1
        }
        #expect(rate * 10 <= count + 10 && count <= rate * 10 + 20, "\(count)")
    }
}
