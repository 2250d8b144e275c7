import Foundation
import Glibc

@testable import netwatch_service

/// A client that sends bytes as a test writes them. Every wait ends after a time limit that a loaded machine keeps.
///
/// Its calls block, so they run on threads of their own (``onThread(_:)``): the server's tasks need the threads of Swift's executor.
final class RawClient: @unchecked Sendable {
    // @unchecked: a test uses a client from one thread at a time.

    struct ClientError: Error {
        var what: String
    }

    /// A response, as it was received.
    struct Response: Equatable {
        var status: Int
        /// The values of the fields, by their names in lower case.
        var fields: [String: String]
        var body: String
    }

    private static let seconds = 60
    private let descriptor: Int32
    private var buffer: [UInt8] = []
    /// The first byte of the buffer that was not returned yet.
    private var start = 0

    /// Connects to a TCP port of loopback.
    init(port: UInt16) throws {
        descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = [UInt8](repeating: 0, count: 16)
        address.replaceSubrange(0..<8, with: [UInt8(AF_INET), 0, UInt8(port >> 8), UInt8(port & 255), 127, 0, 0, 1])
        try connect(to: address)
    }

    /// Connects to a Unix socket.
    init(path: String) throws {
        descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
        var address = [UInt8](repeating: 0, count: 110)
        address[0] = UInt8(AF_UNIX)
        address.replaceSubrange(2..<2 + path.utf8.count, with: Array(path.utf8))
        try connect(to: address)
    }

    private func connect(to address: [UInt8]) throws {
        var limit = timeval(tv_sec: Self.seconds, tv_usec: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        let result = address.withUnsafeBytes { bytes in
            guard let start = bytes.baseAddress else { return Int32(-1) }
            return Glibc.connect(descriptor, start.assumingMemoryBound(to: sockaddr.self), socklen_t(bytes.count))
        }
        guard result == 0 else { throw ClientError(what: "connect: \(errno)") }
    }

    deinit { close(descriptor) }

    /// Sends bytes. - Returns: `false` if the server does not receive them.
    @discardableResult
    func send(_ bytes: [UInt8]) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            guard count > 0 else { return false }
            rest = rest.dropFirst(count)
        }
        return true
    }

    @discardableResult
    func send(_ text: String) -> Bool { send(Array(text.utf8)) }

    /// Sends the end of the input. The client still reads.
    func endInput() { shutdown(descriptor, Int32(SHUT_WR)) }

    /// Reads until the text is there. - Returns: All bytes up to its end.
    func read(until end: String) throws -> String {
        let end = Array(end.utf8)
        var searched = start
        while true {
            while searched + end.count <= buffer.count {
                if buffer[searched] == end[0], buffer[searched..<searched + end.count].elementsEqual(end) {
                    return take(searched + end.count - start)
                }
                searched += 1
            }
            searched -= start
            guard try fill() else { throw ClientError(what: "closed; received \(take(buffer.count - start))") }
            searched += start
        }
    }

    private func take(_ count: Int) -> String {
        defer { start += count }
        return String(decoding: buffer[start..<start + count], as: UTF8.self)
    }

    /// Reads bytes. - Returns: `false` if the server has closed the connection.
    private func fill() throws -> Bool {
        buffer.removeFirst(start)
        start = 0
        var piece = [UInt8](repeating: 0, count: 65_536)
        let count = recv(descriptor, &piece, piece.count, 0)
        if count > 0 { buffer += piece[..<count] }
        guard count >= 0 || errno == ECONNRESET else { throw ClientError(what: "recv: \(errno)") }
        return count > 0
    }

    private func read(count: Int) throws -> String {
        while buffer.count - start < count {
            guard try fill() else { throw ClientError(what: "closed in a body") }
        }
        return take(count)
    }

    /// Reads until the server closes the connection. - Returns: All bytes.
    func readToEnd() throws -> String {
        while try fill() {}
        return take(buffer.count - start)
    }

    /// Reads a response with a length, or up to the end of the connection.
    func response(toHead isHead: Bool = false) throws -> Response {
        var response = try head()
        if isHead || response.status == 304 { return response }
        if let length = response.fields["content-length"].flatMap({ Int($0) }) {
            response.body = try read(count: length)
        } else if response.fields["transfer-encoding"] == nil {
            response.body = try readToEnd()
        }
        return response
    }

    /// Reads the status line and the fields.
    func head() throws -> Response {
        let lines = try read(until: "\r\n\r\n").components(separatedBy: "\r\n")
        var fields: [String: String] = [:]
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: ":") else { continue }
            fields[line[..<colon].lowercased()] = line[line.index(after: colon)...].trimmingCharacters(in: .whitespaces)
        }
        let status = lines[0].split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
        return Response(status: status, fields: fields, body: "")
    }

    /// Sends a request and reads its response.
    func get(_ target: String, method: String = "GET", body: String = "", _ fields: String...) throws -> Response {
        let length = body.isEmpty ? [] : ["Content-Length: \(body.utf8.count)"]
        let head = ["\(method) \(target) HTTP/1.1", "Host: localhost"] + fields + length
        send("\(head.joined(separator: "\r\n"))\r\n\r\n\(body)")
        return try response(toHead: method == "HEAD")
    }

    /// Begins a stream.
    func stream(_ target: String = "/api/v1/events", _ fields: String...) throws -> Response {
        send("GET \(target) HTTP/1.1\r\n\((["Host: localhost"] + fields).joined(separator: "\r\n"))\r\n\r\n")
        return try head()
    }

    /// Reads the next event of a stream, without the sizes of chunks.
    func event() throws -> Event {
        var event = Event()
        while true {
            let line = try read(until: "\n").trimmingCharacters(in: .whitespacesAndNewlines)
            if line.isEmpty, event.type != nil, event.data != nil { return event }
            for (name, path) in [("id", \Event.id), ("event", \Event.type), ("data", \Event.data)]
            where line.hasPrefix("\(name): ") {
                event[keyPath: path] = String(line.dropFirst(name.count + 2))
            }
        }
    }

    struct Event: Equatable {
        var id: String?
        var type: String?
        var data: String?
    }
}

/// Runs blocking calls on a thread of their own.
func onThread<Value: Sendable>(_ body: @escaping @Sendable () throws -> Value) async throws -> Value {
    try await withCheckedThrowingContinuation { continuation in
        Thread.detachNewThread { continuation.resume(with: Result { try body() }) }
    }
}
