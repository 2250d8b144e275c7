package import ContentCodings

/// The response to one request of HTTP/1.1 on a connection of its own: a value that takes bytes, in pieces of any size (RFC 9112).
///
///     awaitingHead ──status line, fields──▶ receivingBody ──▶ complete
///       ▲      │ 1xx       │                     │
///       └──────┘           └────────┬────────────┘
///                                   ▼
///                            failed(reason)
///
/// The result does not depend on the sizes of the pieces. Each byte takes constant time, and memory is limited by ``HTTPLimit``. Of the
/// body, the first ``keptBytes`` are kept if somebody needs them, or ``keptEncodedBytes`` if it has a coding, and the others are counted.
package struct HTTPExchange: Sendable {
    package enum Progress: Hashable, Sendable {
        case awaitingHead
        case receivingBody
        case complete
        case failed(HTTPExchangeFailure)
    }

    /// The most bytes of a body that are kept for expectations: 64 KiB.
    package static let keptBytes = 64 << 10
    /// The most bytes of a body with a coding, such as gzip, that are kept: 128 KiB. Even incompressible data are shorter than twice the decoded
    /// ones.
    package static let keptEncodedBytes = 128 << 10

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
        case ended
    }

    package private(set) var progress = Progress.awaitingHead
    /// The head of the final response; `nil` until it is complete.
    package private(set) var head: HTTPResponseHead?
    /// The first bytes of the body as received, at most ``keptLimit``; empty if they are not kept.
    package private(set) var body: [UInt8] = []
    /// The number of received bytes of the body.
    package private(set) var bodyBytes = 0
    /// The number of received bytes, up to the end of the response.
    package private(set) var receivedBytes = 0
    /// The limit that ended the exchange.
    package private(set) var limit: HTTPLimit?

    private let isHEAD: Bool
    /// The most bytes of the body that are kept.
    package private(set) var keptLimit: Int
    private var state = State.statusLine
    // The received part of the current line, without its LF.
    private var line: [UInt8] = []
    private var unfinished: HTTPResponseHead?
    private var headBytes = 0
    private var interimResponses = 0
    private var framingBytes = 0
    private var trailerBytes = 0
    // Whether the length of the body exceeds the bytes that are read of it.
    private var isLongerThanLimit = false
    private var excerpt: String?

    /// Creates the exchange of a request.
    ///
    /// - Parameters:
    ///   - method: the request's method: a response to HEAD has no body.
    ///   - keepsBody: whether the first bytes of the body are kept.
    package init(method: String, keepsBody: Bool = true) {
        isHEAD = method == "HEAD"
        keptLimit = keepsBody ? Self.keptBytes : 0
    }

    /// Whether the exchange needs no more bytes.
    package var isEnded: Bool {
        switch progress {
        case .awaitingHead, .receivingBody: false
        case .complete, .failed: true
        }
    }

    /// Takes the next bytes of the connection. Bytes behind the end of the response are ignored.
    package mutating func receive(_ bytes: UnsafeRawBufferPointer) {
        var input = bytes[...]
        while !input.isEmpty, !isEnded {
            let before = input.count
            consume(&input)
            receivedBytes &+= before - input.count
        }
    }

    /// Takes the next bytes of the connection.
    package mutating func receive(_ bytes: [UInt8]) { bytes.withUnsafeBytes { receive($0) } }

    /// Takes the next bytes of the connection.
    package mutating func receive(_ bytes: ArraySlice<UInt8>) { bytes.withUnsafeBytes { receive($0) } }

    /// Takes the end of the connection: the server closed it, or sends nothing more.
    package mutating func endOfInput() {
        switch state {
        case .statusLine:
            if let failure = foreignProtocol { return fail(failure) }
            fail(receivedBytes == 0 ? .noResponse : .truncatedHead)
        case .fields: fail(.truncatedHead)
        case .untilClose: complete()
        // The last chunk has arrived, so the body is complete (RFC 9112 section 8).
        case .trailers: complete()
        case .counted, .chunkLine, .chunk, .chunkEnd: fail(.truncatedBody)
        case .ended: break
        }
    }

    /// The facts of the exchange so far. `failure` is also set while bytes that are not HTTP are still collected.
    package var facts: HTTPResponseFacts {
        var facts = HTTPResponseFacts(receivedBytes: receivedBytes, bodyBytes: bodyBytes, limit: limit, excerpt: excerpt)
        if case .failed(let failure) = progress { facts.failure = failure }
        if case .statusLine = state, let failure = foreignProtocol {
            facts.failure = failure
            facts.excerpt = ExternalText.excerpt(line)
        }
        guard let head else { return facts }
        facts.status = head.status
        facts.version = head.version
        facts.reason = head.reason.isEmpty ? nil : ExternalText.shortened(head.reason)
        facts.location = head.value(of: "location").map { ExternalText.shortened(UserInformation.hidden(in: $0)) }
        facts.contentType = head.value(of: "content-type").map { ExternalText.shortened($0) }
        facts.contentEncoding = head.value(of: Self.codingField).map { ExternalText.shortened($0) }
        facts.server = head.value(of: "server").map { ExternalText.shortened($0) }
        let errors = head.values(of: "proxy-status").contains { $0.firstRange(of: Array("error=".utf8)) != nil }
        if errors || head.value(of: "x-squid-error") != nil { facts.isOfProxy = true }
        return facts
    }

    /// Returns the first ``keptBytes`` of the body without its codings.
    ///
    /// - Throws: ``ContentCodings/Failure`` if the body cannot be decoded.
    package func decodedBody() throws(ContentCodings.Failure) -> [UInt8] {
        let codings = try ContentCodings(head?.values(of: Self.codingField) ?? [])
        guard !codings.codings.isEmpty else { return body }
        return try codings.decode(body, isComplete: body.count == bodyBytes && limit == nil, limit: Self.keptBytes)
    }

    private static let codingField = "content-encoding"

    // MARK: bytes

    private typealias Input = Slice<UnsafeRawBufferPointer>

    private mutating func consume(_ input: inout Input) {
        switch state {
        case .statusLine where line.count < ExternalText.excerptLength: consumeFirstByte(&input)
        case .statusLine, .fields:
            let used = takeLine(&input, limit: .head, used: headBytes)
            headBytes += used.count
            if used.isEnd { endHeadLine() }
        case .counted(let remaining):
            state = .counted(remaining - take(remaining, of: &input))
            if case .counted(0) = state {
                limit = isLongerThanLimit ? .knownBody : nil
                complete()
            }
        case .untilClose: _ = takeLimited(.max, of: &input)
        case .chunk(let remaining):
            let left = remaining - takeLimited(remaining, of: &input)
            if case .chunk = state { state = left == 0 ? .chunkEnd : .chunk(left) }
        case .chunkLine:
            let isAtFramingLimit = framingLeft < HTTPLimit.chunkLine.value - line.count
            let used =
                isAtFramingLimit
                ? takeLine(&input, limit: .chunkFraming, used: framingBytes)
                : takeLine(&input, limit: .chunkLine, used: line.count)
            framingBytes += used.count
            if used.isEnd { endChunkLine() }
        case .chunkEnd: consumeChunkEnd(&input)
        case .trailers:
            let used = takeLine(&input, limit: .trailers, used: trailerBytes)
            trailerBytes += used.count
            if used.isEnd {
                let isEmpty = lineWithoutEnd.isEmpty
                line.removeAll(keepingCapacity: true)
                if isEmpty { complete() }
            }
        case .ended: input = input.suffix(0)
        }
    }

    /// The first bytes of a line show whether it is HTTP, so that a server of another protocol need not send a complete line.
    private mutating func consumeFirstByte(_ input: inout Input) {
        guard headBytes < HTTPLimit.head.value else { return fail(at: .head) }
        let byte = input[input.startIndex]
        input = input.dropFirst()
        headBytes += 1
        if byte == HTTPGrammar.lineFeed { return endHeadLine() }
        line.append(byte)
        guard let failure = foreignProtocol else { return }
        if failure != .notHTTP || line.count == ExternalText.excerptLength { fail(failure) }
    }

    /// The protocol of the current line's bytes, if they do not begin a status line. Frames of HTTP/2 have a length, then their type:
    /// SETTINGS (4) or GOAWAY (7) on stream 0 come first (RFC 9113 section 3.4). A record of TLS is an alert (21) or a handshake (22).
    private var foreignProtocol: HTTPExchangeFailure? {
        let beginning = HTTPResponseHead.beginning
        guard !line.isEmpty, !line.starts(with: beginning), !beginning.starts(with: line) else { return nil }
        if line.count >= 9, line[0] == 0, line[3] == 4 || line[3] == 7, line[5...8].allSatisfy({ $0 == 0 }) { return .http2 }
        if line.starts(with: Self.prefaceBeginning) { return .http2 }
        if line.count >= 3, line[0] == 21 || line[0] == 22, line[1] == 3, line[2] <= 4 { return .tls }
        return .notHTTP
    }

    private static let prefaceBeginning = Array("PRI * HTTP/2".utf8)

    /// Takes the input up to the next LF, or all of it. The exchange fails if a byte exceeds the limit.
    private mutating func takeLine(_ input: inout Input, limit: HTTPLimit, used: Int) -> (count: Int, isEnd: Bool) {
        let window = input.prefix(max(0, limit.value - used))
        let end = window.firstIndex(of: HTTPGrammar.lineFeed)
        line.append(contentsOf: window[..<(end ?? window.endIndex)])
        if let end {
            let count = end - input.startIndex + 1
            input = input.dropFirst(count)
            return (count, true)
        }
        let count = window.count
        input = input.dropFirst(count)
        if !input.isEmpty { fail(at: limit) }
        return (count, false)
    }

    /// The current line without its CR. A bare LF ends a line too (RFC 9112 section 2.2).
    private var lineWithoutEnd: ArraySlice<UInt8> {
        line.last == HTTPGrammar.carriageReturn ? line.dropLast() : line[...]
    }

    /// Counts up to `count` bytes of the body, and keeps the first ones.
    private mutating func take(_ count: Int, of input: inout Input) -> Int {
        let piece = input.prefix(count)
        body.append(contentsOf: piece.prefix(max(0, keptLimit - body.count)))
        bodyBytes += piece.count
        input = input.dropFirst(piece.count)
        return piece.count
    }

    /// Takes bytes of a body whose length is not known.
    private mutating func takeLimited(_ count: Int, of input: inout Input) -> Int {
        let taken = take(min(count, HTTPLimit.body.value - bodyBytes), of: &input)
        if taken < count, !input.isEmpty { fail(at: .body) }
        return taken
    }

    // MARK: head

    private mutating func endHeadLine() {
        let content = lineWithoutEnd
        do throws(HTTPExchangeFailure) {
            if case .statusLine = state {
                unfinished = try HTTPResponseHead(statusLine: content)
                state = .fields
            } else if content.isEmpty {
                return try endHead()
            } else {
                try unfinished?.add(fieldLine: content)
            }
            line.removeAll(keepingCapacity: true)
        } catch .limit {
            fail(at: .fields)
        } catch .notHTTP {
            fail(foreignProtocol ?? .notHTTP)
        } catch {
            fail(error)
        }
    }

    private mutating func endHead() throws(HTTPExchangeFailure) {
        line.removeAll(keepingCapacity: true)
        guard let received = unfinished else { return }
        unfinished = nil
        if received.status < 200 {
            guard received.status != 101 else { throw .upgrade }
            guard interimResponses < HTTPLimit.interimResponses.value else { return fail(at: .interimResponses) }
            interimResponses += 1
            state = .statusLine
            return
        }
        head = received
        progress = .receivingBody
        let hasCoding = received.values(of: Self.codingField).contains { !$0.isEmpty && !HTTPGrammar.isName($0, "identity") }
        if keptLimit > 0, hasCoding { keptLimit = Self.keptEncodedBytes }
        do throws(HTTPExchangeFailure) {
            switch try HTTPFraming(of: received, toHEAD: isHEAD) {
            case .none, .counted(0): complete()
            case .counted(let length):
                state = .counted(min(length, HTTPLimit.knownBody.value))
                isLongerThanLimit = length > HTTPLimit.knownBody.value
            case .chunked: state = .chunkLine
            case .untilClose: state = .untilClose
            }
        } catch {
            let name = error == .length ? "content-length" : "transfer-encoding"
            let values = received.values(of: name).joined(separator: Array(", ".utf8))
            line = Array(values.prefix(ExternalText.valueLength))
            throw error
        }
    }

    // MARK: chunks

    /// Parses `chunk-size [ chunk-ext ]`. Blanks behind the size are removed, and extensions are ignored (RFC 9112 section 7.1.1).
    private mutating func endChunkLine() {
        let content = lineWithoutEnd
        let digits = content.prefix { HTTPGrammar.hexadecimalValue($0) != nil }
        let behind = content[digits.endIndex...].drop(while: HTTPGrammar.isBlank)
        let significant = digits.drop { $0 == UInt8(ascii: "0") }
        // 15 digits fit into 60 bits.
        guard !digits.isEmpty, significant.count <= 15, behind.first.map({ $0 == UInt8(ascii: ";") }) ?? true else {
            return fail(.chunk)
        }
        let size = significant.reduce(0) { $0 << 4 | (HTTPGrammar.hexadecimalValue($1) ?? 0) }
        line.removeAll(keepingCapacity: true)
        state = size == 0 ? .trailers : .chunk(size)
    }

    private mutating func consumeChunkEnd(_ input: inout Input) {
        guard framingLeft > 0 else { return fail(at: .chunkFraming) }
        let byte = input[input.startIndex]
        input = input.dropFirst()
        framingBytes += 1
        switch byte {
        case HTTPGrammar.carriageReturn where line.isEmpty: line.append(byte)
        case HTTPGrammar.lineFeed:
            line.removeAll(keepingCapacity: true)
            state = .chunkLine
        default:
            line.append(byte)
            fail(.chunk)
        }
    }

    private var framingLeft: Int { HTTPLimit.chunkFraming.value - framingBytes }

    // MARK: end

    private mutating func complete() {
        progress = .complete
        release()
    }

    private mutating func fail(at limit: HTTPLimit) {
        self.limit = limit
        end(.limit)
    }

    private mutating func fail(_ failure: HTTPExchangeFailure) {
        if !lineWithoutEnd.isEmpty { excerpt = ExternalText.excerpt(lineWithoutEnd) }
        end(failure)
    }

    private mutating func end(_ failure: HTTPExchangeFailure) {
        progress = .failed(failure)
        release()
    }

    private mutating func release() {
        state = .ended
        line = []
        unfinished = nil
    }
}
