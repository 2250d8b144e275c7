import Foundation
import HTTPSession
import HTTPSessionFoundation
import HTTPTypes
import Testing

@Suite struct JSONRequestSerializerTests {
    let serializer = JSONRequestSerializer(base: HTTPRequestSerializer(headerFields: [:]), outputFormatting: [.sortedKeys])

    @Test func `a dictionary of parameters is encoded as a JSON object`() throws {
        let request = try SerializedRequest(.post, parameters: ["key": "value"], by: serializer)
        #expect(request.body == #"{"key":"value"}"#)
        #expect(request.field(.contentType) == "application/json")
    }

    @Test func `an array of parameters is encoded as a JSON array`() throws {
        let request = try SerializedRequest(.post, parameters: [["key": "value"]], by: serializer)
        #expect(request.body == #"[{"key":"value"}]"#)
    }

    @Test func `every kind of JSON value is encoded`() throws {
        let parameters: Parameters = [
            "a": true, "b": 1, "c": 1.5, "d": nil, "e": "ü\n\"", "f": [], "g": [:], "h": .unsigned(.max), "i": .integer(.min),
        ]
        let body = try SerializedRequest(.post, parameters: parameters, by: serializer).body
        #expect(
            body
                == #"{"a":true,"b":1,"c":1.5,"d":null,"e":"ü\n\"","f":[],"g":{},"h":18446744073709551615,"i":-9223372036854775808}"#
        )
    }

    @Test func `methods without a body encode JSON parameters in the query`() throws {
        let request = try SerializedRequest(.get, parameters: ["key": "value"], by: serializer)
        #expect(request.url == "https://example.com/things?key=value")
        #expect(request.body == nil)
        #expect(request.field(.contentType) == nil)
    }

    @Test func `without parameters a JSON request has no body and no content type`() throws {
        let request = try SerializedRequest(.post, by: serializer)
        #expect(request.body == nil)
        #expect(request.field(.contentType) == nil)
    }

    @Test func `a Content-Type of the request is not replaced by the JSON serializer`() throws {
        let fields: HTTPFields = [.contentType: "application/vnd.api+json"]
        #expect(
            try SerializedRequest(.post, fields: fields, parameters: [:], by: serializer).field(.contentType)
                == fields[.contentType])
    }

    @Test(
        arguments: [
            .set(["a"]), ["a": .set([])], ["a": .number(.nan)], ["a": [.number(.infinity)]], ["a": .data(Data())],
            ["a": .date(Date(timeIntervalSince1970: 0))], "fragment", 1, nil,
        ] as [Parameters])
    func `parameters that JSON cannot represent are an error with a reason`(parameters: Parameters) {
        let error = HTTPSessionError.thrown { try SerializedRequest(.post, parameters: parameters, by: serializer) }
        #expect(error?.code == .cannotEncodeRequest)
        #expect(error?.urlErrorCode == .cannotDecodeContentData)
        #expect(error?.reason == "the parameters are not valid JSON")
        #expect(error?.underlying == nil)
        #expect(error?.context.url == SerializedRequest.url)
    }

    @Test func `a lone surrogate in a JSON parameter becomes U+FFFD`() throws {
        let text = String(decoding: [0xD800, 0x61] as [UInt16], as: UTF16.self)
        #expect(
            try SerializedRequest(.post, parameters: ["key": .string(text)], by: serializer).body == "{\"key\":\"\u{FFFD}a\"}")
    }

    @Test func `top-level fragments are encoded if the options allow it`() throws {
        let serializer = JSONRequestSerializer(base: HTTPRequestSerializer(headerFields: [:]), allowsFragments: true)
        #expect(try SerializedRequest(.post, parameters: "a", by: serializer).body == "\"a\"")
    }

    @Test func `JSON parameters nested deeper than the limit are refused`() {
        var parameters: Parameters = []
        for _ in 0..<5_000 { parameters = [parameters] }
        let error = HTTPSessionError.thrown { try SerializedRequest(.post, parameters: parameters, by: serializer) }
        #expect(error?.code == .cannotEncodeRequest)
    }

    @Test func `the header fields of the base serializer are sent`() throws {
        var serializer = serializer
        try serializer.base.setAuthorizationHeaderField(username: "a", password: "b")
        #expect(try SerializedRequest(.post, by: serializer).field(.authorization) == "Basic YTpi")
    }
}
