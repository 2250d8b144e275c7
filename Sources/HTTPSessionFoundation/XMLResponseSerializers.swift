public import FoundationXML
public import HTTPSession

/// A serializer that returns an `XMLParser` for an XML body. The parser has not started yet.
///
/// The body is screened first, because FoundationXML on Linux (Swift 6.3) ends the process for some texts. These bodies throw
/// `HTTPSessionError.Code.cannotDecodeContent`: an internal DTD subset, a processing instruction without data, a malformed token or an
/// unknown encoding. So do bodies with more than 256 levels of elements, 1,000 attributes of one element or 10,000,000 bytes. The parser
/// receives the text in UTF-8.
///
/// The parser itself reports other errors (mismatched tags, unknown entities). Check its `parserError` after `parse()`: on
/// Linux `parse()` returns `true` for some texts that are not XML. External entities are not read unless the parser is
/// configured to read them.
public struct XMLParserResponseSerializer: ResponseSerializer {
    /// The conditions for an acceptable response; the default content types are ``contentTypes``.
    public var validation: ResponseValidation

    /// The content types of XML.
    public static let contentTypes: Set<String> = ["application/xml", "text/xml"]

    /// Creates a serializer. By default it accepts statuses 200 to 299.
    public init(validation: ResponseValidation = ResponseValidation(acceptableContentTypes: contentTypes)) {
        self.validation = validation
    }

    /// Creates a parser for the body.
    public func decode(_ response: TransferResponse) throws -> sending XMLParser {
        XMLParser(data: try XMLScreening.parserText(response.data))
    }
}

/// A serializer that decodes an XML body to an `XMLDocument`.
///
/// It is stricter than Foundation on Linux, which reads local files that a document names, and repairs text that is not well
/// formed. The body must be well formed and within the limits of ``XMLParserResponseSerializer``: no internal DTD subset, no
/// processing instruction without data. Its declaration is replaced by one for UTF-8.
///
/// FoundationXML on Linux (Swift 6.3) never frees a document: a program that reads many should use
/// ``XMLParserResponseSerializer``. It also crashes if a program reads `prefix` of an element without one, or `dtd` of a
/// document without a document type.
public struct XMLDocumentResponseSerializer: ResponseSerializer {
    /// The conditions for an acceptable response; the default content types are ``XMLParserResponseSerializer/contentTypes``.
    public var validation: ResponseValidation
    /// The options of `XMLDocument`. Options that load other documents (external entities, XInclude, validation) have no effect.
    public var options: XMLNode.Options

    /// Creates a serializer. By default it accepts statuses 200 to 299.
    public init(
        validation: ResponseValidation = ResponseValidation(acceptableContentTypes: XMLParserResponseSerializer.contentTypes),
        options: XMLNode.Options = []
    ) {
        self.validation = validation
        self.options = options
    }

    /// Decodes the body to a document.
    public func decode(_ response: TransferResponse) throws -> sending XMLDocument {
        let text = try XMLScreening.documentText(response.data)
        return try XMLDocument(data: text, options: options.subtracting(XMLScreening.loadingOptions))
    }
}
