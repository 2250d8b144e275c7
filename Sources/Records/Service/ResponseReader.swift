/// The response of the service (HTTP/1.1, RFC 9112), read as its bytes arrive. The service is a program of this machine, so only what it
/// writes is understood: a length, or chunks.
package struct ResponseReader {
    /// The maximum size of the head in bytes.
    private static let headLimit = 64 * 1_024

    /// The bytes are no response of a service.
    package struct Malformed: Error, Hashable {}

    private enum Stage {
        case head
        /// A body with a number of missing bytes.
        case length(Int)
        /// The line before a chunk.
        case chunkSize
        /// The data of a chunk and its line end.
        case chunk(Int)
        case untilClose
        case complete
    }

    private var stage = Stage.head
    private var buffer: [UInt8] = []
    /// The status code; `nil` before the head is complete.
    package private(set) var status: Int?

    package init() {}

    /// Whether the response is complete.
    package var isComplete: Bool { if case .complete = stage { true } else { false } }

    /// Whether the response is complete if the connection has ended: a body without a length ends with it (RFC 9112 section 6.3).
    package var isCompleteAtEnd: Bool {
        switch stage {
        case .complete, .untilClose: true
        case .head, .length, .chunkSize, .chunk: false
        }
    }

    /// Adds bytes. - Returns: the bytes of the body that are known now.
    package mutating func append(_ bytes: some Collection<UInt8>) throws(Malformed) -> [UInt8] {
        buffer += bytes
        var body: [UInt8] = []
        while try step(&body) {}
        return body
    }

    /// Reads one part. - Returns: whether another one may follow.
    private mutating func step(_ body: inout [UInt8]) throws(Malformed) -> Bool {
        switch stage {
        case .complete: return false
        case .untilClose:
            body += take(buffer.count)
            return false
        case .head:
            guard let end = buffer.firstRange(of: Array("\r\n\r\n".utf8)) else {
                guard buffer.count <= Self.headLimit else { throw Malformed() }
                return false
            }
            try readHead(String(decoding: take(end.upperBound).dropLast(4), as: UTF8.self))
            return true
        case .length(let missing):
            let part = take(min(missing, buffer.count))
            body += part
            stage = part.count == missing ? .complete : .length(missing - part.count)
            return false
        case .chunkSize:
            guard let end = buffer.firstRange(of: [0x0d, 0x0a]) else {
                guard buffer.count < 1_024 else { throw Malformed() }
                return false
            }
            let line = String(decoding: take(end.upperBound).dropLast(2).prefix { $0 != UInt8(ascii: ";") }, as: UTF8.self)
            guard let size = Int(line, radix: 16), 0...(1 << 30) ~= size else { throw Malformed() }
            stage = size == 0 ? .complete : .chunk(size)
            return true
        case .chunk(let missing):
            // The line end belongs to the chunk.
            guard missing > 0 else {
                guard buffer.count >= 2 else { return false }
                guard take(2) == [0x0d, 0x0a] else { throw Malformed() }
                stage = .chunkSize
                return true
            }
            guard !buffer.isEmpty else { return false }
            let part = take(min(missing, buffer.count))
            body += part
            stage = .chunk(missing - part.count)
            return true
        }
    }

    private mutating func take(_ count: Int) -> [UInt8] {
        let part = Array(buffer.prefix(count))
        buffer.removeFirst(part.count)
        return part
    }

    private mutating func readHead(_ head: String) throws(Malformed) {
        let lines = head.split(separator: "\r\n", omittingEmptySubsequences: false)
        let words = lines.first?.split(separator: " ", maxSplits: 2) ?? []
        guard words.count >= 2, words[0].hasPrefix("HTTP/1."), let code = Int(words[1]), 100...599 ~= code else {
            throw Malformed()
        }
        status = code
        stage = .untilClose
        for line in lines.dropFirst() {
            guard let colon = line.firstIndex(of: ":") else { throw Malformed() }
            let value = line[line.index(after: colon)...].drop { $0 == " " }
            switch line[..<colon].lowercased() {
            case "content-length":
                guard let length = Int(value), length >= 0 else { throw Malformed() }
                stage = length == 0 ? .complete : .length(length)
            case "transfer-encoding" where value.lowercased() == "chunked": stage = .chunkSize
            default: break
            }
        }
    }
}
