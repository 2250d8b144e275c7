internal import FoundationEssentials

// Policies are kept in configuration files. What is read there is checked as it is when it is made in a program: what does not
// parse is a DecodingError whose underlying error is the HTTPSessionError.

extension Certificate: Codable {
    /// DER, in the coder's form of `Data`.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let data = try container.decode(Data.self)
        self = try checked(container.codingPath) { () throws(HTTPSessionError) in try Certificate(data) }
    }

    /// DER, in the coder's form of `Data`.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(derBytes)
    }
}

extension PublicKeyPin: Codable {
    /// `sha256/BASE64`.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let text = try container.decode(String.self)
        self = try checked(container.codingPath) { () throws(HTTPSessionError) in try PublicKeyPin(text) }
    }

    /// `sha256/BASE64`.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }
}

extension HostPattern: Codable {
    /// The pattern as it is written.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let text = try container.decode(String.self)
        self = try checked(container.codingPath) { () throws(HTTPSessionError) in try HostPattern(text) }
    }

    /// The pattern as it is written.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(description)
    }
}

extension HostPins: Codable {
    private enum Keys: String, CodingKey { case pattern, pins }

    /// A pattern and its pins, of which there must be one.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Keys.self)
        let pattern = try container.decode(HostPattern.self, forKey: .pattern)
        let pins = try container.decode(Set<PublicKeyPin>.self, forKey: .pins)
        self = try checked(container.codingPath) { () throws(HTTPSessionError) in try HostPins(pattern: pattern, pins: pins) }
    }

    /// A pattern and its pins, sorted.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Keys.self)
        try container.encode(pattern, forKey: .pattern)
        try container.encode(pins.map(\.description).sorted(), forKey: .pins)
    }
}

extension RevocationLists: Codable {
    private enum Keys: String, CodingKey { case lists, scope }

    /// The lists in DER, of which there must be one.
    public init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Keys.self)
        let lists = try container.decode([Data].self, forKey: .lists)
        let scope = try container.decode(Scope.self, forKey: .scope)
        self = try checked(container.codingPath) { () throws(HTTPSessionError) in try RevocationLists(lists, scope: scope) }
    }

    /// The lists in DER.
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
