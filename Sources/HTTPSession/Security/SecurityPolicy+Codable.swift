internal import FoundationEssentials

// Policies may be stored in configuration files. Decoding makes the same checks as the initializers: their HTTPSessionError becomes the
// underlying error of a DecodingError.

extension Certificate: Codable {
    /// Decodes a certificate in DER, which the decoder represents as `Data`.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let data = try container.decode(Data.self)
        self = try checked(container.codingPath) { () throws(HTTPSessionError) in try Certificate(data) }
    }

    /// Encodes the certificate in DER, which the encoder represents as `Data`.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(derBytes)
    }
}

extension PublicKeyPin: Codable {
    /// Decodes a pin of the form `sha256/BASE64`.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let text = try container.decode(String.self)
        self = try checked(container.codingPath) { () throws(HTTPSessionError) in try PublicKeyPin(text) }
    }

    /// Encodes the pin in the form `sha256/BASE64`.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }
}

extension HostPattern: Codable {
    /// Decodes the text of a pattern.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let text = try container.decode(String.self)
        self = try checked(container.codingPath) { () throws(HTTPSessionError) in try HostPattern(text) }
    }

    /// Encodes the text of the pattern.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }
}

extension HostPins: Codable {
    private enum Keys: String, CodingKey { case pattern, pins }

    /// Decodes a pattern and at least one pin.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Keys.self)
        let pattern = try container.decode(HostPattern.self, forKey: .pattern)
        let pins = try container.decode(Set<PublicKeyPin>.self, forKey: .pins)
        self = try checked(container.codingPath) { () throws(HTTPSessionError) in try HostPins(pattern: pattern, pins: pins) }
    }

    /// Encodes the pattern and its pins, sorted.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Keys.self)
        try container.encode(pattern, forKey: .pattern)
        try container.encode(pins.map(\.description).sorted(), forKey: .pins)
    }
}

extension RevocationLists: Codable {
    private enum Keys: String, CodingKey { case lists, scope }

    /// Decodes at least one list in DER, and the scope.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Keys.self)
        let lists = try container.decode([Data].self, forKey: .lists)
        let scope = try container.decode(Scope.self, forKey: .scope)
        self = try checked(container.codingPath) { () throws(HTTPSessionError) in try RevocationLists(lists, scope: scope) }
    }

    /// Encodes the lists in DER, and the scope.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Keys.self)
        try container.encode(derBytes, forKey: .lists)
        try container.encode(scope, forKey: .scope)
    }
}

private func checked<Value>(
    _ path: [any CodingKey], _ make: () throws(HTTPSessionError) -> Value
) throws(DecodingError) -> Value {
    do throws(HTTPSessionError) {
        return try make()
    } catch {
        throw .dataCorrupted(.init(codingPath: path, debugDescription: error.reason, underlyingError: error))
    }
}
