/// One connection to a ``TestServer``, on a thread of its own.
struct Conversation {
    let number: Int
    let channel: Channel
    let tls: TLSServerContext?
    let configuration: TestServer.Configuration
    let log: ServerLog<TestServer.Seen>
    let reply: @Sendable (ReceivedRequest) -> StubResponse

    /// A response whose delivery has not been reported.
    private final class Last {
        var request: ReceivedRequest?
        var sentBytes: Int64 = 0
    }

    /// Runs until the connection ends.
    func run() {
        let last = Last()
        // After the end of the connection, which may wait for bytes that are under way.
        defer { deliver(last, channel.pendingBytes) }
        do {
            channel.end(try converse(last))
        } catch is RequestReader.Malformed {
            try? channel.write("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            channel.end(.orderly)
        } catch ChannelEnd.stopped {
            // The descriptor closes, and with it the connection.
        } catch {
            channel.end(.truncated)
        }
    }

    private func converse(_ last: Last) throws -> StubResponse.Ending {
        switch configuration.arrival(number) {
        case .serve: break
        case .end(let ending): return ending
        case .respond(let reply):
            var writer = ResponseWriter(reply, to: channel, isHeadRequest: false, closes: true, sent: count)
            return try writer.send() ?? .orderly
        }
        var details: ReceivedRequest.TLSDetails?
        if let tls {
            do { details = try channel.handshake(tls) } catch {
                log.change { $0.failedHandshakes += 1 }
                throw error
            }
            let isResumed = details?.isResumed == true
            log.change { seen in
                seen.handshakes += 1
                if isResumed { seen.resumedHandshakes += 1 }
            }
        }
        let reader = RequestReader(channel)
        var requests = 0
        while let head = try reader.head() {
            requests += 1
            // A client that sends the next request has received the last response.
            deliver(last, (0, 0))
            var request = ReceivedRequest(
                method: head.method, target: head.target, version: head.version, fields: head.fields, connection: number,
                numberOnConnection: requests, arrival: log.change { $0.nextArrival() }, tls: details)
            var closes = head.wantsClose
            var answer: StubResponse
            switch configuration.onHead(request) {
            case .readBody(let waits, let speed, let sendsContinue):
                for wait in waits { try channel.wait(wait) }
                if head.expectsContinue && sendsContinue { try channel.write("HTTP/1.1 100 Continue\r\n\r\n") }
                reader.bytesPerSecond = speed
                try readBody(of: head, with: reader, into: &request)
                log.change { $0.record(request, limit: configuration.recordedRequests) }
                answer = reply(request).resolved(for: request)
            case .refuse(let refusal):
                log.change { $0.record(request, limit: configuration.recordedRequests) }
                answer = refusal
                closes = true
            case .end(let ending):
                log.change { $0.record(request, limit: configuration.recordedRequests) }
                return ending
            }
            last.request = request
            var writer = ResponseWriter(answer, to: channel, isHeadRequest: head.method == "HEAD", closes: closes) { bytes in
                last.sentBytes += bytes
                count(bytes)
            }
            if let ending = try writer.send() { return ending }
            log.change { $0.answered += 1 }
            switch answer.connectionUse {
            case .keepAlive, .close: break
            case .endWhenNextRequestArrives(let ending):
                if !reader.hasBytes { _ = try channel.awaitBytes(or: nil) }
                return ending
            case .endWhenOpened(let gate, let ending):
                if !reader.hasBytes, try channel.awaitBytes(or: gate) { return ending }
            }
        }
        return .orderly
    }

    private func deliver(_ last: Last, _ pending: (untransmitted: Int64, unacknowledged: Int64)) {
        guard let request = last.request else { return }
        let sent = last.sentBytes
        (last.request, last.sentBytes) = (nil, 0)
        configuration.onDelivery(
            request,
            .init(
                sentBytes: sent, transmittedBytes: max(0, sent - pending.untransmitted),
                acknowledgedBytes: max(0, sent - pending.unacknowledged)))
    }

    private func count(_ bytes: Int64) { log.change { $0.sentBodyBytes += bytes } }

    private func readBody(of head: RequestReader.Head, with reader: RequestReader, into request: inout ReceivedRequest) throws {
        var body: [UInt8] = []
        var length: Int64 = 0
        request.trailers = try reader.body(of: head) { part in
            body += part.prefix(max(0, configuration.recordedBodyBytes - body.count))
            length += Int64(part.count)
            log.change { $0.bodyBytes += Int64(part.count) }
        }
        request.body = body
        request.bodyLength = length
    }
}
