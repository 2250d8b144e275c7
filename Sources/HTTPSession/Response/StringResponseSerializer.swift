public import FoundationEssentials

/// A serializer that decodes the body as text.
public struct StringResponseSerializer: ResponseSerializer {
    /// The checks before the body is decoded.
    public var validation: ResponseValidation
    /// The encoding of the body; `nil` for the charset of `Content-Type`, and UTF-8 if it has none.
    public var encoding: String.Encoding?
    /// The transformation of the body before it is decoded.
    public var preprocessor: DataPreprocessor

    /// Creates a serializer. By default it uses the server's charset, and accepts status 200 to 299 and any content type.
    public init(
        encoding: String.Encoding? = nil, validation: ResponseValidation = ResponseValidation(),
        preprocessor: DataPreprocessor = .passthrough
    ) {
        self.encoding = encoding
        self.validation = validation
        self.preprocessor = preprocessor
    }

    /// Decodes the text, without a byte order mark.
    ///
    /// The C library (iconv(3)) decodes all encodings except UTF-8, UTF-16, UTF-32, ASCII and ISO 8859-1. Some systems have its tables in a separate
    /// package (`libc-gconv-modules-extra`, `glibc-gconv-extra`).
    ///
    /// - Throws: ``HTTPSessionError/Code/cannotDecodeContent`` for an unknown encoding and for bytes that are invalid in the encoding, and errors of
    ///   the ``preprocessor``.
    public func decode(_ response: TransferResponse) throws -> sending String {
        let name = response.mediaType?.parameters["charset"]
        let encoding = try encoding ?? name.map(named) ?? .utf8
        guard let text = try Charset.decode(try preprocessor.preprocess(response.data), as: encoding) else {
            throw HTTPSessionError(.cannotDecodeContent, "the body is not \(name?.prefix(40).debugDescription ?? "UTF-8") text")
        }
        return text
    }

    private func named(_ name: String) throws(HTTPSessionError) -> String.Encoding {
        guard let encoding = Charset.encoding(named: name) else {
            throw HTTPSessionError(.cannotDecodeContent, "the character set \(name.prefix(40).debugDescription) is not known")
        }
        return encoding
    }
}
