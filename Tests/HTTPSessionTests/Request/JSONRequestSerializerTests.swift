import Expectations
import Foundation
import HTTPSession
import HTTPSessionFoundation
import HTTPTypes
import Testing

@Suite struct JSONRequestSerializerTests {
    let serializer = JSONRequestSerializer(base: HTTPRequestSerializer(headerFields: [:]), outputFormatting: [.sortedKeys])

    @Test func `a dictionary of parameters is encoded as a JSON object`() throws {
        let request = try SerializedRequest(.post, parameters: ["key": "value"], by: serializer)
        expectEqual(request.body, #"{"key":"value"}"#)
        expectEqual(request.field(.contentType), "application/json")
    }

    @Test func `an array of parameters is encoded as a JSON array`() throws {
        let request = try SerializedRequest(.post, parameters: [["key": "value"]], by: serializer)
        expectEqual(request.body, #"[{"key":"value"}]"#)
    }

    @Test func `every kind of JSON value is encoded`() throws {
        let parameters: Parameters = [
            "a": true, "b": 1, "c": 1.5, "d": nil, "e": "ü\n\"", "f": [], "g": [:], "h": .unsigned(.max), "i": .integer(.min),
        ]
        let body = try SerializedRequest(.post, parameters: parameters, by: serializer).body
        expectEqual(
            body,
            #"{"a":true,"b":1,"c":1.5,"d":null,"e":"ü\n\"","f":[],"g":{},"h":18446744073709551615,"i":-9223372036854775808}"#
        )
    }

    @Test func `methods without a body encode JSON parameters in the query`() throws {
        let request = try SerializedRequest(.get, parameters: ["key": "value"], by: serializer)
        expectEqual(request.url, "https://example.com/things?key=value")
        expectNil(request.body)
        expectNil(request.field(.contentType))
    }

    @Test func `without parameters a JSON request has no body and no content type`() throws {
        let request = try SerializedRequest(.post, by: serializer)
        expectNil(request.body)
        expectNil(request.field(.contentType))
    }

    @Test func `a Content-Type of the request is not replaced by the JSON serializer`() throws {
        let fields: HTTPFields = [.contentType: "application/vnd.api+json"]
        try expectEqual(
            SerializedRequest(.post, fields: fields, parameters: [:], by: serializer).field(.contentType),
            fields[.contentType])
    }

    @Test(
        arguments: [
            .set(["a"]), ["a": .set([])], ["a": .number(.nan)], ["a": [.number(.infinity)]], ["a": .data(Data())],
            ["a": .date(Date(timeIntervalSince1970: 0))], "fragment", 1, nil,
        ] as [Parameters])
    func `parameters that JSON cannot represent are an error with a reason`(parameters: Parameters) {
        let error = HTTPSessionError.thrown { try SerializedRequest(.post, parameters: parameters, by: serializer) }
        expectEqual(error?.code, .cannotEncodeRequest)
        expectEqual(error?.urlErrorCode, .cannotDecodeContentData)
        expectEqual(error?.reason, "the parameters are not valid JSON")
        expectNil(error?.underlying)
        expectEqual(error?.context.url, SerializedRequest.url)
    }

    @Test func `a lone surrogate in a JSON parameter becomes U+FFFD`() throws {
        let text = String(decoding: [0xD800, 0x61] as [UInt16], as: UTF16.self)
        try expectEqual(
            SerializedRequest(.post, parameters: ["key": .string(text)], by: serializer).body, "{\"key\":\"\u{FFFD}a\"}")
    }

    @Test func `top-level fragments are encoded if the options allow it`() throws {
        let serializer = JSONRequestSerializer(base: HTTPRequestSerializer(headerFields: [:]), allowsFragments: true)
        try expectEqual(SerializedRequest(.post, parameters: "a", by: serializer).body, "\"a\"")
    }

    @Test func `JSON parameters nested deeper than the limit are refused`() {
        var parameters: Parameters = []
        for _ in 0..<5_000 { parameters = [parameters] }
        let error = HTTPSessionError.thrown { try SerializedRequest(.post, parameters: parameters, by: serializer) }
        expectEqual(error?.code, .cannotEncodeRequest)
    }

    @Test func `the header fields of the base serializer are sent`() throws {
        var serializer = serializer
        try serializer.base.setAuthorizationHeaderField(username: "a", password: "b")
        try expectEqual(SerializedRequest(.post, by: serializer).field(.authorization), "Basic YTpi")
    }
}
