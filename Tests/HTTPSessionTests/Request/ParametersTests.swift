import Expectations
import Foundation
import HTTPSession
import HTTPSessionFoundation
import HTTPTypes
import Testing

@Suite struct ParametersTests {
    @Test func `a dictionary of Swift values becomes parameters of the same kinds`() throws {
        let id = UUID()
        let values: [String: any Sendable] = [
            "text": "a", "part": "abc".dropFirst(), "whole": 1, "byte": UInt8(2), "large": UInt64.max, "half": Float(0.5),
            "yes": true, "bytes": Data([1]), "date": Date(timeIntervalSince1970: 1), "list": [1, 2],
            "mixed": [1, "a"] as [any Sendable],
            "names": Set(["a"]), "inner": ["b": ["c": 3]], "nothing": Int?.none, "something": Int?.some(4), "id": id,
            "url": URL(filePath: "/a"), "money": Decimal(string: "0.10"), "ready": Parameters.string("made"),
        ]
        let expected: Parameters = [
            "text": "a", "part": "bc", "whole": 1, "byte": 2, "large": .unsigned(.max), "half": 0.5, "yes": true,
            "bytes": .data(Data([1])), "date": .date(Date(timeIntervalSince1970: 1)), "list": [1, 2], "mixed": [1, "a"],
            "names": .set(["a"]), "inner": ["b": ["c": 3]], "nothing": nil, "something": 4, "id": .string(id.uuidString),
            "url": "file:///a", "money": "0.1", "ready": "made",
        ]
        try expectEqual(Parameters(values), expected)
    }

    @Test func `a parameter value of an unsupported type is an error that names the type`() {
        let error = HTTPSessionError.thrown { try Parameters(["a": ["b": Refusal()]]) }
        expectEqual(error?.code, .cannotEncodeRequest)
        #expect(error?.reason.contains("Refusal") == true)
    }

    @Test func `parameters from Swift values nested deeper than the limit are refused`() {
        var values: [String: any Sendable] = ["leaf": 1]
        for _ in 0..<2_000 { values = ["deeper": values] }
        let error = HTTPSessionError.thrown { try Parameters(values) }
        expectEqual(error?.reason, "the parameters are nested more than 512 deep")
    }

    @Test func `an Encodable value becomes parameters by its encoder's strategies`() throws {
        struct Person: Encodable {
            var firstName = "Ada"
            var born = Date(timeIntervalSince1970: 0)
            var ids = [1, 2]
            var isKnown = true
            var height = 1.5
        }
        let encoder = JSONEncoder()
        encoder.keyEncodingStrategy = .convertToSnakeCase
        encoder.dateEncodingStrategy = .iso8601
        try expectEqual(
            Parameters(encoding: Person(), encoder: encoder),
            ["first_name": "Ada", "born": "1970-01-01T00:00:00Z", "ids": [1, 2], "is_known": true, "height": 1.5])
    }

    @Test func `integers of an Encodable value stay exact`() throws {
        let numbers = ["a": UInt64.max, "b": UInt64(Int64.max) + 1, "c": 9_007_199_254_740_993]
        try expectEqual(
            Parameters(encoding: numbers).queryString(), "a=18446744073709551615&b=9223372036854775808&c=9007199254740993")
    }

    @Test(arguments: [Double.nan, .infinity, -.infinity, 1e15, -1e12]) func `dates that no format can represent are errors`(
        _ seconds: Double
    ) {
        let parameters: Parameters = ["a": [.date(Date(timeIntervalSince1970: seconds))]]
        let base = HTTPRequestSerializer(headerFields: [:])
        for serializer: any RequestSerializer in [
            base, JSONRequestSerializer(base: base), PropertyListRequestSerializer(base: base),
        ] {
            let error = HTTPSessionError.thrown { try SerializedRequest(.post, parameters: parameters, by: serializer) }
            expectEqual(error?.code, .cannotEncodeRequest)
        }
        #expect(throws: Never.self) { try (["a": .date(.distantPast), "b": .date(.distantFuture)] as Parameters).queryString() }
    }

    @Test func `an Encodable value that JSON cannot represent is an error`() {
        let error = HTTPSessionError.thrown { try Parameters(encoding: ["a": Double.nan]) }
        expectEqual(error?.code, .cannotEncodeRequest)
        #expect(error?.underlying is EncodingError)
    }

    @Test func `the last value of a repeated key in a literal is used`() {
        let parameters: Parameters = ["a": 1, "a": 2]
        expectEqual(parameters, .dictionary(["a": 2]))
    }
}
