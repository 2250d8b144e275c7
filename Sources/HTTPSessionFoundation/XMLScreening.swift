import Foundation
import FoundationXML
internal import HTTPSession

/// The screening of an XML body before FoundationXML receives it.
///
/// `XMLParser` and `XMLDocument` on Linux (Swift 6.3) crash for some texts (``XMLScanner``). `XMLDocument` also reads the local
/// files that a document's entities name, and silently repairs text that is not well formed. Needed until Foundation fixes
/// these.
enum XMLScreening {
    /// The options that load other documents. With `nodeLoadExternalEntitiesNever`, Foundation sets every parser option except
    /// the intended one.
    static let loadingOptions: XMLNode.Options = [
        .nodeLoadExternalEntitiesNever, .nodeLoadExternalEntitiesAlways, .nodeLoadExternalEntitiesSameOriginOnly,
        .documentXInclude, .documentValidate,
    ]

    /// Returns the text of `data` for an `XMLParser`, in UTF-8 with a new XML declaration. The parser itself detects errors
    /// beyond single tokens: missing and mismatched tags, unknown entities, repeated attributes.
    static func parserText(_ data: Data) throws -> Data { try scanned(data).text }

    /// Returns the text of `data` for an `XMLDocument`: well-formed XML in UTF-8 with a new XML declaration.
    static func documentText(_ data: Data) throws -> Data {
        let (text, isComplete) = try scanned(data)
        guard isComplete else { throw HTTPSessionError(.cannotDecodeContent, "the body is not well-formed XML") }
        let parser = XMLParser(data: text)
        // Without a delegate the parser builds a tree, and reports fewer errors.
        let delegate = IgnoringDelegate()
        parser.delegate = delegate
        let isParsed = withExtendedLifetime(delegate) { parser.parse() }
        guard isParsed, parser.parserError == nil else {
            throw HTTPSessionError(.cannotDecodeContent, "the body is not well-formed XML", underlying: parser.parserError)
        }
        return text
    }

    /// Returns the text in UTF-8, with a declaration of UTF-8. libxml2 knows encodings (UTF-7, EBCDIC) in which `<` is another
    /// byte, and guesses some from the first four bytes. With the declaration, it reads exactly the bytes that were scanned.
    private static func scanned(_ data: Data) throws -> (text: Data, isComplete: Bool) {
        guard let text = try Charset.decode(data, as: try encoding(data)) else {
            throw HTTPSessionError(.cannotDecodeContent, "the XML document is not in the encoding that it names")
        }
        var bytes = Array(text.utf8)
        if startsWithDeclaration(bytes) {
            guard let end = bytes.firstIndex(of: UInt8(ascii: ">")), bytes[end - 1] == UInt8(ascii: "?"),
                !bytes[1..<end].contains(UInt8(ascii: "<"))
            else {
                throw HTTPSessionError(.cannotDecodeContent, "the body is not well-formed XML")
            }
            bytes.removeSubrange(...end)
        }
        var scanner = XMLScanner(bytes)
        try scanner.scan()
        return (Data("<?xml version=\"1.0\" encoding=\"UTF-8\"?>".utf8) + bytes, scanner.isComplete)
    }

    /// Returns whether the text begins with an XML declaration; `<?xml-stylesheet …?>` is a processing instruction.
    private static func startsWithDeclaration(_ bytes: [UInt8]) -> Bool {
        bytes.count > 5 && bytes.starts(with: "<?xml".utf8) && [0x09, 0x0A, 0x0D, 0x20].contains(bytes[5])
    }

    /// Detects the encoding (XML 1.0, appendix F), if ``Charset`` supports it. A byte order mark has priority over the
    /// declaration.
    private static func encoding(_ data: Data) throws -> String.Encoding {
        switch Array(data.prefix(2)) {
        case [0xFE, 0xFF], [0xFF, 0xFE]: return .utf16
        case [0x00, 0x3C]: return .utf16BigEndian
        case [0x3C, 0x00]: return .utf16LittleEndian
        case [0xEF, 0xBB]: return .utf8
        default: break
        }
        let beginning = String(decoding: data.prefix(1024), as: UTF8.self)
        guard let match = beginning.firstMatch(of: /^<\?xml[^>]*?\sencoding\s*=\s*["']([^"']*)["']/) else { return .utf8 }
        guard let encoding = Charset.encoding(named: String(match.1)), encoding != .utf16, encoding != .utf32 else {
            throw HTTPSessionError(
                .cannotDecodeContent, "the XML document's encoding \(match.1.prefix(40).debugDescription) is not known")
        }
        return encoding
    }

    private final class IgnoringDelegate: NSObject, XMLParserDelegate {}
}
