public import FoundationEssentials
public import HTTPTypes

/// A form of parts (RFC 7578), sent without being put together in memory.
///
/// Every part can be read again, for a redirect or a challenge: data and files replay by themselves, a stream is made anew. The length
/// is known before the first byte, unless a stream does not tell its own. Names are escaped as browsers do it (HTML standard,
/// multipart/form-data encoding algorithm), so that no name ends its field or begins another.
public struct MultipartForm: Sendable {
    /// What stands between the parts; in none of them, as random as it is made.
    public let boundary: String
    /// How slowly the form is sent; `nil` for as fast as the network takes it.
    public private(set) var throttle: Throttle?

    private var parts: [MultipartPart] = []

    /// A speed, given as packets with a pause after each.
    public struct Throttle: Hashable, Sendable {
        /// At most so many bytes at once.
        public var packetSize: Int
        /// The pause after each packet.
        public var delay: Duration

        /// What AFNetworking suggests for a slow cellular network: 16 KiB every 0.2 s.
        public static let suggestedFor3G = Throttle(packetSize: 16_384, delay: .milliseconds(200))

        /// A pause of `delay` after each `packetSize` bytes; at least one byte.
        public init(packetSize: Int, delay: Duration) {
            self.packetSize = max(packetSize, 1)
            self.delay = max(delay, .zero)
        }

        /// What it comes to, at least 1; `nil` where there is no pause.
        package var bytesPerSecond: Int64? {
            let (seconds, attoseconds) = delay.components
            let pause = Double(seconds) + Double(attoseconds) / 1e18
            guard pause > 0 else { return nil }
            return Int64(max(1, min(Double(packetSize) / pause, 1e18)))
        }
    }

    /// A form without parts.
    ///
    /// Throws ``HTTPSessionError/Code/invalidRequest`` where `boundary` is not one to 70 of the characters that RFC 2046 section 5.1.1
    /// gives it, or ends in a space.
    public init(boundary: String) throws(HTTPSessionError) {
        guard (1...70).contains(boundary.utf8.count), boundary.last != " ",
            boundary.unicodeScalars.allSatisfy(Self.mayStandInBoundary)
        else {
            throw HTTPSessionError(.invalidRequest, "\(boundary.debugDescription) is no boundary of a multipart body")
        }
        self.boundary = boundary
    }

    /// A form without parts, whose boundary is made of two random numbers.
    package init(random: (UInt64, UInt64)) {
        func digits(_ number: UInt64) -> String {
            let digits = String(number, radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }
        boundary = "Boundary-\(digits(random.0))\(digits(random.1))"
    }

    /// A form field: `Content-Disposition` and the bytes, no `Content-Type`.
    public mutating func appendPart(form data: Data, name: String) throws(HTTPSessionError) {
        append(try MultipartPart(name: name, fileName: nil, mimeType: nil, content: .data(data)))
    }

    /// A file whose bytes are in memory.
    public mutating func appendPart(
        data: Data, name: String, fileName: String, mimeType: String = "application/octet-stream"
    ) throws(HTTPSessionError) {
        append(try MultipartPart(name: name, fileName: fileName, mimeType: mimeType, content: .data(data)))
    }

    /// A file whose bytes come from a stream, made anew for every attempt. `length` in bytes; `nil` where only the end tells, which
    /// leaves the whole form without a `Content-Length`.
    public mutating func appendPart(
        stream: @escaping BodyStreamFactory, length: Int64?, name: String, fileName: String,
        mimeType: String = "application/octet-stream"
    ) throws(HTTPSessionError) {
        guard length ?? 0 >= 0 else { throw HTTPSessionError(.invalidRequest, "a part of less than no bytes") }
        let content = BodySegment.stream(length: length, make: stream)
        append(try MultipartPart(name: name, fileName: fileName, mimeType: mimeType, content: content))
    }

    /// The first `length` bytes of a file, which are all it had when it was looked at. The name is the path's last component, the type
    /// its extension's, unless given.
    package mutating func appendPart(
        path: String, length: Int64, name: String, fileName: String? = nil, mimeType: String? = nil
    ) throws(HTTPSessionError) {
        let last = path.split(separator: "/").last.map(String.init) ?? ""
        let pathExtension = last.split(separator: ".", omittingEmptySubsequences: false).dropFirst().last.map(String.init) ?? ""
        let content = BodySegment.file(path: path, length: length)
        let type = mimeType ?? MIMEType.forPathExtension(pathExtension)
        append(try MultipartPart(name: name, fileName: fileName ?? last, mimeType: type, content: content))
    }

    /// A part with fields of the caller's own. swift-http-types keeps line breaks out of them.
    public mutating func appendPart(headers: HTTPFields, body: Data) {
        append(MultipartPart(headers: headers, content: .data(body)))
    }

    /// A form field for each of the parameters, named as in a query (`user[ids][]`) but not percent-escaped; null is an empty field.
    ///
    /// Throws as ``Parameters/queryString()`` does.
    public mutating func appendParameters(_ parameters: Parameters) throws(HTTPSessionError) {
        for pair in try parameters.queryPairs() {
            let bytes: Data =
                switch pair.value {
                case .none: Data()
                case .text(let text): Data(text.utf8)
                case .bytes(let bytes): bytes
                }
            try appendPart(form: bytes, name: pair.name)
        }
    }

    /// Sends at most `packetSize` bytes at once, and on average no more than these in each `delay`. A session's
    /// ``SessionConfiguration/maximumSendRate`` holds too.
    public mutating func throttleBandwidth(packetSize: Int, delay: Duration) {
        throttle = Throttle(packetSize: packetSize, delay: delay)
    }

    /// Without any part: such a form leaves its request as it is.
    public var isEmpty: Bool { parts.isEmpty }

    /// The field that tells the server the boundary.
    public var contentType: String {
        // Of what a boundary may have, these need quotes in a field's parameter (RFC 9110 section 5.6.6).
        let needsQuotes = boundary.contains { "'(),/:=? ".contains($0) }
        return "multipart/form-data; boundary=\(needsQuotes ? "\"\(boundary)\"" : boundary)"
    }

    /// The whole body in bytes, before any of it is sent; `nil` where a stream does not tell its length.
    public var contentLength: Int64? {
        var sum: Int64 = 0
        for segment in segments() {
            guard let length = segment.length else { return nil }
            let (next, isTooLong) = sum.addingReportingOverflow(length)
            guard !isTooLong else { return nil }
            sum = next
        }
        return sum
    }

    /// The body in the order in which it is sent: boundaries, headers and small parts joined, files and streams by themselves.
    /// Nothing for a form without parts.
    package func segments() -> [BodySegment] {
        guard !isEmpty else { return [] }
        var segments: [BodySegment] = []
        var text = Data("--\(boundary)\r\n".utf8)
        for (place, part) in parts.enumerated() {
            if place > 0 { text += Data("\r\n--\(boundary)\r\n".utf8) }
            text += part.header
            switch part.content {
            case .data(let data) where data.count <= Self.longestJoinedPart:
                text += data
            case .data, .file, .filePart, .stream:
                segments += [.data(text), part.content]
                text = Data()
            }
        }
        text += Data("\r\n--\(boundary)--\r\n".utf8)
        return segments + [.data(text)]
    }

    mutating func append(partsOf form: MultipartForm) { parts += form.parts }

    mutating func removeParts() { parts = [] }

    private mutating func append(_ part: MultipartPart) { parts.append(part) }

    /// Copying more than this costs more than one more write.
    private static let longestJoinedPart = 16_384

    private static func mayStandInBoundary(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar {
        case "A"..."Z", "a"..."z", "0"..."9", "'", "(", ")", "+", "_", ",", "-", ".", "/", ":", "=", "?", " ": true
        default: false
        }
    }
}
