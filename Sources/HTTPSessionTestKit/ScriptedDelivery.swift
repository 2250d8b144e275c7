import HTTPSession

/// The delivery of a response to a scripted transfer, step by step.
struct ScriptedDelivery {
    enum Next {
        case wait(StubResponse.Wait)
        case interim(ResponseHead)
        case head(ResponseHead)
        /// The next piece of the body; it is returned again until ``ScriptedDelivery/took(_:)`` is called.
        case bytes([UInt8])
        /// The end of the response, with the error of a missing or incomplete response.
        case end(HTTPSessionError?)
    }

    private enum Part {
        case wait(StubResponse.Wait)
        case interim(ResponseHead)
        case head(ResponseHead)
        case segment(StubBody.Segment)
        case end(HTTPSessionError?)
    }

    private var parts: [Part] = []
    private var index = 0
    /// The bytes of the present segment that have been delivered.
    private var offset: Int64 = 0
    private var bodySent: Int64 = 0
    /// The position at which the body ends; the segments may exceed it.
    private var bodyEnd = Int64.max
    private var pieceBytes = 1
    private var waitsBeforePiece: [StubResponse.Wait] = []
    /// The number of these waits that have ended before the present piece.
    private var passedWaits = 0
    private var bytesPerSecond: Int?
    private var bodyStart: Int64?

    init() {}

    init(_ response: StubResponse, method: String, isSecure: Bool) {
        parts = response.waitsBeforeHead.map { .wait($0) }
        (pieceBytes, waitsBeforePiece) = (response.pieceSize, response.waitsBeforePiece)
        bytesPerSecond = response.bytesPerSecond
        if response.isRaw {
            addRaw(response, method: method, isSecure: isSecure)
            return
        }
        for interim in response.interim {
            let text = StubResponse.headText(interim.status, nil, interim.fields) + "\r\n"
            if let head = ResponseHead(bytes: Array(text.utf8)) { parts.append(.interim(head)) }
        }
        let text = response.headText(closes: false) + response.floodText + "\r\n"
        if let cut = response.cut, case .head(let count) = cut.point {
            parts.append(.end(StubFailure.cutHead(count, cut.ending)))
        } else if text.utf8.count > StubFailure.maximumHeadBytes {
            parts.append(.end(StubFailure.longHead))
        } else if let head = ResponseHead(bytes: Array(text.utf8)) {
            add(head, response, method: method, isSecure: isSecure)
        } else {
            parts.append(.end(StubFailure.noStatus))
        }
    }

    /// Adds a response whose body includes its head.
    private mutating func addRaw(_ response: StubResponse, method: String, isSecure: Bool) {
        var bytes: [UInt8] = []
        for segment in response.body.segments {
            if case .wait(let wait) = segment { parts.append(.wait(wait)) }
            // Raw responses are written byte by byte in tests: 1 MiB of a segment is enough.
            bytes += segment.bytes(at: 0, count: Int(min(segment.count, 1 << 20)))
        }
        var ending = StubResponse.Ending.orderly
        if case .close(_, let chosen) = response.connectionUse { ending = chosen }
        guard !bytes.isEmpty else { return parts.append(.end(StubFailure.noResponse(ending))) }
        guard bytes.starts(with: "HTTP/".utf8) else { return parts.append(.end(StubFailure.notHTTP)) }
        guard let end = bytes.firstRange(of: Array("\r\n\r\n".utf8))?.upperBound,
            let head = ResponseHead(bytes: Array(bytes[..<end]))
        else { return parts.append(.end(StubFailure.headEnded)) }
        var parsed = StubResponse(head.statusCode, body: .bytes(bytes[end...]))
        (parsed.framing, parsed.connectionUse) = (.asGiven, response.connectionUse)
        add(head, parsed, method: method, isSecure: isSecure)
    }

    private mutating func add(_ head: ResponseHead, _ response: StubResponse, method: String, isSecure: Bool) {
        do throws(HTTPSessionError) { _ = try ResponseFraming(head, method: method) } catch { return parts.append(.end(error)) }
        guard head.statusCode != 101 else { return parts.append(.end(StubFailure.switchedProtocol)) }
        parts.append(.head(head))
        guard response.mayHaveBody, method != "HEAD" else { return parts.append(.end(nil)) }
        parts += response.waitsBeforeBody.map { .wait($0) }
        parts += response.body.segments.map { .segment($0) }
        let promised = response.isChunked ? nil : head.firstValue(of: "content-length").flatMap { Int64($0) }
        bodyEnd = min(promised ?? .max, response.cutPosition ?? .max)
        parts.append(.end(response.bodyError(promised: promised, isSecure: isSecure)))
    }

    /// The gate at which the response waits; `nil` for none.
    var gate: Gate? {
        guard index < parts.count else { return nil }
        switch parts[index] {
        case .segment where bodySent >= bodyEnd: return nil
        case .wait(.gate(let gate)), .segment(.wait(.gate(let gate))): return gate
        case .segment:
            if passedWaits < waitsBeforePiece.count, case .gate(let gate) = waitsBeforePiece[passedWaits] { return gate }
            return nil
        case .wait, .interim, .head, .end: return nil
        }
    }

    /// Returns the next step. A delay, and a wait that has ended, are not returned again.
    mutating func next(now: Int64) -> Next {
        while index < parts.count {
            switch parts[index] {
            // After the end of the body, its remaining waits do not count.
            case .segment where bodySent >= bodyEnd: index += 1
            case .wait(let wait), .segment(.wait(let wait)):
                if let wait = pass(wait) { return .wait(wait) }
            case .interim(let head):
                index += 1
                return .interim(head)
            case .head(let head):
                index += 1
                return .head(head)
            case .segment(let segment):
                if let next = piece(of: segment, now: now) { return next }
                (index, offset) = (index + 1, 0)
            case .end(let error): return .end(error)
            }
        }
        return .end(nil)
    }

    /// Takes the next wait. - Returns: the wait, if it has not ended.
    private mutating func pass(_ wait: StubResponse.Wait) -> StubResponse.Wait? {
        switch wait {
        case .delay:
            index += 1
            return wait
        case .gate(let gate):
            guard gate.isOpen else { return wait }
            index += 1
            return nil
        case .forever: return wait
        }
    }

    private mutating func piece(of segment: StubBody.Segment, now: Int64) -> Next? {
        let count = min(Int64(pieceBytes), segment.count - offset, bodyEnd - bodySent)
        guard count > 0 else { return nil }
        while passedWaits < waitsBeforePiece.count {
            let wait = waitsBeforePiece[passedWaits]
            switch wait {
            case .gate(let gate) where gate.isOpen: break
            case .gate, .forever: return .wait(wait)
            case .delay: break
            }
            passedWaits += 1
            if case .delay = wait { return .wait(wait) }
        }
        if let bytesPerSecond {
            let start = bodyStart ?? now
            bodyStart = start
            let due = start + Int64(min(Double(bodySent) / Double(bytesPerSecond) * 1e9, 1e18))
            if due > now { return .wait(.delay(.nanoseconds(due - now))) }
        }
        return .bytes(segment.bytes(at: offset, count: Int(count)))
    }

    /// Records that the receiver has taken the piece.
    mutating func took(_ count: Int) {
        offset += Int64(count)
        bodySent += Int64(count)
        passedWaits = 0
    }
}

extension StubResponse {
    /// Whether the body is framed by chunks.
    fileprivate var isChunked: Bool {
        switch framing {
        case .chunked, .brokenChunks: true
        case .contentLength, .declaredLength, .untilClose, .asGiven: false
        }
    }

    /// The number of bytes of the body after which the connection ends; `nil` if it does not end within the body.
    fileprivate var cutPosition: Int64? {
        if case .brokenChunks = framing { return body.count / 2 }
        guard let cut, case .body(let position) = cut.point else { return nil }
        return position
    }

    /// The error of the response after its body, or after the bytes before the cut. `promised` is the length in the head.
    fileprivate func bodyError(promised: Int64?, isSecure: Bool) -> HTTPSessionError? {
        if case .brokenChunks(let fault) = framing { return StubFailure.brokenChunks(fault) }
        let sent = min(body.count, cutPosition ?? .max)
        var ending = Ending.orderly
        if case .close(_, let chosen) = connectionUse { ending = chosen }
        if let cut { ending = cut.ending }
        if let promised { return sent < promised ? StubFailure.cutBody(ending) : nil }
        if isChunked { return cut == nil ? nil : StubFailure.cutBody(ending) }
        // The end of the connection is the end of the body.
        switch ending {
        case .orderly: return nil
        case .truncated: return isSecure ? StubFailure.noCloseNotify : nil
        case .reset: return StubFailure.cutBody(.reset)
        }
    }
}
