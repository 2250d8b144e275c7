import Expectations
import Foundation
import HTTPSession
import HTTPSessionFoundation
import HTTPTypes
import Testing

@Suite struct DecodableResponseSerializerTests {
    struct Person: Codable, Equatable {
        var firstName: String
    }

    @Test func `a JSON body is decoded to a Decodable type`() throws {
        let serializer = DecodableResponseSerializer<Person>()
        try expectEqual(serializer.serialize(response(#"{"firstName":"Ada"}"#)), Person(firstName: "Ada"))
    }

    @Test func `a custom decoder is used`() throws {
        let decoder = JSONDecoder()
        decoder.keyDecodingStrategy = .convertFromSnakeCase
        let serializer = DecodableResponseSerializer(of: [Person].self, decoder: decoder)
        try expectEqual(serializer.serialize(response(#"[{"first_name":"Ada"}]"#)), [Person(firstName: "Ada")])
        let list = try PropertyListEncoder().encode(Person(firstName: "Bo"))
        let plist = DecodableResponseSerializer<Person>(decoder: PropertyListDecoder())
        try expectEqual(plist.serialize(response(list)), Person(firstName: "Bo"))
    }

    @Test(arguments: ["{}", #"{"firstName":1}"#, "{invalid}", "[]"])
    func `a body of another shape is an error with the decoder's error as its underlying error`(text: String) {
        let error = HTTPSessionError.thrown { try DecodableResponseSerializer<Person>().serialize(response(text)) }
        expectEqual(error?.code, .cannotDecodeContent)
        #expect(error?.underlying is DecodingError)
        expectEqual(error?.context.responseBody, Data(text.utf8))
    }

    @Test(
        arguments: [(.noContent, .get), (.resetContent, .post), (.ok, .head)] as [(HTTPResponse.Status, HTTPRequest.Method)])
    func `an empty body with 204, 205 or HEAD decodes to the type's empty value`(
        status: HTTPResponse.Status, method: HTTPRequest.Method
    ) throws {
        let empty = response("", status: status, method: method)
        try expectEqual(DecodableResponseSerializer<Empty>().serialize(empty), Empty())
        try expectNil(DecodableResponseSerializer<Person?>().serialize(empty))
        let error = HTTPSessionError.thrown { try DecodableResponseSerializer<Person>().serialize(empty) }
        expectEqual(error?.reason, "the body is empty, and Person has no value for an empty body")
    }

    @Test func `an empty body with another status is an error`() {
        let error = HTTPSessionError.thrown { try DecodableResponseSerializer<Empty>().serialize(response("")) }
        expectEqual(error?.code, .cannotDecodeContent)
        expectEqual(error?.reason, "the body is empty")
    }

    @Test func `the statuses and methods without a body can be chosen`() throws {
        let serializer = DecodableResponseSerializer<Empty>(emptyStatusCodes: [202], emptyMethods: [.delete])
        try expectEqual(serializer.serialize(response("", status: .accepted)), Empty())
        try expectEqual(serializer.serialize(response("", method: .delete)), Empty())
        #expect(HTTPSessionError.thrown { try serializer.serialize(response("", status: .noContent)) } != nil)
    }

    @Test func `a decoded value that is not Sendable can be sent to another task`() async throws {
        final class Node: Decodable {
            var name = ""
        }
        let node = try DecodableResponseSerializer<Node>().serialize(response(#"{"name":"a"}"#))
        await expectEqual(Task { node.name }.value, "a")
    }

    @Test func `a Decodable body nested too deeply is an error, in JSON and property lists`() {
        struct Endless: Decodable {
            init(from decoder: any Decoder) throws {
                var elements = try decoder.unkeyedContainer()
                if !elements.isAtEnd { _ = try elements.decode(Endless.self) }
            }
        }
        let json = String(repeating: "[", count: 100_000) + String(repeating: "]", count: 100_000)
        #expect(HTTPSessionError.thrown { try DecodableResponseSerializer<Endless>().serialize(response(json)) } != nil)
        let list =
            "<plist>" + String(repeating: "<array>", count: 20_000) + String(repeating: "</array>", count: 20_000) + "</plist>"
        let serializer = DecodableResponseSerializer<Endless>(decoder: PropertyListDecoder())
        expectEqual(HTTPSessionError.thrown { try serializer.serialize(response(list)) }?.code, .cannotDecodeContent)
    }
}
