/// Assembles heads from the lines that libcurl delivers (`CURLOPT_HEADERFUNCTION`): the heads of interim responses, of a proxy's response to CONNECT
/// and of final responses. It also counts the trailer section.
struct HeadAssembler {
    /// The maximum size of one head and of the trailer section, in bytes.
    static let maximumSize = 256 << 10

    private var bytes: [UInt8] = []
    private var isComplete = false
    /// The position of the last line; 0 for the status line.
    private var lastLine = 0
    private var trailerSize = 0

    /// The error of a first field line that begins with a space, by which a sender might hide a field (RFC 9112 section 2.2).
    static var continuationOfNothing: HTTPSessionError {
        HTTPSessionError(.badServerResponse, "the response is not valid HTTP: its first field line begins with a space")
    }

    /// Prepares for a line that is about to be added. - Returns: Whether a head begins with it.
    mutating func begins(with line: UnsafeRawBufferPointer) -> Bool {
        let isStatusLine =
            line.count > 5 && line[0] == 0x48 && line[1] == 0x54 && line[2] == 0x54 && line[3] == 0x50 && line[4] == 0x2F
        if isStatusLine && isComplete {
            bytes.removeAll(keepingCapacity: true)
            (isComplete, lastLine) = (false, 0)
        }
        guard bytes.isEmpty else { return false }
        bytes.reserveCapacity(512)
        return true
    }

    /// Adds a line. Lines between two heads are ignored. A line that continues a field (RFC 9112 section 5.2) becomes a part of the field's value.
    ///
    /// - Returns: The head that ends with the line.
    mutating func add(_ line: UnsafeRawBufferPointer) throws(HTTPSessionError) -> ResponseHead? {
        if isComplete { return nil }
        guard bytes.count + line.count <= HeadAssembler.maximumSize else {
            throw HTTPSessionError(.badServerResponse, "the response's head is longer than \(HeadAssembler.maximumSize) bytes")
        }
        if let first = line.first, first == 0x20 || first == 0x09 {
            guard lastLine > 0 else { throw HeadAssembler.continuationOfNothing }
            unfold()
        } else {
            lastLine = bytes.count
        }
        bytes.append(contentsOf: line)
        let isEmpty = line.count == 1 ? line[0] == 0x0A : line.count == 2 && line[0] == 0x0D && line[1] == 0x0A
        guard isEmpty else { return nil }
        isComplete = true
        guard let head = ResponseHead(bytes: bytes) else {
            throw HTTPSessionError(.badServerResponse, "the response's status line has no status")
        }
        return head
    }

    /// Replaces the end of the last line by spaces, because the next line continues its value. libcurl does not read the continuation of fields that
    /// say how the body is read, so that these stay as they are, and the response is refused (``ResponseFraming``).
    private mutating func unfold() {
        guard !ResponseHead.isFramingLine(bytes[lastLine...]) else { return }
        var end = bytes.count
        while end > lastLine, bytes[end - 1] == 0x0A || bytes[end - 1] == 0x0D {
            end -= 1
            bytes[end] = 0x20
        }
    }

    /// Skips a trailer field (RFC 9110 section 6.5), also one that looks like another head, and limits the size of the trailer section.
    mutating func skipTrailer(_ line: UnsafeRawBufferPointer) throws(HTTPSessionError) {
        trailerSize += line.count
        guard trailerSize <= HeadAssembler.maximumSize else {
            throw HTTPSessionError(.badServerResponse, "the trailers are longer than \(HeadAssembler.maximumSize) bytes")
        }
    }
}
