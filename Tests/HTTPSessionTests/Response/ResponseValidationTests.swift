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
        #expect(try any.serialize(response("body", type: "text/html", status: .init(code: code))) == Data("body".utf8))
    }

    @Test(arguments: 400...599)
    func `every status from 400 to 599 is an error`(code: Int) {
        let error = HTTPSessionError.thrown { try any.serialize(response("", type: "text/html", status: .init(code: code))) }
        #expect(error?.code == .unacceptableStatus)
        #expect(error?.urlErrorCode == .badServerResponse)
        #expect(error?.context.statusCode == code)
    }

    @Test func `205 without type and body is accepted`() throws {
        #expect(try text.serialize(response("", status: .resetContent)).isEmpty)
    }

    @Test func `205 without type but with a body is an error`() {
        let error = HTTPSessionError.thrown { try text.serialize(response("data", status: .resetContent)) }
        #expect(error?.code == .unacceptableContentType)
        #expect(error?.reason == "unacceptable content type: none")
    }

    @Test func `an unacceptable type is an error with the body beside it`() {
        let error = HTTPSessionError.thrown { try text.serialize(response("{}", type: "Application/JSON; charset=utf-8")) }
        #expect(error?.code == .unacceptableContentType)
        #expect(error?.urlErrorCode == .cannotDecodeContentData)
        #expect(error?.reason == "unacceptable content type: application/json")
        #expect(error?.context.responseBody == Data("{}".utf8))
        #expect(error?.underlying == nil)
    }

    @Test func `an unacceptable type of an empty body is accepted`() throws {
        #expect(try text.serialize(response("", type: "application/json", status: .noContent)).isEmpty)
    }

    @Test func `with status and type wrong, the type's error stands below the status's`() {
        let error = HTTPSessionError.thrown { try text.serialize(response("{}", type: "application/json", status: .notFound)) }
        #expect(error?.code == .unacceptableStatus)
        #expect(error?.reason == "unacceptable status: 404 Not Found")
        #expect((error?.underlying as? HTTPSessionError)?.code == .unacceptableContentType)
        #expect(error?.context.responseBody == Data("{}".utf8))
    }

    @Test func `of a large body the first 64 KiB stay beside the error`() {
        let error = HTTPSessionError.thrown { try any.serialize(response(Data(count: 100_000), status: .badRequest)) }
        #expect(error?.context.responseBody?.count == 65_536)
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
    func `types are compared with wildcards`(type: String?, ranges: Set<String>, isAccepted: Bool) {
        let serializer = HTTPResponseSerializer(validation: ResponseValidation(acceptableContentTypes: ranges))
        let error = HTTPSessionError.thrown { try serializer.serialize(response("body", type: type)) }
        #expect((error == nil) == isAccepted)
    }

    @Test func `every status and every type are accepted when nothing is asked`() throws {
        let serializer = HTTPResponseSerializer(
            validation: ResponseValidation(acceptableStatusCodes: nil, acceptableContentTypes: nil))
        #expect(try serializer.serialize(response("gone", type: "x/y", status: .gone)) == Data("gone".utf8))
    }

    @Test func `checks of one's own come last, and their errors stand below ours`() throws {
        var serializer = text
        serializer.validation.checks = [
            { if $0.head.headerFields[.eTag] == nil { throw Refusal() } },
            { _ in throw HTTPSessionError(.cancelled, "the second check") },
        ]
        let untyped = HTTPSessionError.thrown { try serializer.serialize(response("a", type: "text/plain")) }
        #expect(untyped?.code == .badServerResponse)
        #expect(untyped?.underlying is Refusal)
        let tagged = TransferResponse(
            head: ResponseHead(HTTPResponse(status: .ok, headerFields: [.contentType: "text/plain", .eTag: "\"1\""])),
            url: URL(filePath: "/things"), data: Data("a".utf8))
        #expect(HTTPSessionError.thrown { try serializer.serialize(tagged) }?.code == .cancelled)
        #expect(
            HTTPSessionError.thrown { try serializer.serialize(response("a", type: "a/b")) }?.code == .unacceptableContentType)
    }

    @Test func `a copy is independent of what it was copied from`() throws {
        var copy = text
        copy.validation.acceptableStatusCodes = [404]
        #expect(HTTPSessionError.thrown { try text.serialize(response("", status: .notFound)) } != nil)
        #expect(try copy.serialize(response("", status: .notFound)).isEmpty)
    }

    @Test func `a serializer that throws an error of its own stands below ours`() {
        struct Failing: ResponseSerializer {
            func decode(_ response: TransferResponse) throws -> sending Int { throw Refusal() }
        }
        let error = HTTPSessionError.thrown { try Failing().serialize(response("body", method: .post)) }
        #expect(error?.code == .cannotDecodeContent)
        #expect(error?.underlying is Refusal)
        #expect(error?.context.method == "POST")
        #expect(error?.context.responseBody == Data("body".utf8))
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
    func `a type is read with its parameters`(text: String, expected: String) {
        #expect(MediaType(text)?.description == expected)
    }

    @Test(arguments: ["", "a", "a/", "/b", "a/b/c", "a b/c", "a/b, c/d", ";a=b", "ü/b"])
    func `what is no type is nil`(text: String) {
        #expect(MediaType(text) == nil)
    }

    @Test func `of several fields the last counts`() {
        var head = HTTPResponse(status: .ok)
        head.headerFields[values: .contentType] = ["a/b", "c/d"]
        #expect(TransferResponse(head: ResponseHead(head), url: URL(filePath: "/")).mediaType?.essence == "c/d")
    }

    @Test func `reading never fails on any bytes`() {
        for seed in (0..<2_000).map({ _ in UInt64.random(in: .min ... .max) }) {
            var draws = SplitMix64(seed: seed)
            let alphabet = Array("ab/;=\"\\ ,\tü")
            let text = String((0..<20).compactMap { _ in alphabet.randomElement(using: &draws) })
            guard let type = MediaType(text) else { continue }
            #expect(MediaType(type.description) == type, "seed \(seed): \(text)")
        }
    }
}
