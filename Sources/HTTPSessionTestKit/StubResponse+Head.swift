extension StubResponse {
    /// The status line and the field lines of the final head, without the empty line. `closes`: the connection ends after it.
    func headText(closes: Bool) -> String {
        var fields = fields
        func isMissing(_ name: String) -> Bool { !fields.contains { $0.name.lowercased() == name } }
        var announcesClose = closes
        switch framing {
        case .contentLength:
            if mayHaveBody && isMissing("content-length") { fields.append(HeaderField("Content-Length", "\(body.count)")) }
        case .declaredLength(let length): fields.append(HeaderField("Content-Length", "\(length)"))
        case .chunked, .brokenChunks: fields.append(HeaderField("Transfer-Encoding", "chunked"))
        case .untilClose: announcesClose = true
        case .asGiven: break
        }
        if case .close(announced: true, _) = connectionUse { announcesClose = true }
        if announcesClose && isMissing("connection") { fields.append(HeaderField("Connection", "close")) }
        return StubResponse.headText(status, reason, fields)
    }

    /// The field lines of ``flood``.
    var floodText: String {
        guard let flood else { return "" }
        let value = String(repeating: "f", count: flood.valueBytes)
        return (0..<flood.count).map { "X-Flood-\($0): \(value)\r\n" }.joined()
    }

    static func headText(_ status: Int, _ reason: String?, _ fields: [HeaderField]) -> String {
        fields.reduce("HTTP/1.1 \(status) \(reason ?? reasonPhrase(status))\r\n") { $0 + "\($1.name): \($1.value)\r\n" }
    }

    /// The size of a piece of the body, in bytes. At a given speed, twenty pieces a second are enough.
    var pieceSize: Int {
        guard let bytesPerSecond else { return max(1, pieceBytes) }
        return max(1, min(pieceBytes, bytesPerSecond / 20))
    }
}

/// The phrases of RFC 9110 section 15.
private func reasonPhrase(_ status: Int) -> String {
    let phrases = [
        100: "Continue", 101: "Switching Protocols", 103: "Early Hints", 200: "OK", 201: "Created", 202: "Accepted",
        204: "No Content", 205: "Reset Content", 206: "Partial Content", 301: "Moved Permanently", 302: "Found", 303: "See Other",
        304: "Not Modified", 307: "Temporary Redirect", 308: "Permanent Redirect", 400: "Bad Request", 401: "Unauthorized",
        403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed", 407: "Proxy Authentication Required",
        408: "Request Timeout", 409: "Conflict", 410: "Gone", 412: "Precondition Failed", 413: "Content Too Large",
        416: "Range Not Satisfiable", 417: "Expectation Failed", 421: "Misdirected Request", 429: "Too Many Requests",
        500: "Internal Server Error", 501: "Not Implemented", 502: "Bad Gateway", 503: "Service Unavailable",
        504: "Gateway Timeout",
    ]
    return phrases[status] ?? "Status \(status)"
}
