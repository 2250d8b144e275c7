extension StubResponse {
    /// Sends nothing until the gate opens.
    public func held(by gate: Gate) -> StubResponse { with { $0.waitsBeforeHead.append(.gate(gate)) } }

    /// Sends nothing for a duration.
    public func delayed(_ duration: Duration) -> StubResponse { with { $0.waitsBeforeHead.append(.delay(duration)) } }

    /// Sends the head at once, and the body when the gate opens.
    public func bodyHeld(by gate: Gate) -> StubResponse { with { $0.waitsBeforeBody.append(.gate(gate)) } }

    /// Sends the body in pieces of this size, with a wait before each.
    public func pieces(of bytes: Int, after wait: Wait) -> StubResponse {
        with {
            $0.pieceBytes = max(1, bytes)
            $0.waitsBeforePiece.append(wait)
        }
    }

    /// Sends the body at this rate, in bytes per second.
    public func slow(bytesPerSecond: Int) -> StubResponse { with { $0.bytesPerSecond = max(1, bytesPerSecond) } }

    /// Ends the connection after this number of bytes of the body.
    public func cut(afterBodyBytes count: Int64, _ ending: Ending = .truncated) -> StubResponse {
        with { $0.cut = Cut(at: .body(count), ending: ending) }
    }

    /// Ends the connection after this number of bytes of the head.
    public func cut(afterHeadBytes count: Int, _ ending: Ending = .truncated) -> StubResponse {
        with { $0.cut = Cut(at: .head(count), ending: ending) }
    }

    /// Declares this length, in bytes, instead of the length of the body.
    public func declaredLength(_ count: Int64) -> StubResponse { with { $0.framing = .declaredLength(count) } }

    /// Sends the body in chunks (RFC 9112 section 7.1).
    public func chunked(trailers: KeyValuePairs<String, String> = [:]) -> StubResponse {
        with { $0.framing = .chunked(trailers: trailers.map { HeaderField($0.key, $0.value) }) }
    }

    /// Sends the body in chunks, with a fault after its first half.
    public func brokenChunks(_ fault: ChunkFault) -> StubResponse { with { $0.framing = .brokenChunks(fault) } }

    /// Ends the body with the connection, without a length.
    public func untilClose() -> StubResponse { with { $0.framing = .untilClose } }

    /// Adds an interim response before the final one.
    public func interim(_ status: Int, fields: KeyValuePairs<String, String> = [:]) -> StubResponse {
        with { $0.interim.append(Interim(status, fields: fields.map { HeaderField($0.key, $0.value) })) }
    }

    /// Adds this number of field lines.
    public func headerFlood(_ count: Int, valueBytes: Int) -> StubResponse {
        with { $0.flood = Flood(count: count, valueBytes: valueBytes) }
    }

    /// Ends the connection after the response. The response announces the end unless `announced` is `false`.
    public func closing(announced: Bool = true, _ ending: Ending = .orderly) -> StubResponse {
        with { $0.connectionUse = .close(announced: announced, ending) }
    }

    /// Keeps the connection open until the next request arrives, and ends it without reading that request.
    public func endingOnNextRequest(_ ending: Ending = .reset) -> StubResponse {
        with { $0.connectionUse = .endWhenNextRequestArrives(ending) }
    }

    /// Keeps the connection, and ends it when the gate opens.
    public func ending(when gate: Gate, _ ending: Ending = .orderly) -> StubResponse {
        with { $0.connectionUse = .endWhenOpened(gate, ending) }
    }

    /// Adds a field line.
    public func field(_ name: String, _ value: String) -> StubResponse { with { $0.fields.append(HeaderField(name, value)) } }

    private func with(_ change: (inout StubResponse) -> Void) -> StubResponse {
        var copy = self
        change(&copy)
        return copy
    }
}

extension StubResponse {
    /// Returns no response: the request is read, and the connection ends.
    public static func none(_ ending: Ending = .truncated) -> StubResponse {
        raw(.empty, ending)
    }

    /// Returns no response, because the connection fails. A ``ScriptedTransport`` fails like libcurl. A server has accepted the
    /// connection by then, and resets it.
    public static func failing(_ failure: StubFailure) -> StubResponse {
        var reply = none(.reset)
        reply.failure = failure
        return reply
    }

    /// A response that never arrives: the request is read, and the connection stays open.
    public static let never = raw(StubBody([.wait(.forever)]))

    /// Returns bytes that need not be HTTP, and the end of the connection: `SSH-2.0-…`, HTTP/0.9, half a head.
    public static func raw(_ bytes: StubBody, _ ending: Ending = .truncated) -> StubResponse {
        var reply = StubResponse(body: bytes)
        reply.isRaw = true
        reply.connectionUse = .close(announced: false, ending)
        return reply
    }

    /// Returns a redirect to a location; to `request.target` for a loop.
    public static func redirect(_ status: Int = 302, to location: String) -> StubResponse {
        StubResponse(status, fields: ["Location": location])
    }

    /// A 401 with a challenge for each string (RFC 9110 section 11.6.1).
    public static func unauthorized(_ challenges: String...) -> StubResponse {
        var reply = StubResponse(401)
        reply.fields = challenges.map { HeaderField("WWW-Authenticate", $0) }
        return reply
    }

    /// A 407 with a challenge for each string (RFC 9110 section 11.7.1).
    public static func proxyAuthenticationRequired(_ challenges: String...) -> StubResponse {
        var reply = StubResponse(407)
        reply.fields = challenges.map { HeaderField("Proxy-Authenticate", $0) }
        return reply
    }

    /// A response with `Content-Encoding: gzip`, whose body has that coding.
    public static func gzip(_ body: StubBody) -> StubResponse {
        StubResponse(fields: ["Content-Encoding": "gzip"], body: body)
    }

    /// A compressed response that a client decompresses to a thousand times as many zero bytes.
    public static func gzipBomb(inflatedBytes: Int64) -> StubResponse {
        gzip(.gzipBomb(inflatedBytes: inflatedBytes))
    }
}
