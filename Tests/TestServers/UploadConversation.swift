import HTTPSessionTestKit

/// One connection to an ``UploadServer``, on a thread of its own.
struct UploadConversation {
    let number: Int
    let channel: Channel
    let dialect: UploadServer.Dialect
    let configuration: UploadServer.Configuration
    let fault: @Sendable (UploadServer.Turn) -> UploadServer.Fault?
    let shelf: UploadShelf?
    let log: ServerLog<UploadServer.Seen>

    /// The connection ends here.
    private struct CutHere: Error {
        let ending: StubResponse.Ending
    }

    /// One request.
    private struct Request {
        let head: RequestReader.Head
        /// The number of the request among the server's.
        let index: Int
        let fault: UploadServer.Fault?

        func field(_ name: String) -> String? { head.values(name).first }

        func number(_ name: String) -> Int64? { field(name).flatMap { Int64($0) } }
    }

    /// Runs until the connection ends.
    func run() {
        do {
            let reader = RequestReader(channel)
            reader.bytesPerSecond = configuration.bytesPerSecond
            var count = 0
            while let head = try reader.head() {
                count += 1
                var writer = ResponseWriter(
                    try answer(head, count, reader), to: channel, isHeadRequest: head.method == "HEAD", closes: head.wantsClose)
                if let ending = try writer.send() { return channel.end(ending) }
            }
            channel.end(.orderly)
        } catch let cut as CutHere {
            channel.end(cut.ending)
        } catch ChannelEnd.stopped {
            // The descriptor closes, and with it the connection.
        } catch {
            channel.end(.truncated)
        }
    }

    // MARK: Requests

    private func answer(_ head: RequestReader.Head, _ count: Int, _ reader: RequestReader) throws -> StubResponse {
        let id = Int(head.target.dropFirst("/uploads/".count))
        var (index, stored): (Int, Int64?) = (0, nil)
        let received: ReceivedRequest = log.change { seen in
            index = seen.requests.count
            stored = id.flatMap { seen.uploads[$0] }.map(\.count)
            let request = ReceivedRequest(
                method: head.method, target: head.target, version: head.version, fields: head.fields, connection: number,
                numberOnConnection: count, arrival: index + 1, tls: nil)
            seen.requests.append(request)
            return request
        }
        let request = Request(
            head: head, index: index,
            fault: fault(UploadServer.Turn(number: index + 1, request: received, stored: stored)))
        if case .forget = request.fault, let id {
            log.change { $0.uploads[id] = nil }
            shelf?.forget(id)
        }
        if case .refuse(let reply) = request.fault { return reply.closing() }
        if head.method == "OPTIONS" { return offer }
        if dialect == .tus, request.field("tus-resumable") != "1.0.0" {
            return StubResponse(412, fields: ["Tus-Version": "1.0.0"]).closing()
        }
        switch head.method {
        case "POST", "PUT": return try create(request, reader)
        case "HEAD": return state(id, request)
        case "PATCH": return try append(id, request, reader)
        default: return StubResponse(405).closing()
        }
    }

    /// The fields that describe the server.
    private var offer: StubResponse {
        switch dialect {
        case .tus:
            StubResponse(204, fields: ["Tus-Resumable": "1.0.0", "Tus-Version": "1.0.0,0.2.2", "Tus-Extension": "creation"])
        case .draft: StubResponse(204, fields: ["Upload-Limit": configuration.limit ?? "min-size=0"])
        }
    }

    private func create(_ request: Request, _ reader: RequestReader) throws -> StubResponse {
        let id = log.change { seen in
            seen.created += 1
            return seen.created
        }
        let (length, fields) = (request.number("upload-length"), request.head.fields)
        let contents = shelf?.put(id, length: length, isComplete: false, fields: fields) ?? .memory([])
        log.change { seen in
            seen.uploads[id] = UploadServer.Upload(length: length, contents: contents, fields: fields, writer: 1)
        }
        let location = "\(configuration.locationPrefix)/uploads/\(id)"
        guard dialect == .draft else {
            try readBody(of: request, to: nil, reader)
            return reply(request, StubResponse(201, fields: ["Location": location]))
        }
        if let version = configuration.interopVersion {
            let limit = configuration.limit.map { "Upload-Limit: \($0)\r\n" } ?? ""
            try channel.write(
                "HTTP/1.1 104 Upload Resumption Supported\r\nLocation: \(location)\r\n"
                    + "Upload-Draft-Interop-Version: \(version)\r\n\(limit)\r\n")
        }
        try readBody(of: request, to: (id, 1), reader)
        return finished(id, request, StubResponse(201, fields: ["Location": location]))
    }

    private func state(_ id: Int?, _ request: Request) -> StubResponse {
        guard let id, let upload = takeTurn(id) else { return StubResponse(404) }
        var reply = StubResponse(dialect == .tus ? 200 : 204, fields: ["Cache-Control": "no-store"])
        reply = reply.field("Upload-Offset", "\(claimed(request) ?? upload.count)")
        if let length = upload.length { reply = reply.field("Upload-Length", "\(length)") }
        if dialect == .draft { reply = reply.field("Upload-Complete", upload.isComplete ? "?1" : "?0") }
        if let limit = configuration.limit { reply = reply.field("Upload-Limit", limit) }
        return self.reply(request, reply)
    }

    private func append(_ id: Int?, _ request: Request, _ reader: RequestReader) throws -> StubResponse {
        let type = dialect == .tus ? "application/offset+octet-stream" : "application/partial-upload"
        guard request.field("content-type") == type else { return StubResponse(415).closing() }
        guard let id, let upload = takeTurn(id) else { return StubResponse(404).closing() }
        guard request.number("upload-offset") == upload.count, !upload.isComplete else {
            let reply = StubResponse(409).closing()
            return dialect == .tus ? reply : reply.field("Upload-Offset", "\(upload.count)")
        }
        try readBody(of: request, to: (id, upload.writer), reader)
        guard dialect == .tus else { return finished(id, request, StubResponse(204)) }
        let stored = log.state.uploads[id]?.count ?? 0
        return reply(request, StubResponse(204, fields: ["Upload-Offset": "\(claimed(request) ?? stored)"]))
    }

    /// The draft's response to a complete body.
    private func finished(_ id: Int, _ request: Request, _ partial: StubResponse) -> StubResponse {
        guard request.field("upload-complete") == "?1" else {
            return reply(
                request, request.field("upload-complete") == nil ? StubResponse(200) : partial.field("Upload-Complete", "?0"))
        }
        complete(id)
        return reply(request, StubResponse(200, fields: ["Upload-Complete": "?1"], body: "taken"))
    }

    private func reply(_ request: Request, _ reply: StubResponse) -> StubResponse {
        if case .answer(let response) = request.fault { return response }
        return dialect == .tus ? reply.field("Tus-Resumable", "1.0.0") : reply
    }

    private func claimed(_ request: Request) -> Int64? {
        if case .claim(let count) = request.fault { return count }
        return nil
    }

    // MARK: Uploads

    private func complete(_ id: Int) {
        let upload = log.change { seen in
            seen.uploads[id]?.isComplete = true
            return seen.uploads[id]
        }
        if let upload { shelf?.put(id, length: upload.length, isComplete: true, fields: upload.fields) }
    }

    /// Ends the turn of an earlier request that still sends to the upload.
    private func takeTurn(_ id: Int) -> UploadServer.Upload? {
        log.change { seen in
            seen.uploads[id]?.writer += 1
            return seen.uploads[id]
        }
    }

    /// Reads a body and appends it to the upload, until another request takes the turn.
    private func readBody(of request: Request, to place: (id: Int, writer: Int)?, _ reader: RequestReader) throws {
        var (end, losing, ending): (Int64?, Int64, StubResponse.Ending) = (nil, 0, .reset)
        var hold: (after: Int64, wait: StubResponse.Wait)?
        var lastWait: StubResponse.Wait?
        switch request.fault {
        case .cut(let count, let lost, let how, let wait): (end, losing, ending, lastWait) = (count, lost, how, wait)
        case .silence(let how): ending = how
        case .hold(let count, let wait): hold = (count, wait)
        default: break
        }
        var count: Int64 = 0
        if end == 0 { throw CutHere(ending: ending) }
        if let wait = hold?.wait, hold?.after == 0 {
            try channel.wait(wait)
            hold = nil
        }
        _ = try reader.body(of: request.head) { part in
            let taken = part.prefix(Int(min(Int64(part.count), (end ?? .max) - count)))
            let kept = taken.prefix(Int(max(0, min(Int64(taken.count), (end.map { $0 - losing } ?? .max) - count))))
            count += Int64(taken.count)
            var isLate = false
            let target = log.change { seen -> (path: String, position: Int64)? in
                seen.bodyBytes += Int64(taken.count)
                seen.requests[request.index].bodyLength += Int64(taken.count)
                guard let place else { return nil }
                guard seen.uploads[place.id]?.writer == place.writer else {
                    isLate = true
                    return nil
                }
                return seen.uploads[place.id]?.contents.append(kept[...])
            }
            if isLate { throw CutHere(ending: .reset) }
            // A request that comes meanwhile sees the bytes, and this thread ends before its server.
            if let target { UploadShelf.write(Array(kept), to: target.path, at: target.position) }
            if count == end {
                if let lastWait { try channel.wait(lastWait) }
                throw CutHere(ending: ending)
            }
            if let held = hold, count >= held.after {
                hold = nil
                try channel.wait(held.wait)
            }
        }
        if case .silence = request.fault {
            if let place, request.field("upload-complete") == "?1" { complete(place.id) }
            throw CutHere(ending: ending)
        }
    }
}
