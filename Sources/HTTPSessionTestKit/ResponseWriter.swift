import EventLoop

/// Sends one response over a connection, with its faults.
package struct ResponseWriter {
    /// The response is cut here.
    struct CutHere: Error {
        let ending: StubResponse.Ending
    }

    private let reply: StubResponse
    private let channel: Channel
    private let isHeadRequest: Bool
    private let closes: Bool
    /// Called with the size of each piece of the body that has been sent.
    private let sent: (Int64) -> Void
    private var bodySent: Int64 = 0
    private var bodyStart: Int64?

    /// - Parameters:
    ///   - reply: the response.
    ///   - channel: the connection.
    ///   - isHeadRequest: whether the request was HEAD, so that no body is sent.
    ///   - closes: whether the client has asked for the end of the connection, which the response then announces.
    ///   - sent: called with the size of each piece of the body.
    package init(
        _ reply: StubResponse, to channel: Channel, isHeadRequest: Bool, closes: Bool, sent: @escaping (Int64) -> Void = { _ in }
    ) {
        self.reply = reply
        self.channel = channel
        self.isHeadRequest = isHeadRequest
        self.closes = closes
        self.sent = sent
    }

    /// Sends the response and returns how the connection ends after it; `nil` if the connection is kept.
    package mutating func send() throws -> StubResponse.Ending? {
        for wait in reply.waitsBeforeHead { try channel.wait(wait) }
        do {
            if !reply.isRaw {
                for interim in reply.interim {
                    try channel.write(StubResponse.headText(interim.status, nil, interim.fields) + "\r\n")
                }
                try sendHead()
                for wait in reply.waitsBeforeBody { try channel.wait(wait) }
            }
            if reply.isRaw || (reply.mayHaveBody && !isHeadRequest) { try sendBody() }
            if let cut = reply.cut { throw CutHere(ending: cut.ending) }
        } catch let cut as CutHere {
            return cut.ending
        }
        return ending
    }

    private var ending: StubResponse.Ending? {
        if case .close(_, let ending) = reply.connectionUse { return ending }
        switch reply.framing {
        case .brokenChunks: return .truncated
        case .untilClose: return .orderly
        case .declaredLength(let length) where length > reply.body.count && !isHeadRequest: return .truncated
        case .declaredLength, .contentLength, .chunked, .asGiven: return closes ? .orderly : nil
        }
    }

    // MARK: Head

    private func sendHead() throws {
        var text = reply.headText(closes: closes)
        if let cut = reply.cut, case .head(let count) = cut.point {
            try channel.write((text + "\r\n").utf8.prefix(count))
            throw CutHere(ending: cut.ending)
        }
        if let flood = reply.flood {
            let value = String(repeating: "f", count: flood.valueBytes)
            for number in 0..<flood.count {
                text += "X-Flood-\(number): \(value)\r\n"
                if text.utf8.count > 65536 {
                    try channel.write(text)
                    text = ""
                }
            }
        }
        try channel.write(text + "\r\n")
    }

    // MARK: Body

    private mutating func sendBody() throws {
        bodyStart = MonotonicClock.now()
        if case .body(0) = reply.cut?.point { throw CutHere(ending: reply.cut?.ending ?? .truncated) }
        switch reply.framing {
        case .brokenChunks(let fault):
            let half = reply.body.count / 2
            try send(reply.body, upTo: half, isChunked: true)
            try sendFault(fault)
        case .chunked(let trailers):
            try send(reply.body, upTo: .max, isChunked: true)
            try channel.write(trailers.reduce("0\r\n") { $0 + "\($1.name): \($1.value)\r\n" } + "\r\n")
        case .contentLength, .declaredLength, .untilClose, .asGiven:
            try send(reply.body, upTo: .max, isChunked: false)
        }
    }

    private mutating func send(_ body: StubBody, upTo limit: Int64, isChunked: Bool) throws {
        for segment in body.segments {
            if case .wait(let wait) = segment {
                try channel.wait(wait)
                continue
            }
            var offset: Int64 = 0
            while offset < segment.count {
                var count = min(Int64(reply.pieceSize), segment.count - offset, limit - bodySent)
                if let cut = reply.cut, case .body(let end) = cut.point { count = min(count, end - bodySent) }
                guard count > 0 else { return }
                for wait in reply.waitsBeforePiece { try channel.wait(wait) }
                try pace()
                let bytes = segment.bytes(at: offset, count: Int(count))
                try channel.write(isChunked ? Array("\(String(count, radix: 16))\r\n".utf8) + bytes + [13, 10] : bytes)
                offset += count
                bodySent += count
                sent(count)
                if let cut = reply.cut, cut.point == .body(bodySent) { throw CutHere(ending: cut.ending) }
            }
        }
    }

    /// Waits until what has been sent was due.
    private func pace() throws {
        guard let speed = reply.bytesPerSecond, let bodyStart else { return }
        let due = Double(bodySent) / Double(max(1, speed)) * 1e9
        try channel.wait(until: bodyStart + Int64(min(due, 1e18)))
    }

    private func sendFault(_ fault: StubResponse.ChunkFault) throws {
        switch fault {
        case .sizeIsNoNumber: try channel.write("zz\r\nabc\r\n0\r\n\r\n")
        case .sizeOverflows: try channel.write("FFFFFFFFFFFFFFFFF\r\nabc\r\n0\r\n\r\n")
        case .endIsMissing: try channel.write("3\r\nabcdef\r\n0\r\n\r\n")
        case .cutInChunk: try channel.write("10\r\nabc")
        case .lastChunkIsMissing: try channel.write("3\r\nabc\r\n")
        }
    }
}
