import Testing

@testable import HTTPSession

/// Draws are at their highest, so a delay is the limit of its turn.
struct RetryMachineTests {
    private func policy(_ retries: Int? = 4, delay: Int64 = 100, cap: Int64 = 1_000) -> RetryPolicy {
        RetryPolicy(maximumRetries: retries, baseDelay: .nanoseconds(delay), maximumDelay: .nanoseconds(cap))
    }

    private func decide(
        _ machine: inout RetryMachine, _ code: HTTPSessionError.Code = .connectionLost, remaining: Int64 = .max,
        _ change: (inout RetryMachine.Failure) -> Void = { _ in }
    ) -> RetryMachine.Decision {
        var failure = RetryMachine.Failure(code: code, isIdempotent: true)
        change(&failure)
        return machine.decide(failure, remaining: remaining, draw: .max)
    }

    @Test func `waits double up to their cap, and end with the policy's number`() {
        var machine = RetryMachine(policy(5, cap: 500))
        let decisions = (1...6).map { _ in decide(&machine) }
        #expect(decisions == [100, 200, 400, 500, 500].map { .retry(delay: $0) } + [.giveUp])
    }

    @Test func `a wait is drawn between nothing and its limit`() {
        var machine = RetryMachine(policy())
        let failure = RetryMachine.Failure(code: .timedOut, isIdempotent: true)
        #expect(machine.decide(failure, remaining: .max, draw: 0) == .retry(delay: 0))
        #expect(machine.decide(failure, remaining: .max, draw: .max / 2) == .retry(delay: 100))
    }

    @Test func `progress begins the count and the waits anew`() {
        var machine = RetryMachine(policy(2))
        _ = decide(&machine)
        _ = decide(&machine)
        #expect(decide(&machine) { $0.hasProgressed = true } == .retry(delay: 100))
        #expect(decide(&machine) == .retry(delay: 200))
        #expect(decide(&machine) == .giveUp)
    }

    @Test func `progress that another hand has noted counts as well`() {
        var machine = RetryMachine(policy(1))
        #expect(decide(&machine) == .retry(delay: 100))
        machine.progressed()
        #expect(decide(&machine) == .retry(delay: 100))
        #expect(decide(&machine) == .giveUp)
    }

    @Test func `a handshake that ended with a word is not tried again, one that broke off is`() {
        var machine = RetryMachine(policy())
        #expect(decide(&machine, .secureConnectionFailed) { $0.isRefusal = true } == .giveUp)
        #expect(decide(&machine, .secureConnectionFailed) == .retry(delay: 100))
    }

    @Test func `without a number only the time ends it`() {
        var machine = RetryMachine(policy(nil))
        for _ in 0..<100 { #expect(decide(&machine) != .giveUp) }
        #expect(decide(&machine, remaining: 1_000) == .giveUp)
        #expect(decide(&machine, remaining: 1_001) == .retry(delay: 1_000))
    }

    @Test func `a request that may have been executed is repeated only where that does no harm`() {
        var machine = RetryMachine(policy())
        #expect(decide(&machine) { $0.isIdempotent = false } == .giveUp)
        #expect(decide(&machine, .cannotConnectToHost) { ($0.isIdempotent, $0.hasSent) = (false, false) } == .retry(delay: 100))
    }

    @Test func `what was handed on cannot be taken back`() {
        var machine = RetryMachine(policy())
        #expect(decide(&machine) { $0.isBeyondRecall = true } == .giveUp)
    }

    @Test func `a dead connection is left at once and for nothing, once until something has come`() {
        var machine = RetryMachine(.never)
        #expect(decide(&machine) { $0.isDeadConnection = true } == .retryDeadConnection)
        #expect(decide(&machine) { $0.isDeadConnection = true } == .giveUp)
        #expect(decide(&machine) { ($0.isDeadConnection, $0.hasProgressed) = (true, true) } == .retryDeadConnection)
        var post = RetryMachine(.default)
        #expect(decide(&post) { ($0.isDeadConnection, $0.isIdempotent) = (true, false) } == .giveUp)
    }

    @Test func `the server's wish comes before our waits, and on top of it a little of ours`() {
        var machine = RetryMachine(policy())
        let busy = { (failure: inout RetryMachine.Failure) in (failure.statusCode, failure.retryAfter) = (503, 5_000) }
        #expect(decide(&machine, .unacceptableStatus, busy) == .retry(delay: 5_100))
        #expect(decide(&machine, .unacceptableStatus, remaining: 5_200, busy) == .giveUp)
        var limited = policy()
        limited.maximumRetryAfter = .nanoseconds(4_999)
        var impatient = RetryMachine(limited)
        #expect(decide(&impatient, .unacceptableStatus, busy) == .giveUp)
        let never = { (failure: inout RetryMachine.Failure) in (failure.statusCode, failure.retryAfter) = (503, .max) }
        #expect(decide(&machine, .unacceptableStatus, never) == .giveUp)
    }

    @Test func `statuses are those of the policy`() {
        for status in [408, 429, 500, 502, 503, 504] {
            var machine = RetryMachine(policy())
            #expect(decide(&machine, .unacceptableStatus) { $0.statusCode = status } == .retry(delay: 100))
        }
        for status in [400, 401, 403, 404, 409, 410, 412, 416, 501, 505] {
            var machine = RetryMachine(policy())
            #expect(decide(&machine, .unacceptableStatus) { $0.statusCode = status } == .giveUp)
        }
    }

    @Test func `errors are those that another moment may not have`() {
        let passing: Set<HTTPSessionError.Code> = [
            .timedOut, .notConnected, .cannotFindHost, .cannotConnectToHost, .connectionLost, .proxyFailed,
            .secureConnectionFailed,
        ]
        for code in HTTPSessionError.Code.allCases {
            var machine = RetryMachine(policy())
            #expect((decide(&machine, code) != .giveUp) == passing.contains(code), "\(code)")
        }
    }
}
