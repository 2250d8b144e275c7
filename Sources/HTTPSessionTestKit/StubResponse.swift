/// A response of a ``TestServer`` or a ``ScriptedTransport``, with its faults. It is a value that can be used for many requests.
///
/// ```swift
/// StubResponse(404, body: "no such user")
/// StubResponse(body: .pattern(100_000)).slow(bytesPerSecond: 10_000)
/// StubResponse(body: .pattern(100_000)).cut(afterBodyBytes: 50_000, .reset)
/// ```
public struct StubResponse: Sendable {
    /// A wait during which nothing is sent. It ends early if the client closes the connection or the server stops.
    @nonexhaustive public enum Wait: Sendable {
        /// A wait for a duration.
        case delay(Duration)
        /// A wait until the test opens the gate.
        case gate(Gate)
        /// A wait that lasts as long as the connection.
        case forever
    }

    /// The end of a connection.
    @nonexhaustive public enum Ending: Hashable, Sendable {
        /// An orderly end: with TLS a close_notify first, then FIN.
        case orderly
        /// FIN alone. With TLS the client cannot distinguish it from an attacker's cut (RFC 8446 section 6.1).
        case truncated
        /// RST. Bytes that the client has not read yet may be lost too.
        case reset
    }

    /// The framing of the body (RFC 9112 section 6).
    package enum Framing: Hashable, Sendable {
        /// Content-Length with the true length.
        case contentLength
        /// Content-Length with this number. If it is greater than the length of the body, the connection ends after the body.
        case declaredLength(Int64)
        /// Transfer-Encoding: chunked, with these trailer fields.
        case chunked(trailers: [HeaderField])
        /// Transfer-Encoding: chunked, with a fault after the first half of the body, where the connection ends.
        case brokenChunks(ChunkFault)
        /// The end of the connection.
        case untilClose
        /// The framing of ``StubResponse/fields``: no field is added.
        case asGiven
    }

    /// The fault of a chunked body.
    @nonexhaustive public enum ChunkFault: Hashable, Sendable, CaseIterable {
        /// The size is not a hexadecimal number.
        case sizeIsNoNumber
        /// The size does not fit 64 bits.
        case sizeOverflows
        /// The chunk is longer than its size.
        case endIsMissing
        /// The connection ends inside a chunk.
        case cutInChunk
        /// The connection ends after a complete chunk, without the last chunk of size 0.
        case lastChunkIsMissing
    }

    /// The use of the connection after the response.
    package enum ConnectionUse: Sendable {
        /// The server waits for the next request.
        case keepAlive
        /// The connection ends; `announced` says whether the response has `Connection: close`.
        case close(announced: Bool, Ending)
        /// The connection stays open, and ends when the first byte of the next request arrives, which is not read.
        case endWhenNextRequestArrives(Ending)
        /// The server waits for requests, and ends the connection if the gate opens between two of them.
        case endWhenOpened(Gate, Ending)
    }

    /// The point at which a response is cut, and the way in which the connection ends there.
    package struct Cut: Hashable, Sendable {
        /// A position within a response.
        package enum Point: Hashable, Sendable {
            /// The number of bytes of the final head: status line and fields.
            case head(Int)
            /// The number of bytes of the body, without its framing.
            case body(Int64)
        }
        /// The position after the last byte that is sent.
        package var point: Point
        /// The end of the connection.
        package var ending: Ending

        /// Creates a cut at this point.
        package init(at point: Point, ending: Ending = .truncated) {
            self.point = point
            self.ending = ending
        }
    }

    /// An interim response, which is sent before the final one (RFC 9110 section 15.2).
    package struct Interim: Hashable, Sendable {
        /// The status code, 100 to 199.
        package var status: Int
        /// The field lines, in their order.
        package var fields: [HeaderField]

        /// Creates an interim response with a status code from 100 to 199.
        package init(_ status: Int, fields: [HeaderField] = []) {
            self.status = status
            self.fields = fields
        }
    }

    /// Further field lines `X-Flood-0`, `X-Flood-1` and so on, which are made while they are sent.
    package struct Flood: Hashable, Sendable {
        /// The number of field lines.
        package var count: Int
        /// The length of each value, in bytes.
        package var valueBytes: Int

        /// Creates this number of field lines with values of this length.
        package init(count: Int, valueBytes: Int) {
            self.count = count
            self.valueBytes = valueBytes
        }
    }

    /// The status code; 200 by default.
    public var status: Int
    /// The reason phrase; `nil`, the default, for that of RFC 9110.
    public var reason: String?
    /// The field lines, in their order; none by default. The framing of the body and the use of the connection add to them.
    public var fields: [HeaderField]
    /// The body; empty by default. It is not sent in response to HEAD, nor with status 204 or 304.
    public var body: StubBody
    /// The framing of the body; ``Framing/contentLength`` by default.
    package var framing: Framing = .contentLength
    /// The interim responses before the final one; none by default.
    package var interim: [Interim] = []
    /// The waits before the first byte; none by default.
    package var waitsBeforeHead: [Wait] = []
    /// The waits between head and body; none by default.
    package var waitsBeforeBody: [Wait] = []
    /// The waits before each piece of ``pieceBytes`` of the body; none by default.
    package var waitsBeforePiece: [Wait] = []
    /// The greatest size of a piece in which the body is written, and chunked, in bytes; 16,384 by default.
    package var pieceBytes = 16384
    /// The rate of the body, in bytes per second; `nil`, the default, for no limit.
    package var bytesPerSecond: Int?
    /// The further field lines; `nil`, the default, for none.
    package var flood: Flood?
    /// The point at which the response is cut; `nil`, the default, for a complete response.
    package var cut: Cut?
    /// The use of the connection after the response; ``ConnectionUse/keepAlive`` by default.
    package var connectionUse: ConnectionUse = .keepAlive
    /// Whether only the body is sent, without status line and fields; `false` by default.
    package var isRaw = false
    /// The failure that replaces the response (``failing(_:)``).
    var failure: StubFailure?
    /// The entity tag of a body that is served in ranges (``servingRanges(entityTag:)``).
    var rangeTag: String?

    /// Creates a response without faults.
    public init(_ status: Int = 200, fields: KeyValuePairs<String, String> = [:], body: StubBody = .empty) {
        self.status = status
        self.fields = fields.map { HeaderField($0.key, $0.value) }
        self.body = body
    }

    /// Whether a response with this status has a body (RFC 9112 section 6.3).
    var mayHaveBody: Bool { !(100..<200).contains(status) && status != 204 && status != 304 }
}
