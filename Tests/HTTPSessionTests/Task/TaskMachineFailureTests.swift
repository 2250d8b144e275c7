import Expectations
import Foundation
import HTTPTypes
import Reachability
import Testing

@testable import HTTPSession

/// How a task proceeds after a failure: another attempt, a wait, or the end.
@Suite struct TaskMachineFailureTests {
    private let cause = Cause(.link, .noCarrier, detail: "no carrier")

    // MARK: Retries

    @Test func `a lost connection is retried as often as the policy allows`() throws {
        let task = try TaskTranscript(policy: RetryPolicy(maximumRetries: 2))
        task.start()
        for _ in 0..<2 {
            expectEqual(task.endTransfer(.connectionLost), "report retry after connection-lost, backingOff, release slot")
            expectEqual(task.afterDeadline(), "waiting, enqueue first")
            task.startNextAttempt()
        }
        expectEqual(task.endTransfer(.connectionLost), "release slot, end connection-lost")
    }

    @Test func `a POST is retried only if none of it was sent`() throws {
        let sent = try TaskTranscript(.post)
        sent.start()
        expectEqual(sent.endTransfer(.connectionLost), "release slot, end connection-lost")
        let unsent = try TaskTranscript(.post)
        _ = unsent(.resume)
        _ = unsent(.admitted)
        expectEqual(
            unsent.endTransfer(.cannotConnectToHost), "report retry after cannot-connect-to-host, backingOff, release slot")
        let key = try #require(HTTPField.Name("Idempotency-Key"))
        let vouched = try TaskTranscript(.post, fields: [key: "1"])
        vouched.start()
        expectEqual(vouched.endTransfer(.connectionLost), "report retry after connection-lost, backingOff, release slot")
    }

    @Test func `a dead reused connection is replaced at once and not counted as a retry`() throws {
        let task = try TaskTranscript(policy: .never)
        task.start()
        expectEqual(
            task.endTransfer(.connectionLost) { $0.wasResent = true },
            "report retry after connection-lost, release slot, waiting, enqueue first")
        #expect(task.needsFreshConnection)
        task.startNextAttempt()
        // This happens once.
        expectEqual(task.endTransfer(.connectionLost) { $0.wasResent = true }, "release slot, end connection-lost")
    }

    @Test func `a success whose request body was cut is retried once and then fails`() throws {
        let task = try TaskTranscript(.put, policy: RetryPolicy(maximumRetries: nil))
        task.start()
        _ = try task.head(201)
        expectEqual(
            task.endTransfer { ($0.isRequestBodyCut, $0.requestBodyBytes) = (true, 65_536) },
            "report retry after bad-server-response, backingOff, release slot")
        expectEqual(task.afterDeadline(), "waiting, enqueue first")
        task.startNextAttempt()
        _ = try task.head(201)
        expectEqual(task.endTransfer { $0.isRequestBodyCut = true }, "release slot, end bad-server-response")
        #expect(throws: HTTPSessionError.self) { try task.result?.get() }
        if case .failure(let error)? = task.result { expectEqual(error.context.statusCode, 201) }
    }

    @Test func `only a success is refused if the request body was cut, over HTTP/2 only that of a PUT`() throws {
        for (status, method, version, ending) in [
            (201, HTTPRequest.Method.put, "h2", "bad-server-response"), (200, .post, "http/1.1", "bad-server-response"),
            (200, .post, "h2", "200"), (413, .put, "http/1.1", "413"), (304, .put, "h2", "304"),
        ] {
            let task = try TaskTranscript(method, policy: .never)
            task.start()
            _ = try task.head(status)
            _ = task.endTransfer { ($0.isRequestBodyCut, $0.networkProtocol) = (true, version) }
            expectEqual(task.ending, ending, "\(status) \(method) \(version)")
        }
    }

    @Test func `a response that may belong to no request is not used`() throws {
        let task = try TaskTranscript()
        task.start()
        _ = try task.head(302, "Location: /next")
        expectEqual(
            task.endTransfer(.connectionLost) { $0.hadSurplus = true },
            "report retry after connection-lost, release slot, waiting, enqueue first")
        expectEqual(task.request, "GET https://host/file")
    }

    @Test func `a request suspended before sending, or without a fit connection, was not sent and counts no retry`() throws {
        let task = try TaskTranscript(policy: .never)
        task.start()
        expectEqual(
            task.endTransfer(.transferFailed) { $0.wasSuspendedBeforeSending = true }, "release slot, waiting, enqueue first")
        task.startNextAttempt()
        expectEqual(task.endTransfer(.connectionLost) { $0.hadUnfitConnection = true }, "release slot, waiting, enqueue first")
        #expect(task.needsFreshConnection)
        expectEqual(task.metrics.retryCount, 0)
        // A fresh connection without a use for the next request of a login is a lost one: otherwise it could be replaced for ever.
        task.startNextAttempt()
        expectEqual(task.endTransfer(.connectionLost) { $0.hadUnfitConnection = true }, "release slot, end connection-lost")
    }

    @Test func `a stream whose head has been delivered does not restart`() throws {
        let task = try TaskTranscript(to: .reader(ChunkBuffer {}))
        task.start()
        _ = try task.head(200)
        expectEqual(task.endTransfer(.connectionLost), "release slot, end connection-lost")
    }

    @Test func `a stream whose reader has received bytes does not restart`() throws {
        let task = try TaskTranscript(to: .reader(ChunkBuffer {}))
        task.start()
        _ = try task.head(200)
        _ = task.body(10)
        expectEqual(task.endTransfer(.connectionLost), "release slot, end connection-lost")
    }

    @Test func `the host's budget may postpone a retry`() throws {
        let task = try TaskTranscript()
        task.start()
        _ = task.endTransfer(.connectionLost)
        task.retryWait = 5 * second
        expectEqual(task.afterDeadline(), "retry postponed")
        task.retryWait = nil
        expectEqual(task.after(4.9), "")
        expectEqual(task.after(0.2), "waiting, enqueue first")
    }

    // MARK: Timeouts

    @Test func `the request timeout fails an attempt without activity`() throws {
        let task = try TaskTranscript(policy: .never)
        task.start()
        expectEqual(task.after(59), "")
        expectEqual(task.after(1), "abandon, release slot, end timed-out")
    }

    @Test func `a silent server ends the task after the request timeout, all attempts together`() throws {
        let policy = RetryPolicy(maximumRetries: nil)
        let task = try TaskTranscript()
        task.start()
        expectEqual(task.after(40), "")
        expectEqual(task.endTransfer(.connectionLost), "report retry after connection-lost, backingOff, release slot")
        _ = task.afterDeadline()
        _ = task.after(100)
        task.startNextAttempt()
        expectEqual(task.after(19), "")
        expectEqual(task.after(1), "abandon, release slot, end timed-out")
        // Without a limit of retries, each attempt has the complete time.
        let patient = try TaskTranscript(policy: policy)
        patient.start()
        for _ in 0..<3 {
            expectEqual(patient.after(59), "")
            expectEqual(patient.after(1), "abandon, report retry after timed-out, backingOff, release slot")
            _ = patient.afterDeadline()
            patient.startNextAttempt()
        }
    }

    @Test func `a response of any status ends the silence, and a download that continues has the request timeout again`() throws {
        let task = try TaskTranscript()
        for _ in 0..<3 {
            task.start()
            _ = task.after(50)
            _ = try task.head(503)
            _ = task.endTransfer()
            _ = task.afterDeadline()
        }
        expectEqual(task.metrics.retryCount, 3)

        let download = try TaskTranscript(to: .file(DownloadDestination(URL(fileURLWithPath: "/tmp/file"))))
        download.start()
        _ = try download.head(200, "ETag: \"1\"", "Content-Length: 100000")
        _ = download.body(50_000)
        expectEqual(download.after(60), "abandon, report retry after timed-out, backingOff, release slot")
        _ = download.afterDeadline()
        download.startNextAttempt()
        expectEqual(download.addedLines.first, "Range: bytes=50000-")
        expectEqual(download.after(59), "")
        expectEqual(download.after(1), "abandon, release slot, end timed-out")
    }

    @Test func `a wait for the network does not count as silence of the server`() throws {
        let task = try TaskTranscript(waits: true)
        task.explanation = .missing(cause)
        task.start()
        _ = task.after(50)
        _ = task.endTransfer(.connectionLost)
        _ = task(.networkRestored(delay: 0))
        task.startNextAttempt()
        expectEqual(task.after(59), "")
    }

    @Test func `metrics of an abandoned attempt belong to its own request`() throws {
        let task = try TaskTranscript()
        task.start()
        _ = try task.head(302, "Location: https://other/")
        expectEqual(task.after(60), "abandon, report redirected by 302, release slot, waiting, enqueue first")
        expectEqual(task.request, "GET https://other/")
        expectEqual(task.metrics.transactions.map(\.url), ["https://host/file"])
    }

    @Test func `bytes postpone the request timeout, and a full receiver stops it`() throws {
        let task = try TaskTranscript(policy: .never)
        task.start()
        _ = try task.head(200)
        _ = task.after(59)
        _ = task.body(1)
        expectEqual(task.after(59), "")
        task.receiverIsFull()
        expectEqual(task.after(600), "")
        expectEqual(task(.receiverReady), "")
        expectEqual(task.after(60), "abandon, release slot, end timed-out")
    }

    @Test func `a lookup without an answer fails for all tasks that wait for it`() throws {
        let task = try TaskTranscript(policy: .never)
        _ = task(.resume)
        _ = task(.admitted)
        expectEqual(
            task.after(60),
            "abandon, report stalled lookup, release slot, lookup continues, end timed-out")
    }

    @Test func `the resource timeout ends the task in every state`() throws {
        let waiting = try TaskTranscript()
        _ = waiting(.resume)
        expectEqual(waiting.after(3_600), "dequeue, suspended, end timed-out")
        let running = try TaskTranscript()
        running.start()
        expectEqual(running.after(3_600), "abandon, release slot, end timed-out")
        let backingOff = try TaskTranscript(policy: RetryPolicy(baseDelay: .seconds(90), maximumDelay: .seconds(90)))
        backingOff.start()
        _ = backingOff.endTransfer(.connectionLost)
        expectEqual(backingOff.after(3_600), "end timed-out")
    }

    @Test func `a handler has a timeout of its own`() throws {
        let task = try TaskTranscript(handlers: .response)
        task.start()
        _ = try task.head(200)
        expectEqual(task.after(29), "")
        expectEqual(task.after(1), "abandon, release slot, withdraw question, end handler-timed-out")
    }

    // MARK: The network

    @Test func `an outage explains a failure: the task waits for connectivity and counts no retry`() throws {
        let task = try TaskTranscript(policy: RetryPolicy(maximumRetries: 1), waits: true)
        task.explanation = .missing(cause)
        task.start()
        expectEqual(
            task.endTransfer(.connectionLost), "waitingForConnectivity, report waiting: not-connected, release slot")
        expectEqual(task.state, .waitingForConnectivity)
        expectEqual(task.after(300), "")
        expectEqual(task(.networkRestored(delay: 0)), "waiting, enqueue first")
        expectEqual(task.metrics.timeWaitingForConnectivity, .seconds(300))
        expectEqual(task.metrics.retryCount, 0)
        // A failure directly after an outage counts.
        task.startNextAttempt()
        expectEqual(task.endTransfer(.connectionLost), "report retry after connection-lost, backingOff, release slot")
    }

    @Test func `a lookup of an earlier task that had no answer is retried by the tasks that waited for it`() throws {
        let task = try TaskTranscript()
        _ = task(.resume)
        _ = task(.admitted)
        expectEqual(task(.sharedLookupFailed), "report retry after timed-out, backingOff, release slot, lookup continues")
    }

    @Test func `a task that has waited for its longest time ends with the reason of the wait`() throws {
        let task = try TaskTranscript(waits: true, connectivityTimeout: 60 * second)
        task.explanation = .missing(cause)
        task.start()
        _ = task.endTransfer(.connectionLost)
        expectEqual(task.after(59), "")
        expectEqual(task.after(1), "leave outage, end not-connected")
        let error = try #require(task.error)
        expectEqual(error.cause, cause)
        expectEqual(error.reason, "\(cause); waited 60.0 seconds for a network")
        // The checks for an allowed network do not begin the time again.
        let restricted = try TaskTranscript(waits: true, connectivityTimeout: 60 * second)
        _ = restricted(.resume)
        var ends: [String] = []
        for _ in 0..<20 where ends.isEmpty {
            _ = restricted(.admitted)
            _ = restricted(.startFailed(HTTPSessionError(.networkNotAllowed, "cellular"), hasBegun: true))
            let effects = restricted.afterDeadline()
            if effects == "check networks" { _ = restricted(.networkAllowed) } else { ends.append(effects) }
        }
        expectEqual(ends, ["end network-not-allowed"])
        expectEqual(restricted.now, 61 * second)
    }

    @Test func `retries that failed before the cause was known do not count`() throws {
        let task = try TaskTranscript(policy: RetryPolicy(maximumRetries: 1), waits: true)
        task.explanation = .unknown
        task.start()
        expectEqual(task.endTransfer(.connectionLost), "report retry after connection-lost, backingOff, release slot")
        expectEqual(task(.networkLost(cause)), "waitingForConnectivity, report waiting: not-connected")
        expectEqual(task(.networkRestored(delay: second)), "backingOff")
        expectEqual(task.after(1.1), "waiting, enqueue first")
        task.startNextAttempt()
        expectEqual(task.endTransfer(.connectionLost), "report retry after connection-lost, backingOff, release slot")
    }

    @Test func `a task that does not wait for connectivity fails without a network`() throws {
        let task = try TaskTranscript(policy: .never)
        task.explanation = .missing(cause)
        task.start()
        expectEqual(task.endTransfer(.connectionLost), "release slot, end connection-lost")
    }

    @Test func `a task waits for a network that its request may use`() throws {
        let task = try TaskTranscript(waits: true)
        _ = task(.resume)
        _ = task(.admitted)
        let refusal = HTTPSessionError(.networkNotAllowed, "cellular")
        expectEqual(
            task(.startFailed(refusal, hasBegun: true)),
            "waitingForConnectivity, report waiting: network-not-allowed, release slot")
        // Routes change without a change of the path.
        expectEqual(task.after(5), "check networks")
        expectEqual(task(.networkAllowed), "waiting, enqueue first")
        let strict = try TaskTranscript()
        _ = strict(.resume)
        _ = strict(.admitted)
        expectEqual(strict(.startFailed(refusal, hasBegun: false)), "release slot, end network-not-allowed")
    }

    @Test func `a changed route moves a repeatable request, and counts no retry before a connection exists`() throws {
        let connected = try TaskTranscript()
        connected.start()
        expectEqual(
            connected(.connectionSuspect("another way")),
            "abandon silently, report retry after connection-lost, backingOff, release slot")
        let connecting = try TaskTranscript(policy: .never)
        _ = connecting(.resume)
        _ = connecting(.admitted)
        expectEqual(
            connecting(.connectionSuspect("another way")),
            "abandon silently, release slot, lookup continues, waiting, enqueue first")
        // A request that may have been executed stays on its connection.
        let post = try TaskTranscript(.post)
        post.start()
        expectEqual(post(.connectionSuspect("another way")), "")
        expectEqual(post(.connectionDead("gone", cause: cause)), "abandon silently, release slot, end connection-lost")
    }

    @Test func `without any network the error is not-connected, whatever the engine reported`() throws {
        let task = try TaskTranscript(policy: .never)
        _ = task(.resume)
        _ = task(.admitted)
        expectEqual(
            task.endTransfer(.cannotFindHost, lacking: cause), "release slot, end not-connected")
        guard case .failure(let error) = task.result else {
            Issue.record("no error")
            return
        }
        expectEqual(error.cause, cause)
    }
}
