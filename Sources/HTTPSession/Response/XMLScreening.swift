import Foundation
import FoundationXML

/// What a text must be before `XMLDocument` may read it.
///
/// `XMLDocument` on Linux (Swift 6.3) reads the local files that a document's entities name, repairs what is not well formed without a
/// word, and crashes on a text without an element. Needed until it does none of this.
enum XMLScreening {
    /// Elements in each other; libxml2 has the same limit for documents.
    static let maximumDepth = 256

    /// With `nodeLoadExternalEntitiesNever` Foundation sets every parser option but the one that it means.
    static let loadingOptions: XMLNode.Options = [
        .nodeLoadExternalEntitiesNever, .nodeLoadExternalEntitiesAlways, .nodeLoadExternalEntitiesSameOriginOnly,
        .documentXInclude, .documentValidate,
    ]

    /// The document in UTF-8, well formed, with one root and without entities of its own. Its declaration is replaced.
    static func screen(_ data: Data) throws -> Data {
        let text = try utf8(data)
        // Also in a comment, where it would be harmless: nobody has shown that any other rule is safe.
        guard text.firstRange(of: Data("<!ENTITY".utf8)) == nil else {
            throw HTTPSessionError(.cannotDecodeContent, "the XML document declares entities, which are not read")
        }
        let parser = XMLParser(data: text)
        let outline = Outline()
        parser.delegate = outline
        let isParsed = parser.parse()
        guard outline.depthReached <= maximumDepth else {
            throw HTTPSessionError(.cannotDecodeContent, "the XML document is more than \(maximumDepth) elements deep")
        }
        guard isParsed, parser.parserError == nil, outline.isComplete else {
            throw HTTPSessionError(.cannotDecodeContent, "the body is no well-formed XML", underlying: parser.parserError)
        }
        return text
    }

    /// The text in UTF-8, under a declaration that says so: libxml2 knows encodings (UTF-7) in which `<!ENTITY` is spelt differently,
    /// and guesses some by their first bytes. A second declaration is an error to it, wherever it stands.
    private static func utf8(_ data: Data) throws -> Data {
        guard let text = Charset.decode(data, as: try encoding(data)), !text.utf8.contains(0) else {
            throw HTTPSessionError(.cannotDecodeContent, "the XML document is not in the encoding that it names")
        }
        let end = text.hasPrefix("<?xml") ? text.firstRange(of: "?>")?.upperBound : nil
        return Data("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\(text[(end ?? text.startIndex)...])".utf8)
    }

    /// XML 1.0, appendix F, as far as ``Charset`` goes.
    private static func encoding(_ data: Data) throws -> String.Encoding {
        switch Array(data.prefix(2)) {
        case [0xFE, 0xFF], [0xFF, 0xFE]: return .utf16
        case [0x00, 0x3C]: return .utf16BigEndian
        case [0x3C, 0x00]: return .utf16LittleEndian
        default: break
        }
        let beginning = String(decoding: data.prefix(1024), as: UTF8.self)
        guard let match = beginning.firstMatch(of: /^\u{FEFF}?<\?xml[^>]*?\sencoding\s*=\s*["']([^"']*)["']/) else {
            return .utf8
        }
        guard let encoding = Charset.encoding(named: String(match.1)), encoding != .utf16, encoding != .utf32 else {
            throw HTTPSessionError(
                .cannotDecodeContent, "the XML document's encoding \(match.1.prefix(40).debugDescription) is not known")
        }
        return encoding
    }

    /// Counts elements. Stops the parser where they are too deep.
    private final class Outline: NSObject, XMLParserDelegate {
        private var depth = 0
        private var elements = 0
        private(set) var depthReached = 0

        /// Every element has ended, and there was one.
        var isComplete: Bool { depth == 0 && elements > 0 }

        func parser(
            _ parser: XMLParser, didStartElement elementName: String, namespaceURI: String?, qualifiedName qName: String?,
            attributes attributeDict: [String: String]
        ) {
            depth += 1
            elements += 1
            depthReached = max(depthReached, depth)
            if depth > maximumDepth { parser.abortParsing() }
        }

        func parser(_ parser: XMLParser, didEndElement elementName: String, namespaceURI: String?, qualifiedName qName: String?) {
            depth -= 1
        }
    }
}
