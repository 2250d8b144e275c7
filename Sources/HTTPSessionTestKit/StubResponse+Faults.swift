extension StubResponse {
    /// Nothing is sent until the gate opens.
    public func held(by gate: Gate) -> StubResponse { with { $0.waitsBeforeHead.append(.gate(gate)) } }

    /// Nothing is sent for a while.
    public func delayed(_ duration: Duration) -> StubResponse { with { $0.waitsBeforeHead.append(.delay(duration)) } }

    /// The head goes out, the body when the gate opens.
    public func bodyHeld(by gate: Gate) -> StubResponse { with { $0.waitsBeforeBody.append(.gate(gate)) } }

    /// The body comes in pieces of so many bytes, with a wait before each.
    public func pieces(of bytes: Int, after wait: Wait) -> StubResponse {
        with {
            $0.pieceBytes = max(1, bytes)
            $0.waitsBeforePiece.append(wait)
        }
    }

    /// The body comes at this speed.
    public func slow(bytesPerSecond: Int) -> StubResponse { with { $0.bytesPerSecond = max(1, bytesPerSecond) } }

    /// The connection ends when so many bytes of the body are out.
    public func cut(afterBodyBytes count: Int64, _ ending: Ending = .truncated) -> StubResponse {
        with { $0.cut = Cut(point: .body(count), ending: ending) }
    }

    /// The connection ends within the head.
    public func cut(afterHeadBytes count: Int, _ ending: Ending = .truncated) -> StubResponse {
        with { $0.cut = Cut(point: .head(count), ending: ending) }
    }

    /// Content-Length says something else than the truth.
    public func declaredLength(_ count: Int64) -> StubResponse { with { $0.framing = .declaredLength(count) } }

    /// The body is chunked.
    public func chunked(trailers: KeyValuePairs<String, String> = [:]) -> StubResponse {
        with { $0.framing = .chunked(trailers: trailers.map { HeaderField($0.key, $0.value) }) }
    }

    /// The body is chunked, and broken after its first half.
    public func brokenChunks(_ fault: ChunkFault) -> StubResponse { with { $0.framing = .brokenChunks(fault) } }

    /// The end of the connection is the end of the body.
    public func untilClose() -> StubResponse { with { $0.framing = .untilClose } }

    /// Comes before the final reply, after those already there.
    public func interim(_ status: Int, fields: KeyValuePairs<String, String> = [:]) -> StubResponse {
        with { $0.interim.append(Interim(status: status, fields: fields.map { HeaderField($0.key, $0.value) })) }
    }

    /// Has so many further field lines.
    public func headerFlood(_ count: Int, valueBytes: Int) -> StubResponse { with { $0.flood = (count, valueBytes) } }

    /// The connection ends after the reply, which says so unless `announced` is false.
    public func closing(announced: Bool = true, _ ending: Ending = .orderly) -> StubResponse {
        with { $0.connectionUse = .close(announced: announced, ending) }
    }

    /// The connection looks alive, and ends when the next request arrives, unread.
    public func endingOnNextRequest(_ ending: Ending = .reset) -> StubResponse {
        with { $0.connectionUse = .endWhenNextRequestArrives(ending) }
    }

    /// The connection is kept, and ends when the gate opens.
    public func ending(when gate: Gate, _ ending: Ending = .orderly) -> StubResponse {
        with { $0.connectionUse = .endWhenOpened(gate, ending) }
    }

    /// One more field line.
    public func field(_ name: String, _ value: String) -> StubResponse { with { $0.fields.append(HeaderField(name, value)) } }

    private func with(_ change: (inout StubResponse) -> Void) -> StubResponse {
        var copy = self
        change(&copy)
        return copy
    }
}

extension StubResponse {
    /// The request was read, and the connection ends without a byte.
    public static func none(_ ending: Ending = .truncated) -> StubResponse {
        raw(.empty, ending)
    }

    /// The request was read, and nothing ever comes.
    public static let never = raw(StubBody([.wait(.forever)]))

    /// Bytes that need not be HTTP, and then the end of the connection: `SSH-2.0-…`, HTTP/0.9, half a head.
    public static func raw(_ bytes: StubBody, _ ending: Ending = .truncated) -> StubResponse {
        var reply = StubResponse(body: bytes)
        reply.isRaw = true
        reply.connectionUse = .close(announced: false, ending)
        return reply
    }

    /// Sends the client elsewhere; to `request.target` for a loop.
    public static func redirect(_ status: Int = 302, to location: String) -> StubResponse {
        StubResponse(status, fields: ["Location": location])
    }

    /// 401 with a challenge for each string (RFC 9110 section 11.6.1).
    public static func unauthorized(_ challenges: String...) -> StubResponse {
        var reply = StubResponse(401)
        reply.fields = challenges.map { HeaderField("WWW-Authenticate", $0) }
        return reply
    }

    /// 407 with a challenge for each string (RFC 9110 section 11.7.1).
    public static func proxyAuthenticationRequired(_ challenges: String...) -> StubResponse {
        var reply = StubResponse(407)
        reply.fields = challenges.map { HeaderField("Proxy-Authenticate", $0) }
        return reply
    }

    /// `Content-Encoding: gzip` and a body of that coding.
    public static func gzip(_ body: StubBody) -> StubResponse {
        StubResponse(fields: ["Content-Encoding": "gzip"], body: body)
    }

    /// What is sent is a thousandth of the zeros that a client gets which decodes it.
    public static func gzipBomb(inflatedBytes: Int64) -> StubResponse {
        gzip(.gzipBomb(inflatedBytes: inflatedBytes))
    }
}
