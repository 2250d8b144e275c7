public import FoundationXML
public import HTTPSession

/// A parser for an XML body, which has not begun yet.
///
/// The body is screened first, because FoundationXML on Linux (Swift 6.3) ends the process for some texts. A body with an internal DTD
/// subset, a processing instruction without data, a malformed token, an unknown encoding, more than 256 levels of elements, 1,000 attributes
/// of one element or 10,000,000 bytes throws `HTTPSessionError.Code.cannotDecodeContent`. The parser receives the text in UTF-8.
///
/// Other mistakes (mismatched tags, unknown entities) show when the parser runs. Look at its `parserError` then: on Linux `parse()` is
/// `true` for some texts that are no XML. External entities stay unread unless the parser is told otherwise.
public struct XMLParserResponseSerializer: ResponseSerializer {
    /// What a response must be; by default ``contentTypes``.
    public var validation: ResponseValidation

    /// What servers call XML.
    public static let contentTypes: Set<String> = ["application/xml", "text/xml"]

    /// XML of status 200 to 299, unless told otherwise.
    public init(validation: ResponseValidation = ResponseValidation(acceptableContentTypes: contentTypes)) {
        self.validation = validation
    }

    /// A new parser.
    public func decode(_ response: TransferResponse) throws -> sending XMLParser {
        XMLParser(data: try XMLScreening.parserText(response.data))
    }
}

/// The document of an XML body.
///
/// Stricter than Foundation on Linux, which reads local files that a document names, and repairs text that is not well formed. The body
/// must be well formed, and within the limits of ``XMLParserResponseSerializer``: no internal DTD subset, no processing instruction without
/// data. Its declaration is replaced by one that says UTF-8.
///
/// FoundationXML on Linux (Swift 6.3) never frees a document. A program that reads many takes ``XMLParserResponseSerializer``. It also ends
/// the process when a program reads `prefix` of an element without one, or `dtd` of a document without a document type.
public struct XMLDocumentResponseSerializer: ResponseSerializer {
    /// What a response must be; by default ``XMLParserResponseSerializer/contentTypes``.
    public var validation: ResponseValidation
    /// How the document is read. Options that load other documents (external entities, XInclude, validation) have no effect.
    public var options: XMLNode.Options

    /// XML of status 200 to 299, unless told otherwise.
    public init(
        validation: ResponseValidation = ResponseValidation(acceptableContentTypes: XMLParserResponseSerializer.contentTypes),
        options: XMLNode.Options = []
    ) {
        self.validation = validation
        self.options = options
    }

    /// The document.
    public func decode(_ response: TransferResponse) throws -> sending XMLDocument {
        let text = try XMLScreening.documentText(response.data)
        return try XMLDocument(data: text, options: options.subtracting(XMLScreening.loadingOptions))
    }
}
