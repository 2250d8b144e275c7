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
        #expect(machine.idleSince == 0)
        #expect(request(&machine, at: 1) == [.pass, .pass])
        #expect(machine.idleSince == nil && !machine.isLastResponse)
        #expect(machine.wroteEnd(at: 5) == .pass)
        #expect(machine.idleSince == 5)
    }

    @Test func `a refusal is sent at once, or after the responses before it`() {
        var machine = machine()
        #expect(machine.receivedHead(.init(), contentLength: nil, problem: problem, at: 0) == .refuse(problem))
        #expect(request(&machine) == [.discard, .discard])
        machine = self.machine()
        _ = request(&machine)
        _ = request(&machine)
        #expect(machine.receivedHead(.init(), contentLength: nil, problem: problem, at: 0) == .discard)
        #expect(request(&machine) == [.discard, .discard])
        #expect(machine.wroteEnd(at: 1) == .pass)
        #expect(machine.wroteEnd(at: 2) == .refuse(problem))
        #expect(machine.closedOutput(at: 3) == .discard)
        #expect(machine.closedInput(at: 4) == .close)
    }

    @Test func `content above the limit is refused, whether its length is known or not`() {
        var machine = machine()
        guard case .refuse(let declared) = machine.receivedHead(.init(), contentLength: 65_537, problem: nil, at: 0) else {
            Issue.record("not refused")
            return
        }
        #expect(declared.status == 413)
        machine = self.machine()
        #expect(machine.receivedHead(.init(), contentLength: nil, problem: nil, at: 0) == .pass)
        #expect(machine.receivedContent(65_536, at: 0) == .discard)
        #expect(machine.receivedContent(1, at: 0) == .refuse(declared))
        #expect(machine.receivedContent(.max, at: 0) == .discard)
        #expect(machine.receivedEnd() == .discard)
    }

    @Test func `a connection that does not stay open is finished after its response`() {
        var machine = machine()
        _ = request(&machine, .init(keepsAlive: false))
        #expect(machine.isLastResponse)
        #expect(request(&machine) == [.discard, .discard])
        #expect(machine.wroteEnd(at: 1) == .finish)
        #expect(machine.idleSince == nil)
        #expect(machine.closedOutput(at: 2) == .discard)
        #expect(machine.idleSince == 2)
    }

    @Test func `a client that only reads receives its responses`() {
        var machine = machine()
        _ = request(&machine)
        #expect(machine.closedInput(at: 1) == .discard)
        #expect(machine.isLastResponse)
        #expect(machine.wroteEnd(at: 2) == .finish)
        #expect(machine.closedOutput(at: 3) == .close)
        // Without a request there is nothing to wait for, and a stream has no end.
        machine = self.machine()
        #expect(machine.closedInput(at: 1) == .close)
        machine = self.machine()
        _ = request(&machine, .init(isStream: true))
        #expect(machine.closedInput(at: 1) == .close)
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
}

@Suite struct ConnectionTableTests {
    private func limits(_ change: (inout WebLimits) -> Void) -> WebLimits {
        var limits = WebLimits()
        (limits.connections, limits.streams, limits.reserve, limits.connectionsOfAddress) = (3, 2, 1, 2)
        change(&limits)
        return limits
    }

    @Test func `the oldest waiting connection of the client with the most is replaced`() {
        var table = ConnectionTable(limits: limits { _ in })
        #expect(table.admit(0, .socket, at: 0) == .accepted)
        #expect(table.admit(1, .loopback, at: 1) == .accepted)
        #expect(table.admit(2, .loopback, at: 2) == .accepted)
        #expect(table.admit(3, .socket, at: 3) == .replaces(1))
        table.remove(1)
        #expect(table.requests == 3)
    }

    @Test func `connections that answer are not replaced, and the reserve is limited`() {
        var table = ConnectionTable(limits: limits { _ in })
        for id in 0..<3 {
            #expect(table.admit(id, .loopback, at: 0) == .accepted)
            table.setIdle(id, since: nil)
        }
        #expect(table.admit(3, .loopback, at: 1) == .reserved)
        #expect(table.admit(4, .loopback, at: 1) == .refused)
        table.remove(3)
        #expect(table.admit(5, .socket, at: 2) == .reserved)
        table.setIdle(1, since: 3)
        #expect(table.admit(6, .loopback, at: 4) == .replaces(1))
    }

    @Test func `streams have places of their own`() {
        var table = ConnectionTable(limits: limits { _ in })
        for id in 0..<3 { _ = table.admit(id, .loopback, at: 0) }
        let accepted = [0, 1, 2, 0, 9].map { table.beginStream($0) }
        #expect(accepted == [true, true, false, false, false])
        #expect(table.requests == 1 && table.streams == 2)
        table.remove(0)
        let isAccepted = table.beginStream(2)
        #expect(isAccepted)
    }

    @Test func `another machine has a limit of its own`() {
        var table = ConnectionTable(limits: limits { $0.connections = 100 })
        let (client, other) = (ConnectionTable.Client.address("192.0.2.1"), ConnectionTable.Client.address("192.0.2.2"))
        #expect(table.admit(0, client, at: 0) == .accepted)
        #expect(table.admit(1, client, at: 0) == .accepted)
        #expect(table.admit(2, client, at: 1) == .replaces(0))
        table.remove(0)
        table.setIdle(1, since: nil)
        table.setIdle(2, since: nil)
        #expect(table.admit(3, client, at: 2) == .refused)
        #expect(table.admit(4, other, at: 2) == .accepted)
        table.remove(1)
        #expect(table.admit(5, client, at: 3) == .accepted)
    }
}
