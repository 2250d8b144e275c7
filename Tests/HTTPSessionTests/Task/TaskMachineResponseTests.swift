import Expectations
import Foundation
import HTTPTypes
import Testing

@testable import HTTPSession

/// How a task proceeds after a response, status by status (RFC 9110 section 15), as transcripts.
@Suite struct TaskMachineResponseTests {
    @Test func `200: the body is the result`() throws {
        let task = try TaskTranscript()
        expectEqual(task.start(), "report resumed, waiting, enqueue; running, start; ")
        try expectEqual(task.head(200, "Content-Length: 3"), "open sink")
        expectEqual(task.body(3), "")
        expectEqual(task.endTransfer(), "release slot, end 200")
        expectEqual(task.progress.bytesReceived, 3)
    }

    @Test func `104: an upload takes its location and the server's limit`() throws {
        let upload = UploadMachine(UploadProtocol.draft.kind, length: 100, isIdempotent: false, allowsInsecure: false)
        let task = try TaskTranscript(.post, "https://host/files", body: .data(Data(count: 100)), upload: upload)
        task.start()
        let head = try TaskTranscript.head(
            104, ["Upload-Draft-Interop-Version: 8", "Location: /files/1", "Upload-Limit: max-append-size=10"])
        expectEqual(task(.receivedInterim(head)), "location /files/1, schedule request stop")
        // Nothing can be ended inside of libcurl: the next request follows after the loop's turn.
        expectEqual(task(.requestStopDue), "abandon, release slot, waiting, enqueue first")
        expectEqual(task.request, "HEAD https://host/files/1")
    }

    @Test(arguments: [204, 205]) func `204 and 205 replace no file`(_ status: Int) throws {
        let file = BodyDestination.file(DownloadDestination(URL(fileURLWithPath: "/tmp/file")))
        let task = try TaskTranscript(to: file)
        task.start()
        try expectEqual(task.head(status), "abort: the server answered \(status): it has no content for the file")
        let other = try TaskTranscript()
        other.start()
        try expectEqual(other.head(status), "open sink")
    }

    @Test(arguments: [
        (301, HTTPRequest.Method.post, "GET"), (302, .post, "GET"), (303, .put, "GET"), (307, .post, "POST"), (308, .put, "PUT"),
        (301, .put, "PUT"), (303, .head, "HEAD"),
    ])
    func `3xx with a location: the request follows it`(_ status: Int, _ method: HTTPRequest.Method, _ next: String) throws {
        let task = try TaskTranscript(method)
        task.start()
        try expectEqual(task.head(status, "Location: /next"), "")
        // The body is read so that the connection can be reused.
        expectEqual(task.body(100), "")
        expectEqual(task.endTransfer(), "report redirected by \(status), release slot, waiting, enqueue first")
        expectEqual(task.request, "\(next) https://host/next")
        expectEqual(task.startNextAttempt(), "running, start; ")
    }

    @Test(arguments: [300, 304, 305, 399]) func `300, 304, 305 and unknown 3xx are results`(_ status: Int) throws {
        let task = try TaskTranscript()
        task.start()
        try expectEqual(task.head(status, "Location: /next"), "open sink")
        expectEqual(task.endTransfer(), "release slot, end \(status)")
    }

    @Test func `a redirect to http and a redirect without end are refused`() throws {
        let insecure = try TaskTranscript()
        insecure.start()
        try expectEqual(insecure.head(302, "Location: http://host/"), "abort: the redirect leads from https to http")
        let endless = try TaskTranscript { $0.maximumRedirects = 2 }
        endless.start()
        for _ in 0..<2 {
            _ = try endless.head(302, "Location: /again")
            _ = endless.endTransfer()
            endless.startNextAttempt()
        }
        try expectEqual(endless.head(302, "Location: /again"), "")
        expectEqual(endless.endTransfer(), "release slot, end too-many-redirects")
    }

    @Test func `a redirect's body is read up to 256 KiB`() throws {
        let task = try TaskTranscript()
        task.start()
        _ = try task.head(302, "Location: /next")
        expectEqual(task.body(256 << 10), "")
        expectEqual(task.body(1), "abort: the body of an intermediate response is too long")
        // The redirect is followed nevertheless.
        expectEqual(task.endTransfer(.transferFailed), "report redirected by 302, release slot, waiting, enqueue first")
    }

    @Test func `401 without a known credential is the result`() throws {
        let task = try TaskTranscript()
        task.start()
        try expectEqual(task.head(401, "WWW-Authenticate: Basic realm=\"r\""), "open sink")
        expectEqual(task.endTransfer(), "release slot, end 401")
    }

    @Test func `401: the credential of the URL answers once`() throws {
        let task = try TaskTranscript(.get, "https://me:secret@host/")
        task.start()
        try expectEqual(task.head(401, "WWW-Authenticate: Digest realm=\"r\", nonce=\"1\""), "")
        expectEqual(task.endTransfer(), "report challenged by digest, release slot, waiting, enqueue first")
        task.startNextAttempt()
        var logins = task.logins
        let login = logins.nextDigest(isProxy: false)
        #expect(login?.user == "me" && login?.count == 1 && logins.server == nil)
        try expectEqual(task.head(401, "WWW-Authenticate: Digest realm=\"r\", nonce=\"2\""), "open sink")
        expectEqual(task.endTransfer(), "release slot, end 401")
    }

    @Test func `401: the handler's credential is stored when the server accepts it`() throws {
        let task = try TaskTranscript(handlers: .challenge)
        task.start()
        try expectEqual(task.head(401, "WWW-Authenticate: Basic realm=\"r\""), "")
        expectEqual(task.endTransfer(), "report challenged by basic, ask for a basic credential")
        let credential = Credential(user: "me", password: "secret")
        expectEqual(task.answer(.challenge(.useCredential(credential))), "release slot, waiting, enqueue first")
        task.startNextAttempt()
        try expectEqual(task.head(200), "store credential of me, open sink")
    }

    @Test func `401: a handler that repeats a refused credential is not asked again`() throws {
        let task = try TaskTranscript(handlers: .challenge)
        task.start()
        let credential = Credential(user: "me", password: "wrong")
        for round in 0..<2 {
            try expectEqual(task.head(401, "WWW-Authenticate: Basic realm=\"r\""), "")
            expectEqual(task.endTransfer(), "report challenged by basic, ask for a basic credential")
            let answer = task.answer(.challenge(.useCredential(credential)))
            expectEqual(answer, (round == 0 ? "release slot, waiting, enqueue first" : "open sink, release slot, end 401"))
            if round == 0 { task.startNextAttempt() }
        }
    }

    @Test func `407: a credential for the proxy is requested, never that of the URL`() throws {
        let task = try TaskTranscript(.get, "https://me:secret@host/", handlers: .challenge)
        task.start()
        try expectEqual(task.head(407, "Proxy-Authenticate: Basic realm=\"p\""), "")
        expectEqual(task.endTransfer(), "report challenged by basic, ask for a basic credential")
        let credential = Credential(user: "proxy", password: "secret")
        expectEqual(task.answer(.challenge(.useCredential(credential))), "release slot, waiting, enqueue first")
        expectEqual(task.logins.proxy?.user, "proxy")
        expectNil(task.logins.server)
    }

    @Test(arguments: [408, 429, 500, 502, 503, 504]) func `a status code of the policy is retried`(_ status: Int) throws {
        let task = try TaskTranscript()
        task.start()
        try expectEqual(task.head(status), "")
        expectEqual(task.endTransfer(), "report retry after unacceptable-status, backingOff, release slot")
        expectEqual(task.afterDeadline(), "waiting, enqueue first")
        task.startNextAttempt()
        try expectEqual(task.head(200), "open sink")
        expectEqual(task.endTransfer(), "release slot, end 200")
        expectEqual(task.metrics.retryCount, 1)
    }

    @Test(arguments: [400, 403, 404, 412, 416, 425, 501]) func `a status code outside the policy is the result`(_ status: Int)
        throws
    {
        let task = try TaskTranscript()
        task.start()
        try expectEqual(task.head(status), "open sink")
        expectEqual(task.endTransfer(), "release slot, end \(status)")
    }

    @Test func `425 is retried if the policy contains it`() throws {
        let task = try TaskTranscript(policy: RetryPolicy(statusCodes: [425]))
        task.start()
        try expectEqual(task.head(425), "")
        expectEqual(task.endTransfer(), "report retry after unacceptable-status, backingOff, release slot")
    }

    @Test func `503 with Retry-After: the delay follows it up to the policy's limit`() throws {
        let task = try TaskTranscript()
        task.start()
        _ = try task.head(503, "Retry-After: 60")
        _ = task.endTransfer()
        expectEqual(task.after(59), "")
        expectEqual(task.after(2), "waiting, enqueue first")
        let late = try TaskTranscript()
        late.start()
        try expectEqual(late.head(503, "Retry-After: 61"), "open sink")
        let persistent = try TaskTranscript(policy: .persistent)
        persistent.start()
        try expectEqual(persistent.head(503, "Retry-After: 1800"), "")
    }

    @Test func `503 to a POST is the result: the server may have executed it`() throws {
        let task = try TaskTranscript(.post)
        task.start()
        try expectEqual(task.head(503), "open sink")
    }

    @Test func `a download receives 2xx responses only`() throws {
        let file = BodyDestination.file(DownloadDestination(URL(fileURLWithPath: "/tmp/file")))
        let task = try TaskTranscript(to: file)
        task.start()
        try expectEqual(task.head(404), "")
        expectEqual(task.body(10), "")
        expectEqual(task.endTransfer(), "release slot, end unacceptable-status")
        guard case .failure(let error) = task.result else {
            Issue.record("no error")
            return
        }
        expectEqual(error.context.responseBody?.count, 10)
    }

    @Test func `a response handler decides before the body is read`() throws {
        let task = try TaskTranscript(handlers: .response)
        task.start()
        try expectEqual(task.head(200, "Content-Length: 3"), "ask about the response 200")
        expectEqual(task.body(3), "pause")
        expectEqual(task.answer(.response(.allow)), "open sink, resume receiving")
        expectEqual(task.body(3), "")
        expectEqual(task.endTransfer(), "release slot, end 200")
        // The response may end before the handler answers.
        let short = try TaskTranscript(handlers: .response)
        short.start()
        _ = try short.head(204)
        expectEqual(short.endTransfer(), "")
        expectEqual(short.answer(.response(.allow)), "open sink, release slot, end 204")
        let refused = try TaskTranscript(handlers: .response)
        refused.start()
        _ = try refused.head(200)
        expectEqual(refused.answer(.response(.cancel)), "abandon, release slot, end cancelled")
    }
}
