// A program that makes the values that its interceptors, handlers and stubs receive, as its tests do.
import Foundation
import HTTPSession
import HTTPSessionTestKit

func test(_ interceptor: any RequestInterceptor, _ handlers: TransferHandlers, _ request: TransferRequest) async throws {
    let head = ResponseHead(HTTPResponse(status: .found))
    let error = HTTPSessionError(.timedOut, "no answer")
    _ = await interceptor.retry(after: FailedAttempt(request: request, response: head))
    _ = await interceptor.retry(after: FailedAttempt(request: request, error: error, retryCount: 1))
    _ = await handlers.redirect?(TransferHandlers.Redirect(response: head, proposed: request))
    guard let origin = Origin(request.url) else { return }
    let space = AuthenticationChallenge.ProtectionSpace(origin: origin, realm: "private")
    _ = await handlers.challenge?(AuthenticationChallenge(scheme: .basic, protectionSpace: space))
    _ = await handlers.serverTrust?(ServerTrustChallenge(host: "host", certificates: [], policyError: error))
    _ = await handlers.clientCertificate?(ClientCertificateChallenge(host: "host", authorities: ["CN=a"]))
}

func answer(_ reply: (ReceivedRequest) -> StubResponse) -> StubResponse {
    reply(ReceivedRequest(target: "/users?page=2", tls: ReceivedRequest.TLSDetails()))
        .cut(afterBodyBytes: 5).interim(103).headerFlood(10, valueBytes: 100)
}
