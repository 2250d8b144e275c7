import Expectations
import Foundation
import FoundationNetworking
import HTTPSession
import HTTPSessionFoundation
import HTTPSessionTestKit
import HTTPTypes
import Testing

@Suite struct URLRequestTests {
    private let url = URL(string: "https://b%C3%BCcher.example/a?b=c")

    @Test func `a URLRequest's URL, method, fields, body and limits are converted`() throws {
        var original = URLRequest(url: try #require(url))
        original.httpMethod = "PATCH"
        original.setValue("text/plain", forHTTPHeaderField: "Content-Type")
        original.setValue("4", forHTTPHeaderField: "Content-Length")
        original.httpBody = Data("body".utf8)
        original.timeoutInterval = 2.5
        original.allowsCellularAccess = false
        original.httpShouldHandleCookies = false
        let request = try TransferRequest(original)
        expectEqual(request.url.absoluteString, "https://xn--bcher-kva.example/a?b=c")
        expectEqual(request.method, .patch)
        expectEqual(request.headerFields, [.contentType: "text/plain"])
        guard case .data(Data("body".utf8)) = request.body else {
            Issue.record("\(request.body)")
            return
        }
        expectEqual(request.options.requestTimeout, .milliseconds(2500))
        expectEqual(request.options.allowsCellularAccess, false)
        expectEqual(request.options.handlesCookies, false)
    }

    @Test func `a URLRequest's default options leave the request's options unset`() throws {
        let request = try TransferRequest(URLRequest(url: try #require(url)))
        expectEqual(request.options, TransferRequest.Options())
        expectEqual(request.method, .get)
    }

    @Test(arguments: [0, -1, .nan, 1e-9, 1e300, .infinity] as [TimeInterval])
    func `every timeout of a URLRequest becomes a valid timeout or none`(timeout: TimeInterval) throws {
        var original = URLRequest(url: try #require(url))
        original.timeoutInterval = timeout
        let request = try TransferRequest(original)
        #expect(throws: Never.self) { try HTTPRequestSerializer(headerFields: [:]).serialize(request) }
        expectEqual((request.options.requestTimeout == nil), !(timeout > 0))
    }

    @Test func `a URLRequest with an invalid method, a body stream or no URL is an error`() throws {
        var method = URLRequest(url: try #require(url))
        method.httpMethod = "A B"
        var stream = URLRequest(url: try #require(url))
        stream.httpBodyStream = InputStream(data: Data())
        var missing = URLRequest(url: try #require(url))
        missing.url = nil
        for request in [method, stream, missing] {
            expectEqual(HTTPSessionError.thrown { try TransferRequest(request) }?.code, .invalidRequest)
        }
    }

    @Test func `a request converts to a URLRequest and back without a loss`() throws {
        var request = TransferRequest(
            url: try #require(url), method: .put, headerFields: [.accept: "a/b", .authorization: "x"], body: .data(Data([1])))
        request.options.requestTimeout = .seconds(5)
        request.options.handlesCookies = false
        let converted = try URLRequest(request)
        #expect(converted.url == request.url && converted.httpMethod == "PUT" && converted.httpBody == Data([1]))
        expectEqual(converted.value(forHTTPHeaderField: "Accept"), "a/b")
        let again = try TransferRequest(converted)
        #expect(again.url == request.url && again.method == .put && again.options == request.options)
        expectEqual(again.headerFields, request.headerFields)
        request.body = .file(URL(fileURLWithPath: "/etc/hosts"))
        expectEqual(HTTPSessionError.thrown { try URLRequest(request) }?.code, .invalidRequest)
    }

    @Test func `a converted URLRequest is sent`() async throws {
        let server = try TestServer { request in StubResponse(body: .init(stringLiteral: request["x-a"] ?? "")) }
        var original = URLRequest(url: server.url("/"))
        original.setValue("b", forHTTPHeaderField: "X-A")
        let session = try localSession()
        try await expectEqual(session.dataTask(for: TransferRequest(original)).string(), "b")
    }
}
