internal import CZlib

/// The codings of an HTTP message's content, in the order in which they were applied (RFC 9110 section 8.4).
package struct ContentCodings: Hashable, Sendable {
    /// A coding that can be decoded.
    package enum Coding: String, Hashable, Sendable, CaseIterable {
        case gzip
        /// The zlib format (RFC 1950). Some servers send the deflate format without it (RFC 1951).
        case deflate
    }

    /// The reason why content cannot be decoded.
    package enum Failure: Error, Hashable, Sendable {
        /// The coding with this name, or the number of codings, is not supported.
        case unsupported(String)
        /// The bytes are not those of the coding, or its checksum differs.
        case damaged(Coding)
        /// The content ends within the coding's data.
        case truncated(Coding)
    }

    /// The most codings of a message. Each multiplies the work that a server can cause.
    package static let codingLimit = 4
    /// The most bytes that are decoded from one coding for the next one. They suffice for 64 KiB, unless the data have tens of thousands of
    /// empty blocks.
    package static let intermediateLimit = 128 << 10

    /// The codings, the one that was applied first at the front; empty for content as it is.
    package let codings: [Coding]

    /// Parses the values of Content-Encoding. Case does not matter, and `identity` is no coding.
    ///
    /// - Throws: ``Failure/unsupported(_:)``.
    package init(_ values: [some Collection<UInt8>]) throws(Failure) {
        var codings: [Coding] = []
        for value in values {
            for element in value.split(separator: UInt8(ascii: ",")) {
                let name = String(decoding: element.filter { $0 != 0x20 && $0 != 0x09 }, as: UTF8.self)
                switch name.lowercased() {
                case "", "identity": continue
                // RFC 9110 section 8.4.1.3.
                case "gzip", "x-gzip": codings.append(.gzip)
                case "deflate": codings.append(.deflate)
                default: throw .unsupported(name)
                }
                guard codings.count <= Self.codingLimit else { throw .unsupported("more than \(Self.codingLimit) codings") }
            }
        }
        self.codings = codings
    }

    /// Decodes content, and stops after `limit` bytes of the result.
    ///
    /// - Parameters:
    ///   - content: the first bytes of the content.
    ///   - isComplete: whether these are all of it. Otherwise their end is no fault.
    ///   - limit: the most bytes of the result.
    /// - Returns: the content without its codings, or the first `limit` bytes of that.
    /// - Throws: ``Failure`` if the bytes that are needed are damaged, or if complete content ends within the data of a coding.
    package func decode(_ content: [UInt8], isComplete: Bool = true, limit: Int) throws(Failure) -> [UInt8] {
        var (content, isComplete) = (content, isComplete)
        for (index, coding) in codings.enumerated().reversed() {
            let limit = index == 0 ? limit : Self.intermediateLimit
            let result: Decoder.Result
            switch coding {
            case .gzip: result = Decoder.decode(content, .gzip, limit: limit)
            case .deflate:
                let wrapped = Decoder.hasZlibHeader(content) ? Decoder.decode(content, .zlib, limit: limit) : nil
                // Data without a header may look as if they had one, and are then damaged at their beginning.
                if let wrapped, wrapped.ending != .damaged || !wrapped.bytes.isEmpty {
                    result = wrapped
                } else {
                    result = Decoder.decode(content, .raw, limit: limit)
                }
            }
            switch result.ending {
            case .damaged: throw .damaged(coding)
            case .inputEnded where isComplete: throw .truncated(coding)
            case .inputEnded, .limit: isComplete = false
            case .complete: break
            }
            content = result.bytes
        }
        return content.count > limit ? Array(content.prefix(limit)) : content
    }
}

/// One pass of zlib over bytes.
enum Decoder {
    enum Format: Int32 {
        case gzip = 31
        case zlib = 15
        case raw = -15
    }

    enum Ending {
        case complete
        /// All bytes that were asked for are decoded, and there may be more.
        case limit
        case inputEnded
        case damaged
    }

    struct Result {
        var bytes: [UInt8]
        var ending: Ending
    }

    /// Whether bytes begin with the header of RFC 1950 section 2.2, or are too few to tell. A block without a header does not begin so, unless its
    /// padding is not zero.
    static func hasZlibHeader(_ bytes: [UInt8]) -> Bool {
        guard bytes.count >= 2 else { return true }
        return bytes[0] & 0x0F == 8 && bytes[0] >> 4 <= 7 && (Int(bytes[0]) << 8 | Int(bytes[1])) % 31 == 0
    }

    /// Decodes up to `limit` bytes. A gzip file may have several members (RFC 1952 section 2.2). Bytes behind the end that are none are
    /// ignored, as gzip(1) does. No bytes at all are complete: servers announce codings of empty content too.
    static func decode(_ input: [UInt8], _ format: Format, limit: Int) -> Result {
        guard !input.isEmpty else { return Result(bytes: [], ending: .complete) }
        var stream = z_stream()
        let started = inflateInit2_(&stream, format.rawValue, ZLIB_VERSION, Int32(MemoryLayout<z_stream>.size))
        // Swift ends a process too if an allocation fails. An invented result would accuse a server.
        precondition(started == Z_OK, "zlib cannot begin to decode: \(started)")
        defer { inflateEnd(&stream) }
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: min(max(limit, 1), 16 << 10))
        var input = input
        let ending = input.withUnsafeMutableBufferPointer { input in
            stream.next_in = input.baseAddress
            stream.avail_in = UInt32(clamping: input.count)
            while true {
                let room = min(piece.count, limit - bytes.count)
                guard room > 0 else { return Ending.limit }
                let status = piece.withUnsafeMutableBufferPointer { piece in
                    stream.next_out = piece.baseAddress
                    stream.avail_out = UInt32(room)
                    return inflate(&stream, Z_NO_FLUSH)
                }
                bytes += piece[..<(room - Int(stream.avail_out))]
                switch status {
                case Z_OK: continue
                case Z_STREAM_END:
                    guard format == .gzip, isMember(stream) else { return .complete }
                    inflateReset(&stream)
                case Z_BUF_ERROR: return .inputEnded
                case Z_MEM_ERROR: preconditionFailure("no memory left to decode content")
                default: return .damaged
                }
            }
        }
        return Result(bytes: bytes, ending: ending)
    }

    /// Whether a further member begins behind the one that has ended.
    private static func isMember(_ stream: z_stream) -> Bool {
        guard let next = stream.next_in, stream.avail_in > 0 else { return false }
        return next[0] == 0x1F && (stream.avail_in == 1 || next[1] == 0x8B)
    }
}
