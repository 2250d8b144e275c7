import Expectations
import Foundation
import FoundationXML
import HTTPSession
import HTTPSessionFoundation
import HTTPTypes
import NetworkLab
import Testing

/// Bodies that are made to exhaust or exploit their parser.
@Suite struct HostileBodyTests {
    private func response(_ body: Data, _ type: String) throws -> TransferResponse {
        TransferResponse(
            head: ResponseHead(HTTPResponse(status: .ok, headerFields: [.contentType: type])),
            url: try #require(URL(string: "https://example.com/")), data: body)
    }

    private func code<Serializer: ResponseSerializer>(
        _ serializer: Serializer, _ text: String, _ type: String
    ) throws -> HTTPSessionError.Code? {
        let response = try response(Data(text.utf8), type)
        return HTTPSessionError.thrown {
            _ = try serializer.serialize(response)
            return nil
        }?.code
    }

    @Test(arguments: [600, 5_000, 100_000]) func `a body nested too deeply is an error in JSON, property lists and XML`(
        _ depth: Int
    ) throws {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            let beginning = String(repeating: open, count: depth)
            for text in [beginning + "1" + String(repeating: close, count: depth), beginning] {
                try expectEqual(code(JSONResponseSerializer(), text, "application/json"), .cannotDecodeContent)
                try expectEqual(code(JSONObjectResponseSerializer(), text, "application/json"), .cannotDecodeContent)
                try expectEqual(
                    code(DecodableResponseSerializer<[String: Int]>(), text, "application/json"), .cannotDecodeContent)
            }
        }
        for (open, close) in [("<array>", "</array>"), ("<dict><key>a</key>", "</dict>")] {
            let beginning = "<plist version=\"1.0\">" + String(repeating: open, count: depth)
            for text in [beginning + "<true/>" + String(repeating: close, count: depth) + "</plist>", beginning] {
                try expectEqual(code(PropertyListResponseSerializer(), text, "application/x-plist"), .cannotDecodeContent)
                let typed = DecodableResponseSerializer<[String: Int]>(decoder: PropertyListDecoder())
                try expectEqual(code(typed, text, "application/x-plist"), .cannotDecodeContent)
            }
        }
        let xml = String(repeating: "<a>", count: depth) + String(repeating: "</a>", count: depth)
        try expectEqual(code(XMLDocumentResponseSerializer(), xml, "text/xml"), .cannotDecodeContent)
    }

    private final class Reader: NSObject, XMLParserDelegate {
        private(set) var text = ""
        func parser(_ parser: XMLParser, foundCharacters string: String) { text += string }
    }

    @Test func `XML entities neither expand without limit nor read files`() throws {
        let folder = try ScratchDirectory()
        try Data("s3cret".utf8).write(to: folder.url("secret"))
        try Data("<!ATTLIST a b CDATA \"s3cret\"><!ENTITY e \"s3cret\">".utf8).write(to: folder.url("dtd"))
        var bomb = "<!DOCTYPE a [<!ENTITY e0 \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\">"
        for number in 1...20 {
            bomb += "<!ENTITY e\(number) \"\(String(repeating: "&e\(number - 1);", count: 10))\">"
        }
        bomb += "]><a>&e20;</a>"
        for text in [
            bomb, "<!DOCTYPE a SYSTEM \"\(folder.file("dtd"))\"><a>&e;</a>",
            "<!DOCTYPE a SYSTEM \"file://\(folder.file("dtd"))\"><a/>",
            "<!DOCTYPE a [<!ENTITY e SYSTEM \"file://\(folder.file("secret"))\">]><a>&e;</a>",
            "<!DOCTYPE a [<!ENTITY % e SYSTEM \"file://\(folder.file("dtd"))\"> %e;]><a>&e;</a>",
            "<a xmlns:xi=\"http://www.w3.org/2001/XInclude\"><xi:include href=\"\(folder.file("secret"))\" parse=\"text\"/></a>",
        ] {
            let response = try response(Data(text.utf8), "application/xml")
            let serializer = XMLDocumentResponseSerializer(options: [.nodeLoadExternalEntitiesAlways, .documentXInclude])
            if let document = try? serializer.serialize(response) { #expect(!document.xmlString.contains("s3cret")) }
            guard let parser = try? XMLParserResponseSerializer().serialize(response) else { continue }
            let reader = Reader()
            parser.delegate = reader
            _ = parser.parse()
            #expect(!reader.text.contains("s3cret") && reader.text.utf8.count < 1 << 20)
        }
    }
}
