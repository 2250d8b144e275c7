internal import Expressions

/// One step of a dialogue.
enum DialogueStep: Hashable, Sendable {
    /// Reads lines until one matches.
    case expectLine(Expectation)
    /// Reads until what has arrived matches, for protocols without lines.
    case expectText(Expectation)
    /// Reads one message of a binary protocol.
    case expectMessage(DialogueMessage)
    /// Sends text, in which `${NAME}` stands for a captured group, and `${host}` for the name of the server.
    case send(String)
    /// Sends bytes.
    case sendBytes([UInt8])
    /// Begins TLS.
    case startTLS

    struct Expectation: Hashable, Sendable {
        let expression: Expressions.Expression
        /// What the server says instead, after which no more is awaited; `nil` to wait until the deadline.
        var refusal: Expressions.Expression?
        /// What the server says if it offers no TLS; `nil` if that is not the question.
        var lack: Expressions.Expression?
    }

    /// What the client waits for, in a sentence; `nil` for a step that does not wait.
    var awaited: String? {
        switch self {
        case .expectLine(let expectation): "a line that matches '\(expectation.expression.shownText)'"
        case .expectText(let expectation): "a text that matches '\(expectation.expression.shownText)'"
        case .expectMessage(let message): message.name
        case .startTLS: "the handshake"
        case .send, .sendBytes: nil
        }
    }
}

/// A message of a protocol without lines, which decides whether its server begins TLS.
enum DialogueMessage: String, Hashable, Sendable {
    /// One byte, `S` or `N`: PostgreSQL's frontend/backend protocol, section "SSL Session Encryption".
    case postgres
    /// The greeting of MySQL and MariaDB ("Protocol::HandshakeV10"), which has the flag CLIENT_SSL.
    case mysql
    /// The answer of MySQL to a login without a password, which ends the login for the server: one that only begins counts as an error of its host
    /// (max_connect_errors).
    case mysqlLogin
    /// The response of LDAP to the extended request StartTLS (RFC 4511 sections 4.12 and 4.14).
    case ldap

    enum Reading: Hashable, Sendable {
        /// The message has not arrived completely.
        case incomplete
        /// TLS can begin, or the message is complete; it has so many bytes.
        case accepted(Int)
        /// The server has no TLS, for this reason.
        case withoutTLS(String)
        /// The server says that it has failed.
        case refused(String)
        /// The bytes are no such message.
        case unreadable
    }

    /// The message in a sentence.
    var name: String {
        switch self {
        case .postgres: "the answer to SSLRequest"
        case .mysql: "a greeting that offers TLS"
        case .mysqlLogin: "the answer to the login"
        case .ldap: "the answer to StartTLS"
        }
    }

    func read(_ bytes: ArraySlice<UInt8>) -> Reading {
        switch self {
        case .postgres: Self.readPostgres(bytes)
        case .mysql: Self.readMySQL(bytes)
        case .mysqlLogin:
            switch Self.packet(bytes) {
            case .packet(let content): .accepted(content.count + 4)
            case .incomplete: .incomplete
            case .unreadable: .unreadable
            }
        case .ldap: Self.readLDAP(bytes)
        }
    }

    private static func readPostgres(_ bytes: ArraySlice<UInt8>) -> Reading {
        switch bytes.first {
        case nil: .incomplete
        case UInt8(ascii: "S"): .accepted(1)
        case UInt8(ascii: "N"): .withoutTLS("its answer is N")
        case UInt8(ascii: "E"): .refused(ExternalText.excerpt(bytes))
        default: .unreadable
        }
    }

    /// The flag of a server that can begin TLS.
    private static let mysqlTLS: UInt16 = 0x0800

    private static func readMySQL(_ bytes: ArraySlice<UInt8>) -> Reading {
        let message: [UInt8]
        switch packet(bytes) {
        case .incomplete: return .incomplete
        case .unreadable: return .unreadable
        case .packet(let content): message = content
        }
        // An error, such as too many connections.
        if message.first == 0xff { return .refused(ExternalText.excerpt(message.dropFirst(3))) }
        guard message.first == 10, let end = message.firstIndex(of: 0) else { return .unreadable }
        // The number of the thread, 8 bytes of a challenge and one of padding precede the flags.
        let flags = end + 1 + 4 + 8 + 1
        guard flags + 1 < message.endIndex else { return .unreadable }
        let value = UInt16(message[flags]) | UInt16(message[flags + 1]) << 8
        return value & mysqlTLS == 0 ? .withoutTLS("its greeting does not offer it") : .accepted(message.count + 4)
    }

    private enum Packet {
        case packet([UInt8])
        case incomplete
        case unreadable
    }

    /// A packet of MySQL: a length of three bytes, a number, and the content.
    private static func packet(_ bytes: ArraySlice<UInt8>) -> Packet {
        let bytes = Array(bytes.prefix(1_024))
        guard bytes.count >= 5 else { return .incomplete }
        let length = Int(bytes[0]) | Int(bytes[1]) << 8 | Int(bytes[2]) << 16
        guard length >= 1, length <= 1_000 else { return .unreadable }
        return bytes.count >= length + 4 ? .packet(Array(bytes[4..<(length + 4)])) : .incomplete
    }

    /// The result codes of a server that is there, and cannot answer now: busy, unavailable.
    private static let busyCodes: ClosedRange<UInt8> = 51...52

    private static func readLDAP(_ bytes: ArraySlice<UInt8>) -> Reading {
        var outer = BERReader(bytes)
        switch outer.next() {
        case .incomplete: return .incomplete
        case .unreadable: return .unreadable
        case .element(let tag, let message):
            guard tag == 0x30 else { return .unreadable }
            var inner = BERReader(message)
            guard case .element(0x02, let number) = inner.next(), number.elementsEqual([1]),
                case .element(0x78, let response) = inner.next()
            else { return .unreadable }
            var result = BERReader(response)
            guard case .element(0x0a, let code) = result.next(), code.count == 1, let value = code.first else {
                return .unreadable
            }
            if value == 0 { return .accepted(outer.consumed) }
            let text = "the result code of its answer is \(value)"
            return busyCodes.contains(value) ? .refused(text) : .withoutTLS(text)
        }
    }
}

/// A reader of the basic encoding rules (X.690), as far as LDAP uses them: tags of one byte, definite lengths.
private struct BERReader {
    enum Element {
        case element(UInt8, ArraySlice<UInt8>)
        case incomplete
        case unreadable
    }

    private let bytes: ArraySlice<UInt8>
    private var place: Int

    init(_ bytes: ArraySlice<UInt8>) { (self.bytes, place) = (bytes, bytes.startIndex) }

    var consumed: Int { place - bytes.startIndex }

    mutating func next() -> Element {
        guard bytes.endIndex - place >= 2 else { return .incomplete }
        let tag = bytes[place]
        var (length, content) = (Int(bytes[place + 1]), place + 2)
        if length >= 0x80 {
            let count = length - 0x80
            // Four bytes are those of Active Directory for every length.
            guard 1...4 ~= count else { return .unreadable }
            guard bytes.endIndex - content >= count else { return .incomplete }
            length = bytes[content..<(content + count)].reduce(0) { $0 << 8 | Int($1) }
            content += count
        }
        guard length <= DialogueRun.lineLimit else { return .unreadable }
        guard bytes.endIndex - content >= length else { return .incomplete }
        place = content + length
        return .element(tag, bytes[content..<place])
    }
}
