import Expectations
import Foundation
import HTTPSession
import HTTPSessionFoundation
import HTTPTypes
import Pacing
import Testing

@Suite struct JSONResponseSerializerTests {
    @Test func `a JSON value is encoded as the JSON that it is, and decoded to itself`() throws {
        let value = try JSONValue(parsing: Data(#"{"a":[1,2.5,"x",null,true],"b":{}}"#.utf8))
        let text = try JSONEncoder().encode(value)
        try expectEqual(JSONValue(parsing: text), value)
        try expectEqual(JSONDecoder().decode(JSONValue.self, from: text), value)
    }

    let serializer = JSONResponseSerializer()
    let json = "application/json"

    @Test(arguments: ["application/json", "text/json", "text/javascript", "application/json; charset=utf-8"])
    func `the content types of JSON that servers use are accepted`(type: String) throws {
        try expectEqual(serializer.serialize(response(#"{"key":"value"}"#, type: type)), ["key": "value"])
    }

    @Test func `JSON with another content type fails as unacceptableContentType`() {
        let error = HTTPSessionError.thrown { try serializer.serialize(response("{}", type: "nonstandard/json")) }
        expectEqual(error?.code, .unacceptableContentType)
    }

    @Test func `a valid JSON body is decoded to its value`() throws {
        let text =
            #" {"a":[1,-0,1.5,true,false,null,"ü\ud83d\ude00"],"b":{},"c":9223372036854775807,"d":18446744073709551615,"e":1e3,"f":"1"} "#
        try expectEqual(
            serializer.serialize(response(text, type: json)),
            [
                "a": [1, 0, 1.5, true, false, nil, "ü😀"], "b": [:], "c": .integer(.max), "d": .number(18_446_744_073_709_551_616),
                "e": .number(1000), "f": "1",
            ])
    }

    @Test(
        arguments: [
            "{invalid}", "{", "[1", "\"", "nul", "[NaN]", "[Infinity]", "[1e400]", "{\"a\" 1}", "{1:2}", "[01]", "[\"\u{1}\"]",
            "  ", "\n",
            "[1]x",
        ])
    func `an invalid JSON body is an error`(text: String) {
        let error = HTTPSessionError.thrown { try serializer.serialize(response(text, type: json)) }
        expectEqual(error?.code, .cannotDecodeContent)
        #expect(error?.reason.hasPrefix("the JSON text ") == true)
        expectEqual(error?.context.responseBody, Data(text.utf8))
    }

    @Test(arguments: [#"["\ud800"]"#, #"["\ud800\u0041"]"#, #"["\udc00"]"#, #"{"\ud800":1}"#])
    func `a lone surrogate in a JSON body is an error`(text: String) {
        expectEqual(HTTPSessionError.thrown { try serializer.serialize(response(text, type: json)) }?.code, .cannotDecodeContent)
        #expect(HTTPSessionError.thrown { try JSONObjectResponseSerializer().serialize(response(text, type: json)) } != nil)
    }

    @Test(arguments: ["", " "]) func `an empty body or a single space decodes to no JSON value, without an error`(text: String)
        throws
    {
        try expectNil(serializer.serialize(response(text, type: json)))
        try expectNil(JSONObjectResponseSerializer().serialize(response(text, type: json)))
        try expectNil(serializer.serialize(response("", type: "text/html", status: .noContent)))
    }

    @Test func `a JSON body can be decoded after an unacceptable status`() throws {
        let failed = response(#"{"error":"gone"}"#, type: json, status: .gone)
        let error = HTTPSessionError.thrown { try serializer.serialize(failed) }
        expectEqual(error?.code, .unacceptableStatus)
        try expectEqual(serializer.decode(failed), ["error": "gone"])
        try expectEqual(JSONValue(parsing: #require(error?.context.responseBody))["error"]?.string, "gone")
    }

    @Test func `a JSON body in UTF-16 or UTF-32 is decoded, with and without a byte order mark`() throws {
        for encoding in [.utf16, .utf16BigEndian, .utf16LittleEndian, .utf32, .utf32BigEndian, .utf32LittleEndian]
            as [String.Encoding]
        {
            let body = try #require(#"{"a":"ü"}"#.data(using: encoding))
            try expectEqual(serializer.serialize(response(body, type: json)), ["a": "ü"])
        }
    }

    @Test(arguments: ["[", "{\"a\":"]) func `a JSON body is accepted up to 512 levels deep and refused beyond`(opening: String)
        throws
    {
        let closing = opening == "[" ? "]" : "}"
        func nested(_ depth: Int) -> String {
            String(repeating: opening, count: depth) + (opening == "[" ? "" : "1") + String(repeating: closing, count: depth)
        }
        var stripping = serializer
        stripping.removesKeysWithNullValues = true
        #expect(try stripping.serialize(response(nested(512), type: json)) != nil)
        for depth in [513, 1_000_000] {
            expectEqual(
                HTTPSessionError.thrown { try stripping.serialize(response(nested(depth), type: json)) }?.code,
                .cannotDecodeContent)
            let objects = JSONObjectResponseSerializer(removesKeysWithNullValues: true)
            expectEqual(
                HTTPSessionError.thrown { try objects.serialize(response(nested(depth), type: json)) }?.code,
                .cannotDecodeContent)
        }
    }

    // MARK: Null values

    @Test(
        arguments: [
            (#"{"a":null,"b":1}"#, ["b": 1]), (#"{"a":{"b":null,"c":[null,{"d":null}]}}"#, ["a": ["c": [[:]]]]),
            (#"[{"a":null,"b":"c"}]"#, [["b": "c"]]), ("[null,null]", []), ("null", nil), (#"{"a":[[null]]}"#, ["a": [[]]]),
        ] as [(String, JSONValue)])
    func `null members and elements of a JSON body are removed at every level`(text: String, expected: JSONValue) throws {
        var stripping = serializer
        stripping.removesKeysWithNullValues = true
        try expectEqual(stripping.serialize(response(text, type: json)), expected)
        let objects = JSONObjectResponseSerializer(readingOptions: .fragmentsAllowed, removesKeysWithNullValues: true)
        let object = try #require(try objects.serialize(response(text, type: json)))
        let written = try JSONSerialization.data(withJSONObject: object, options: .fragmentsAllowed)
        try expectEqual(JSONValue(parsing: written), expected)
    }

    @Test func `null in a JSON body is kept unless it is to be removed`() throws {
        try expectEqual(serializer.serialize(response(#"{"a":null}"#, type: json)), ["a": nil])
        let object = try JSONObjectResponseSerializer().serialize(response(#"{"a":null}"#, type: json)) as? [String: Any]
        #expect(object?["a"] is NSNull)
    }

    @Test func `JSON objects are returned as Any`() async throws {
        let body = response(#"{"a":[1,true]}"#, type: json)
        let object = try JSONObjectResponseSerializer().serialize(body)
        // The value is not Sendable, but may be sent to another task because nothing else references it.
        let count = await Task { ((object as? [String: Any])?["a"] as? [Any])?.count }.value
        expectEqual(count, 2)
    }

    @Test func `the XSSI prefix of a JSON body is removed by a preprocessor`() throws {
        let body = response(")]}',\n{\"a\":1}", type: json)
        expectEqual(HTTPSessionError.thrown { try serializer.serialize(body) }?.code, .cannotDecodeContent)
        var preprocessing = serializer
        preprocessing.preprocessor = .googleXSSI
        try expectEqual(preprocessing.serialize(body), ["a": 1])
        try expectEqual(preprocessing.serialize(response("{\"a\":1}", type: json)), ["a": 1])
        try expectNil(preprocessing.serialize(response(")]}',\n", type: json)))
        preprocessing.preprocessor = DataPreprocessor { _ in throw Refusal() }
        #expect(HTTPSessionError.thrown { try preprocessing.serialize(body) }?.underlying is Refusal)
    }

    @Test func `a copy of a JSON serializer is independent of the original`() {
        var copy = serializer
        copy.removesKeysWithNullValues = true
        copy.validation.acceptableContentTypes = nil
        #expect(!serializer.removesKeysWithNullValues)
        expectEqual(serializer.validation.acceptableContentTypes, JSONResponseSerializer.contentTypes)
    }

    @Test func `JSON values are accessed by name and index`() throws {
        let value = try JSONValue(parsing: Data(#"{"a":[{"b":"c"}]}"#.utf8))
        expectEqual(value["a"]?[0]?["b"]?.string, "c")
        expectNil(value["x"])
        expectNil(value["a"]?[1])
        expectNil(value["a"]?[-1])
        expectNil(value[0])
        expectNil(value.string)
    }

    @Test func `removing null values from random JSON leaves no null`() {
        for seed in (0..<20_000).map({ _ in UInt64.random(in: .min ... .max) }) {
            var draws = SplitMix64(seed: seed)
            let alphabet = [
                "[", "]", "{", "}", ",", ":", "null", "1", "\"a\"", "\"", "\\", "ü", "\u{0}", " ", "true", "-", "1e9",
            ]
            let text = (0..<Int.random(in: 0...12, using: &draws)).compactMap { _ in alphabet.randomElement(using: &draws) }
                .joined()
            guard let value = try? JSONValue(parsing: Data(text.utf8)) else { continue }
            #expect(value == .null || !value.removingNullValues.holdsNull, "seed \(seed): \(text)")
        }
    }
}

extension JSONValue {
    fileprivate var holdsNull: Bool {
        switch self {
        case .null: true
        case .array(let elements): elements.contains(where: \.holdsNull)
        case .object(let members): members.values.contains(where: \.holdsNull)
        default: false
        }
    }
}
