import Expectations
import Foundation
import HTTPSession
import Testing

@testable import netwatch_transfer

/// What a response means for a report: it is delivered, refused for ever, or waits.
@Suite struct DeliveryResultTests {
    private func result(
        _ status: Int, _ phrase: String = "", location: String? = nil, body: String = "", hasToken: Bool = true
    ) -> DeliveryResult {
        DeliveryResult(status: status, phrase: phrase, location: location, body: Data(body.utf8), hasToken: hasToken)
    }

    @Test(arguments: ["ok", "ok\n", "OK", "ok\r\n"]) func `the answer ok delivers a report`(body: String) {
        expectEqual(result(200, body: body), .delivered)
    }

    @Test(arguments: ["", "<html>ok</html>", "okay", "{}", "ok\n\n"])
    func `another body with status 200 is not that of a service`(body: String) {
        expectEqual(
            result(200, body: body),
            .undelivered("the response is not that of a netwatch service; check the address of --service"))
    }

    @Test(arguments: [400, 404, 413]) func `some statuses refuse a report for ever`(status: Int) {
        expectEqual(
            result(status, "No", body: #"{"error":"x","detail":"no heartbeat 'a'"}"#),
            .refused("the service answered \(status) No: no heartbeat 'a'"))
    }

    @Test(arguments: [201, 204, 301, 401, 403, 405, 408, 421, 429, 500, 503])
    func `with other statuses a report waits`(status: Int) {
        expectEqual(result(status), .undelivered("the service answered \(status)"))
    }

    @Test func `404 without a token names the option`() {
        expectEqual(
            result(404, "Not Found", hasToken: false),
            .refused("the service answered 404 Not Found; no token was sent, see --token-file"))
    }

    @Test func `a redirect names the other service`() {
        expectEqual(
            result(308, "Permanent Redirect", location: "https://h/api"),
            .undelivered(
                "the service answered 308 Permanent Redirect; it redirects to https://h/api: name that service with --service"))
    }

    @Test func `a long detail of the service is shortened`() {
        let detail = String(repeating: "x", count: 1_000)
        expectEqual(
            result(400, body: #"{"detail":"\#(detail)"}"#), .refused("the service answered 400: \(detail.prefix(200))"))
    }

    @Test func `an error without a response lets a report wait`() {
        expectEqual(
            DeliveryResult(HTTPSessionError(.timedOut, "no answer"), at: "https://h"), .undelivered("https://h: no answer"))
    }
}
