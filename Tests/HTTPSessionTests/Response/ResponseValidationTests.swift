import Expectations
import Foundation
import HTTPSession
import HTTPSessionFoundation
import HTTPTypes
import Pacing
import Testing

@Suite struct ResponseValidationTests {
    let any = HTTPResponseSerializer()
    let text = HTTPResponseSerializer(validation: ResponseValidation(acceptableContentTypes: ["text/*"]))

    @Test(arguments: 200...299)
    func `every status from 200 to 299 is accepted`(code: Int) throws {
        try expectEqual(any.serialize(response("body", type: "text/html", status: .init(code: code))), Data("body".utf8))
    }

    @Test(arguments: 400...599)
    func `every status from 400 to 599 is an error`(code: Int) {
        let error = HTTPSessionError.thrown { try any.serialize(response("", type: "text/html", status: .init(code: code))) }
        expectEqual(error?.code, .unacceptableStatus)
        expectEqual(error?.urlErrorCode, .badServerResponse)
        expectEqual(error?.context.statusCode, code)
    }

    @Test func `a 205 without content type and body is accepted`() throws {
        try expectEmpty(text.serialize(response("", status: .resetContent)))
    }

    @Test func `a 205 with a body and no content type is an error`() {
        let error = HTTPSessionError.thrown { try text.serialize(response("data", status: .resetContent)) }
        expectEqual(error?.code, .unacceptableContentType)
        expectEqual(error?.reason, "unacceptable content type: none")
    }

    @Test func `an unacceptable content type is an error with the response body`() {
        let error = HTTPSessionError.thrown { try text.serialize(response("{}", type: "Application/JSON; charset=utf-8")) }
        expectEqual(error?.code, .unacceptableContentType)
        expectEqual(error?.urlErrorCode, .cannotDecodeContentData)
        expectEqual(error?.reason, "unacceptable content type: application/json")
        expectEqual(error?.context.responseBody, Data("{}".utf8))
        expectNil(error?.underlying)
    }

    @Test func `an unacceptable content type of an empty body is accepted`() throws {
        try expectEmpty(text.serialize(response("", type: "application/json", status: .noContent)))
    }

    @Test func `if status and content type are unacceptable, the status error has the content type error below it`() {
        let error = HTTPSessionError.thrown { try text.serialize(response("{}", type: "application/json", status: .notFound)) }
        expectEqual(error?.code, .unacceptableStatus)
        expectEqual(error?.reason, "unacceptable status: 404 Not Found")
        expectEqual((error?.underlying as? HTTPSessionError)?.code, .unacceptableContentType)
        expectEqual(error?.context.responseBody, Data("{}".utf8))
    }

    @Test func `a validation error has the first 64 KiB of a large response body`() {
        let error = HTTPSessionError.thrown { try any.serialize(response(Data(count: 100_000), status: .badRequest)) }
        expectEqual(error?.context.responseBody?.count, 65_536)
    }

    @Test(
        arguments: [
            ("image/png", ["image/*"], true), ("image/png", ["text/*"], false), ("image/png", ["*/*"], true),
            (nil, ["*/*"], true),
            (nil, ["image/*"], false), ("IMAGE/PNG", ["Image/png"], true), ("image/png;q=1", ["image/png; a=b"], true),
            ("imagex/png", ["image/*"], false), ("nonsense", ["*/*"], true), ("nonsense", ["image/*"], false),
            ("image/png", [], false),
            ("a/b, image/png", ["image/*"], false),
        ] as [(String?, Set<String>, Bool)])
    func `acceptable content types are compared with wildcards`(type: String?, ranges: Set<String>, isAccepted: Bool) {
        let serializer = HTTPResponseSerializer(validation: ResponseValidation(acceptableContentTypes: ranges))
        let error = HTTPSessionError.thrown { try serializer.serialize(response("body", type: type)) }
        expectEqual((error == nil), isAccepted)
    }

    @Test func `without acceptable statuses and content types every response is accepted`() throws {
        let serializer = HTTPResponseSerializer(
            validation: ResponseValidation(acceptableStatusCodes: nil, acceptableContentTypes: nil))
        try expectEqual(serializer.serialize(response("gone", type: "x/y", status: .gone)), Data("gone".utf8))
    }

    @Test func `custom checks run last, and their errors become underlying errors`() throws {
        var serializer = text
        serializer.validation.checks = [
            { if $0.head.headerFields[.eTag] == nil { throw Refusal() } },
            { _ in throw HTTPSessionError(.cancelled, "the second check") },
        ]
        let untyped = HTTPSessionError.thrown { try serializer.serialize(response("a", type: "text/plain")) }
        expectEqual(untyped?.code, .badServerResponse)
        #expect(untyped?.underlying is Refusal)
        let tagged = TransferResponse(
            head: ResponseHead(HTTPResponse(status: .ok, headerFields: [.contentType: "text/plain", .eTag: "\"1\""])),
            url: URL(filePath: "/things"), data: Data("a".utf8))
        expectEqual(HTTPSessionError.thrown { try serializer.serialize(tagged) }?.code, .cancelled)
        expectEqual(
            HTTPSessionError.thrown { try serializer.serialize(response("a", type: "a/b")) }?.code, .unacceptableContentType)
    }

    @Test func `a copy of a validation is independent of the original`() throws {
        var copy = text
        copy.validation.acceptableStatusCodes = [404]
        #expect(HTTPSessionError.thrown { try text.serialize(response("", status: .notFound)) } != nil)
        try expectEmpty(copy.serialize(response("", status: .notFound)))
    }

    @Test func `an error thrown by a response serializer is the underlying error`() {
        struct Failing: ResponseSerializer {
            func decode(_ response: TransferResponse) throws -> sending Int { throw Refusal() }
        }
        let error = HTTPSessionError.thrown { try Failing().serialize(response("body", method: .post)) }
        expectEqual(error?.code, .cannotDecodeContent)
        #expect(error?.underlying is Refusal)
        expectEqual(error?.context.method, "POST")
        expectEqual(error?.context.responseBody, Data("body".utf8))
    }
}

@Suite struct MediaTypeTests {
    @Test(
        arguments: [
            ("text/html", "text/html"), ("TEXT/Html ; Charset=UTF-8", "text/html; charset=UTF-8"),
            ("a/b;c=\"d;\\\"e\";f=g", "a/b; c=\"d;\\\"e\"; f=g"), ("a/b;;c=d;", "a/b; c=d"), ("a/b; c", "a/b"),
            ("a/b; c=\"d", "a/b; c=d"),
            ("a/b; c=1; C=2", "a/b; c=1"), (" a/b\t", "a/b"), ("a/b; =c; d= ; e=f", "a/b; e=f"),
        ])
    func `a media type is parsed with its parameters`(text: String, expected: String) {
        expectEqual(MediaType(text)?.description, expected)
    }

    @Test(arguments: ["", "a", "a/", "/b", "a/b/c", "a b/c", "a/b, c/d", ";a=b", "ü/b"])
    func `an invalid media type is nil`(text: String) {
        expectNil(MediaType(text))
    }

    @Test func `the last of several Content-Type fields is used`() {
        var head = HTTPResponse(status: .ok)
        head.headerFields[values: .contentType] = ["a/b", "c/d"]
        expectEqual(TransferResponse(head: ResponseHead(head), url: URL(filePath: "/")).mediaType?.essence, "c/d")
    }

    @Test func `parsing a media type does not fail on random text`() {
        for seed in (0..<2_000).map({ _ in UInt64.random(in: .min ... .max) }) {
            var draws = SplitMix64(seed: seed)
            let alphabet = Array("ab/;=\"\\ ,\tü")
            let text = String((0..<20).compactMap { _ in alphabet.randomElement(using: &draws) })
            guard let type = MediaType(text) else { continue }
            expectEqual(MediaType(type.description), type, "seed \(seed): \(text)")
        }
    }
}
