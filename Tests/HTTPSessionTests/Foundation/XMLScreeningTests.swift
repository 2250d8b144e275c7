import Expectations
import Foundation
import FoundationXML
import HTTPSession
import HTTPSessionFoundation
import HTTPTypes
import NetworkLab
import Pacing
import Testing

/// XML bodies that crash the process in FoundationXML, and bodies that only look similar.
@Suite struct XMLScreeningTests {
    private static func response(_ body: Data) -> TransferResponse {
        TransferResponse(
            head: ResponseHead(HTTPResponse(status: .ok, headerFields: [.contentType: "application/xml"])),
            url: URL(filePath: "/"), data: body)
    }

    /// Reads the body with both serializers, runs the parser, and returns both errors.
    @discardableResult private static func read(_ body: Data) -> (parser: HTTPSessionError?, document: HTTPSessionError?) {
        let response = response(body)
        let events = EventCounter()
        let parserError = HTTPSessionError.thrown {
            let parser = try XMLParserResponseSerializer().serialize(response)
            parser.delegate = events
            parser.shouldProcessNamespaces = true
            parser.shouldReportNamespacePrefixes = true
            _ = parser.parse()
            return nil
        }
        let documentError = HTTPSessionError.thrown {
            _ = try XMLDocumentResponseSerializer(options: .documentValidate).serialize(response).xmlString.count
            return nil
        }
        return (parserError, documentError)
    }

    private func expectRefusal(_ body: Data, _ reason: String, _ comment: Comment? = nil) {
        let errors = Self.read(body)
        for error in [errors.parser, errors.document] {
            expectEqual(error?.code, .cannotDecodeContent, comment)
            expectEqual(error?.reason, reason, comment)
        }
    }

    private func expectAcceptance(_ text: String) {
        let errors = Self.read(Data(text.utf8))
        #expect(errors.parser == nil && errors.document == nil, "\(text.prefix(200))")
    }

    @Test(arguments: [
        "<?x?><a/>", "<a><?x?></a>", "<a/><?x?>", "<?x ?><a/>", "<?x \n\t?><a/>", "<!DOCTYPE a><?x?><a/>",
        "<!-- --><?x-y.z?><a/>",
        "<a>\u{FEFF}<?x?></a>",
    ]) func `a processing instruction without data is refused before FoundationXML sees it`(_ text: String) {
        expectRefusal(Data(text.utf8), "the XML document has a processing instruction without data, which is not supported")
    }

    @Test(arguments: [
        "<!DOCTYPE r [<!ATTLIST r b ID #IMPLIED>]><r/>", "<!DOCTYPE r [<!NOTATION n SYSTEM \"x\">]><r/>",
        "<!DOCTYPE r [<!NOTATION n SYSTEM \"x\"><!ENTITY u SYSTEM \"x\" NDATA n>]><r/>",
        "<!DOCTYPE r [<!ENTITY e \"v\">]><r>&e;</r>",
        "<!DOCTYPE r [<!ENTITY % p SYSTEM \"x\"> %p;]><r/>", "<!DOCTYPE r[]><r/>", "<!DOCTYPE r SYSTEM \"x\" [ ]><r/>",
        "<!DOCTYPE r PUBLIC \"-//x\" \"y\"[<!ELEMENT r ANY>]><r/>", "<!DOCTYPE[<!ATTLIST r b ID #IMPLIED>]><r/>",
        "<!DOCTYPE r \"[\" [<!ATTLIST r b ID #IMPLIED>]><r/>",
        "<!DOCTYPE r SYSTEM \"\(String(repeating: "x", count: 50_000))[<!ATTLIST r b ID #IMPLIED>]><r/>\"><r/>",
    ]) func `an internal DTD subset is refused before FoundationXML sees it`(_ text: String) {
        expectRefusal(Data(text.utf8), "the XML document has an internal DTD subset, which is not supported")
    }

    @Test(arguments: [
        "<a><!-- <?x?> <!DOCTYPE r [<!ATTLIST r b ID #IMPLIED>]> <!ENTITY --></a>",
        "<!-- <?x?> --><a/><!--<!NOTATION n SYSTEM 'x'>-->",
        "<a><![CDATA[<?x?> <!DOCTYPE r [<!ATTLIST r b ID #IMPLIED>]> ]] > --> <!ENTITY]]></a>", "<a b='?> x?> ]]> -- >'/>",
        "<?xml version='1.0'?><?xml-stylesheet href='a.css'?><a><?php echo 1 > 0?></a><?x y?>", "<a>?></a>", "<!----><a/>",
        "<!DOCTYPE html PUBLIC \"-//W3C//DTD XHTML 1.0 Strict//EN\" \"http://www.w3.org/TR/xhtml1/DTD/xhtml1-strict.dtd\"><html/>",
        "<!DOCTYPE a SYSTEM 'urn:x'><a/>", "<!DOCTYPE a ><a/>", "<ä:ö xmlns:ä='urn:x' ä:ü='&lt;&#60;'><b\n/></ä:ö>\n",
        "<a>]]</a >",
        "\u{FEFF}<?xml version=\"1.0\" encoding=\"utf-8\" standalone=\"yes\"?>\r\n<a/>",
    ]) func `XML comments, CDATA, processing instructions and document types without declarations are accepted`(_ text: String) {
        expectAcceptance(text)
    }

    @Test func `a stylesheet instruction at the beginning is not taken for the XML declaration and is kept`() throws {
        let body = Data("<?xml-stylesheet href=\"a.css\"?><a/>".utf8)
        let document = try XMLDocumentResponseSerializer().serialize(Self.response(body))
        #expect(document.xmlString.contains("<?xml-stylesheet href=\"a.css\"?>"))
    }

    @Test(arguments: [
        "<a", "<a b", "<a b=", "<a b='", "<a b='<'/>", "<a b=''c=''/>", "<!", "<!-", "<!--", "<!-- -- --><a/>", "<!-- --->", "<?",
        "<?x",
        "<?x y", "<?x?y?><a/>", "<? x?><a/>", "<?é<?x?>?><a/>", "<?×<?x?>?><a/>", "<?x <?y?> z?><a/>",
        "<?XML version='1.0'?><a/>",
        "<a><![CDATA[", "<![CDATA[<?x?>]]><a/>", "<a/><![CDATA[<?x?>]]>", "<a><!DOCTYPE r></a>", "<a/><!DOCTYPE r>",
        "<!DOCTYPE r><!DOCTYPE r><a/>", "<!DOCTYPE r SYSTEM \"<?x?>\"><a/>", "<!doctype r><a/>", "<a/>x", "x<a/>", "<a/><b/>",
        "</a>",
        "<a></a", "<a></>", "<1/>", "<a>\u{1}</a>", "<a>\u{0}</a>", "<a>\u{FFFE}</a>", "<!-- \u{FFFF} <?x?> --><a/>",
        "<?xml <a/>", "<?xml ", "<?xml version='1.0'", "<?xml ><a/>",
        "<?xml version='1.0'?><?xml version='1.0'?><a/>", "<a><?xml version='1.0'?></a>", "<!ATTLIST r b ID #IMPLIED><a/>",
    ]) func `text whose tokens are malformed never reaches FoundationXML`(_ text: String) {
        expectRefusal(Data(text.utf8), "the body is not well-formed XML", "\(text)")
    }

    // libxml2 stops inside these tokens, and reads the following bytes as markup.
    @Test func `XML names and documents beyond libxml2's limits are refused, including markup hidden in them`() {
        let name = String(repeating: "p", count: 50_100)
        expectRefusal(Data("<a><?\(name) <?x?> ?></a>".utf8), "the body is not well-formed XML")
        let filler = String(repeating: "x", count: 10_000_100)
        for text in ["<a><!-- \(filler) <?x?> --></a>", "<a><?p \(filler) ?></a>", "<a><![CDATA[\(filler)]]></a>"] {
            expectRefusal(Data(text.utf8), "the XML document has more than 10000000 bytes")
        }
        let attributes = (0..<100_000).map { " a\($0)=''" }.joined()
        expectRefusal(Data("<a\(attributes)/>".utf8), "an element of the XML document has more than 1000 attributes")
        expectAcceptance("<a\((0..<1_000).map { " a\($0)=''" }.joined())/>")
    }

    @Test(
        arguments: [
            ("UTF-16", .utf16), ("UTF-16", .utf16LittleEndian), ("UTF-16", .utf16BigEndian), ("UTF-8", .utf8),
            ("ISO-8859-1", .isoLatin1), ("Shift_JIS", .shiftJIS), ("ISO-2022-JP", .iso2022JP),
        ] as [(String, String.Encoding)])
    func `a processing instruction without data is found in every supported encoding`(name: String, encoding: String.Encoding)
        throws
    {
        let declaration = "<?xml version=\"1.0\" encoding=\"\(name)\"?>"
        let instruction = try #require("\(declaration)<a><?x?></a>".data(using: encoding))
        expectRefusal(instruction, "the XML document has a processing instruction without data, which is not supported")
        let subset = try #require("\(declaration)<!DOCTYPE r [<!ATTLIST r b ID #IMPLIED>]><r/>".data(using: encoding))
        expectRefusal(subset, "the XML document has an internal DTD subset, which is not supported")
    }

    @Test func `encodings that spell markup with other bytes are refused`() {
        let utf7 = "<?xml version=\"1.0\" encoding=\"UTF-7\"?>+ADw-?x?+AD4-<a/>"
        let overlong = Data("<a>".utf8) + Data([0xC0, 0xBC]) + Data("?x?></a>".utf8)
        // "<?xm" and an instruction in code page 037.
        let ebcdic = Data([0x4C, 0x6F, 0xA7, 0x94, 0x93, 0x40, 0x6F, 0x6E, 0x4C, 0x6F, 0xA7, 0x6F, 0x6E, 0x4C, 0x81, 0x61, 0x6E])
        let utf32 = Data("<?x?><a/>".unicodeScalars.flatMap { [0, 0, 0, UInt8($0.value)] })
        let swapped = Data("<?x?><a/>".unicodeScalars.flatMap { [0, UInt8($0.value), 0, 0] })
        let unknown = "<?xml version=\"1.0\" encoding=\"IBM037\"?><a/>"
        let late = "<?xml version=\"1.0\"\(String(repeating: " ", count: 5_000))encoding=\"UTF-7\"?>+ADw-?x?+AD4-<a/>"
        for body in [Data(utf7.utf8), overlong, ebcdic, utf32, swapped, Data(unknown.utf8), Data(late.utf8)] {
            let errors = Self.read(body)
            #expect(errors.parser?.code == .cannotDecodeContent && errors.document?.code == .cannotDecodeContent)
        }
    }

    @Test func `a byte order mark overrides the declared encoding`() throws {
        let body = Data([0xEF, 0xBB, 0xBF]) + Data("<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?><a>ü</a>".utf8)
        let document = try XMLDocumentResponseSerializer().serialize(Self.response(body))
        expectEqual(document.rootElement()?.stringValue, "ü")
    }

    @Test func `XML nested deeper than 256 elements never reaches a parser`() {
        let deep = String(repeating: "<a>", count: 257) + String(repeating: "</a>", count: 257)
        expectRefusal(Data(deep.utf8), "the XML document is more than 256 elements deep")
        expectRefusal(Data(deep.utf8.prefix(257 * 3)), "the XML document is more than 256 elements deep")
    }

    /// `NETWATCH_SEED=N` repeats a seed; `NETWATCH_FUZZ_SECONDS=N` runs longer.
    @Test func `random mutations of XML do not crash the process`() async {
        let environment = ProcessInfo.processInfo.environment
        let seed = environment["NETWATCH_SEED"].flatMap { UInt64($0) } ?? UInt64.random(in: 0...UInt64.max)
        let seconds = environment["NETWATCH_FUZZ_SECONDS"].flatMap { Int($0) } ?? 1
        print("XML mutations: NETWATCH_SEED=\(seed)")
        await #expect(processExitsWith: .success, "NETWATCH_SEED=\(seed)") { [seed = seed as UInt64, seconds = seconds as Int] in
            var mutator = XMLMutator(seed: seed)
            let end = ContinuousClock.now + .seconds(seconds)
            var parsed = 0
            for count in 1... {
                if Self.read(mutator.next()).parser == nil { parsed += 1 }
                guard ContinuousClock.now > end else { continue }
                // If the screening refused most bodies, the run would prove nothing about the parser.
                precondition(
                    parsed * 20 >= count, "\(parsed) of \(count) bodies reached the parser: the mutations are too coarse")
                return
            }
        }
    }
}

/// Receives every event that FoundationXML converts to Swift values.
private final class EventCounter: NSObject, XMLParserDelegate {
    private(set) var count = 0

    func parserDidStartDocument(_ parser: XMLParser) { count += 1 }
    func parserDidEndDocument(_ parser: XMLParser) { count += 1 }
    func parser(_ parser: XMLParser, foundCharacters string: String) { count += string.count }
    func parser(_ parser: XMLParser, foundComment comment: String) { count += comment.count }
    func parser(_ parser: XMLParser, foundCDATA block: Data) { count += block.count }
    func parser(_ parser: XMLParser, foundProcessingInstructionWithTarget target: String, data: String?) { count += target.count }
    func parser(
        _ parser: XMLParser, didStartElement name: String, namespaceURI: String?, qualifiedName: String?,
        attributes: [String: String]
    ) { count += attributes.count }
    func parser(_ parser: XMLParser, didEndElement name: String, namespaceURI: String?, qualifiedName: String?) { count += 1 }
    func parser(_ parser: XMLParser, didStartMappingPrefix prefix: String, toURI namespaceURI: String) { count += 1 }
    func parser(_ parser: XMLParser, didEndMappingPrefix prefix: String) { count += 1 }
}

/// XML texts with random changes: fragments of markup are inserted, bytes are changed, spans are removed or repeated.
private struct XMLMutator {
    private var random: SplitMix64

    private static let documents = [
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?><!-- c --><!DOCTYPE r SYSTEM \"x\"><?p d?><r a=\"1\" b='&amp;'>t<b/>&#x41;</r><!--e-->",
        "<r xmlns=\"urn:a\" xmlns:p=\"urn:b\"><p:q p:a='x'><![CDATA[ <?x?> ]]></p:q><!-- <?x?> -->]]&gt;&e;</r>",
        "<a><b><c><d e='f'/>text</c></b><?p q <r> ?></a>\n", "<!DOCTYPE r PUBLIC '-//x' \"y\"><r>\u{FEFF}ü\u{10FFFF}</r>", "<r/>",
    ]
    private static let fragments = [
        "<?x?>", "<?x ?>", "<?x y?>", "<?", "?>", "<!--", "-->", "--", "<![CDATA[", "]]>", "<!DOCTYPE r [", "<!DOCTYPE r>", "]>",
        "[",
        "<!ATTLIST r b ID #IMPLIED>", "<!NOTATION n SYSTEM \"x\">", "<!ENTITY u SYSTEM \"x\" NDATA n>", "<!ENTITY e \"v\">",
        "<!ENTITY % p \"<!ATTLIST r b ID #IMPLIED>\">", "%p;", "&e;", "&#0;", "&#x110000;", "&", "<", ">", "\"", "'", "</r>",
        "<r>", "/>",
        "</", "<r ", "=", "a='", "xmlns:p='", "xmlns=''", "xml:id='1'", "<?xml version='1.0'?>",
        "<?xml version='1.0' encoding='UTF-16'?>",
        "<?XML?>", "<?xml-model x?>", "<?oasis-xml-catalog catalog='x'?>", "\u{0}", "\u{1}", "\u{FFFE}", "\u{FEFF}", "ü", "×",
        ":", "\r", " ",
        "<xi:include href='/etc/passwd'/>", String(repeating: "n", count: 300), String(repeating: "n", count: 50_100),
    ]

    init(seed: UInt64) { random = SplitMix64(seed: seed) }

    private mutating func pick(_ texts: [String]) -> String { texts[Int.random(in: texts.indices, using: &random)] }

    mutating func next() -> Data {
        var bytes = Array(pick(Self.documents).utf8)
        for _ in 0..<Int.random(in: 0...4, using: &random) {
            let place = Int.random(in: 0...bytes.count, using: &random)
            let end = min(bytes.count, place + Int.random(in: 0...12, using: &random))
            switch Int.random(in: 0..<8, using: &random) {
            case 0...3: bytes.insert(contentsOf: pick(Self.fragments).utf8, at: place)
            case 4: bytes.removeSubrange(place..<end)
            case 5: bytes.insert(contentsOf: bytes[place..<end], at: place)
            case 6 where place < bytes.count: bytes[place] = .random(in: 0...255, using: &random)
            default: bytes.replaceSubrange(place..<end, with: pick(Self.fragments).utf8)
            }
        }
        switch Int.random(in: 0..<10, using: &random) {
        case 0: return String(decoding: bytes, as: UTF8.self).data(using: .utf16) ?? Data()
        case 1: return String(decoding: bytes, as: UTF8.self).data(using: .utf16LittleEndian) ?? Data()
        default: return Data(bytes)
        }
    }
}
