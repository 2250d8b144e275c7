public import FoundationEssentials

/// The body as text.
public struct StringResponseSerializer: ResponseSerializer {
    /// What a response must be.
    public var validation: ResponseValidation
    /// The encoding, whatever the server says; `nil` for what `Content-Type` says, UTF-8 where it says nothing.
    public var encoding: String.Encoding?
    /// A change to the body before it is read.
    public var preprocessor: DataPreprocessor

    /// Text in the server's encoding, of any type and status 200 to 299, unless told otherwise.
    public init(
        encoding: String.Encoding? = nil, validation: ResponseValidation = ResponseValidation(),
        preprocessor: DataPreprocessor = .passthrough
    ) {
        self.encoding = encoding
        self.validation = validation
        self.preprocessor = preprocessor
    }

    /// The text, without a byte order mark. Bytes that the encoding does not have are an error, and so is an encoding that is not known.
    ///
    /// All encodings but UTF-8, UTF-16, UTF-32, ASCII and ISO 8859-1 are read by the C library (iconv(3)), whose tables are a package of
    /// their own on some systems (`libc-gconv-modules-extra`, `glibc-gconv-extra`).
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
