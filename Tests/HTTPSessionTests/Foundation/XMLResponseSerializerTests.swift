import Expectations
import Foundation
import FoundationXML
import HTTPSession
import HTTPSessionFoundation
import HTTPTypes
import Testing

@Suite struct XMLResponseSerializerTests {
    let parsing = XMLParserResponseSerializer()
    let document = XMLDocumentResponseSerializer()
    let xml = "<?xml version=\"1.0\" encoding=\"utf-8\"?><foo>bar</foo>"

    @Test(arguments: ["application/xml", "text/xml"]) func `an XML response becomes a parser that has not started`(type: String)
        throws
    {
        let parser = try parsing.serialize(response(xml, type: type))
        #expect(parser.lineNumber <= 1)
        #expect(parser.parse())
        expectNil(parser.parserError)
    }

    @Test(arguments: ["application/xml", "text/xml"]) func `an XML response becomes a document`(type: String) throws {
        let document = try document.serialize(response(xml, type: type))
        expectEqual(document.rootElement()?.name, "foo")
        expectEqual(document.rootElement()?.stringValue, "bar")
    }

    @Test func `XML with another content type fails as unacceptableContentType`() {
        let sample = response(xml, type: "nonstandard/xml")
        expectEqual(HTTPSessionError.thrown { try parsing.serialize(sample) }?.code, .unacceptableContentType)
        expectEqual(HTTPSessionError.thrown { try document.serialize(sample) }?.code, .unacceptableContentType)
    }

    @Test(
        arguments: [
            "", " ", "text", "<foo", "<a><b></a>", "<a><b></b>", "<a/><b/>", "<a/>x", "x<a/>", "<a>&none;</a>", "<a b=c/>",
            "<a>\u{1}</a>",
            "<!-- a -->", "<?xml version=\"1.0\"?>", "{}", "\u{0}<a/>",
        ])
    func `a body that is not well-formed XML is an error`(text: String) {
        let error = HTTPSessionError.thrown { try document.serialize(response(text, type: "text/xml")) }
        // The validation accepts any content type of an empty body, but an empty body is not a document.
        expectEqual(error?.code, .cannotDecodeContent)
    }

    @Test func `an XML parser reports an error for malformed XML`() throws {
        let parser = try parsing.serialize(response("<a><b></a>", type: "text/xml"))
        // On Linux `parse()` returns true; only `parserError` shows the failure.
        _ = parser.parse()
        #expect(parser.parserError != nil)
    }

    @Test func `an XML document reads no local file through entities or a DTD`() async throws {
        let secret = FileManager.default.temporaryDirectory.appending(path: "secret-\(UUID().uuidString)")
        try Data("secret".utf8).write(to: secret)
        defer { try? FileManager.default.removeItem(at: secret) }
        let entity = "<!ENTITY x SYSTEM \"\(secret.absoluteString)\">"
        let utf16 = try #require("<!DOCTYPE r [\(entity)]><r>&x;</r>".data(using: .utf16))
        let hidden =
            "+ADw-!DOCTYPE r [+ADw-!ENTITY x SYSTEM +ACI-\(secret.absoluteString)+ACI-+AD4-]+AD4-+ADw-r+AD4-+ACY-x+ADs-+ADw-/r+AD4-"
        let declaration = "<?xml version=\"1.0\" encoding=\"UTF-7\"?>"
        let distant = declaration.replacing(" encoding", with: String(repeating: " ", count: 5_000) + "encoding")
        let dtd = FileManager.default.temporaryDirectory.appending(path: "secret-\(UUID().uuidString).dtd")
        try Data("<!ENTITY x \"secret\">".utf8).write(to: dtd)
        defer { try? FileManager.default.removeItem(at: dtd) }
        let samples: [Data] = [
            Data("<!DOCTYPE r [\(entity)]><r>&x;</r>".utf8), utf16, Data((declaration + hidden).utf8),
            Data((distant + hidden).utf8), Data(("<?xml version=\"1.0\"?>" + declaration + hidden).utf8),
            Data("<!DOCTYPE r SYSTEM \"\(dtd.absoluteString)\"><r>&x;</r>".utf8),
            Data("<!DOCTYPE r [<!ENTITY % x SYSTEM \"\(dtd.absoluteString)\">%x;]><r>&x;</r>".utf8),
        ]
        for options in [[], .nodeLoadExternalEntitiesAlways, .nodeLoadExternalEntitiesNever] as [XMLNode.Options] {
            let serializer = XMLDocumentResponseSerializer(options: options)
            for sample in samples {
                let text = try? serializer.serialize(response(sample, type: "text/xml")).rootElement()?.stringValue
                #expect(text?.contains("secret") != true)
            }
        }
        let distantSubset = Data("<!DOCTYPE r SYSTEM \"\(dtd.absoluteString)\"><r>a&x;</r>".utf8)
        let parser = try parsing.serialize(response(distantSubset, type: "text/xml"))
        let collector = TextCollector()
        parser.delegate = collector
        _ = parser.parse()
        expectEqual(collector.text, "a")
    }

    @Test func `an XML document type without entities is accepted`() throws {
        let text = "<?xml version=\"1.0\"?><!DOCTYPE r SYSTEM \"file:///nonexistent.dtd\"><r>a&amp;b</r>"
        try expectEqual(document.serialize(response(text, type: "text/xml")).rootElement()?.stringValue, "a&b")
    }

    @Test(arguments: [.isoLatin1, .utf16, .utf16LittleEndian, .utf16BigEndian, .utf8] as [String.Encoding])
    func `the encoding of an XML document is detected from its first bytes`(encoding: String.Encoding) throws {
        let name = encoding == .isoLatin1 ? "ISO-8859-1" : encoding == .utf8 ? "UTF-8" : "UTF-16"
        let body = try #require("<?xml version=\"1.0\" encoding=\"\(name)\"?><a>ü</a>".data(using: encoding))
        try expectEqual(document.serialize(response(body, type: "text/xml")).rootElement()?.stringValue, "ü")
    }

    @Test func `XML elements are accepted up to 256 levels deep and refused beyond`() throws {
        func nested(_ depth: Int) -> String { String(repeating: "<a>", count: depth) + String(repeating: "</a>", count: depth) }
        try expectEqual(document.serialize(response(nested(250), type: "text/xml")).rootElement()?.childCount, 1)
        for depth in [257, 100_000] {
            let error = HTTPSessionError.thrown { try document.serialize(response(nested(depth), type: "text/xml")) }
            expectEqual(error?.reason, "the XML document is more than 256 elements deep")
        }
    }

    @Test func `a copy of an XML serializer is independent of the original`() {
        var copy = document
        copy.options = .nodePreserveWhitespace
        #expect(document.options.isEmpty)
    }
}

/// Collects the text between the tags.
private final class TextCollector: NSObject, XMLParserDelegate {
    private(set) var text = ""

    func parser(_ parser: XMLParser, foundCharacters string: String) { text += string }
}
