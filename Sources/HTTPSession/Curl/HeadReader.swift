/// Puts heads together from the lines that libcurl hands over (`CURLOPT_HEADERFUNCTION`): those of interim responses, of a proxy's answer to
/// CONNECT and of responses, and what comes behind the body.
struct HeadReader {
    /// The longest head that is read, interim responses not counted, and the longest trailer section, in bytes.
    static let maximumSize = 256 << 10

    private var bytes: [UInt8] = []
    private var isComplete = false
    private var trailerSize = 0

    /// The line is about to be added. - Returns: whether a head begins with it.
    mutating func begins(with line: UnsafeRawBufferPointer) -> Bool {
        let isStatusLine =
            line.count > 5 && line[0] == 0x48 && line[1] == 0x54 && line[2] == 0x54 && line[3] == 0x50 && line[4] == 0x2F
        if isStatusLine && isComplete {
            bytes.removeAll(keepingCapacity: true)
            isComplete = false
        }
        guard bytes.isEmpty else { return false }
        bytes.reserveCapacity(512)
        return true
    }

    /// Adds a line. What comes between two heads is nobody's.
    ///
    /// - Returns: the head that ends with it.
    mutating func add(_ line: UnsafeRawBufferPointer) throws(HTTPSessionError) -> ResponseHead? {
        if isComplete { return nil }
        guard bytes.count + line.count <= HeadReader.maximumSize else {
            throw HTTPSessionError(.badServerResponse, "the response's head is longer than \(HeadReader.maximumSize) bytes")
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

    /// Trailer fields (RFC 9110 section 6.5), also those that look like another head: nobody reads them, and they come to an end.
    mutating func skipTrailer(_ line: UnsafeRawBufferPointer) throws(HTTPSessionError) {
        trailerSize += line.count
        guard trailerSize <= HeadReader.maximumSize else {
            throw HTTPSessionError(.badServerResponse, "the trailers are longer than \(HeadReader.maximumSize) bytes")
        }
    }
}
