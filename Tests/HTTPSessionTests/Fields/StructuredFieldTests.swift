import Expectations
import Foundation
import Testing

@testable import HTTPSession

/// RFC 9651 section 4.2: valid fields are read, and invalid ones are ignored.
struct StructuredFieldTests {
    @Test func `items are read without their parameters`() {
        expectEqual(StructuredField.item("?1"), .boolean(true))
        expectEqual(StructuredField.item(" ?0 "), .boolean(false))
        expectEqual(StructuredField.item("0"), .integer(0))
        expectEqual(StructuredField.item("-12"), .integer(-12))
        expectEqual(StructuredField.item("007"), .integer(7))
        expectEqual(StructuredField.item("999999999999999"), .integer(999_999_999_999_999))
        expectEqual(StructuredField.item("5;a;b=?0; c=\"x;y\""), .integer(5))
        for other in ["1.5", "-0.125", "\"a \\\" b\"", "token*/:x", "*a", "@1659578233"] {
            expectEqual(StructuredField.item(other), .other, "\(other)")
        }
    }

    @Test func `byte sequences are read with and without padding`() {
        expectEqual(StructuredField.item(":aGk=:"), .bytes(Data("hi".utf8)))
        expectEqual(StructuredField.item(":aGk:;a=1"), .bytes(Data("hi".utf8)))
        expectEqual(StructuredField.item("::"), .bytes(Data()))
    }

    @Test(arguments: [
        "", " ", "?", "?2", "?1 ?1", "?1,", "1, 1", "-", "--1", "+1", "1.", ".5", "1.1234", "1234567890123.0", "1000000000000000",
        "1 2",
        "0x10", "1;", "1;A", "1;a=", "1; =2", "\"a", "\"\\n\"", "\"ä\"", ":aGk=", ":a b:", ":a:", ":aGk=aGk=:", ":=:", ":aG=k:",
        "@", "@1.5", "(1)", "{}", "\t1",
    ]) func `text that breaks a rule is not an item`(_ text: String) {
        expectNil(StructuredField.item(text))
    }

    @Test func `dictionaries are read, and the last value of a repeated key counts`() {
        expectEqual(StructuredField.dictionary(""), [:])
        expectEqual(
            StructuredField.dictionary("max-size=100, max-age=5;x,a ,\tb=(1 \"x\";q=1 );z, *c=?0"),
            [
                "max-size": .integer(100), "max-age": .integer(5), "a": .boolean(true), "b": .other, "*c": .boolean(false),
            ])
        expectEqual(StructuredField.dictionary("a=1, a=2"), ["a": .integer(2)])
    }

    @Test(arguments: ["a=1,", ",a=1", "A=1", "a=", "a =1", "a=1 b=2", "a=(1", "a=(1,2)", "a=(1\"x\")", "1=a", "a=1;;b"])
    func `text that breaks a rule is not a dictionary`(_ text: String) {
        expectNil(StructuredField.dictionary(text))
    }

    @Test func `an upload limit consists of integers, and unknown keys are ignored`() throws {
        func limit(_ text: String) throws -> UploadLimit? { UploadLimit(try #require(StructuredField.dictionary(text))) }
        try expectEqual(limit("max-size=100, max-append-size=10, new=?1")?.maximumSize, 100)
        try expectEqual(limit("max-size=100, max-append-size=10, new=?1")?.maximumAppendSize, 10)
        try expectNil(limit("max-age=10")?.maximumSize)
        try expectEqual(limit("max-append-size=0")?.maximumAppendSize, 1)
        for broken in ["max-size", "max-size=1.5", "max-size=-1", "max-size=5, max-age=\"x\"", "max-size=(1)"] {
            try expectNil(limit(broken), "\(broken)")
        }
    }

    @Test func `several lines of a structured field are joined`() throws {
        let text =
            "HTTP/1.1 200 OK\r\nUpload-Limit: max-size=5\r\nUpload-Offset: 1\r\nUpload-Offset: 1\r\nupload-limit: max-age=6\r\n\r\n"
        let head = try #require(ResponseHead(bytes: Array(text.utf8)))
        expectEqual(head.structuredDictionary(of: "upload-limit"), ["max-size": .integer(5), "max-age": .integer(6)])
        expectNil(head.structuredInteger(of: "upload-offset"))
        expectNil(head.plainInteger(of: "upload-offset"))
        expectNil(head.structuredInteger(of: "upload-length"))
    }
}
