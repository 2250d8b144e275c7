package import ContentCodings
package import Wire

/// The response to one request of a probe, with the limits of a probe. The connection is the request's own.
///
/// Of the body, the first ``keptBytes`` are kept if somebody needs them, or ``keptEncodedBytes`` if it has a coding, and the others are counted.
package struct HTTPExchange: Sendable {
    package enum Progress: Hashable, Sendable {
        case awaitingHead
        case receivingBody
        case complete
        case failed(HTTPResponseReader.Failure)
    }

    /// The most bytes of a body that are kept for expectations: 64 KiB.
    package static let keptBytes = 64 << 10
    /// The most bytes of a body with a coding, such as gzip, that are kept: 128 KiB. Even incompressible data are shorter than twice the decoded
    /// ones.
    package static let keptEncodedBytes = 128 << 10

    private static let limits = HTTPResponseReader.Limits(
        head: HTTPLimit.head.value, fields: HTTPLimit.fields.value, interimResponses: HTTPLimit.interimResponses.value,
        body: HTTPLimit.body.value, knownBody: HTTPLimit.knownBody.value, chunkLine: HTTPLimit.chunkLine.value,
        chunkFraming: HTTPLimit.chunkFraming.value, trailers: HTTPLimit.trailers.value)

    package private(set) var progress = Progress.awaitingHead
    /// The head of the final response; `nil` until it is complete.
    package private(set) var head: HTTPResponseReader.Head?
    /// The first bytes of the body as received, at most ``keptLimit``; empty if they are not kept.
    package private(set) var body: [UInt8] = []
    /// The most bytes of the body that are kept.
    package private(set) var keptLimit: Int
    private var reader: HTTPResponseReader

    /// Creates the exchange of a request.
    ///
    /// - Parameters:
    ///   - method: the request's method: a response to HEAD has no body.
    ///   - keepsBody: whether the first bytes of the body are kept.
    package init(method: String, keepsBody: Bool = true) {
        reader = HTTPResponseReader(method: method, .lenient, limits: Self.limits)
        keptLimit = keepsBody ? Self.keptBytes : 0
    }

    /// Whether the exchange needs no more bytes.
    package var isEnded: Bool {
        switch progress {
        case .awaitingHead, .receivingBody: false
        case .complete, .failed: true
        }
    }

    /// The number of received bytes of the body.
    package var bodyBytes: Int { reader.bodyBytes }
    /// The number of received bytes, up to the end of the response.
    package var receivedBytes: Int { reader.receivedBytes }
    /// The limit that ended the exchange.
    package var limit: HTTPLimit? { reader.limit.map(HTTPLimit.init) }

    /// Takes the next bytes of the connection. Bytes behind the end of the response are ignored.
    package mutating func receive(_ bytes: UnsafeRawBufferPointer) {
        var input = bytes[...]
        do throws(HTTPResponseReader.Failure) {
            while let event = try reader.next(&input) { handle(event) }
        } catch { progress = .failed(error) }
    }

    /// Takes the next bytes of the connection.
    package mutating func receive(_ bytes: [UInt8]) { bytes.withUnsafeBytes { receive($0) } }

    /// Takes the next bytes of the connection.
    package mutating func receive(_ bytes: ArraySlice<UInt8>) { bytes.withUnsafeBytes { receive($0) } }

    /// Takes the end of the connection: the server closed it, or sends nothing more.
    package mutating func endOfInput() {
        do throws(HTTPResponseReader.Failure) {
            if let event = try reader.endOfInput() { handle(event) }
        } catch { progress = .failed(error) }
    }

    private mutating func handle(_ event: HTTPResponseReader.Event) {
        switch event {
        case .head(let received):
            head = received
            progress = .receivingBody
            let hasCoding = received.values(of: Self.codingField).contains { !$0.isEmpty && !HTTPGrammar.isName($0, "identity") }
            if keptLimit > 0, hasCoding { keptLimit = Self.keptEncodedBytes }
        case .body(let piece): body.append(contentsOf: piece.prefix(max(0, keptLimit - body.count)))
        case .end: progress = .complete
        }
    }

    /// The facts of the exchange so far. `failure` is also set while bytes that are not HTTP are still collected.
    package var facts: HTTPResponseFacts {
        var facts = HTTPResponseFacts(receivedBytes: receivedBytes, bodyBytes: bodyBytes, limit: limit)
        if case .failed(let failure) = progress { facts.failure = failure }
        if !reader.invalidBytes.isEmpty { facts.excerpt = ExternalText.excerpt(reader.invalidBytes) }
        if let expected = reader.expectedFailure {
            facts.failure = expected.failure
            facts.excerpt = ExternalText.excerpt(expected.bytes)
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
}

extension HTTPLimit {
    fileprivate init(_ limit: HTTPResponseReader.Limit) {
        self =
            switch limit {
            case .head: .head
            case .fields: .fields
            case .interimResponses: .interimResponses
            case .body: .body
            case .knownBody: .knownBody
            case .chunkLine: .chunkLine
            case .chunkFraming: .chunkFraming
            case .trailers: .trailers
            }
    }
}
