/// What a ``TestServer`` answers, and how it goes wrong. A value: it can be made once and used for many requests.
///
/// ```swift
/// StubResponse(404, body: "no such thing")
/// StubResponse(body: .pattern(100_000)).slow(bytesPerSecond: 10_000)
/// StubResponse(body: .pattern(100_000)).cut(afterBodyBytes: 50_000, .reset)
/// ```
public struct StubResponse: Sendable {
    /// Why nothing is sent for a while. Each ends early when the client leaves or the server stops.
    public enum Wait: Sendable {
        /// This long.
        case delay(Duration)
        /// Until the test opens the gate.
        case gate(Gate)
        /// For as long as the client stays.
        case forever
    }

    /// How a connection ends.
    public enum Ending: Hashable, Sendable {
        /// As it should: with TLS a close_notify first, then FIN.
        case orderly
        /// FIN alone: with TLS the client cannot tell it from an attacker's cut (RFC 8446 section 6.1).
        case truncated
        /// RST: what the client has not read yet may be lost too.
        case reset
    }

    /// How the end of the body is told (RFC 9112 section 6).
    public enum Framing: Hashable, Sendable {
        /// Content-Length, with the truth.
        case contentLength
        /// Content-Length, with this number. When more is promised than comes, the connection ends after the body.
        case declaredLength(Int64)
        /// Transfer-Encoding: chunked, with these trailer fields.
        case chunked(trailers: [HeaderField])
        /// Chunked; what follows the first half of the body is broken, and the connection ends there.
        case brokenChunks(ChunkFault)
        /// By the end of the connection.
        case untilClose
        /// The server adds no field: it is all in ``StubResponse/fields``.
        case asGiven
    }

    /// What is wrong with a chunked body.
    public enum ChunkFault: Hashable, Sendable, CaseIterable {
        /// The size is no hexadecimal number.
        case sizeIsNoNumber
        /// The size does not fit 64 bits.
        case sizeOverflows
        /// The chunk goes on where its size says that it ends.
        case endIsMissing
        /// The connection ends inside a chunk.
        case cutInChunk
        /// The connection ends after a whole chunk, without the last one of size 0.
        case lastChunkIsMissing
    }

    /// What becomes of the connection after the reply.
    public enum ConnectionUse: Sendable {
        /// It waits for the next request.
        case keepAlive
        /// It ends; `announced` says whether the reply has `Connection: close`.
        case close(announced: Bool, Ending)
        /// It looks alive, and ends as soon as the next request begins to arrive, without being read.
        case endWhenNextRequestArrives(Ending)
        /// It waits for requests, and ends when the gate opens between two of them.
        case endWhenOpened(Gate, Ending)
    }

    /// Where a reply is broken off, and how.
    public struct Cut: Hashable, Sendable {
        /// What is counted.
        public enum Point: Hashable, Sendable {
            /// Bytes of the final head: status line and fields.
            case head(Int)
            /// Bytes of the body, without what frames it.
            case body(Int64)
        }
        /// What is still sent.
        public var point: Point
        /// How the connection ends there.
        public var ending: Ending
    }

    /// A reply with a 1xx status, sent before the final one (RFC 9110 section 15.2).
    public struct Interim: Hashable, Sendable {
        /// 100 to 199.
        public var status: Int
        /// Its field lines.
        public var fields: [HeaderField]
    }

    /// The status code.
    public var status: Int
    /// The reason phrase; nil for the usual one.
    public var reason: String?
    /// The field lines, in order; ``framing`` and ``connectionUse`` may add to them.
    public var fields: [HeaderField]
    /// The body. It is not sent in reply to HEAD, and not with 204 and 304.
    public var body: StubBody
    /// How the end of the body is told.
    public var framing: Framing = .contentLength
    /// What comes before the final reply.
    public var interim: [Interim] = []
    /// What is waited for before the first byte.
    public var waitsBeforeHead: [Wait] = []
    /// What is waited for between head and body.
    public var waitsBeforeBody: [Wait] = []
    /// What is waited for before each piece of ``pieceBytes`` of the body.
    public var waitsBeforePiece: [Wait] = []
    /// The body is written, and chunked, in pieces of at most this size.
    public var pieceBytes = 16384
    /// How fast the body is sent; nil for as fast as it goes.
    public var bytesPerSecond: Int?
    /// So many further field lines `X-Flood-N` with values of so many bytes each, made while they are sent.
    public var flood: (count: Int, valueBytes: Int)?
    /// Where the reply is broken off.
    public var cut: Cut?
    /// What becomes of the connection.
    public var connectionUse: ConnectionUse = .keepAlive
    /// Whether only the body goes out, without status line and fields.
    public var isRaw = false

    /// A reply that is as it should be.
    public init(_ status: Int = 200, fields: KeyValuePairs<String, String> = [:], body: StubBody = .empty) {
        self.status = status
        self.fields = fields.map { HeaderField($0.key, $0.value) }
        self.body = body
    }

    /// Whether a message with this status has a body at all (RFC 9112 section 6.3).
    var mayHaveBody: Bool { !(100..<200).contains(status) && status != 204 && status != 304 }
}
