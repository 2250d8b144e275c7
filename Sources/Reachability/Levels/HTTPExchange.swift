/// The parser of the response to one request (RFC 9112), which takes bytes in pieces of any size.
///
/// It keeps the fields and the first ``keptBody`` bytes of the body until the expectations are checked. Every part has a limit.
struct HTTPExchange: Sendable {
    /// The maximum size of the status line and the fields, and of the trailer fields, in bytes.
    static let headLimit = 65_536
    /// The number of bytes of the body that expectations see.
    static let keptBody = 65_536
    /// The maximum size of a body whose length the server does not announce, in bytes.
    static let bodyLimit = 10 << 20
    /// The maximum number of interim responses (RFC 9110 section 15.2).
    private static let interimLimit = 10
    private static let locationLimit = 2_048

    private enum State: Sendable {
        case statusLine, fields
        case body(remaining: Int)
        case untilClose
        case chunkSize, chunk(remaining: Int), chunkEnd, trailers
        case ended
    }

    private(set) var facts = HTTPResponseFacts()
    /// The fields in their order; names are in lower case.
    private(set) var fields: [(name: String, value: String)] = []
    /// The first bytes of the body.
    private(set) var body: [UInt8] = []
    private let method: String
    private var state = State.statusLine
    private var line: [UInt8] = []
    private var headBytes = 0
    private var interimCount = 0

    /// Creates the parser of the response to a request of this method.
    init(method: String) { self.method = method }

    /// Whether the response is complete or invalid, so that no further bytes are needed.
    var hasEnded: Bool { if case .ended = state { true } else { false } }

    /// Takes bytes of the server.
    mutating func receive(_ bytes: UnsafeRawBufferPointer) {
        facts.receivedBytes += bytes.count
        var rest = bytes[...]
        while !rest.isEmpty, !hasEnded {
            switch state {
            case .body(let remaining): takeBody(&rest, remaining)
            case .untilClose: takeBody(&rest, nil)
            case .chunk(let remaining): takeBody(&rest, remaining)
            case .statusLine, .fields, .chunkSize, .chunkEnd, .trailers: takeLine(&rest)
            case .ended: break
            }
        }
    }

    /// Notes that the server has closed its side of the connection.
    mutating func endOfInput() {
        switch state {
        case .untilClose: complete()
        case .ended: break
        case .statusLine where facts.receivedBytes == 0: violate("closes the connection without an answer")
        default: violate("closes the connection before the end of its response")
        }
    }

    // MARK: Lines

    private mutating func takeLine(_ rest: inout Slice<UnsafeRawBufferPointer>) {
        let end = rest.firstIndex(of: UInt8(ascii: "\n"))
        let part = rest[..<(end ?? rest.endIndex)]
        headBytes += part.count + 1
        guard headBytes <= Self.headLimit else {
            return violate("sends more than \(Self.headLimit) bytes of header fields", limit: "\(Self.headLimit) bytes of header")
        }
        line += part
        rest = rest[(end.map { $0 + 1 } ?? rest.endIndex)...]
        if case .statusLine = state, !looksLikeHTTP { return notHTTP() }
        guard end != nil else { return }
        if line.last == UInt8(ascii: "\r") { line.removeLast() }
        defer { line.removeAll(keepingCapacity: true) }
        switch state {
        case .statusLine: takeStatusLine()
        case .fields: takeField()
        case .chunkSize: takeChunkSize()
        case .chunkEnd:
            guard line.isEmpty else { return violate("sends a chunk that is longer than its size") }
            headBytes = 0
            state = .chunkSize
        case .trailers: if line.isEmpty { complete() }
        case .body, .untilClose, .chunk, .ended: break
        }
    }

    private var looksLikeHTTP: Bool { zip(line, "HTTP/".utf8).allSatisfy { $0 == $1 } }

    // RFC 9112 section 4: HTTP-version SP status-code SP [ reason-phrase ]
    private mutating func takeStatusLine() {
        let parts = line.split(separator: UInt8(ascii: " "), maxSplits: 2, omittingEmptySubsequences: false)
        let version = parts[0].dropFirst(5)
        let isKnown = version.elementsEqual("1.1".utf8) || version.elementsEqual("1.0".utf8)
        let digits = parts.count > 1 ? parts[1] : []
        guard parts[0].count == 8, isKnown, digits.count == 3, digits.allSatisfy({ (0x30...0x39).contains($0) }),
            let status = Int(String(decoding: digits, as: UTF8.self)), status >= 100
        else { return violate("sends a status line that is not HTTP/1.1: '\(Self.excerpt(line))'") }
        facts.status = status
        facts.version = String(decoding: version, as: UTF8.self)
        fields = []
        state = .fields
    }

    private mutating func takeField() {
        guard !line.isEmpty else { return endFields() }
        // An obsolete line folding continues the value of the field before (RFC 9112 section 5.2).
        if line[0] == 0x20 || line[0] == 0x09, !fields.isEmpty {
            fields[fields.count - 1].value += " " + Self.trimmed(line[...])
            return
        }
        guard let colon = line.firstIndex(of: UInt8(ascii: ":")), colon > 0, line[..<colon].allSatisfy(Self.isToken) else {
            return violate("sends a header field that is not valid: '\(Self.excerpt(line))'")
        }
        let name = String(decoding: line[..<colon], as: UTF8.self).lowercased()
        fields.append((name, Self.trimmed(line[(colon + 1)...])))
    }

    private mutating func endFields() {
        let status = facts.status ?? 0
        // 101 is never requested, so that it is a final response.
        if (100..<200).contains(status), status != 101 {
            interimCount += 1
            guard interimCount <= Self.interimLimit else {
                return violate("sends more than \(Self.interimLimit) interim responses", limit: "\(Self.interimLimit) responses")
            }
            state = .statusLine
            return
        }
        facts.location = values(of: "location").first.map { String(decoding: $0.utf8.prefix(Self.locationLimit), as: UTF8.self) }
        headBytes = 0
        if method == "HEAD" || status == 204 || status == 304 || status == 101 { return complete() }
        // RFC 9112 section 6.3
        let codings = values(of: "transfer-encoding").flatMap { $0.split(separator: ",") }
            .map { $0.lowercased().trimmingPrefix { $0 == " " } }
        if let last = codings.last {
            state = last.prefix(7) == "chunked" ? .chunkSize : .untilClose
            return
        }
        let lengths = Set(values(of: "content-length").flatMap { $0.split(separator: ",").map { Self.trimmed(Array($0.utf8)[...]) } })
        guard let length = lengths.first else {
            state = .untilClose
            return
        }
        guard lengths.count == 1, length.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let count = Int(length) else {
            return violate("sends a Content-Length that is not valid: '\(Self.excerpt(Array(length.utf8)))'")
        }
        if count == 0 { complete() } else { state = .body(remaining: count) }
    }

    // RFC 9112 section 7.1
    private mutating func takeChunkSize() {
        let digits = line.prefix { $0 != UInt8(ascii: ";") && $0 != 0x20 && $0 != 0x09 }
        guard !digits.isEmpty, digits.count <= 15, let size = Int(String(decoding: digits, as: UTF8.self), radix: 16),
            digits.first != UInt8(ascii: "-"), digits.first != UInt8(ascii: "+")
        else { return violate("sends a chunk size that is not valid: '\(Self.excerpt(line))'") }
        headBytes = 0
        state = size == 0 ? .trailers : .chunk(remaining: size)
    }

    // MARK: Body

    private mutating func takeBody(_ rest: inout Slice<UnsafeRawBufferPointer>, _ remaining: Int?) {
        let part = rest.prefix(min(remaining ?? rest.count, rest.count))
        rest = rest.dropFirst(part.count)
        facts.bodyBytes += part.count
        if body.count < Self.keptBody { body += part.prefix(Self.keptBody - body.count) }
        switch (state, remaining.map { $0 - part.count }) {
        case (.body, 0?): complete()
        case (.body, let left?):
            state = .body(remaining: left)
            // The rest of a long body says nothing more about the server.
            if facts.bodyBytes >= Self.bodyLimit { complete() }
        case (.chunk, 0?): state = .chunkEnd
        case (.chunk, let left?): state = .chunk(remaining: left)
        default: break
        }
        if facts.bodyBytes > Self.bodyLimit, !hasEnded {
            violate("sends a body without an end", limit: "\(Self.bodyLimit) bytes of body")
        }
    }

    // MARK: Ends

    /// The values of a field, in their order. `name` is in lower case.
    func values(of name: String) -> [String] { fields.filter { $0.name == name }.map(\.value) }

    /// Checks the expectations at the end of the response, and drops the fields and the body.
    mutating func check(_ expectation: HTTPExpectation) {
        if facts.violation == nil { facts.mismatch = expectation.mismatch(of: self) }
        (fields, body, line) = ([], [], [])
    }

    private mutating func complete() {
        facts.isComplete = true
        state = .ended
    }

    private mutating func violate(_ detail: String, limit: String? = nil) {
        facts.violation = HTTPResponseFacts.Violation(detail: detail, limit: limit)
        state = .ended
    }

    private mutating func notHTTP() {
        facts.firstBytes = Array(line.prefix(32))
        // A SETTINGS frame on stream 0 begins each HTTP/2 connection (RFC 9113 section 3.4).
        let isHTTP2 = line.count >= 4 && line[0] == 0 && line[3] == 4
        violate(isHTTP2 ? "speaks HTTP/2 only, and the probe speaks HTTP/1.1" : "does not speak HTTP: '\(Self.excerpt(line))'")
    }

    // MARK: Text

    static func isToken(_ byte: UInt8) -> Bool {
        switch byte {
        case 0x30...0x39, 0x41...0x5a, 0x61...0x7a: true
        default: "!#$%&'*+-.^_`|~".utf8.contains(byte)
        }
    }

    private static func trimmed(_ bytes: ArraySlice<UInt8>) -> String {
        let start = bytes.drop { $0 == 0x20 || $0 == 0x09 }
        let end = start.lastIndex { $0 != 0x20 && $0 != 0x09 }
        return String(decoding: end.map { start[...$0] } ?? [], as: UTF8.self)
    }

    /// Returns the beginning of a line for a sentence, with a dot for each byte that is not printable ASCII.
    static func excerpt(_ bytes: [UInt8]) -> String {
        let text = bytes.prefix(32).map { (0x20...0x7e).contains($0) ? $0 : UInt8(ascii: ".") }
        return String(decoding: text, as: UTF8.self) + (bytes.count > 32 ? "…" : "")
    }
}
