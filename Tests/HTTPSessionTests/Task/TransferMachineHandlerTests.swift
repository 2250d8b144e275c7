import Foundation
import HTTPTypes
import Reachability
import Testing

@testable import HTTPSession

/// What handlers and interceptors are asked, and what follows from their answers.
@Suite struct TransferMachineHandlerTests {
    @Test func `a redirect's handler follows, changes or refuses it`() throws {
        func asked() throws -> TransferTranscript {
            let task = try TransferTranscript(handlers: .redirect)
            task.starts()
            _ = try task.head(302, "Location: /next")
            _ = task.body(5)
            #expect(task.ends() == "ask about the redirect to /next")
            return task
        }
        let followed = try asked()
        #expect(followed.answers(.redirect(.follow)) == "tell redirected by 302, give up the place, waiting, queue first")
        let changed = try asked()
        let other = TransferRequest(url: try #require(URL(string: "https://other/")))
        #expect(
            changed.answers(.modified(other, .success([]))) == "tell redirected by 302, give up the place, waiting, queue first")
        #expect(changed.request == "GET https://other/")
        let refused = try asked()
        #expect(refused.answers(.redirect(.refuse)) == "open, feed 5, give up the place, end 302")
    }

    @Test func `an answer to an earlier question is none`() throws {
        let task = try TransferTranscript(handlers: .response)
        task.starts()
        _ = try task.head(200)
        let question = task.question
        #expect(task.ends(.connectionLost).hasPrefix("tell retry after connection-lost"))
        #expect(task(.answered(question: question, .response(.allow))) == "")
    }

    @Test func `interceptors change the request, and may not change its origin`() throws {
        let task = try TransferTranscript(handlers: .interceptors)
        _ = task(.resume)
        #expect(task(.admitted) == "running, ask how to adapt")
        var adapted = task.present
        adapted.headerFields[.authorization] = "Bearer 1"
        #expect(task.answers(.adapted(.success(adapted))) == "start")
        let other = try TransferTranscript(handlers: .interceptors)
        _ = other(.resume)
        _ = other(.admitted)
        adapted.url = try #require(URL(string: "https://other/"))
        #expect(other.answers(.adapted(.success(adapted))) == "give up the place, end interceptor-failed")
    }

    @Test func `interceptors are asked about a response of 400 or above and about an error, at most ten times`() throws {
        let task = try TransferTranscript(handlers: .interceptors, policy: .never)
        func begin() {
            _ = task(.admitted)
            _ = task.answers(.adapted(.success(task.present)))
            _ = task(.connected)
        }
        _ = task(.resume)
        for round in 0..<TransferHandlers.maximumInterceptions {
            begin()
            if round == 0 {
                #expect(task.ends(.connectionLost) == "ask interceptors about connection-lost")
                #expect(
                    task.answers(.intercepted(.retry(), HTTPSessionError(.connectionLost, "")))
                        == "tell retry after connection-lost, give up the place, waiting, queue first")
            } else {
                #expect(try task.head(401) == "")
                #expect(task.ends() == "ask interceptors about 401")
                #expect(
                    task.answers(.intercepted(.retry(), nil))
                        == "tell retry after unacceptable-status, give up the place, waiting, queue first")
            }
        }
        begin()
        #expect(try task.head(401) == "open")
        #expect(task.ends() == "give up the place, end 401")
    }

    @Test func `who has to know that a request leaves is asked before each attempt`() throws {
        let task = try TransferTranscript(handlers: .sendApproval)
        _ = task(.resume)
        #expect(task(.admitted) == "running, ask how to adapt")
        _ = task(.suspend)
        // Suspended meanwhile: it is asked again.
        #expect(task.answers(.adapted(.success(task.present))) == "")
        #expect(task(.resume) == "tell resumed, running, ask how to adapt, let go")
    }

    @Test func `a server that asks for a certificate is answered once a handler has one`() throws {
        let task = try TransferTranscript(handlers: .clientCertificate)
        _ = task(.resume)
        _ = task(.admitted)
        #expect(task.ends(.clientCertificateRequired, authorities: ["CN=a"]) == "tell of the identity, ask for an identity")
        let challenge = ClientCertificateChallenge(host: "host", port: 443, authorities: ["CN=a"])
        #expect(
            task.answers(.clientCertificate(challenge, .performDefaultHandling))
                == "record the identity, give up the place, waiting, queue first")
        _ = task(.admitted)
        _ = task.ends(.clientCertificateRequired, authorities: ["CN=a"])
        #expect(task.answers(.clientCertificate(challenge, .cancel)) == "give up the place, end client-certificate-required")
    }

    @Test func `a farm of servers that asks for ever is not answered for ever`() throws {
        let task = try TransferTranscript(handlers: .clientCertificate)
        _ = task(.resume)
        let challenge = ClientCertificateChallenge(host: "host", port: 443, authorities: [])
        for _ in 0..<10 {
            _ = task(.admitted)
            _ = task.ends(.clientCertificateRequired, authorities: [])
            _ = task.answers(.clientCertificate(challenge, .performDefaultHandling))
        }
        _ = task(.admitted)
        #expect(
            task.ends(.clientCertificateRequired, authorities: [])
                == "give up the place, end certificate-untrusted")
    }

    @Test func `an upload is compared with the digest that its server has`() throws {
        let upload = UploadMachine(UploadProtocol.draft.kind, length: 100, isIdempotent: false, allowsInsecure: false)
        let task = try TransferTranscript(.put, "https://host/files", body: .data(Data(count: 100)), upload: upload)
        task.starts()
        task.sends(100)
        let digest = "Repr-Digest: sha-256=:\(Data(count: 32).base64EncodedString()):"
        #expect(try task.head(204, "Upload-Complete: ?1", digest) == "open")
        task.isWhole = false
        #expect(task.ends() == "verify the upload, give up the place, end digest-mismatch")
    }

    @Test func `what is sent in the task's place waits for the network if it says so itself`() throws {
        let task = try TransferTranscript(handlers: .interceptors, policy: .never, waits: true)
        task.gate = .missing(Cause(.link, .noCarrier, detail: "no carrier"))
        func begin() {
            _ = task(.admitted)
            _ = task.answers(.adapted(.success(task.present)))
        }
        _ = task(.resume)
        begin()
        _ = task(.connected)
        #expect(try task.head(503) == "")
        #expect(task.ends() == "ask interceptors about 503")
        var next = task.present
        next.options.waitsForConnectivity = false
        _ = task.answers(.intercepted(.retryWith(next), nil))
        begin()
        #expect(task.ends(.cannotConnectToHost) == "ask interceptors about cannot-connect-to-host")
    }

    @Test func `no attempt begins before the interceptors have said whether there is another one`() throws {
        let task = try TransferTranscript(handlers: .interceptors, policy: .never)
        _ = task(.resume)
        _ = task(.admitted)
        #expect(task.answers(.adapted(.success(task.present))) == "start")
        #expect(task(.nameStaysUnanswered) == "ask interceptors about timed-out")
        let question = task.question
        _ = task(.suspend)
        #expect(task(.resume) == "tell resumed, running, let go")
        let error = HTTPSessionError(.timedOut, "")
        #expect(
            task(.answered(question: question, .intercepted(.proceed, error)))
                == "give up the place, the look-up goes on, end timed-out")
    }

    @Test func `what a file has begun with is not continued in memory`() throws {
        let task = try TransferTranscript(handlers: .response)
        task.starts()
        let fields = ["ETag: \"1\"", "Content-Length: 100000"]
        _ = try task.head(200, lines: fields[...])
        _ = task.answers(.response(.becomeDownload(DownloadDestination(URL(fileURLWithPath: "/tmp/file")))))
        _ = task.body(50_000)
        _ = task.ends(.connectionLost)
        _ = task.afterItsWait()
        task.goesOn()
        #expect(task.addedLines.first == "Range: bytes=50000-")
        _ = try task.head(200, "ETag: \"2\"")
        #expect(task.answers(.response(.allow)) == "open, receive")
        _ = task.body(1_000)
        _ = task.ends(.connectionLost)
        _ = task.afterItsWait()
        task.goesOn()
        #expect(task.addedLines == ["Accept-Encoding: identity"])
    }
}
