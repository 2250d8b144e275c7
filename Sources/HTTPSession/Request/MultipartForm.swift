public import FoundationEssentials
public import HTTPTypes

/// A multipart form (RFC 7578), sent without being assembled in memory.
///
/// Every part can be sent again after a redirect or a challenge: data and files are read again, a stream is made again. The length is known before
/// the first byte, unless a stream has no length. Names are escaped as in browsers (HTML standard, multipart/form-data encoding algorithm), so that
/// no name can end its header field.
public struct MultipartForm: Sendable {
    /// The boundary between the parts. It is random, so that no part contains it.
    public let boundary: String
    /// The limit of the form's rate; `nil` for none.
    public private(set) var throttle: Throttle?

    private var parts: [MultipartPart] = []

    /// A rate: packets with a delay after each packet.
    public struct Throttle: Hashable, Sendable {
        /// The largest number of bytes at once, at least 1.
        public var packetSize: Int
        /// The delay after each packet.
        public var delay: Duration

        /// The rate that AFNetworking suggests for a slow cellular network: 16 KiB every 0.2 s.
        public static let suggestedFor3G = Throttle(packetSize: 16_384, delay: .milliseconds(200))

        /// Creates a rate with a delay after each `packetSize` bytes, which is at least 1.
        public init(packetSize: Int, delay: Duration) {
            self.packetSize = max(packetSize, 1)
            self.delay = max(delay, .zero)
        }

        /// The rate in bytes per second, at least 1; `nil` if there is no delay.
        package var bytesPerSecond: Int64? {
            let (seconds, attoseconds) = delay.components
            let pause = Double(seconds) + Double(attoseconds) / 1e18
            guard pause > 0 else { return nil }
            return Int64(max(1, min(Double(packetSize) / pause, 1e18)))
        }
    }

    /// Creates a form without parts, with a boundary of the caller's.
    ///
    /// - Throws: ``HTTPSessionError/Code/invalidRequest`` if `boundary` does not have 1 to 70 of the characters of RFC 2046 section 5.1.1, or ends in
    ///   a space.
    public init(boundary: String) throws(HTTPSessionError) {
        guard (1...70).contains(boundary.utf8.count), boundary.last != " ",
            boundary.unicodeScalars.allSatisfy(Self.isAllowedInBoundary)
        else {
            throw HTTPSessionError(.invalidRequest, "\(boundary.debugDescription) is no boundary of a multipart body")
        }
        self.boundary = boundary
    }

    /// Creates a form without parts, with a boundary of two random numbers.
    package init(random: (UInt64, UInt64)) {
        func digits(_ number: UInt64) -> String {
            let digits = String(number, radix: 16)
            return String(repeating: "0", count: 16 - digits.count) + digits
        }
        boundary = "Boundary-\(digits(random.0))\(digits(random.1))"
    }

    /// Appends a form field: `Content-Disposition` and the bytes, without a `Content-Type`.
    ///
    /// - Throws: ``HTTPSessionError/Code/invalidRequest`` if `name` contains NUL.
    public mutating func appendPart(form data: Data, name: String) throws(HTTPSessionError) {
        append(try MultipartPart(name: name, fileName: nil, mimeType: nil, content: .data(data)))
    }

    /// Appends a file whose bytes are in memory.
    ///
    /// - Throws: ``HTTPSessionError/Code/invalidRequest`` if a name contains NUL, or `mimeType` is not a valid value of a header field.
    public mutating func appendPart(
        data: Data, name: String, fileName: String, mimeType: String = "application/octet-stream"
    ) throws(HTTPSessionError) {
        append(try MultipartPart(name: name, fileName: fileName, mimeType: mimeType, content: .data(data)))
    }

    /// Appends a file whose bytes come from a stream, which is made again for every attempt. `length` is in bytes; if it is `nil`, the form has no
    /// `Content-Length`.
    ///
    /// - Throws: ``HTTPSessionError/Code/invalidRequest`` if `length` is negative, a name contains NUL, or `mimeType` is not a valid value of a header
    ///   field.
    public mutating func appendPart(
        stream: @escaping BodyStreamFactory, length: Int64?, name: String, fileName: String,
        mimeType: String = "application/octet-stream"
    ) throws(HTTPSessionError) {
        guard length ?? 0 >= 0 else { throw HTTPSessionError(.invalidRequest, "a part of less than no bytes") }
        let content = BodySegment.stream(length: length, make: stream)
        append(try MultipartPart(name: name, fileName: fileName, mimeType: mimeType, content: content))
    }

    /// Appends the first `length` bytes of a file, its size when it was checked. By default the name is the last component of the path, and the type
    /// that of its extension.
    package mutating func appendPart(
        path: String, length: Int64, name: String, fileName: String? = nil, mimeType: String? = nil
    ) throws(HTTPSessionError) {
        let last = path.split(separator: "/").last.map(String.init) ?? ""
        let pathExtension = last.split(separator: ".", omittingEmptySubsequences: false).dropFirst().last.map(String.init) ?? ""
        let content = BodySegment.file(path: path, length: length)
        let type = mimeType ?? MIMEType.forPathExtension(pathExtension)
        append(try MultipartPart(name: name, fileName: fileName ?? last, mimeType: type, content: content))
    }

    /// Appends a part with header fields of the caller's. `HTTPFields` cannot contain line breaks.
    public mutating func appendPart(headers: HTTPFields, body: Data) {
        append(MultipartPart(headers: headers, content: .data(body)))
    }

    /// Appends a form field for each of the parameters, named as in a query (`user[ids][]`) but not percent-escaped. Null is an empty field.
    ///
    /// - Throws: The errors of ``Parameters/queryString()``.
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

    /// Limits the rate to `packetSize` bytes at once, and on average in each `delay`. A session's ``SessionConfiguration/maximumSendRate`` applies as
    /// well.
    public mutating func throttleBandwidth(packetSize: Int, delay: Duration) {
        throttle = Throttle(packetSize: packetSize, delay: delay)
    }

    /// Whether the form has no parts. A request with such a form has no body.
    public var isEmpty: Bool { parts.isEmpty }

    /// The value of `Content-Type`, with the boundary.
    public var contentType: String {
        // These characters of a boundary need quotes in a parameter (RFC 9110 section 5.6.6).
        let needsQuotes = boundary.contains { "'(),/:=? ".contains($0) }
        return "multipart/form-data; boundary=\(needsQuotes ? "\"\(boundary)\"" : boundary)"
    }

    /// The length of the body in bytes; `nil` if a stream has no length.
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

    /// The segments of the body in their order: boundaries, headers and small parts joined, files and streams separate. A form without parts has
    /// none.
    package func segments() -> [BodySegment] {
        guard !isEmpty else { return [] }
        var segments: [BodySegment] = []
        var text = Data("--\(boundary)\r\n".utf8)
        for (place, part) in parts.enumerated() {
            if place > 0 { text += Data("\r\n--\(boundary)\r\n".utf8) }
            text += part.header
            switch part.content {
            case .data(let data) where data.count <= Self.maximumJoinedPart:
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

    /// The largest part that is copied: copying more costs more than another write.
    private static let maximumJoinedPart = 16_384

    private static func isAllowedInBoundary(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar {
        case "A"..."Z", "a"..."z", "0"..."9", "'", "(", ")", "+", "_", ",", "-", ".", "/", ":", "=", "?", " ": true
        default: false
        }
    }
}
