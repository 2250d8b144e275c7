import Expectations
import Testing

@testable import HTTPSession

/// Draws have their highest value, so that a delay equals its limit.
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

    @Test func `delays double up to their limit, and retries end at the policy's number`() {
        var machine = RetryMachine(policy(5, cap: 500))
        let decisions = (1...6).map { _ in decide(&machine) }
        expectEqual(decisions, [100, 200, 400, 500, 500].map { .retry(delay: $0) } + [.giveUp])
    }

    @Test func `a delay is drawn between zero and its limit`() {
        var machine = RetryMachine(policy())
        let failure = RetryMachine.Failure(code: .timedOut, isIdempotent: true)
        expectEqual(machine.decide(failure, remaining: .max, draw: 0), .retry(delay: 0))
        expectEqual(machine.decide(failure, remaining: .max, draw: .max / 2), .retry(delay: 100))
    }

    @Test func `progress restarts the count and the delays`() {
        var machine = RetryMachine(policy(2))
        _ = decide(&machine)
        _ = decide(&machine)
        expectEqual(decide(&machine) { $0.hasProgressed = true }, .retry(delay: 100))
        expectEqual(decide(&machine), .retry(delay: 200))
        expectEqual(decide(&machine), .giveUp)
    }

    @Test func `a retry that the remaining time does not allow lengthens no later delay`() {
        var machine = RetryMachine(policy())
        expectEqual(decide(&machine), .retry(delay: 100))
        for _ in 0..<3 { expectEqual(decide(&machine, remaining: 200), .giveUp) }
        expectEqual(decide(&machine), .retry(delay: 200))
    }

    @Test func `progress reported by the caller restarts the count too`() {
        var machine = RetryMachine(policy(1))
        expectEqual(decide(&machine), .retry(delay: 100))
        machine.progressed()
        expectEqual(decide(&machine), .retry(delay: 100))
        expectEqual(decide(&machine), .giveUp)
    }

    @Test func `a success before the end of the request's body is retried once, if the policy allows a retry`() {
        var machine = RetryMachine(policy(nil))
        expectEqual(decide(&machine, .badServerResponse) { $0.isEarlySuccess = true }, .retry(delay: 100))
        // Other failures in between, and progress, do not permit another one.
        expectEqual(decide(&machine), .retry(delay: 200))
        expectEqual(decide(&machine, .badServerResponse) { ($0.isEarlySuccess, $0.hasProgressed) = (true, true) }, .giveUp)
        expectEqual(decide(&machine), .retry(delay: 100))
        var forbidden = RetryMachine(policy(0))
        expectEqual(decide(&forbidden, .badServerResponse) { $0.isEarlySuccess = true }, .giveUp)
        var unrepeatable = RetryMachine(policy())
        expectEqual(decide(&unrepeatable, .badServerResponse) { ($0.isEarlySuccess, $0.isIdempotent) = (true, false) }, .giveUp)
    }

    @Test func `a refused handshake is not retried, an interrupted one is`() {
        var machine = RetryMachine(policy())
        expectEqual(decide(&machine, .secureConnectionFailed) { $0.isHandshakeRefusal = true }, .giveUp)
        expectEqual(decide(&machine, .secureConnectionFailed), .retry(delay: 100))
    }

    @Test func `without a maximum number only the resource timeout ends the retries`() {
        var machine = RetryMachine(policy(nil))
        for _ in 0..<100 { #expect(decide(&machine) != .giveUp) }
        expectEqual(decide(&machine, remaining: 1_000), .giveUp)
        expectEqual(decide(&machine, remaining: 1_001), .retry(delay: 1_000))
    }

    @Test func `a request that may have been executed is repeated only if it is idempotent`() {
        var machine = RetryMachine(policy())
        expectEqual(decide(&machine) { $0.isIdempotent = false }, .giveUp)
        expectEqual(decide(&machine, .cannotConnectToHost) { ($0.isIdempotent, $0.hasSent) = (false, false) }, .retry(delay: 100))
    }

    @Test func `a request whose response has been delivered is not repeated`() {
        var machine = RetryMachine(policy())
        expectEqual(decide(&machine) { $0.isAlreadyDelivered = true }, .giveUp)
        expectEqual(decide(&machine) { $0.isSilence = true }, .giveUp)
    }

    @Test func `a dead reused connection is replaced at once, and once until bytes arrive`() {
        var machine = RetryMachine(.never)
        expectEqual(decide(&machine) { $0.isDeadConnection = true }, .retryDeadConnection)
        expectEqual(decide(&machine) { $0.isDeadConnection = true }, .giveUp)
        expectEqual(decide(&machine) { ($0.isDeadConnection, $0.hasProgressed) = (true, true) }, .retryDeadConnection)
        var post = RetryMachine(.default)
        expectEqual(decide(&post) { ($0.isDeadConnection, $0.isIdempotent) = (true, false) }, .giveUp)
    }

    @Test func `Retry-After replaces the policy's delay, with a random addition`() {
        var machine = RetryMachine(policy())
        let busy = { (failure: inout RetryMachine.Failure) in (failure.statusCode, failure.retryAfter) = (503, 5_000) }
        expectEqual(decide(&machine, .unacceptableStatus, busy), .retry(delay: 5_100))
        expectEqual(decide(&machine, .unacceptableStatus, remaining: 5_200, busy), .giveUp)
        var limited = policy()
        limited.maximumRetryAfter = .nanoseconds(4_999)
        var impatient = RetryMachine(limited)
        expectEqual(decide(&impatient, .unacceptableStatus, busy), .giveUp)
        let never = { (failure: inout RetryMachine.Failure) in (failure.statusCode, failure.retryAfter) = (503, .max) }
        expectEqual(decide(&machine, .unacceptableStatus, never), .giveUp)
    }

    @Test func `only the policy's status codes are retried`() {
        for status in [408, 429, 500, 502, 503, 504] {
            var machine = RetryMachine(policy())
            expectEqual(decide(&machine, .unacceptableStatus) { $0.statusCode = status }, .retry(delay: 100))
        }
        for status in [400, 401, 403, 404, 409, 410, 412, 416, 501, 505] {
            var machine = RetryMachine(policy())
            expectEqual(decide(&machine, .unacceptableStatus) { $0.statusCode = status }, .giveUp)
        }
    }

    @Test func `only transient errors are retried`() {
        let passing: Set<HTTPSessionError.Code> = [
            .timedOut, .notConnected, .cannotFindHost, .cannotConnectToHost, .connectionLost, .proxyFailed,
            .secureConnectionFailed,
        ]
        for code in HTTPSessionError.Code.allCases {
            var machine = RetryMachine(policy())
            expectEqual((decide(&machine, code) != .giveUp), passing.contains(code), "\(code)")
        }
    }
}
