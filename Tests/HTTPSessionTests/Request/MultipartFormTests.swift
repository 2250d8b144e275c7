import Expectations
import Foundation
import HTTPSession
import HTTPTypes
import Pacing
import Testing

@Suite struct MultipartFormTests {
    /// A form with boundary B.
    func form(_ build: (inout MultipartForm) throws -> Void = { _ in }) throws -> MultipartForm {
        var form = try MultipartForm(boundary: "B")
        try build(&form)
        return form
    }

    /// The bytes of the form as sent, including those of its streams.
    func wire(_ form: MultipartForm) async throws -> String {
        var bytes = Data()
        for segment in form.segments() {
            switch segment {
            case .data(let data): bytes += data
            case .file(let path, let length): bytes += Data("<\(length) bytes of \(path)>".utf8)
            case .filePart: Issue.record("a form is made of whole files")
            case .stream(_, let make): for try await chunk in try make() { bytes += chunk }
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    @Test func `multipart parts are separated by the boundary`() async throws {
        let form = try form {
            try $0.appendPart(form: Data("value".utf8), name: "field")
            try $0.appendPart(data: Data("{}".utf8), name: "file", fileName: "a.json", mimeType: "application/json")
        }
        try await expectEqual(
            wire(form),
            """
            --B\r
            Content-Disposition: form-data; name="field"\r
            \r
            value\r
            --B\r
            Content-Disposition: form-data; name="file"; filename="a.json"\r
            Content-Type: application/json\r
            \r
            {}\r
            --B--\r\n
            """)
        expectEqual(form.contentType, "multipart/form-data; boundary=B")
    }

    @Test func `a multipart part with custom headers has only those headers`() async throws {
        let form = try form {
            $0.appendPart(headers: [.contentLocation: "a\r\nb", .contentType: "x/y"], body: Data("body".utf8))
        }
        try await expectEqual(wire(form), "--B\r\nContent-Location: a  b\r\nContent-Type: x/y\r\n\r\nbody\r\n--B--\r\n")
    }

    @Test(
        arguments: [
            ("plain", "plain", "plain"), ("a\"b", "a%22b", "a%22b"), ("a\r\nb", "a%0D%0Ab", "a%0D%0Ab"),
            ("a\nb", "a%0D%0Ab", "a%0Ab"), ("a\rb", "a%0D%0Ab", "a%0Db"), ("a\r", "a%0D%0A", "a%0D"),
            ("\r\r\n\n", "%0D%0A%0D%0A%0D%0A", "%0D%0D%0A%0A"),
            ("100%22", "100%22", "100%22"), ("ü\\'", "ü\\'", "ü\\'"),
            ("e\u{301}\"\u{301}", "e\u{301}%22\u{301}", "e\u{301}%22\u{301}"),
        ])
    func `names in a multipart form are escaped as browsers do`(text: String, name: String, fileName: String) async throws {
        let form = try form { try $0.appendPart(data: Data(), name: text, fileName: text, mimeType: "a/b") }
        #expect(
            try await wire(form).contains("form-data; name=\"\(name)\"; filename=\"\(fileName)\"\r\nContent-Type: a/b\r\n\r\n"))
    }

    @Test func `no name in a multipart form ends its line, for random bytes`() async throws {
        var draws = SplitMix64(seed: 0)
        for seed in (0..<300).map({ _ in UInt64.random(in: .min ... .max) }) {
            draws = SplitMix64(seed: seed)
            let alphabet: [Unicode.Scalar] = ["\r", "\n", "\"", "a", ";", "\u{301}", "%", "\\"]
            let name = String(String.UnicodeScalarView((0..<8).compactMap { _ in alphabet.randomElement(using: &draws) }))
            let form = try form { try $0.appendPart(form: Data(), name: name) }
            let text = try await wire(form)
            let lines = text.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
            expectEqual(lines.count, 6, "seed \(seed)")
            expectEqual(text.utf8.count { $0 == UInt8(ascii: "\r") }, 5, "seed \(seed)")
            expectEqual(text.utf8.count { $0 == UInt8(ascii: "\"") }, 2, "seed \(seed)")
        }
    }

    @Test func `a NUL in a multipart name and a line break in a content type are refused`() throws {
        var form = try form()
        expectEqual(HTTPSessionError.thrown { try form.appendPart(form: Data(), name: "a\0") }?.code, .invalidRequest)
        let error = HTTPSessionError.thrown {
            try form.appendPart(data: Data(), name: "a", fileName: "b", mimeType: "c/d\r\nX: y")
        }
        expectEqual(error?.code, .invalidRequest)
        #expect(form.isEmpty)
    }

    @Test func `parameters become multipart fields with plain names, before the other parts`() async throws {
        let form = try form { try $0.appendPart(form: Data("last".utf8), name: "z") }
        let request = TransferRequest(url: try #require(URL(string: SerializedRequest.url)), method: .post)
        let serialized = try HTTPRequestSerializer(headerFields: [:]).multipartRequest(
            request, parameters: ["user": ["a b", nil], "bytes": .data(Data("\r\n".utf8))], form: form)
        guard case .multipart(let completeForm) = serialized.body else {
            Issue.record("no form")
            return
        }
        try await expectEqual(
            wire(completeForm),
            """
            --B\r
            Content-Disposition: form-data; name="bytes"\r
            \r
            \r\n\r
            --B\r
            Content-Disposition: form-data; name="user[]"\r
            \r
            a b\r
            --B\r
            Content-Disposition: form-data; name="user[]"\r
            \r
            \r
            --B\r
            Content-Disposition: form-data; name="z"\r
            \r
            last\r
            --B--\r\n
            """)
        expectEqual(serialized.headerFields[.contentType], "multipart/form-data; boundary=B")
        #expect(!serialized.headerFields.contains(.contentLength))
    }

    @Test func `a multipart form without parts leaves the request unchanged`() throws {
        let request = TransferRequest(url: try #require(URL(string: SerializedRequest.url)), method: .post)
        let serialized = try HTTPRequestSerializer(headerFields: [:]).multipartRequest(request, parameters: [:], form: form())
        guard case .none = serialized.body else {
            Issue.record("a body: \(serialized.body)")
            return
        }
        expectEmpty(serialized.headerFields)
        try expectEqual(form().contentLength, 0)
        try expectEmpty(form().segments())
    }

    @Test(arguments: [.get, .head] as [HTTPRequest.Method])
    func `GET and HEAD with a multipart form are refused`(method: HTTPRequest.Method) throws {
        let request = TransferRequest(url: try #require(URL(string: SerializedRequest.url)), method: method)
        let error = HTTPSessionError.thrown {
            try HTTPRequestSerializer(headerFields: [:]).multipartRequest(request, form: form())
        }
        expectEqual(error?.code, .invalidRequest)
    }

    @Test func `the length of a multipart form is known before any part is read`() async throws {
        let stream: BodyStreamFactory = {
            AsyncThrowingStream { continuation in
                continuation.yield(Data("stream".utf8))
                continuation.finish()
            }
        }
        var completeForm = try form {
            try $0.appendPart(form: Data(count: 100_000), name: "large")
            try $0.appendPart(stream: stream, length: 6, name: "s", fileName: "s")
        }
        expectEqual(completeForm.contentLength, Int64(try await wire(completeForm).utf8.count))
        try completeForm.appendPart(stream: stream, length: nil, name: "s", fileName: "s")
        expectNil(completeForm.contentLength)
        expectEqual(
            HTTPSessionError.thrown { try completeForm.appendPart(stream: stream, length: -1, name: "", fileName: "") }?.code,
            .invalidRequest)
    }

    @Test func `the length of a multipart form is unknown if the sum overflows`() throws {
        let form = try form {
            try $0.appendPart(path: "/a", length: .max, name: "a")
            try $0.appendPart(path: "/b", length: .max, name: "b")
        }
        expectNil(form.contentLength)
    }

    @Test func `small multipart parts are joined, large ones and files are separate segments`() throws {
        let form = try form {
            try $0.appendPart(form: Data(count: 10), name: "small")
            try $0.appendPart(form: Data(count: 1_000_000), name: "large")
            try $0.appendPart(path: "/tmp/a.png", length: 7, name: "file")
        }
        let kinds = form.segments().map { segment in
            switch segment {
            case .data(let data): data.count > 1000 ? "large" : "text"
            case .file(let path, let length): "\(path) \(length)"
            case .filePart, .stream: "\(segment)"
            }
        }
        expectEqual(kinds, ["text", "large", "text", "/tmp/a.png 7", "text"])
    }

    @Test(
        arguments: [
            ("/tmp/a.PNG", "a.PNG", "image/png"), ("/tmp/archive.tar.gz", "archive.tar.gz", "application/gzip"),
            ("/tmp/none", "none", MIMEType.unknown), ("/tmp/.hidden", ".hidden", MIMEType.unknown), ("", "", MIMEType.unknown),
        ])
    func `a file's multipart part takes its file name and content type from the path`(
        path: String, fileName: String, type: String
    ) async throws {
        let form = try form { try $0.appendPart(path: path, length: 0, name: "f") }
        #expect(try await wire(form).contains("name=\"f\"; filename=\"\(fileName)\"\r\nContent-Type: \(type)\r\n"))
    }

    @Test(arguments: ["", "a b ", "a\r\nb", "ü", "a\"b", String(repeating: "a", count: 71)])
    func `a multipart boundary that RFC 2046 does not allow is refused`(boundary: String) {
        expectEqual(HTTPSessionError.thrown { try MultipartForm(boundary: boundary) }?.code, .invalidRequest)
    }

    @Test func `a multipart boundary with special characters is quoted, a random one is not`() throws {
        try expectEqual(MultipartForm(boundary: "a b:c").contentType, "multipart/form-data; boundary=\"a b:c\"")
        expectEqual(MultipartForm(random: (1, .max)).boundary, "Boundary-0000000000000001ffffffffffffffff")
        #expect(MultipartForm().boundary != MultipartForm().boundary)
    }

    @Test func `the throttle of a multipart form is limited to valid values`() throws {
        var form = try form()
        expectNil(form.throttle)
        form.throttleBandwidth(packetSize: 16_384, delay: .milliseconds(200))
        expectEqual(form.throttle, .suggestedFor3G)
        form.throttleBandwidth(packetSize: 0, delay: .seconds(-1))
        expectEqual(form.throttle, MultipartForm.Throttle(packetSize: 1, delay: .zero))
    }

    @Test func `a multipart throttle gives a rate in bytes per second`() {
        expectEqual(MultipartForm.Throttle.suggestedFor3G.bytesPerSecond, 81_920)
        expectNil(MultipartForm.Throttle(packetSize: 100, delay: .zero).bytesPerSecond)
        expectEqual(MultipartForm.Throttle(packetSize: 1, delay: .seconds(3600)).bytesPerSecond, 1)
        expectEqual(MultipartForm.Throttle(packetSize: .max, delay: .nanoseconds(1)).bytesPerSecond, 1_000_000_000_000_000_000)
    }
}
