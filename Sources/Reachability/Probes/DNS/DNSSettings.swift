internal import Expressions

/// The question of `dns://`, `dns+tcp://` and `dns+tls://` targets, and the answer that they expect. By default: recursion is requested, and the
/// response code is NOERROR.
public struct DNSSettings: Hashable, Sendable {
    /// The error for a value that is no response code or no expression.
    public struct InvalidValue: Error, Hashable, Sendable, CustomStringConvertible {
        /// One line that names the value and the reason.
        public let description: String

        init(_ description: String) { self.description = ExternalText.shortened(description) }
    }

    /// The records of an answer that an expression is about.
    @nonexhaustive public enum Section: Sendable {
        /// The records that answer the question.
        case answer
        /// The records of the authorities: their names, or the start of a zone (SOA).
        case authority
        /// Further records, such as the addresses of the names in others.
        case additional
    }

    /// The most response codes, and the most expressions for each section.
    static let limit = 32

    /// Whether the server is asked to resolve the name for the client, as a resolver does (the flag RD); true by default.
    public var requestsRecursion = true
    var codes: [DNSResponseCode] = []
    var rules: [DNSExpectation.Rule] = []

    /// Creates the default settings.
    public init() {}

    /// The response codes that are allowed, as names such as `NXDOMAIN`.
    public var allowedResponseCodes: [String] { DNSExpectation(self).codes.map(\.description) }

    /// Allows a response code, given by its name such as `NXDOMAIN` or by its number. The first call replaces the default, NOERROR.
    ///
    /// - Throws: ``InvalidValue``.
    public mutating func allowResponseCode(_ text: String) throws(InvalidValue) {
        guard let code = DNSResponseCode(text) else {
            throw InvalidValue("'\(text)' is neither the name of a response code, such as NXDOMAIN, nor a number from 0 to 4095")
        }
        guard !codes.contains(code) else { return }
        guard codes.count < Self.limit else { throw InvalidValue("more than \(Self.limit) response codes") }
        codes.append(code)
    }

    /// Expects records of a section: at least one has to match the expression ([RE2](https://github.com/google/re2/wiki/Syntax)). If the text
    /// begins with `!`, none may match what follows; a `!` that belongs to an expression is written `[!]`.
    ///
    /// A record is one line with single spaces, in which names end with a dot: `example.com. 3600 IN MX 10 mail.example.com.`
    ///
    /// - Throws: ``InvalidValue``.
    public mutating func expect(_ text: String, in section: Section) throws(InvalidValue) {
        let section = section.ofMessage
        guard rules.count(where: { $0.section == section }) < Self.limit else {
            throw InvalidValue("more than \(Self.limit) expressions")
        }
        let isExcluded = text.hasPrefix("!")
        let expression: Expressions.Expression
        do { expression = try Expressions.Expression(isExcluded ? String(text.dropFirst()) : text) } catch {
            throw InvalidValue(error.description)
        }
        rules.append(DNSExpectation.Rule(section: section, expression: expression, isExcluded: isExcluded))
    }
}

extension DNSSettings.Section {
    fileprivate var ofMessage: DNSMessage.Section {
        switch self {
        case .answer: .answer
        case .authority: .authority
        case .additional: .additional
        }
    }
}

extension DNSSettings: KindSettings {
    package static let name = "dns"
    package static let help = "the question, and the answer that is expected"
    package static let keys: [SettingKey<DNSSettings>] = [
        SettingKey(
            "recursion", .flag(\.requestsRecursion), "whether the server is asked to resolve the name, as a resolver does"),
        SettingKey(
            "rcodes", .texts(limit: 32) { settings, text in try settings.allowResponseCode(text) },
            "the response codes that are allowed, as names or numbers, NOERROR by default"),
        SettingKey(
            "answer",
            .texts(limit: Expressions.Expression.longestText + 1) { settings, text in try settings.expect(text, in: .answer) },
            "EXPRESSIONs for the records of this section: at least one has to match, or none if the text begins with `!`"),
        SettingKey(
            "authority",
            .texts(limit: Expressions.Expression.longestText + 1) { settings, text in try settings.expect(text, in: .authority) },
            "as `answer`"),
        SettingKey(
            "additional",
            .texts(limit: Expressions.Expression.longestText + 1) { settings, text in try settings.expect(text, in: .additional)
            },
            "as `answer`"),
    ]

    /// Recordings do not have the expressions: they have whether the answer met them.
    package struct Recorded: Codable {
        var recursion: Bool
        var rcodes: [UInt16]
    }

    package var recorded: Recorded { Recorded(recursion: requestsRecursion, rcodes: codes.map(\.number)) }

    package init(_ recorded: Recorded) {
        self.init()
        requestsRecursion = recorded.recursion
        codes = recorded.rcodes.prefix(Self.limit).map { DNSResponseCode(number: $0) }
    }
}

extension ProbeSettings {
    /// The question of `dns://` targets, and the answer that they expect.
    public var dns: DNSSettings {
        get { self[kind: DNSSettings.self] }
        set { self[kind: DNSSettings.self] = newValue }
    }
}
