import Foundation
import Pacing
import Testing

@testable import HTTPSession

/// The grammar of RFC 8259, case by case. The cases follow those of Nicolas Seriot's "Parsing JSON is a minefield" (2018).
@Suite struct JSONParserTests {
    private func parse(_ text: String) throws -> JSONValue { try JSONValue(parsing: Data(text.utf8)) }

    /// RFC 8259 section 13.
    @Test func `the examples of RFC 8259 are parsed`() throws {
        let image = """
            {
              "Image": {
                  "Width":  800,
                  "Height": 600,
                  "Title":  "View from 15th Floor",
                  "Thumbnail": {
                      "Url":    "http://www.example.com/image/481989943",
                      "Height": 125,
                      "Width":  100
                  },
                  "Animated" : false,
                  "IDs": [116, 943, 234, 38793]
                }
            }
            """
        #expect(
            try parse(image) == [
                "Image": [
                    "Width": 800, "Height": 600, "Title": "View from 15th Floor",
                    "Thumbnail": ["Url": "http://www.example.com/image/481989943", "Height": 125, "Width": 100],
                    "Animated": false, "IDs": [116, 943, 234, 38793],
                ]
            ])
        let places = """
            [
              {"precision": "zip", "Latitude":  37.7668, "Longitude": -122.3959, "Address": "", "City": "SAN FRANCISCO"},
              {"precision": "zip", "Latitude":  37.371991, "Longitude": -122.026020}
            ]
            """
        #expect(try parse(places)[0]?["Longitude"] == -122.3959)
        #expect(try parse(places)[1]?["Latitude"] == 37.371991)
        #expect(try parse(#""Hello world!""#) == "Hello world!")
        #expect(try parse("42") == 42)
        #expect(try parse("true") == true)
    }

    @Test(
        arguments: [
            // Structures.
            ("[]", []), ("[ ]", []), ("[[]]", [[]]), ("{}", [:]), ("[\n1\t,\r2 ]", [1, 2]), ("\t\r\n 1 \n", 1),
            (#"{"":0}"#, ["": 0]),
            (#"{"a":1,"a":2}"#, ["a": 2]), (#"{"a\u0000b":1}"#, ["a\0b": 1]), ("null", nil), ("[null, 1]", [nil, 1]),
            // Numbers.
            ("0", 0), ("-0", 0), ("-1", -1), ("9223372036854775807", .integer(.max)), ("-9223372036854775808", .integer(.min)),
            ("9223372036854775808", .number(9_223_372_036_854_775_808)),
            ("-9223372036854775809", .number(-9_223_372_036_854_775_808)),
            ("18446744073709551616", .number(18_446_744_073_709_551_616)), ("1.5", 1.5), ("-0.0", .number(0)),
            ("1E5", .number(100_000)),
            ("1e+2", .number(100)), ("1e-2", 0.01), ("1.7976931348623157e308", .number(.greatestFiniteMagnitude)),
            ("123e65", .number(123e65)), ("0e1", .number(0)), ("1e-400", .number(0)),
            ("4.9e-324", .number(.leastNonzeroMagnitude)),
            ("0.10000000000000000000000000000000000000001", 0.1),
            // Strings.
            (#""\"\\\/\b\f\n\r\t""#, "\"\\/\u{8}\u{C}\n\r\t"), (#""\u0041\u00e9\u00E9\uD83D\ude00""#, "Aéé😀"),
            (#""a\u0300""#, "à"),
            ("\"\u{7F}\u{2028}\u{2029}\"", "\u{7F}\u{2028}\u{2029}"), (#""\u0000""#, "\0"),
            (#""\uE000\uFFFD""#, "\u{E000}\u{FFFD}"),
            (#""\\u0041""#, "\\u0041"), ("\"ü€😀\"", "ü€😀"), (#""""#, ""), (#""//""#, "//"),
        ] as [(String, JSONValue)])
    func `valid JSON is parsed to its value`(text: String, expected: JSONValue) throws {
        #expect(try parse(text) == expected)
    }

    @Test(
        arguments: [
            // Structures.
            "", " ", "[", "]", "[1", "[1,", "[,1]", "[1,]", "[1,,2]", "[1 2]", "[1]]", "[1]x", "{", "{}}", "{,}", #"{"a"}"#,
            #"{"a":}"#,
            #"{"a":1,}"#, #"{"a":1"#, #"{"a" 1}"#, "{1:1}", "{a:1}", "{'a':1}", #"{"a":1 "b":2}"#, #"{"a":1}/**/"#, "[1]//", "#",
            "/**/1",
            "[\u{B}1]", "[\u{A0}1]", "[\u{FEFF}]", "[1\u{0}]",
            // Literals.
            "nul", "nulll", "NULL", "True", "tru", "fals", "undefined", "[nu]",
            // Numbers.
            "+1", "-", "--1", "01", "-01", "1.", ".5", "-.5", "1.e1", "1e", "1e+", "1E-", "0x1", "1_0", "1e1.5", "NaN", "-NaN",
            "Infinity",
            "-Infinity", "1e400", "-1e400", "１", "1 000", "0b1", "1a", "[1.2.3]", "2.", "012", "0e", "0.e1", "1ee2",
            // Strings.
            "\"", "\"a", "\"\\\"", "\"\\", "\"\\a\"", "\"\\x41\"", "\"\\u\"", "\"\\u12\"", "\"\\u123g\"", "\"\\u+123\"",
            "\"\\U0041\"",
            "\"\n\"", "\"\t\"", "\"\u{0}\"", "\"\u{1F}\"", "'a'", #""\ud800""#, #""\ud800a""#, #""\ud800\n""#, #""\ud800\u0041""#,
            #""\ud800\ud800""#, #""\udc00""#, #""\udc00\ud800""#, #""\ud83d\ude0""#, #"["a\"#, "\"a\\\n\"", "\\u0041", "abc\"",
        ])
    func `invalid JSON is an error with its position`(text: String) {
        let error = HTTPSessionError.thrown { try parse(text) }
        #expect(error?.code == .cannotDecodeContent)
        #expect(error?.reason.hasPrefix("the JSON text ") == true)
    }

    @Test(
        arguments: [
            ([0x22, 0xFF, 0x22], "the JSON text has bytes that are not valid characters, before byte 3"),
            ([0x22, 0xC3, 0x22], "the JSON text has bytes that are not valid characters, before byte 3"),
            ([0x22, 0xED, 0xA0, 0x80, 0x22], "the JSON text has bytes that are not valid characters, before byte 5"),
            ([0x22, 0xC0, 0x80, 0x22], "the JSON text has bytes that are not valid characters, before byte 4"),
            ([0x5B, 0xFF, 0x5D], "the JSON text has an unexpected character at byte 1"),
            ([0xFE, 0xFF, 0x00], "the JSON text has bytes that are not valid characters"),
            ([0xEF, 0xBB, 0xBF], "the JSON text ends too early"),
            ([0x5B, 0x31, 0x2C], "the JSON text ends too early"),
        ] as [([UInt8], String)])
    func `a JSON error states the position of the fault`(bytes: [UInt8], reason: String) {
        #expect(HTTPSessionError.thrown { try JSONValue(parsing: Data(bytes)) }?.reason == reason)
    }

    @Test func `a JSON name with a long run of combining characters is an error and takes no long time`() throws {
        let marks = String(repeating: "\u{301}", count: 256)
        #expect(try parse("{\"a\(marks)b\(marks)\":1}")["a\(marks)b\(marks)"] == 1)
        #expect(HTTPSessionError.thrown { try parse("{\"a\(marks)\u{301}\":1}") }?.code == .cannotDecodeContent)
    }

    @Test func `a slice of data is parsed like data`() throws {
        let data = Data("xx[1]".utf8)
        #expect(try JSONValue(parsing: data.dropFirst(2)) == [1])
        #expect(try JSONValue(parsing: Data([0xEF, 0xBB, 0xBF]) + data.dropFirst(2)) == [1])
    }

    /// Random texts, made of pieces of JSON or of changed bytes in a valid text. `JSONSerialization` is the reference.
    /// The test leaves out commas before a closing bracket, which it accepts (Swift 6.3), and zero bytes, from which it guesses
    /// encodings. The last digits of long numbers are not compared.
    @Test func `the JSON parser accepts the same texts as JSONSerialization, with the same values`() {
        for seed in (0..<20_000).map({ _ in UInt64.random(in: .min ... .max) }) {
            var draws = SplitMix64(seed: seed)
            let bytes = Bool.random(using: &draws) ? Self.pieces(&draws) : Self.changed(&draws)
            let hasTrailingComma = String(decoding: bytes, as: UTF8.self).contains(/,\s*[\]}]/)
            guard !bytes.contains(0), !hasTrailingComma else { continue }
            let ours = (try? JSONValue(parsing: Data(bytes)))?.roundingLongNumbers
            let theirs = (try? JSONSerialization.jsonObject(with: Data(bytes), options: .fragmentsAllowed))
                .map(JSONValue.init(oracle:))?.roundingLongNumbers
            #expect(ours == theirs, "seed \(seed): \(String(decoding: bytes, as: UTF8.self).debugDescription)")
        }
    }

    private static func pieces(_ draws: inout SplitMix64) -> [UInt8] {
        let alphabet = [
            "[", "]", "{", "}", ",", ":", "null", "true", "false", "1", "-", "0", ".", "5", "e", "E", "+", "\"a\"", "\"b\":",
            "\"", "\\",
            "\\u00e9", "\\ud83d\\ude00", "\\ud800", "\\n", "ü", " ", "\n", "\u{0}", "12345678901234567890", "\"\\u0000\"",
        ]
        let text = (0..<Int.random(in: 1...10, using: &draws)).map { _ in alphabet.randomElement(using: &draws) ?? "" }.joined()
        return Array((Bool.random(using: &draws) ? "[\(text)]" : text).utf8)
    }

    private static func changed(_ draws: inout SplitMix64) -> [UInt8] {
        var bytes = Array(#"{"a":[1,-2.5e3,true,null,"\u00fc\n\ud83d\ude00ü"],"b":{"c":"d"},"e":12345678901234567890}"#.utf8)
        for _ in 0..<Int.random(in: 0...3, using: &draws) {
            let place = Int.random(in: bytes.indices, using: &draws)
            switch Int.random(in: 0...3, using: &draws) {
            case 0: bytes[place] = UInt8.random(in: 0...255, using: &draws)
            case 1: bytes.remove(at: place)
            case 2: bytes.insert(bytes.randomElement(using: &draws) ?? 0, at: place)
            default: bytes.removeSubrange(place...)
            }
            if bytes.isEmpty { return bytes }
        }
        return bytes
    }
}

extension JSONValue {
    /// The value with numbers of more than 15 digits rounded to 15 digits.
    fileprivate var roundingLongNumbers: JSONValue {
        switch self {
        case .array(let elements): .array(elements.map(\.roundingLongNumbers))
        case .object(let members): .object(members.mapValues(\.roundingLongNumbers))
        case .integer(let value) where value.magnitude >= 1_000_000_000_000_000: .string(String(format: "%.12e", Double(value)))
        case .number(let value): .string(String(format: "%.12e", value))
        default: self
        }
    }

    /// The value of an object that `JSONSerialization` made.
    fileprivate init(oracle object: Any) {
        switch object {
        case let value as String: self = .string(value)
        case let elements as [Any]: self = .array(elements.map(JSONValue.init(oracle:)))
        case let members as [String: Any]: self = .object(members.mapValues(JSONValue.init(oracle:)))
        case let number as NSNumber:
            switch String(cString: number.objCType) {
            case "c", "B": self = .bool(number.boolValue)
            case "d", "f": self = .number(number.doubleValue)
            default: self = Int64(exactly: number).map(JSONValue.integer) ?? .number(number.doubleValue)
            }
        default: self = .null
        }
    }
}
