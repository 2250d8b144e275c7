public import FoundationEssentials

/// The body of a request. It can be sent again after a redirect, a challenge or a failure.
///
/// If a response arrives before the body is sent, it is the task's response. Over HTTP/2 the remaining body is then not sent (RFC 9113 section
/// 8.1). ``TransactionMetrics/countOfRequestBodyBytesSent`` is the number of bytes that were sent.
///
/// A status 200 to 299 is no success if the connection ends before the body is sent: the request is repeated once if its method is idempotent, and
/// then fails with ``HTTPSessionError/Code/badServerResponse``. The error says how many bytes the server can have received. Over HTTP/2 this applies to
/// PUT and to resumable uploads; other requests succeed, because a server may need no more of the body.
@nonexhaustive public enum RequestBody: Sendable {
    /// No body.
    case none
    /// A body in memory.
    case data(Data)
    /// The bytes of a file. Its size is read when the task is made; if the file changes, the task fails with
    /// ``HTTPSessionError/Code/fileChanged``.
    case file(URL)
    /// A multipart form (RFC 7578), streamed part by part.
    case multipart(MultipartForm)
    /// A stream that is made again for every attempt. `length` is in bytes; if it is `nil`, HTTP/1.1 uses the chunked transfer coding.
    case stream(length: Int64?, make: BodyStreamFactory)
}

/// A closure that makes the stream of a body's chunks from the beginning, for each attempt.
public typealias BodyStreamFactory = @Sendable () throws -> AsyncThrowingStream<Data, any Error>

/// A segment of a body, in the form in which the engine reads it.
package enum BodySegment: Sendable {
    case data(Data)
    /// The first `length` bytes of the file, its size when the body was made.
    case file(path: String, length: Int64)
    case filePart(FilePart)
    case stream(length: Int64?, make: BodyStreamFactory)

    /// The length in bytes; `nil` if it is not known.
    package var length: Int64? {
        switch self {
        case .data(let data): Int64(data.count)
        case .file(_, let length): length
        case .filePart(let part): part.count
        case .stream(let length, _): length
        }
    }
}
