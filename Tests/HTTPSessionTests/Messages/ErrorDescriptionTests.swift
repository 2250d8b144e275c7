import Expectations
import Foundation
import HTTPTypes
import Reachability
import Testing

@testable import HTTPSession
import HTTPSessionFoundation

/// Errors as code without knowledge of this library sees them.
@Suite struct ErrorDescriptionTests {
    @Test func `an error's localized description is its reason`() throws {
        let error: any Error = HTTPSessionError(.cannotConnectToHost, "cannot connect to the server: Connection refused")
        expectEqual(error.localizedDescription, "cannot connect to the server: Connection refused")
        expectEqual((error as? any LocalizedError)?.errorDescription, error.localizedDescription)
        let endpoint: (any Error)? = { do { _ = try Endpoint("x:0"); return nil } catch { return error } }()
        try expectEqual(#require(endpoint).localizedDescription, "\(try #require(endpoint))")
        let namespace: any Error = MonitorError.noSuchNamespace(NetworkNamespace("blue"))
        expectEqual(namespace.localizedDescription, "no network namespace 'blue'")
    }

    @Test func `an error has URLSession's domain and code as an NSError`() {
        let cause = Cause(.link, .noCarrier, detail: "eth0 has no carrier")
        var error = HTTPSessionError(
            .notConnected, "link: eth0 has no carrier", context: .init(url: "http://a/b"), underlying: CocoaError(.fileNoSuchFile)
        )
        error.cause = cause
        let converted = error as NSError
        expectEqual(converted.domain, NSURLErrorDomain)
        expectEqual(converted.code, URLError.Code.notConnectedToInternet.rawValue)
        expectEqual(converted.localizedDescription, "link: eth0 has no carrier")
        expectEqual(error.errorUserInfo[NSURLErrorFailingURLErrorKey] as? URL, URL(string: "http://a/b"))
        #expect(error.errorUserInfo[NSUnderlyingErrorKey] is CocoaError)
        expectEqual(error.failureReason, "link: eth0 has no carrier")
        for code in HTTPSessionError.Code.allCases {
            let error = HTTPSessionError(code, "x")
            expectEqual(error.errorCode, error.urlErrorCode.rawValue)
        }
    }

    private struct Team: Decodable {
        struct Member: Decodable {
            var name: String
            var age: Int
        }

        var members: [Member]
    }

    @Test(
        arguments: [
            (#"{"members":[{"name":"a","age":1},{"name":"b"}]}"#, "the body is not of type Team: members[1].age is missing"),
            (#"{"members":[{"name":"a","age":"secret"}]}"#, "the body is not of type Team: members[0].age is not of type Int"),
            (#"{"members":null}"#, "the body is not of type Team: members is null"), (#"{"#, "the body is not of type Team"),
        ])
    func `a decoding error names the coding path, and no value`(body: String, reason: String) throws {
        let response = try received(body)
        let error = #expect(throws: HTTPSessionError.self) { _ = try DecodableResponseSerializer<Team>().decode(response) }
        expectEqual(error?.code, .cannotDecodeContent)
        expectEqual(error?.reason.hasPrefix(reason), true, "\(String(describing: error))")
        #expect(error?.reason.contains("secret") == false)
    }

    private func received(_ body: String) throws -> TransferResponse {
        TransferResponse(
            head: ResponseHead(HTTPResponse(status: .ok)), url: try #require(URL(string: "http://a/")), data: Data(body.utf8))
    }

    @Test func `a relative URL without a base URL is an error that says so`() {
        let error = HTTPSessionError.thrown { () throws(HTTPSessionError) in _ = try RequestURL.resolve("users") }
        expectEqual(error?.code, .invalidRequest)
        expectEqual(error?.reason, "the URL is relative: a relative URL needs a session with a base URL")
    }
}
