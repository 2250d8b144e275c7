/// Reads the response to one request of HTTP/1.1 (RFC 9112): a value that takes bytes in pieces of any size, and returns what they mean.
///
///     statusLine ──▶ fields ──▶ counted(n), untilClose, or chunkLine ⇄ chunk(n) ⇄ chunkEnd, then trailers ──▶ complete ──▶ ended
///         ▲            │ 1xx
///         └────────────┘               a failure leads from each of them to ended
///
/// The result does not depend on the sizes of the pieces. Each byte takes constant time, and ``Limits`` bounds the memory: the reader keeps one line
/// and one head, never the body.
///
///     var input = bytes[...]
///     while let event = try reader.next(&input) { … }
package struct HTTPResponseReader: Sendable {
    package typealias Input = Slice<UnsafeRawBufferPointer>

    /// What the bytes up to here mean.
    package enum Event {
        /// The head of the final response is complete. Interim responses (1xx) are skipped.
        case head(Head)
        /// The next bytes of the body, without the framing of chunks: a part of the input, which lives as long as it.
        case body(Input)
        /// The response is complete.
        case end
    }

    /// The responses that are accepted.
    package enum Grammar: Hashable, Sendable {
        /// What common clients accept from servers: lines that end with LF alone, blanks before a colon, folded fields, repeated equal lengths,
        /// Transfer-Encoding beside Content-Length and with HTTP/1.0, and a status line without a space at its end.
        case lenient
        /// What a sender may generate, and no coding but `chunked`.
        case strict
    }

    /// The reason why bytes are not a response. The raw values are parts of recordings.
    package enum Failure: String, Error, Hashable, Sendable, Codable, CaseIterable {
        /// The server closed the connection before the first byte of a response.
        case noResponse = "no-response"
        /// The server answers with TLS.
        case tls
        /// The server answers with HTTP/2 frames (RFC 9113).
        case http2
        /// The first bytes are not HTTP.
        case notHTTP = "not-http"
        /// The status line has another version than HTTP/1.0 and HTTP/1.1.
        case version
        /// The status line is invalid (RFC 9112 section 4).
        case statusLine = "status-line"
        /// A field line is invalid (RFC 9112 section 5).
        case field
        /// Content-Length is invalid, or has several values (RFC 9112 section 6.3).
        case length
        /// Transfer-Encoding is invalid (RFC 9112 section 6.1).
        case transferEncoding = "transfer-encoding"
        /// The framing of a chunk is invalid (RFC 9112 section 7.1).
        case chunk
        /// The server changes the protocol (status 101), which was not requested.
        case upgrade
        /// The server closed the connection within the head.
        case truncatedHead = "truncated-head"
        /// The server closed the connection within the body.
        case truncatedBody = "truncated-body"
        /// The response exceeds ``HTTPResponseReader/limit``.
        case limit
    }

    /// The greatest numbers that a user of the reader accepts.
    package struct Limits: Hashable, Sendable {
        /// The bytes of all heads of a response, interim responses included.
        package var head: Int
        /// The fields of a head.
        package var fields: Int
        /// The interim responses (1xx) before the final one.
        package var interimResponses: Int
        /// The bytes of a body whose length is not known.
        package var body: Int
        /// The bytes that are read of a body with Content-Length. A longer body is no failure: the response ends here, and ``limit`` says why.
        package var knownBody: Int
        /// The bytes of the line that begins a chunk.
        package var chunkLine: Int
        /// The bytes of the framing of all chunks.
        package var chunkFraming: Int
        /// The bytes of the trailer section.
        package var trailers: Int

        package init(
            head: Int, fields: Int, interimResponses: Int, body: Int, knownBody: Int, chunkLine: Int, chunkFraming: Int,
            trailers: Int
        ) {
            self.head = head
            self.fields = fields
            self.interimResponses = interimResponses
            self.body = body
            self.knownBody = knownBody
            self.chunkLine = chunkLine
            self.chunkFraming = chunkFraming
            self.trailers = trailers
        }
    }

    /// The name of one of the ``Limits``.
    package enum Limit: Hashable, Sendable {
        case head, fields, interimResponses, body, knownBody, chunkLine, chunkFraming, trailers
    }

    private enum State {
        case statusLine
        case fields
        /// The remaining bytes of the body.
        case counted(Int)
        case untilClose
        case chunkLine
        /// The remaining bytes of a chunk.
        case chunk(Int)
        /// The line end behind a chunk.
        case chunkEnd
        case trailers
        /// The last byte has been read, and ``Event/end`` is next.
        case complete
        /// The head has been read, and this failure is next.
        case invalidFraming(Failure)
        case ended
    }

    /// The most bytes that are awaited of a line that is not HTTP before it fails.
    package static let foreignBytes = 64
    /// The most bytes of ``invalidBytes``.
    private static let invalidBytesLimit = 256

    /// The number of received bytes, up to the end of the response.
    package private(set) var receivedBytes = 0
    /// The number of received bytes of the body.
    package private(set) var bodyBytes = 0
    /// The limit that ended the response, with or without a failure.
    package private(set) var limit: Limit?
    /// The beginning of the line, or the value, that is invalid; empty without a failure, and for a limit.
    package private(set) var invalidBytes: [UInt8] = []

    private let grammar: Grammar
    private let limits: Limits
    private let isHEAD: Bool
    private var state = State.statusLine
    // The received part of the current line, without its LF.
    private var line: [UInt8] = []
    private var unfinished: Head?
    private var headBytes = 0
    private var interimResponses = 0
    private var framingBytes = 0
    private var trailerBytes = 0
    // Whether the length of the body exceeds the bytes that are read of it.
    private var isLongerThanLimit = false

    /// Creates a reader of the response to one request.
    ///
    /// - Parameters:
    ///   - method: the request's method: a response to HEAD has no body.
    ///   - grammar: what is accepted.
    ///   - limits: the greatest numbers that are accepted.
    package init(method: String, _ grammar: Grammar, limits: Limits) {
        isHEAD = method == "HEAD"
        self.grammar = grammar
        self.limits = limits
    }

    /// Reads input up to the next event, and removes what was read.
    ///
    /// - Returns: the event; `nil` if all of the input has been read, or if the response has ended, which leaves the input behind it.
    /// - Throws: ``Failure`` for bytes that are not a response. The reader then ignores further input.
    package mutating func next(_ input: inout Input) throws(Failure) -> Event? {
        while true {
            switch state {
            case .complete:
                end()
                return .end
            case .invalidFraming(let failure): throw fail(failure)
            case .ended: return nil
            case .statusLine, .fields, .counted, .untilClose, .chunkLine, .chunk, .chunkEnd, .trailers: break
            }
            guard !input.isEmpty else { return nil }
            let before = input.count
            defer { receivedBytes &+= before - input.count }
            do throws(Failure) {
                if let event = try read(&input) { return event }
            } catch { throw fail(error) }
        }
    }

    /// Takes the end of the connection: the server closed it, or sends nothing more.
    ///
    /// - Returns: ``Event/end`` if the end of the connection is that of the response, or if its end was not read yet.
    /// - Throws: ``Failure`` if the response is incomplete.
    package mutating func endOfInput() throws(Failure) -> Event? {
        switch state {
        case .statusLine: throw fail(foreignProtocol ?? (receivedBytes == 0 ? .noResponse : .truncatedHead))
        case .fields: throw fail(.truncatedHead)
        case .counted, .chunkLine, .chunk, .chunkEnd: throw fail(.truncatedBody)
        // The last chunk has arrived, so the body is complete (RFC 9112 section 8).
        case .trailers where grammar == .strict: throw fail(.truncatedBody)
        case .trailers, .untilClose, .complete:
            end()
            return .end
        case .invalidFraming(let failure): throw fail(failure)
        case .ended: return nil
        }
    }

    /// The failure that the bytes of an incomplete first line will cause, and these bytes; `nil` if they may begin a status line.
    package var expectedFailure: (failure: Failure, bytes: [UInt8])? {
        guard case .statusLine = state, let foreignProtocol else { return nil }
        return (foreignProtocol, line)
    }

    // MARK: bytes

    private mutating func read(_ input: inout Input) throws(Failure) -> Event? {
        switch state {
        case .statusLine where line.count < Self.foreignBytes: return try readFirstByte(&input)
        case .statusLine, .fields:
            let used = try readLine(&input, .head, limits.head, used: headBytes)
            headBytes += used.count
            return used.isEnd ? try endHeadLine() : nil
        case .counted(let remaining):
            let piece = readBody(remaining, of: &input)
            state = .counted(remaining - piece.count)
            if remaining == piece.count {
                limit = isLongerThanLimit ? .knownBody : nil
                state = .complete
            }
            return .body(piece)
        case .untilClose: return .body(try readLimitedBody(.max, of: &input))
        case .chunk(let remaining):
            let piece = try readLimitedBody(remaining, of: &input)
            state = remaining == piece.count ? .chunkEnd : .chunk(remaining - piece.count)
            return .body(piece)
        case .chunkLine:
            let isAtFramingLimit = limits.chunkFraming - framingBytes < limits.chunkLine - line.count
            let used =
                isAtFramingLimit
                ? try readLine(&input, .chunkFraming, limits.chunkFraming, used: framingBytes)
                : try readLine(&input, .chunkLine, limits.chunkLine, used: line.count)
            framingBytes += used.count
            if used.isEnd { try endChunkLine() }
        case .chunkEnd: try readChunkEnd(&input)
        case .trailers:
            let used = try readLine(&input, .trailers, limits.trailers, used: trailerBytes)
            trailerBytes += used.count
            if used.isEnd {
                let isEmpty = try content(or: .field).isEmpty
                line.removeAll(keepingCapacity: true)
                if isEmpty { state = .complete }
            }
        case .complete, .invalidFraming, .ended: break
        }
        return nil
    }

    /// The first bytes of a line show whether it is HTTP, so that a server of another protocol need not send a complete line.
    private mutating func readFirstByte(_ input: inout Input) throws(Failure) -> Event? {
        guard headBytes < limits.head else { throw exceeded(.head) }
        let byte = input[input.startIndex]
        input = input.dropFirst()
        headBytes += 1
        if byte == HTTPGrammar.lineFeed { return try endHeadLine() }
        line.append(byte)
        guard let failure = foreignProtocol else { return nil }
        if failure != .notHTTP || line.count == Self.foreignBytes { throw failure }
        return nil
    }

    /// The protocol of the current line's bytes, if they do not begin a status line. Frames of HTTP/2 have a length, then their type:
    /// SETTINGS (4) or GOAWAY (7) on stream 0 come first (RFC 9113 section 3.4). A record of TLS is an alert (21) or a handshake (22).
    private var foreignProtocol: Failure? {
        let beginning = Head.beginning
        guard !line.isEmpty, !line.starts(with: beginning), !beginning.starts(with: line) else { return nil }
        if line.count >= 9, line[0] == 0, line[3] == 4 || line[3] == 7, line[5...8].allSatisfy({ $0 == 0 }) { return .http2 }
        if line.starts(with: Self.prefaceBeginning) { return .http2 }
        if line.count >= 3, line[0] == 21 || line[0] == 22, line[1] == 3, line[2] <= 4 { return .tls }
        return .notHTTP
    }

    private static let prefaceBeginning = Array("PRI * HTTP/2".utf8)

    /// Reads the input up to the next LF, or all of it, unless a byte exceeds the limit.
    private mutating func readLine(
        _ input: inout Input, _ limit: Limit, _ value: Int, used: Int
    ) throws(Failure) -> (count: Int, isEnd: Bool) {
        let window = input.prefix(max(0, value - used))
        let end = window.firstIndex(of: HTTPGrammar.lineFeed)
        line.append(contentsOf: window[..<(end ?? window.endIndex)])
        if let end {
            let count = end - input.startIndex + 1
            input = input.dropFirst(count)
            return (count, true)
        }
        let count = window.count
        input = input.dropFirst(count)
        guard input.isEmpty else { throw exceeded(limit) }
        return (count, false)
    }

    /// The current line without its CR. A bare LF ends a line too (RFC 9112 section 2.2), unless the grammar is strict.
    private func content(or failure: Failure) throws(Failure) -> ArraySlice<UInt8> {
        if line.last == HTTPGrammar.carriageReturn { return line.dropLast() }
        guard grammar == .lenient else { throw failure }
        return line[...]
    }

    /// Reads up to `count` bytes of the body.
    private mutating func readBody(_ count: Int, of input: inout Input) -> Input {
        let piece = input.prefix(count)
        bodyBytes += piece.count
        input = input.dropFirst(piece.count)
        return piece
    }

    /// Reads bytes of a body whose length is not known.
    private mutating func readLimitedBody(_ count: Int, of input: inout Input) throws(Failure) -> Input {
        let left = limits.body - bodyBytes
        guard left > 0 else { throw exceeded(.body) }
        return readBody(min(count, left), of: &input)
    }

    // MARK: head

    private mutating func endHeadLine() throws(Failure) -> Event? {
        if case .statusLine = state {
            do throws(Failure) {
                unfinished = try Head(statusLine: try content(or: .statusLine), grammar)
            } catch .notHTTP {
                throw foreignProtocol ?? .notHTTP
            }
            state = .fields
        } else {
            let content = try content(or: .field)
            if content.isEmpty { return try endHead() }
            do throws(Failure) {
                try unfinished?.add(fieldLine: content, grammar, limit: limits.fields)
            } catch .limit {
                throw exceeded(.fields)
            }
        }
        line.removeAll(keepingCapacity: true)
        return nil
    }

    private mutating func endHead() throws(Failure) -> Event? {
        line.removeAll(keepingCapacity: true)
        guard let head = unfinished else { return nil }
        unfinished = nil
        if head.status < 200 {
            guard head.status != 101 else { throw .upgrade }
            guard interimResponses < limits.interimResponses else { throw exceeded(.interimResponses) }
            interimResponses += 1
            state = .statusLine
            return nil
        }
        do throws(Failure) {
            switch try Framing(of: head, toHEAD: isHEAD, grammar) {
            case .none, .counted(0): state = .complete
            case .counted(let length):
                state = .counted(min(length, limits.knownBody))
                isLongerThanLimit = length > limits.knownBody
            case .chunked: state = .chunkLine
            case .untilClose: state = .untilClose
            }
        } catch {
            let values = head.values(of: error == .length ? "content-length" : "transfer-encoding")
            line = Array(values.joined(separator: Array(", ".utf8)).prefix(Self.invalidBytesLimit))
            state = .invalidFraming(error)
        }
        return .head(head)
    }

    // MARK: chunks

    /// Parses `chunk-size [ chunk-ext ]`. Extensions are ignored (RFC 9112 section 7.1.1), and blanks behind the size unless the grammar is strict.
    private mutating func endChunkLine() throws(Failure) {
        let content = try content(or: .chunk)
        let digits = content.prefix { HTTPGrammar.hexadecimalValue($0) != nil }
        var behind = content[digits.endIndex...]
        if grammar == .lenient { behind = behind.drop(while: HTTPGrammar.isBlank) }
        let significant = digits.drop { $0 == UInt8(ascii: "0") }
        // 15 digits fit into 60 bits.
        guard !digits.isEmpty, significant.count <= 15, behind.first.map({ $0 == UInt8(ascii: ";") }) ?? true else {
            throw .chunk
        }
        let size = significant.reduce(0) { $0 << 4 | (HTTPGrammar.hexadecimalValue($1) ?? 0) }
        line.removeAll(keepingCapacity: true)
        state = size == 0 ? .trailers : .chunk(size)
    }

    private mutating func readChunkEnd(_ input: inout Input) throws(Failure) {
        guard framingBytes < limits.chunkFraming else { throw exceeded(.chunkFraming) }
        let byte = input[input.startIndex]
        input = input.dropFirst()
        framingBytes += 1
        switch byte {
        case HTTPGrammar.carriageReturn where line.isEmpty: line.append(byte)
        case HTTPGrammar.lineFeed:
            _ = try content(or: .chunk)
            line.removeAll(keepingCapacity: true)
            state = .chunkLine
        default:
            line.append(byte)
            throw .chunk
        }
    }

    // MARK: end

    private mutating func exceeded(_ limit: Limit) -> Failure {
        self.limit = limit
        return .limit
    }

    private mutating func fail(_ failure: Failure) -> Failure {
        if failure != .limit {
            if line.last == HTTPGrammar.carriageReturn { line.removeLast() }
            invalidBytes = Array(line.prefix(Self.invalidBytesLimit))
        }
        end()
        return failure
    }

    private mutating func end() {
        state = .ended
        line = []
        unfinished = nil
    }

    /// The rule by which the end of a body is found (RFC 9112 section 6.3).
    private enum Framing {
        /// The response has no body.
        case none
        /// Content-Length.
        case counted(Int)
        /// Transfer-Encoding ends with `chunked`.
        case chunked
        /// The body ends with the connection.
        case untilClose

        init(of head: Head, toHEAD: Bool, _ grammar: Grammar) throws(Failure) {
            guard !toHEAD, head.status != 204, head.status != 304 else {
                self = .none
                return
            }
            let lengths = head.values(of: "content-length")
            let codings = head.values(of: "transfer-encoding")
            if grammar == .strict {
                // Two recipients may disagree about the end of such a body (RFC 9112 section 6.1).
                let isChunked = codings.count == 1 && HTTPGrammar.isName(codings[0], "chunked")
                guard codings.isEmpty || isChunked && lengths.isEmpty && head.minorVersion > 0 else { throw .transferEncoding }
                guard lengths.count <= 1, lengths.first?.contains(UInt8(ascii: ",")) != true else { throw .length }
            }
            let elements = codings.flatMap(Self.elements)
            if !elements.isEmpty {
                // `identity` was removed by RFC 7230, and common clients ignore it.
                let used = elements.filter { !HTTPGrammar.isName($0, "identity") }
                guard used.count(where: { HTTPGrammar.isName($0, "chunked") }) <= 1 else { throw .transferEncoding }
                let isLast = used.last.map { HTTPGrammar.isName($0, "chunked") } ?? false
                self = isLast ? .chunked : .untilClose
                return
            }
            switch ContentLength(lengths) {
            case .absent: self = .untilClose
            case .bytes(let length): self = .counted(Int(length))
            case .malformed, .conflicting: throw .length
            }
        }

        /// Returns the elements of a list (RFC 9110 section 5.6.1), without their parameters. Empty elements are removed.
        private static func elements(_ value: ArraySlice<UInt8>) -> [ArraySlice<UInt8>] {
            value.split(separator: UInt8(ascii: ",")).map { element in
                HTTPGrammar.trimmed(element.prefix { $0 != UInt8(ascii: ";") })
            }.filter { !$0.isEmpty }
        }
    }
}

extension HTTPResponseReader {
    /// The head of a response: the status line and the fields (RFC 9112 sections 4 and 5).
    package struct Head: Hashable, Sendable {
        /// The minor version of HTTP/1: 0 or 1, or a later one.
        package let minorVersion: Int
        /// The status code, 100 to 999.
        package let status: Int
        /// The reason phrase as received.
        package let reason: [UInt8]

        private struct Field: Hashable, Sendable {
            let name: Range<Int>
            var value: Range<Int>
        }

        // The names and values without what separates them: one array for all fields.
        private var storage: [UInt8] = []
        private var fields: [Field] = []

        /// The version, such as `1.1`.
        package var version: String { "1.\(minorVersion)" }
        /// The number of fields.
        package var fieldCount: Int { fields.count }

        /// The text with which a status line begins.
        fileprivate static let beginning = Array("HTTP/".utf8)

        /// Parses a status line without its line end: version, space, three digits, and a space and a reason, which common clients do not need.
        fileprivate init(statusLine line: ArraySlice<UInt8>, _ grammar: Grammar) throws(Failure) {
            guard line.starts(with: Self.beginning) else { throw .notHTTP }
            let version = line.dropFirst(Self.beginning.count).prefix { $0 != HTTPGrammar.space }
            guard let major = version.first, HTTPGrammar.isDigit(major) else { throw .statusLine }
            guard major == UInt8(ascii: "1") else { throw .version }
            guard version.count == 3, version[version.startIndex + 1] == UInt8(ascii: "."), let minor = version.last,
                HTTPGrammar.isDigit(minor)
            else { throw .version }
            let rest = line[version.endIndex...].dropFirst()
            let digits = rest.prefix(3)
            guard digits.count == 3, digits.allSatisfy(HTTPGrammar.isDigit) else { throw .statusLine }
            let status = digits.reduce(0) { $0 * 10 + Int($1) - 0x30 }
            let behind = rest.dropFirst(3)
            guard status >= 100 else { throw .statusLine }
            switch grammar {
            case .lenient: guard behind.first.map(HTTPGrammar.isBlank) ?? true else { throw .statusLine }
            case .strict:
                guard behind.first == HTTPGrammar.space, behind.allSatisfy(HTTPGrammar.isValueByte) else { throw .statusLine }
            }
            minorVersion = Int(minor) - 0x30
            self.status = status
            reason = Array(HTTPGrammar.trimmed(behind))
        }

        /// Parses a field line without its line end, and adds the field. A line that begins with a blank continues the last field (RFC 9112
        /// section 5.2). Blanks before the colon are removed (section 5.1). The strict grammar has neither.
        fileprivate mutating func add(fieldLine line: ArraySlice<UInt8>, _ grammar: Grammar, limit: Int) throws(Failure) {
            let isValid =
                switch grammar {
                case .lenient: line.allSatisfy { $0 != 0 && $0 != HTTPGrammar.carriageReturn }
                case .strict: line.allSatisfy(HTTPGrammar.isValueByte)
                }
            guard isValid, let first = line.first else { throw .field }
            if HTTPGrammar.isBlank(first) {
                guard grammar == .lenient else { throw .field }
                return try fold(line)
            }
            guard fields.count < limit else { throw .limit }
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { throw .field }
            let name = grammar == .lenient ? HTTPGrammar.trimmed(line[..<colon]) : line[..<colon]
            guard HTTPGrammar.isToken(name) else { throw .field }
            let start = storage.count
            storage += name
            let middle = storage.count
            storage += HTTPGrammar.trimmed(line[(colon + 1)...])
            fields.append(Field(name: start..<middle, value: middle..<storage.count))
        }

        private mutating func fold(_ line: ArraySlice<UInt8>) throws(Failure) {
            guard let last = fields.indices.last else { throw .field }
            let text = HTTPGrammar.trimmed(line)
            guard !text.isEmpty else { return }
            // The value of the last field ends the storage.
            if !fields[last].value.isEmpty { storage.append(HTTPGrammar.space) }
            storage += text
            fields[last].value = fields[last].value.lowerBound..<storage.count
        }

        /// Returns the values of all fields with the name, which is in lower case.
        package func values(of name: String) -> [ArraySlice<UInt8>] {
            fields.lazy.filter { HTTPGrammar.isName(storage[$0.name], name) }.map { storage[$0.value] }
        }

        /// Returns the value of the first field with the name, which is in lower case.
        package func value(of name: String) -> ArraySlice<UInt8>? {
            fields.first { HTTPGrammar.isName(storage[$0.name], name) }.map { storage[$0.value] }
        }
    }
}
