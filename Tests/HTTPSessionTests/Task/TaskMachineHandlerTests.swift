import Expectations
import Foundation
import HTTPTypes
import Reachability
import Testing

@testable import HTTPSession

/// The questions to handlers and interceptors, and how the task proceeds after their answers.
@Suite struct TaskMachineHandlerTests {
    @Test func `a redirect handler follows, modifies or refuses a redirect`() throws {
        func asked() throws -> TaskTranscript {
            let task = try TaskTranscript(handlers: .redirect)
            task.start()
            _ = try task.head(302, "Location: /next")
            _ = task.body(5)
            expectEqual(task.endTransfer(), "ask about the redirect to /next")
            return task
        }
        let followed = try asked()
        expectEqual(followed.answer(.redirect(.follow)), "report redirected by 302, release slot, waiting, enqueue first")
        let changed = try asked()
        let other = TransferRequest(url: try #require(URL(string: "https://other/")))
        expectEqual(
            changed.answer(.modified(other, .success([]))), "report redirected by 302, release slot, waiting, enqueue first")
        expectEqual(changed.request, "GET https://other/")
        let refused = try asked()
        expectEqual(refused.answer(.redirect(.refuse)), "open sink, deliver 5, release slot, end 302")
    }

    @Test func `an answer to an earlier question is ignored`() throws {
        let task = try TaskTranscript(handlers: .response)
        task.start()
        _ = try task.head(200)
        let question = task.question
        #expect(task.endTransfer(.connectionLost).hasPrefix("report retry after connection-lost"))
        expectEqual(task(.handlerAnswered(question: question, .response(.allow))), "")
    }

    @Test func `interceptors may change the request but not its origin`() throws {
        let task = try TaskTranscript(handlers: .interceptors)
        _ = task(.resume)
        expectEqual(task(.admitted), "running, ask how to adapt")
        var adapted = task.currentRequest
        adapted.headerFields[.authorization] = "Bearer 1"
        expectEqual(task.answer(.adapted(.success(adapted))), "start")
        let other = try TaskTranscript(handlers: .interceptors)
        _ = other(.resume)
        _ = other(.admitted)
        adapted.url = try #require(URL(string: "https://other/"))
        expectEqual(other.answer(.adapted(.success(adapted))), "release slot, end interceptor-failed")
    }

    @Test func `interceptors are asked about a response of 400 or above and about an error, at most ten times`() throws {
        let task = try TaskTranscript(handlers: .interceptors, policy: .never)
        func begin() {
            _ = task(.admitted)
            _ = task.answer(.adapted(.success(task.currentRequest)))
            _ = task(.connected)
        }
        _ = task(.resume)
        for round in 0..<TransferHandlers.maximumInterceptions {
            begin()
            if round == 0 {
                expectEqual(task.endTransfer(.connectionLost), "ask interceptors about connection-lost")
                expectEqual(
                    task.answer(.intercepted(.retry(), HTTPSessionError(.connectionLost, ""))),
                    "report retry after connection-lost, release slot, waiting, enqueue first")
            } else {
                try expectEqual(task.head(401), "")
                expectEqual(task.endTransfer(), "ask interceptors about 401")
                expectEqual(
                    task.answer(.intercepted(.retry(), nil)),
                    "report retry after unacceptable-status, release slot, waiting, enqueue first")
            }
        }
        begin()
        try expectEqual(task.head(401), "open sink")
        expectEqual(task.endTransfer(), "release slot, end 401")
    }

    @Test func `approval to send is asked for before each attempt`() throws {
        let task = try TaskTranscript(handlers: .sendApproval)
        _ = task(.resume)
        expectEqual(task(.admitted), "running, ask how to adapt")
        _ = task(.suspend)
        // The task was suspended meanwhile, so the approval is asked for again.
        expectEqual(task.answer(.adapted(.success(task.currentRequest))), "")
        expectEqual(task(.resume), "report resumed, running, ask how to adapt, resume transfer")
    }

    @Test func `a request for a client certificate is answered once a handler has one`() throws {
        let task = try TaskTranscript(handlers: .clientCertificate)
        _ = task(.resume)
        _ = task(.admitted)
        expectEqual(
            task.endTransfer(.clientCertificateRequired, authorities: ["CN=a"]),
            "report client certificate challenge, ask for an identity")
        let challenge = ClientCertificateChallenge(host: "host", port: 443, authorities: ["CN=a"])
        expectEqual(
            task.answer(.clientCertificate(challenge, .performDefaultHandling)),
            "record identity, release slot, waiting, enqueue first")
        _ = task(.admitted)
        _ = task.endTransfer(.clientCertificateRequired, authorities: ["CN=a"])
        expectEqual(task.answer(.clientCertificate(challenge, .cancel)), "release slot, end client-certificate-required")
    }

    @Test func `a server that asks for certificates without end fails the task`() throws {
        let task = try TaskTranscript(handlers: .clientCertificate)
        _ = task(.resume)
        let challenge = ClientCertificateChallenge(host: "host", port: 443, authorities: [])
        for _ in 0..<10 {
            _ = task(.admitted)
            _ = task.endTransfer(.clientCertificateRequired, authorities: [])
            _ = task.answer(.clientCertificate(challenge, .performDefaultHandling))
        }
        _ = task(.admitted)
        expectEqual(
            task.endTransfer(.clientCertificateRequired, authorities: []),
            "release slot, end certificate-untrusted")
    }

    @Test func `an upload is compared with the digest that its server sends`() throws {
        let upload = UploadMachine(UploadProtocol.draft.kind, length: 100, isIdempotent: false, allowsInsecure: false)
        let task = try TaskTranscript(.put, "https://host/files", body: .data(Data(count: 100)), upload: upload)
        task.start()
        task.send(100)
        let digest = "Repr-Digest: sha-256=:\(Data(count: 32).base64EncodedString()):"
        try expectEqual(task.head(204, "Upload-Complete: ?1", digest), "open sink")
        task.digestMatches = false
        expectEqual(task.endTransfer(), "verify upload, release slot, end digest-mismatch")
    }

    @Test func `a replacement request waits for connectivity by its own option`() throws {
        let task = try TaskTranscript(handlers: .interceptors, policy: .never, waits: true)
        task.explanation = .missing(Cause(.link, .noCarrier, detail: "no carrier"))
        func begin() {
            _ = task(.admitted)
            _ = task.answer(.adapted(.success(task.currentRequest)))
        }
        _ = task(.resume)
        begin()
        _ = task(.connected)
        try expectEqual(task.head(503), "")
        expectEqual(task.endTransfer(), "ask interceptors about 503")
        var next = task.currentRequest
        next.options.waitsForConnectivity = false
        _ = task.answer(.intercepted(.retryWith(next), nil))
        begin()
        expectEqual(task.endTransfer(.cannotConnectToHost), "ask interceptors about cannot-connect-to-host")
    }

    @Test func `no attempt begins before the interceptors have decided about another one`() throws {
        let task = try TaskTranscript(handlers: .interceptors, policy: .never)
        _ = task(.resume)
        _ = task(.admitted)
        expectEqual(task.answer(.adapted(.success(task.currentRequest))), "start")
        expectEqual(task(.sharedLookupFailed), "ask interceptors about timed-out")
        let question = task.question
        _ = task(.suspend)
        expectEqual(task(.resume), "report resumed, running, resume transfer")
        let error = HTTPSessionError(.timedOut, "")
        expectEqual(
            task(.handlerAnswered(question: question, .intercepted(.proceed, error))),
            "release slot, lookup continues, end timed-out")
    }

    @Test func `a download that began in a file does not continue in memory`() throws {
        let task = try TaskTranscript(handlers: .response)
        task.start()
        let fields = ["ETag: \"1\"", "Content-Length: 100000"]
        _ = try task.head(200, lines: fields[...])
        _ = task.answer(.response(.becomeDownload(DownloadDestination(URL(fileURLWithPath: "/tmp/file")))))
        _ = task.body(50_000)
        _ = task.endTransfer(.connectionLost)
        _ = task.afterDeadline()
        task.startNextAttempt()
        expectEqual(task.addedLines.first, "Range: bytes=50000-")
        _ = try task.head(200, "ETag: \"2\"")
        expectEqual(task.answer(.response(.allow)), "open sink, resume receiving")
        _ = task.body(1_000)
        _ = task.endTransfer(.connectionLost)
        _ = task.afterDeadline()
        task.startNextAttempt()
        expectEqual(task.addedLines, ["Accept-Encoding: identity"])
    }
}
