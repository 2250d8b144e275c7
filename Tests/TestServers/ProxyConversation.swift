import EventLoop
import FoundationEssentials
import Glibc
import HTTPSessionTestKit
import Reachability

/// One connection to a ``ProxyServer``, on a thread of its own.
struct ProxyConversation {
    let number: Int
    let client: Channel
    let stop: Waker
    let tls: TLSServerContext?
    let credentials: ProxyServer.Credentials?
    let names: [String: String]
    let log: ServerLog<ProxyServer.Seen>

    /// Runs until the connection ends.
    func run() {
        do {
            if let tls { _ = try client.handshake(tls) }
            let reader = RequestReader(client)
            switch try reader.peek() {
            case 4: try serveSOCKS4(reader)
            case 5: try serveSOCKS(reader)
            default: try serveHTTP(reader)
            }
            client.end(.orderly)
        } catch ChannelEnd.stopped {
            // The descriptor closes, and with it the connection.
        } catch {
            client.end(.truncated)
        }
    }

    // MARK: HTTP

    private func serveHTTP(_ reader: RequestReader) throws {
        var count = 0
        while let head = try reader.head() {
            count += 1
            var request = ReceivedRequest(
                method: head.method, target: head.target, version: head.version, fields: head.fields, connection: number,
                numberOnConnection: count, arrival: count, tls: nil)
            let isConnect = head.method == "CONNECT"
            if !isConnect {
                var body: [UInt8] = []
                request.trailers = try reader.body(of: head) { body += $0 }
                request.body = body
                request.bodyLength = Int64(body.count)
            }
            let kind = isConnect ? ProxyServer.Passage.Kind.connect : .absoluteForm
            guard let (host, port) = isConnect ? authority(head.target[...], 443) : absoluteTarget(head.target)?.authority else {
                return try refuse("400 Bad Request")
            }
            func record(_ outcome: ProxyServer.Passage.Outcome) {
                self.record(ProxyServer.Passage(kind: kind, host: host, port: port, request: request, outcome: outcome))
            }
            guard isAuthorized(head) else {
                record(.unauthorized)
                let challenge = credentials?.challenge ?? ""
                try client.write(
                    "HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: \(challenge)\r\nContent-Length: 0\r\n\r\n")
                if head.wantsClose { return }
                continue
            }
            guard let address = loopback(host) else {
                record(.foreignHost)
                return try refuse("502 Bad Gateway")
            }
            guard let server = dial(address, port) else {
                record(.unreachable)
                return try refuse("502 Bad Gateway")
            }
            record(.forwarded)
            if isConnect {
                try client.write("HTTP/1.1 200 Connection established\r\n\r\n")
                try server.write(reader.takeBuffered())
                return try relay(server)
            }
            try server.write(originForm(request))
            return try relay(server)
        }
    }

    private func refuse(_ status: String) throws {
        try client.write("HTTP/1.1 \(status)\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
    }

    private func isAuthorized(_ head: RequestReader.Head) -> Bool {
        guard let credentials else { return true }
        return head.values("proxy-authorization").contains { credentials.areSaid(in: $0, method: head.method) }
    }

    /// The request in origin form (RFC 9112 section 3.2.1), on a connection for one exchange.
    private func originForm(_ request: ReceivedRequest) -> [UInt8] {
        var text = "\(request.method) \(absoluteTarget(request.target)?.origin ?? "/") HTTP/1.1\r\n"
        let dropped: Set = [
            "connection", "proxy-connection", "proxy-authorization", "keep-alive", "te", "transfer-encoding", "content-length",
            "expect",
        ]
        for field in request.fields where !dropped.contains(field.name.lowercased()) {
            text += "\(field.name): \(field.value)\r\n"
        }
        if !request.body.isEmpty || request["content-length"] != nil { text += "Content-Length: \(request.body.count)\r\n" }
        return Array("\(text)Via: 1.1 proxy\r\nConnection: close\r\n\r\n".utf8) + request.body
    }

    /// Splits `http://host:port/path`.
    private func absoluteTarget(_ target: String) -> (authority: (String, UInt16), origin: String)? {
        guard target.lowercased().hasPrefix("http://") else { return nil }
        let rest = target.dropFirst(7)
        let end = rest.firstIndex { $0 == "/" || $0 == "?" } ?? rest.endIndex
        guard let authority = authority(rest[..<end], 80) else { return nil }
        let origin = rest[end...]
        return (authority, origin.hasPrefix("/") ? String(origin) : "/\(origin)")
    }

    private func authority(_ text: Substring, _ defaultPort: UInt16) -> (String, UInt16)? {
        if text.first == "[", let end = text.firstIndex(of: "]") {
            let host = String(text[text.index(after: text.startIndex)..<end])
            let rest = text[text.index(after: end)...]
            return rest.isEmpty ? (host, defaultPort) : UInt16(rest.dropFirst()).map { (host, $0) }
        }
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard let host = parts.first, !host.isEmpty, parts.count <= 2 else { return nil }
        return parts.count == 1 ? (String(host), defaultPort) : UInt16(parts[1]).map { (String(host), $0) }
    }

    // MARK: SOCKS5

    private func serveSOCKS(_ reader: RequestReader) throws {
        func record(_ host: String, _ port: UInt16, _ outcome: ProxyServer.Passage.Outcome) {
            self.record(ProxyServer.Passage(kind: .socks5, host: host, port: port, request: nil, outcome: outcome))
        }
        let methods = try reader.take(2)
        let offered = try reader.take(Int(methods[1]))
        // RFC 1928 section 3: 0 is no authentication, 2 is name and password, 0xFF refuses every method that the client offers.
        let wanted: UInt8 = credentials == nil ? 0 : 2
        guard offered.contains(wanted) else {
            record("", 0, .unauthorized)
            return try client.write([5, 0xFF])
        }
        try client.write([5, wanted])
        if let credentials {
            let user = try reader.take(Int(reader.take(2)[1]))
            let password = try reader.take(Int(reader.take(1)[0]))
            let matches = user == Array(credentials.user.utf8) && password == Array(credentials.password.utf8)
            try client.write([1, matches ? 0 : 1])
            guard matches else {
                return record("", 0, .unauthorized)
            }
        }
        let command = try reader.take(4)
        let host: String
        switch command[3] {
        case 1: host = try reader.take(4).map(String.init).joined(separator: ".")
        case 3: host = String(decoding: try reader.take(Int(reader.take(1)[0])), as: UTF8.self)
        case 4:
            let bytes = try reader.take(16)
            var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
            inet_ntop(AF_INET6, bytes, &text, socklen_t(text.count))
            host = text.withUnsafeBufferPointer { $0.baseAddress.map { String(cString: $0) } ?? "" }
        default: return try answerSOCKS(8)
        }
        let portBytes = try reader.take(2)
        let port = UInt16(portBytes[0]) << 8 | UInt16(portBytes[1])
        guard command[1] == 1 else { return try answerSOCKS(7) }
        guard let address = loopback(host) else {
            record(host, port, .foreignHost)
            return try answerSOCKS(2)
        }
        guard let server = dial(address, port) else {
            record(host, port, .unreachable)
            return try answerSOCKS(5)
        }
        record(host, port, .forwarded)
        try answerSOCKS(0)
        try server.write(reader.takeBuffered())
        try relay(server)
    }

    /// A reply (RFC 1928 section 6) with the address 0.0.0.0.
    private func answerSOCKS(_ code: UInt8) throws {
        try client.write([5, code, 0, 1, 0, 0, 0, 0, 0, 0])
    }

    // MARK: SOCKS4

    /// SOCKS 4 and its extension 4a, where an address of 0.0.0.x, x not 0, stands for a name behind the user's
    /// (https://www.openssh.com/txt/socks4.protocol, https://www.openssh.com/txt/socks4a.protocol).
    private func serveSOCKS4(_ reader: RequestReader) throws {
        let command = try reader.take(8)
        let port = UInt16(command[2]) << 8 | UInt16(command[3])
        let user = try word(reader)
        let isName = command[4...6].allSatisfy { $0 == 0 } && command[7] != 0
        let host = try isName ? word(reader) : command[4...7].map(String.init).joined(separator: ".")
        func answer(_ code: UInt8, _ outcome: ProxyServer.Passage.Outcome) throws {
            record(ProxyServer.Passage(kind: .socks4, host: host, port: port, request: nil, outcome: outcome))
            try client.write([0, code, 0, 0, 0, 0, 0, 0])
        }
        // 90 grants the request, 91 refuses it, 93 says that the user is another.
        guard command[1] == 1 else { return try client.write([0, 91, 0, 0, 0, 0, 0, 0]) }
        if let credentials, credentials.user != user { return try answer(93, .unauthorized) }
        guard let address = loopback(host) else { return try answer(91, .foreignHost) }
        guard let server = dial(address, port) else { return try answer(91, .unreachable) }
        try answer(90, .forwarded)
        try server.write(reader.takeBuffered())
        try relay(server)
    }

    /// The bytes before the next zero byte; a client sends at most 255.
    private func word(_ reader: RequestReader) throws -> String {
        var bytes: [UInt8] = []
        while bytes.count < 256, let byte = try reader.take(1).first, byte != 0 { bytes.append(byte) }
        return String(decoding: bytes, as: UTF8.self)
    }

    // MARK: All

    private func record(_ passage: ProxyServer.Passage) {
        log.change { seen in
            if seen.passages.count < 4096 { seen.passages.append(passage) }
        }
    }

    /// The loopback address of a host.
    private func loopback(_ host: String) -> String? {
        let address = names[host.lowercased()] ?? (host.lowercased() == "localhost" ? "127.0.0.1" : host)
        return address == "::1" || (address.hasPrefix("127.") && IPAddress(address) != nil) ? address : nil
    }

    private func dial(_ address: String, _ port: UInt16) -> Channel? {
        guard let name = IPAddress(address).map({ SocketAddress($0, port: port) }),
            let socket = try? Descriptor.socket(name.family, SOCK_STREAM)
        else { return nil }
        // A loopback address answers at once, or never.
        guard name.connect(socket.number) == 0 || errno == EINPROGRESS else { return nil }
        let channel = Channel(socket, stop: stop)
        guard (try? channel.awaitReadiness(POLLOUT, until: MonotonicClock.now() + 5_000_000_000)) == true else { return nil }
        var error: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        getsockopt(socket.number, SOL_SOCKET, SO_ERROR, &error, &length)
        return error == 0 ? channel : nil
    }

    /// Copies bytes in both directions until one side ends, then what the other side still sends.
    private func relay(_ server: Channel) throws {
        var isClientOpen = true
        while true {
            let ready = try client.awaitEither(server, isClientOpen: isClientOpen)
            if ready.other {
                let bytes = try server.read()
                if bytes.isEmpty { return }
                try client.write(bytes)
                log.change { $0.bytesDown += Int64(bytes.count) }
            }
            if ready.own {
                let bytes = try client.read()
                if bytes.isEmpty {
                    isClientOpen = false
                    server.endWriting()
                } else {
                    try server.write(bytes)
                    log.change { $0.bytesUp += Int64(bytes.count) }
                }
            }
        }
    }
}
