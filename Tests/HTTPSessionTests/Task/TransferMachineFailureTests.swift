import Foundation
import HTTPTypes
import Reachability
import Testing

@testable import HTTPSession

/// What follows from a failure: another attempt, a wait, or the end.
@Suite struct TransferMachineFailureTests {
    private let cause = Cause(.link, .noCarrier, detail: "no carrier")

    // MARK: Retries

    @Test func `a lost connection is tried again, as often as the policy says`() throws {
        let task = try TransferTranscript(policy: RetryPolicy(maximumRetries: 2))
        task.starts()
        for _ in 0..<2 {
            #expect(task.ends(.connectionLost) == "tell retry after connection-lost, backingOff, give up the place")
            #expect(task.afterItsWait() == "waiting, queue first")
            task.goesOn()
        }
        #expect(task.ends(.connectionLost) == "give up the place, end connection-lost")
    }

    @Test func `a POST is tried again only where nothing of it was sent`() throws {
        let sent = try TransferTranscript(.post)
        sent.starts()
        #expect(sent.ends(.connectionLost) == "give up the place, end connection-lost")
        let unsent = try TransferTranscript(.post)
        _ = unsent(.resume)
        _ = unsent(.admitted)
        #expect(unsent.ends(.cannotConnectToHost) == "tell retry after cannot-connect-to-host, backingOff, give up the place")
        let key = try #require(HTTPField.Name("Idempotency-Key"))
        let vouched = try TransferTranscript(.post, fields: [key: "1"])
        vouched.starts()
        #expect(vouched.ends(.connectionLost) == "tell retry after connection-lost, backingOff, give up the place")
    }

    @Test func `a reused connection that was dead is replaced at once, and counts for nothing`() throws {
        let task = try TransferTranscript(policy: .never)
        task.starts()
        #expect(
            task.ends(.connectionLost) { $0.wasResent = true }
                == "tell retry after connection-lost, give up the place, waiting, queue first")
        #expect(task.needsFreshConnection)
        task.goesOn()
        // Once.
        #expect(task.ends(.connectionLost) { $0.wasResent = true } == "give up the place, end connection-lost")
    }

    @Test func `a response that may belong to no request is not used`() throws {
        let task = try TransferTranscript()
        task.starts()
        _ = try task.head(302, "Location: /next")
        #expect(
            task.ends(.connectionLost) { $0.hadSurplus = true }
                == "tell retry after connection-lost, give up the place, waiting, queue first")
        #expect(task.request == "GET https://host/file")
    }

    @Test func `what was held back, or had no fit connection, was not sent and is no try`() throws {
        let task = try TransferTranscript(policy: .never)
        task.starts()
        #expect(task.ends(.transferFailed) { $0.wasHeldUnsent = true } == "give up the place, waiting, queue first")
        task.goesOn()
        #expect(task.ends(.transferFailed) { $0.hadUnfitConnection = true } == "give up the place, waiting, queue first")
        #expect(task.metrics.retryCount == 0)
    }

    @Test func `a stream whose reader has had bytes is not begun anew`() throws {
        let task = try TransferTranscript(kind: .stream)
        task.starts()
        _ = try task.head(200)
        _ = task.body(10)
        #expect(task.ends(.connectionLost) == "give up the place, end connection-lost")
    }

    @Test func `the budget of the host may make a retry wait longer`() throws {
        let task = try TransferTranscript()
        task.starts()
        _ = task.ends(.connectionLost)
        task.retryWait = 5 * second
        #expect(task.afterItsWait() == "has to wait")
        task.retryWait = nil
        #expect(task.after(4.9) == "")
        #expect(task.after(0.2) == "waiting, queue first")
    }

    // MARK: Timeouts

    @Test func `nothing comes for the request timeout: the attempt has failed`() throws {
        let task = try TransferTranscript(policy: .never)
        task.starts()
        #expect(task.after(59) == "")
        #expect(task.after(1) == "abandon, give up the place, end timed-out")
    }

    @Test func `what is measured of an attempt that has been given up is of its own request`() throws {
        let task = try TransferTranscript()
        task.starts()
        _ = try task.head(302, "Location: https://other/")
        #expect(task.after(60) == "abandon, tell redirected by 302, give up the place, waiting, queue first")
        #expect(task.request == "GET https://other/")
        #expect(task.metrics.transactions.map(\.url) == ["https://host/file"])
    }

    @Test func `bytes put the request timeout off, and a full receiver stops it`() throws {
        let task = try TransferTranscript(policy: .never)
        task.starts()
        _ = try task.head(200)
        _ = task.after(59)
        _ = task.body(1)
        #expect(task.after(59) == "")
        task.receiverIsFull()
        #expect(task.after(600) == "")
        #expect(task(.receiverReady) == "")
        #expect(task.after(60) == "abandon, give up the place, end timed-out")
    }

    @Test func `a look-up without an answer is one for all who wait for it`() throws {
        let task = try TransferTranscript(policy: .never)
        _ = task(.resume)
        _ = task(.admitted)
        #expect(
            task.after(60)
                == "abandon, the name is unanswered, give up the place, the look-up goes on, end timed-out")
    }

    @Test func `the resource timeout ends the task in every state`() throws {
        let waiting = try TransferTranscript()
        _ = waiting(.resume)
        #expect(waiting.after(3_600) == "leave the queue, suspended, end timed-out")
        let running = try TransferTranscript()
        running.starts()
        #expect(running.after(3_600) == "abandon, give up the place, end timed-out")
        let backingOff = try TransferTranscript(policy: RetryPolicy(baseDelay: .seconds(90), maximumDelay: .seconds(90)))
        backingOff.starts()
        _ = backingOff.ends(.connectionLost)
        #expect(backingOff.after(3_600) == "end timed-out")
    }

    @Test func `a handler has a time of its own`() throws {
        let task = try TransferTranscript(handlers: .response)
        task.starts()
        _ = try task.head(200)
        #expect(task.after(29) == "")
        #expect(task.after(1) == "abandon, give up the place, withdraw the question, end handler-timed-out")
    }

    // MARK: The network

    @Test func `the network's absence explains a failure: the task waits, and no try is counted`() throws {
        let task = try TransferTranscript(policy: RetryPolicy(maximumRetries: 1), waits: true)
        task.gate = .missing(cause)
        task.starts()
        #expect(
            task.ends(.connectionLost) == "waitingForConnectivity, tell waiting: not-connected, give up the place")
        #expect(task.state == .waitingForConnectivity)
        #expect(task.after(300) == "")
        #expect(task(.networkIsBack(delay: 0)) == "waiting, queue first")
        #expect(task.metrics.timeWaitingForConnectivity == .seconds(300))
        #expect(task.metrics.retryCount == 0)
        // What fails as soon as it is let go counts.
        task.goesOn()
        #expect(task.ends(.connectionLost) == "tell retry after connection-lost, backingOff, give up the place")
    }

    @Test func `the reason may be known later: what has failed of it counts for nothing`() throws {
        let task = try TransferTranscript(policy: RetryPolicy(maximumRetries: 1), waits: true)
        task.gate = .unknown
        task.starts()
        #expect(task.ends(.connectionLost) == "tell retry after connection-lost, backingOff, give up the place")
        #expect(task(.networkIsGone(cause)) == "waitingForConnectivity, tell waiting: not-connected")
        #expect(task(.networkIsBack(delay: second)) == "backingOff")
        #expect(task.after(1.1) == "waiting, queue first")
        task.goesOn()
        #expect(task.ends(.connectionLost) == "tell retry after connection-lost, backingOff, give up the place")
    }

    @Test func `a task that does not wait for connectivity fails`() throws {
        let task = try TransferTranscript(policy: .never)
        task.gate = .missing(cause)
        task.starts()
        #expect(task.ends(.connectionLost) == "give up the place, end connection-lost")
    }

    @Test func `a network that the request may not use is waited for`() throws {
        let task = try TransferTranscript(waits: true)
        _ = task(.resume)
        _ = task(.admitted)
        let refusal = HTTPSessionError(.networkNotAllowed, "cellular")
        #expect(
            task(.cannotStart(refusal, hasBegun: true))
                == "waitingForConnectivity, tell waiting: network-not-allowed, give up the place")
        // Routes change without a word of the path.
        #expect(task.after(5) == "look at the network")
        #expect(task(.networkIsAllowed) == "waiting, queue first")
        let strict = try TransferTranscript()
        _ = strict(.resume)
        _ = strict(.admitted)
        #expect(strict(.cannotStart(refusal, hasBegun: false)) == "give up the place, end network-not-allowed")
    }

    @Test func `a route that changes moves what can be repeated, and is no try before there is a connection`() throws {
        let connected = try TransferTranscript()
        connected.starts()
        #expect(
            connected(.connectionIsDoubtful("another way"))
                == "abandon silently, tell retry after connection-lost, backingOff, give up the place")
        let connecting = try TransferTranscript(policy: .never)
        _ = connecting(.resume)
        _ = connecting(.admitted)
        #expect(
            connecting(.connectionIsDoubtful("another way"))
                == "abandon silently, give up the place, the look-up goes on, waiting, queue first")
        // What may have been executed stays where it is.
        let post = try TransferTranscript(.post)
        post.starts()
        #expect(post(.connectionIsDoubtful("another way")) == "")
        #expect(post(.connectionIsGone("gone", cause: cause)) == "abandon silently, give up the place, end connection-lost")
    }

    @Test func `without any network that is the reason, whatever the engine ran into`() throws {
        let task = try TransferTranscript(policy: .never)
        _ = task(.resume)
        _ = task(.admitted)
        #expect(
            task.ends(.cannotFindHost, lacking: cause) == "give up the place, end not-connected")
        guard case .failure(let error) = task.result else {
            Issue.record("no error")
            return
        }
        #expect(error.cause == cause)
    }
}
