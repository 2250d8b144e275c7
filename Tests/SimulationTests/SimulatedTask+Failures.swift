import Pacing

@testable import HTTPSession

/// Attempts that fail, and what the machine may decide then.
extension SimulatedTask {
    mutating func again(_ delay: Int64, _ world: inout TransferSimulation) throws {
        attempt = nil
        notBefore = world.now + delay
        try handle(.endedForNow(delay: delay), &world)
    }

    mutating func fail(_ code: HTTPSessionError.Code, isDead: Bool = false, _ world: inout TransferSimulation) throws {
        guard let present = attempt else { return }
        var failure = RetryMachine.Failure(code: code, isIdempotent: isIdempotent, hasSent: present.isConnected)
        failure.isDeadConnection = isDead && present.answer == nil
        failure.hasProgressed =
            resumption != nil && received > present.receivedBefore && (present.isRest || present.receivedBefore == 0)
        if failure.hasProgressed {
            retries.progressed()
            triesInARow = 0
        }
        hasPaidRetry = false
        if !world.isNetworkUp, !wasReleased, failure.isRepeatable, !failure.isDeadConnection,
            policy.maximumRetries != 0 || !failure.hasSent
        {
            // The probe knows it, or not yet.
            if world.chance(50) {
                attempt = nil
                wait()
                try handle(.endedUntilConnected, &world)
                if machine.state == .suspended { isWaitingForNetwork = false }
                return
            }
            if uncounted == nil { (uncounted, triesBeforeTrouble) = (retries, triesInARow) }
        }
        wasReleased = false
        switch try decide(failure, &world) {
        case .giveUp: try handle(.ended, &world)
        case .retryDeadConnection: try again(0, &world)
        case .retry(let delay): try retry(delay, &world)
        }
    }

    mutating func retry(_ delay: Int64, _ world: inout TransferSimulation) throws {
        world.noteTrouble()
        try again(max(1, delay), &world)
    }

    /// Asks the machine, and knows what it may say.
    mutating func decide(_ failure: RetryMachine.Failure, _ world: inout TransferSimulation) throws
        -> RetryMachine.Decision
    {
        let remaining = machine.remainingTime(now: world.now)
        let decision = retries.decide(failure, remaining: remaining, draw: world.draw())
        switch decision {
        case .giveUp:
            let isUsedUp = policy.maximumRetries.map { triesInARow >= $0 } ?? false
            let mayEnd = failure.statusCode.map { !policy.statusCodes.contains($0) } ?? false
            let isLate = remaining <= policy.maximumDelay.saturatingNanoseconds + (failure.retryAfter ?? 0)
            guard isUsedUp || mayEnd || isLate || !failure.isRepeatable else {
                throw violation("given up after \(triesInARow) tries")
            }
        case .retryDeadConnection:
            guard failure.isDeadConnection, failure.isRepeatable else { throw violation("a try for nothing") }
        case .retry(let delay):
            guard failure.isRepeatable else { throw violation("what may have been executed is done again") }
            triesInARow += 1
            if let maximum = policy.maximumRetries, triesInARow > maximum { throw violation("\(triesInARow) tries in a row") }
            let wish = failure.retryAfter ?? 0
            let doublings = Int64(min(20, triesInARow - 1))
            let limit = max(
                1, min(policy.maximumDelay.saturatingNanoseconds, policy.baseDelay.saturatingNanoseconds << doublings))
            guard (wish...wish + limit).contains(delay), delay < remaining else { throw violation("a wait of \(delay)") }
        }
        return decision
    }
}
