import Foundation
import HTTPTypes
import Testing

@testable import HTTPSession

/// What follows from a response, status by status (RFC 9110 section 15), as transcripts.
@Suite struct TransferMachineResponseTests {
    @Test func `200: the body is the result`() throws {
        let task = try TransferTranscript()
        #expect(task.starts() == "tell resumed, waiting, queue; running, start; ")
        #expect(try task.head(200, "Content-Length: 3") == "open")
        #expect(task.body(3) == "")
        #expect(task.ends() == "give up the place, end 200")
        #expect(task.progress.received == 3)
    }

    @Test func `104: an upload learns where it is, and that the server takes less at once`() throws {
        let upload = UploadMachine(UploadProtocol.draft.kind, length: 100, isIdempotent: false, allowsInsecure: false)
        let task = try TransferTranscript(.post, "https://host/files", body: .data(Data(count: 100)), upload: upload)
        task.starts()
        let head = try TransferTranscript.head(
            104, ["Upload-Draft-Interop-Version: 8", "Location: /files/1", "Upload-Limit: max-append-size=10"])
        #expect(task(.interim(head)) == "place /files/1, break off")
        // Nothing can be ended inside of libcurl: the rest follows when the loop is round.
        #expect(task(.breakOff) == "abandon, give up the place, waiting, queue first")
        #expect(task.request == "HEAD https://host/files/1")
    }

    @Test(arguments: [204, 205]) func `204 and 205 replace no file`(_ status: Int) throws {
        let file = BodyDestination.file(DownloadDestination(URL(fileURLWithPath: "/tmp/file")))
        let task = try TransferTranscript(kind: .download, to: file)
        task.starts()
        #expect(try task.head(status) == "abort: the server answered \(status): it has no content for the file")
        let other = try TransferTranscript()
        other.starts()
        #expect(try other.head(status) == "open")
    }

    @Test(arguments: [
        (301, HTTPRequest.Method.post, "GET"), (302, .post, "GET"), (303, .put, "GET"), (307, .post, "POST"), (308, .put, "PUT"),
        (301, .put, "PUT"), (303, .head, "HEAD"),
    ])
    func `3xx with a place: the request goes there`(_ status: Int, _ method: HTTPRequest.Method, _ next: String) throws {
        let task = try TransferTranscript(method)
        task.starts()
        #expect(try task.head(status, "Location: /next") == "")
        // Its body is read for the sake of the connection.
        #expect(task.body(100) == "")
        #expect(task.ends() == "tell redirected by \(status), give up the place, waiting, queue first")
        #expect(task.request == "\(next) https://host/next")
        #expect(task.goesOn() == "running, start; ")
    }

    @Test(arguments: [300, 304, 305, 399]) func `other 3xx are results`(_ status: Int) throws {
        let task = try TransferTranscript()
        task.starts()
        #expect(try task.head(status, "Location: /next") == "open")
        #expect(task.ends() == "give up the place, end \(status)")
    }

    @Test func `a redirect to http or without end is refused`() throws {
        let insecure = try TransferTranscript()
        insecure.starts()
        #expect(try insecure.head(302, "Location: http://host/") == "abort: the redirect leads from https to http")
        let endless = try TransferTranscript { $0.maximumRedirects = 2 }
        endless.starts()
        for _ in 0..<2 {
            _ = try endless.head(302, "Location: /again")
            _ = endless.ends()
            endless.goesOn()
        }
        #expect(try endless.head(302, "Location: /again") == "")
        #expect(endless.ends() == "give up the place, end too-many-redirects")
    }

    @Test func `a redirect's body is read up to 256 KiB`() throws {
        let task = try TransferTranscript()
        task.starts()
        _ = try task.head(302, "Location: /next")
        #expect(task.body(Attempt.maximumHeld) == "")
        #expect(task.body(1) == "abort: the body of an intermediate response is too long")
        // What follows is known all the same.
        #expect(task.ends(.transferFailed) == "tell redirected by 302, give up the place, waiting, queue first")
    }

    @Test func `401 without anybody who knows a credential is the result`() throws {
        let task = try TransferTranscript()
        task.starts()
        #expect(try task.head(401, "WWW-Authenticate: Basic realm=\"r\"") == "open")
        #expect(task.ends() == "give up the place, end 401")
    }

    @Test func `401: the credential of the address answers, once`() throws {
        let task = try TransferTranscript(.get, "https://me:secret@host/")
        task.starts()
        #expect(try task.head(401, "WWW-Authenticate: Digest realm=\"r\", nonce=\"1\"") == "")
        #expect(task.ends() == "tell challenged by digest, give up the place, waiting, queue first")
        task.goesOn()
        #expect(task.logins.server?.user == "me")
        #expect(try task.head(401, "WWW-Authenticate: Digest realm=\"r\", nonce=\"2\"") == "open")
        #expect(task.ends() == "give up the place, end 401")
    }

    @Test func `401: the handler's credential is kept when it was accepted`() throws {
        let task = try TransferTranscript(handlers: .challenge)
        task.starts()
        #expect(try task.head(401, "WWW-Authenticate: Basic realm=\"r\"") == "")
        #expect(task.ends() == "tell challenged by basic, ask for a basic credential")
        let credential = Credential(user: "me", password: "secret")
        #expect(task.answers(.challenge(.useCredential(credential))) == "give up the place, waiting, queue first")
        task.goesOn()
        #expect(try task.head(200) == "keep me, open")
    }

    @Test func `401: a handler that says the same again is not asked for ever`() throws {
        let task = try TransferTranscript(handlers: .challenge)
        task.starts()
        let credential = Credential(user: "me", password: "wrong")
        for round in 0..<2 {
            #expect(try task.head(401, "WWW-Authenticate: Basic realm=\"r\"") == "")
            #expect(task.ends() == "tell challenged by basic, ask for a basic credential")
            let answer = task.answers(.challenge(.useCredential(credential)))
            #expect(answer == (round == 0 ? "give up the place, waiting, queue first" : "open, give up the place, end 401"))
            if round == 0 { task.goesOn() }
        }
    }

    @Test func `407: a credential for the proxy is asked for, and never the address's own`() throws {
        let task = try TransferTranscript(.get, "https://me:secret@host/", handlers: .challenge)
        task.starts()
        #expect(try task.head(407, "Proxy-Authenticate: Basic realm=\"p\"") == "")
        #expect(task.ends() == "tell challenged by basic, ask for a basic credential")
        let credential = Credential(user: "proxy", password: "secret")
        #expect(task.answers(.challenge(.useCredential(credential))) == "give up the place, waiting, queue first")
        #expect(task.logins.proxy?.user == "proxy")
        #expect(task.logins.server == nil)
    }

    @Test(arguments: [408, 429, 500, 502, 503, 504]) func `what the policy repeats is asked again`(_ status: Int) throws {
        let task = try TransferTranscript()
        task.starts()
        #expect(try task.head(status) == "")
        #expect(task.ends() == "tell retry after unacceptable-status, backingOff, give up the place")
        #expect(task.afterItsWait() == "waiting, queue first")
        task.goesOn()
        #expect(try task.head(200) == "open")
        #expect(task.ends() == "give up the place, end 200")
        #expect(task.metrics.retryCount == 1)
    }

    @Test(arguments: [400, 403, 404, 412, 416, 425, 501]) func `what the policy does not repeat is the result`(_ status: Int)
        throws
    {
        let task = try TransferTranscript()
        task.starts()
        #expect(try task.head(status) == "open")
        #expect(task.ends() == "give up the place, end \(status)")
    }

    @Test func `425 is asked again where the policy says so`() throws {
        let task = try TransferTranscript(policy: RetryPolicy(statusCodes: [425]))
        task.starts()
        #expect(try task.head(425) == "")
        #expect(task.ends() == "tell retry after unacceptable-status, backingOff, give up the place")
    }

    @Test func `503 with Retry-After: the wait is as long, if it is granted`() throws {
        let task = try TransferTranscript()
        task.starts()
        _ = try task.head(503, "Retry-After: 120")
        _ = task.ends()
        #expect(task.after(119) == "")
        #expect(task.after(2) == "waiting, queue first")
        let late = try TransferTranscript()
        late.starts()
        #expect(try late.head(503, "Retry-After: 3601") == "open")
    }

    @Test func `503 to a POST is the result: it may have been executed`() throws {
        let task = try TransferTranscript(.post)
        task.starts()
        #expect(try task.head(503) == "open")
    }

    @Test func `a download is given no other status than 2xx`() throws {
        let file = BodyDestination.file(DownloadDestination(URL(fileURLWithPath: "/tmp/file")))
        let task = try TransferTranscript(kind: .download, to: file)
        task.starts()
        #expect(try task.head(404) == "")
        #expect(task.body(10) == "")
        #expect(task.ends() == "give up the place, end unacceptable-status")
        guard case .failure(let error) = task.result else {
            Issue.record("no error")
            return
        }
        #expect(error.context.responseBody?.count == 10)
    }

    @Test func `a response handler decides before the body is read`() throws {
        let task = try TransferTranscript(handlers: .response)
        task.starts()
        #expect(try task.head(200, "Content-Length: 3") == "ask about the response 200")
        #expect(task.body(3) == "pause")
        #expect(task.answers(.response(.allow)) == "open, receive")
        #expect(task.body(3) == "")
        #expect(task.ends() == "give up the place, end 200")
        // The response may end while the handler thinks.
        let short = try TransferTranscript(handlers: .response)
        short.starts()
        _ = try short.head(204)
        #expect(short.ends() == "")
        #expect(short.answers(.response(.allow)) == "open, give up the place, end 204")
        let refused = try TransferTranscript(handlers: .response)
        refused.starts()
        _ = try refused.head(200)
        #expect(refused.answers(.response(.cancel)) == "abandon, give up the place, end cancelled")
    }
}
