/// Reads requests from a connection (RFC 9112).
// Not Sendable: it belongs to the connection's thread.
package final class RequestReader {
    /// A request line and field lines.
    package struct Head {
        package var method: String
        package var target: String
        package var version: String
        package var fields: [HeaderField]

        package func values(_ name: String) -> [String] {
            fields.filter { $0.name.lowercased() == name }.map(\.value)
        }

        /// Whether the connection ends with this request (RFC 9112 section 9.3).
        package var wantsClose: Bool {
            let options = values("connection").joined(separator: ",").lowercased()
            return options.contains("close") || (version == "HTTP/1.0" && !options.contains("keep-alive"))
        }

        package var expectsContinue: Bool { values("expect").contains { $0.lowercased() == "100-continue" } }
    }

    /// The bytes are not HTTP/1.
    package struct Malformed: Error {}

    /// The greatest length of a head, in bytes.
    package static let headLimit = 1 << 20

    private let channel: Channel
    private var buffer: [UInt8] = []
    /// The rate at which bodies are read, in bytes per second.
    package var bytesPerSecond: Int?

    package init(_ channel: Channel) {
        self.channel = channel
    }

    /// Whether bytes of the next request have been received.
    package var hasBytes: Bool { !buffer.isEmpty }

    /// The next byte, which is not consumed; `nil` when the client has ended its side.
    package func peek() throws -> UInt8? {
        if buffer.isEmpty { buffer = try channel.read() }
        return buffer.first
    }

    /// Exactly this number of bytes.
    package func take(_ count: Int) throws -> [UInt8] {
        var taken: [UInt8] = []
        try bytes(Int64(count)) { taken += $0 }
        return taken
    }

    /// The bytes that have been read from the connection and not been used.
    package func takeBuffered() -> [UInt8] {
        defer { buffer = [] }
        return buffer
    }

    /// The next request's head; `nil` if the client has ended the connection between two requests.
    package func head() throws -> Head? {
        var searched = 0
        while true {
            // An empty line before the request line is skipped (RFC 9112 section 2.2).
            while buffer.first == 13 || buffer.first == 10 { buffer.removeFirst() }
            if let end = endOfHead(from: searched) {
                let text = String(decoding: buffer[..<end], as: UTF8.self)
                buffer.removeFirst(end)
                return try parse(text)
            }
            // A TLS record begins so and no method does: no end of a head will come.
            if let first = buffer.first, first < 0x21 { throw Malformed() }
            guard buffer.count <= Self.headLimit else { throw Malformed() }
            searched = max(0, buffer.count - 3)
            let more = try channel.read()
            if more.isEmpty {
                if buffer.isEmpty { return nil }
                throw ChannelEnd.clientLeft
            }
            buffer += more
        }
    }

    /// Reads the body of a request, passes the decoded bytes to `take` as they come, and returns the trailer fields.
    package func body(of head: Head, _ take: (ArraySlice<UInt8>) throws -> Void) throws -> [HeaderField] {
        if head.values("transfer-encoding").contains(where: { $0.lowercased().hasSuffix("chunked") }) {
            return try chunks(take)
        }
        guard let text = head.values("content-length").first else { return [] }
        guard let length = Int64(text), length >= 0 else { throw Malformed() }
        try bytes(length, take)
        return []
    }

    private func chunks(_ take: (ArraySlice<UInt8>) throws -> Void) throws -> [HeaderField] {
        while true {
            let size = try line().prefix { $0 != ";" && $0 != " " }
            guard let count = Int64(size, radix: 16), count >= 0 else { throw Malformed() }
            if count == 0 { break }
            try bytes(count, take)
            guard try line().isEmpty else { throw Malformed() }
        }
        var trailers: [HeaderField] = []
        while case let text = try line(), !text.isEmpty { trailers.append(try field(text)) }
        return trailers
    }

    private func bytes(_ count: Int64, _ take: (ArraySlice<UInt8>) throws -> Void) throws {
        var left = count
        while left > 0 {
            if buffer.isEmpty {
                buffer = try channel.read()
                guard !buffer.isEmpty else { throw ChannelEnd.clientLeft }
            }
            let part = buffer.prefix(Int(min(left, Int64(buffer.count))))
            try take(part)
            left -= Int64(part.count)
            if let bytesPerSecond {
                try channel.wait(.delay(.nanoseconds(Int64(part.count) * 1_000_000_000 / Int64(max(1, bytesPerSecond)))))
            }
            buffer.removeFirst(part.count)
        }
    }

    private func line() throws -> String {
        while true {
            if let end = buffer.firstIndex(of: 10) {
                defer { buffer.removeFirst(end + 1) }
                return String(decoding: buffer[..<end].filter { $0 != 13 }, as: UTF8.self)
            }
            guard buffer.count <= Self.headLimit else { throw Malformed() }
            let more = try channel.read()
            guard !more.isEmpty else { throw ChannelEnd.clientLeft }
            buffer += more
        }
    }

    private func endOfHead(from start: Int) -> Int? {
        var index = max(0, start - 1)
        while let newline = buffer[index...].firstIndex(of: 10) {
            let next = buffer[(newline + 1)...].prefix(2)
            if next.first == 10 { return newline + 2 }
            if next.elementsEqual([13, 10]) { return newline + 3 }
            index = newline + 1
        }
        return nil
    }

    private func parse(_ text: String) throws -> Head {
        let lines = text.split { $0 == "\r\n" || $0 == "\n" }.map(String.init)
        let words = (lines.first ?? "").split(separator: " ").map(String.init)
        // The preface of an HTTP/2 connection (RFC 9113 section 3.4) is a request for tests that script the frames.
        guard words.count == 3, words[2].hasPrefix("HTTP/1.") || words == ["PRI", "*", "HTTP/2.0"] else { throw Malformed() }
        return Head(method: words[0], target: words[1], version: words[2], fields: try lines.dropFirst().map(field))
    }

    private func field(_ line: String) throws -> HeaderField {
        guard let colon = line.firstIndex(of: ":"), colon != line.startIndex else { throw Malformed() }
        var value = line[line.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
        while value.last == " " || value.last == "\t" { value.removeLast() }
        return HeaderField(String(line[..<colon]), String(value))
    }
}
