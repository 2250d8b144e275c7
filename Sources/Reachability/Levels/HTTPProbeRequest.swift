/// The request of an HTTP probe: HTTP/1.1 with one request for each connection (RFC 9112).
struct HTTPProbeRequest: Hashable, Sendable {
    let method: String
    let bytes: [UInt8]

    /// Creates a request.
    ///
    /// - Parameters:
    ///   - settings: the method, the fields and the body.
    ///   - host: the value of the field Host, if the settings have none.
    ///   - target: the path and the query.
    ///   - sendsAuthorization: whether the credentials of the settings are sent; not to another origin after a redirect.
    init(_ settings: HTTPProbeSettings, method: String? = nil, host: String, target: String, sendsAuthorization: Bool = true) {
        let method = method ?? settings.method
        var head = "\(method) \(target) HTTP/1.1\r\nHost: \(sendsAuthorization ? settings.host ?? host : host)\r\n"
        var names: Set<String> = []
        for field in settings.fields where !Self.isReserved(field.name) {
            if !sendsAuthorization, Self.isCredential(field.name) { continue }
            head += "\(field.name): \(field.value)\r\n"
            names.insert(field.name.lowercased())
        }
        if sendsAuthorization, let authorization = settings.authorization?.fieldValue {
            head += "Authorization: \(authorization)\r\n"
        }
        if !names.contains("user-agent") { head += "User-Agent: netwatch\r\n" }
        if !names.contains("accept") { head += "Accept: */*\r\n" }
        let body = method == settings.method ? settings.body : []
        if !body.isEmpty || method == "POST" || method == "PUT" || method == "PATCH" { head += "Content-Length: \(body.count)\r\n" }
        head += "Connection: close\r\n\r\n"
        self.method = method
        bytes = Array(head.utf8) + body
    }

    /// The fields that the request itself determines.
    private static func isReserved(_ name: String) -> Bool {
        ["host", "content-length", "transfer-encoding", "connection", "te", "upgrade"].contains(name.lowercased())
    }

    private static func isCredential(_ name: String) -> Bool {
        ["authorization", "cookie", "proxy-authorization"].contains(name.lowercased())
    }
}
