import Foundation
import Testing

@testable import HTTPSession

/// RFC 9651 section 4.2: valid fields are read, and invalid ones are ignored.
struct StructuredFieldTests {
    @Test func `items are read without their parameters`() {
        #expect(StructuredField.item("?1") == .boolean(true))
        #expect(StructuredField.item(" ?0 ") == .boolean(false))
        #expect(StructuredField.item("0") == .integer(0))
        #expect(StructuredField.item("-12") == .integer(-12))
        #expect(StructuredField.item("007") == .integer(7))
        #expect(StructuredField.item("999999999999999") == .integer(999_999_999_999_999))
        #expect(StructuredField.item("5;a;b=?0; c=\"x;y\"") == .integer(5))
        for other in ["1.5", "-0.125", "\"a \\\" b\"", "token*/:x", "*a", "@1659578233"] {
            #expect(StructuredField.item(other) == .other, "\(other)")
        }
    }

    @Test func `byte sequences are read with and without padding`() {
        #expect(StructuredField.item(":aGk=:") == .bytes(Data("hi".utf8)))
        #expect(StructuredField.item(":aGk:;a=1") == .bytes(Data("hi".utf8)))
        #expect(StructuredField.item("::") == .bytes(Data()))
    }

    @Test(arguments: [
        "", " ", "?", "?2", "?1 ?1", "?1,", "1, 1", "-", "--1", "+1", "1.", ".5", "1.1234", "1234567890123.0", "1000000000000000",
        "1 2",
        "0x10", "1;", "1;A", "1;a=", "1; =2", "\"a", "\"\\n\"", "\"ä\"", ":aGk=", ":a b:", ":a:", ":aGk=aGk=:", ":=:", ":aG=k:",
        "@", "@1.5", "(1)", "{}", "\t1",
    ]) func `text that breaks a rule is not an item`(_ text: String) {
        #expect(StructuredField.item(text) == nil)
    }

    @Test func `dictionaries are read, and the last value of a repeated key counts`() {
        #expect(StructuredField.dictionary("") == [:])
        #expect(
            StructuredField.dictionary("max-size=100, max-age=5;x,a ,\tb=(1 \"x\";q=1 );z, *c=?0")
                == [
                    "max-size": .integer(100), "max-age": .integer(5), "a": .boolean(true), "b": .other, "*c": .boolean(false),
                ])
        #expect(StructuredField.dictionary("a=1, a=2") == ["a": .integer(2)])
    }

    @Test(arguments: ["a=1,", ",a=1", "A=1", "a=", "a =1", "a=1 b=2", "a=(1", "a=(1,2)", "a=(1\"x\")", "1=a", "a=1;;b"])
    func `text that breaks a rule is not a dictionary`(_ text: String) {
        #expect(StructuredField.dictionary(text) == nil)
    }

    @Test func `an upload limit consists of integers, and unknown keys are ignored`() throws {
        func limit(_ text: String) throws -> UploadLimit? { UploadLimit(try #require(StructuredField.dictionary(text))) }
        #expect(try limit("max-size=100, max-append-size=10, new=?1")?.maximumSize == 100)
        #expect(try limit("max-size=100, max-append-size=10, new=?1")?.maximumAppendSize == 10)
        #expect(try limit("max-age=10")?.maximumSize == nil)
        #expect(try limit("max-append-size=0")?.maximumAppendSize == 1)
        for broken in ["max-size", "max-size=1.5", "max-size=-1", "max-size=5, max-age=\"x\"", "max-size=(1)"] {
            #expect(try limit(broken) == nil, "\(broken)")
        }
    }

    @Test func `several lines of a structured field are joined`() throws {
        let text =
            "HTTP/1.1 200 OK\r\nUpload-Limit: max-size=5\r\nUpload-Offset: 1\r\nUpload-Offset: 1\r\nupload-limit: max-age=6\r\n\r\n"
        let head = try #require(ResponseHead(bytes: Array(text.utf8)))
        #expect(head.structuredDictionary(of: "upload-limit") == ["max-size": .integer(5), "max-age": .integer(6)])
        #expect(head.structuredInteger(of: "upload-offset") == nil)
        #expect(head.plainInteger(of: "upload-offset") == nil)
        #expect(head.structuredInteger(of: "upload-length") == nil)
    }
}
