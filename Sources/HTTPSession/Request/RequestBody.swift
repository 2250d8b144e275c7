public import FoundationEssentials

/// What a request carries. Every form but a stream without its factory can be sent again, after a redirect or a challenge.
///
/// An answer may come before the request is out, and is the task's result then: over HTTP/2 what is not out stays here (RFC 9113 section
/// 8.1). ``TransactionMetrics/countOfRequestBodyBytesSent`` says how much of it went.
@nonexhaustive public enum RequestBody: Sendable {
    case none
    case data(Data)
    /// The file's bytes; its size is taken when the task is made, and a file that changes meanwhile ends it
    /// (``HTTPSessionError/Code/fileChanged``).
    case file(URL)
    /// `multipart/form-data` (RFC 7578), streamed part by part.
    case multipart(MultipartForm)
    /// Chunks made anew for every attempt. `length` in bytes; `nil` sends chunked transfer coding over HTTP/1.1.
    case stream(length: Int64?, make: BodyStreamFactory)
}

/// Makes a body's chunks, from the first, as often as it is asked.
public typealias BodyStreamFactory = @Sendable () throws -> AsyncThrowingStream<Data, any Error>

/// A stretch of a body, in the form in which the engine reads it. A body is a list of them.
package enum BodySegment: Sendable {
    case data(Data)
    /// `length` bytes of the file from its beginning, measured when the body was put together.
    case file(path: String, length: Int64)
    case filePart(FilePart)
    case stream(length: Int64?, make: BodyStreamFactory)

    /// In bytes; `nil` where only the end tells.
    package var length: Int64? {
        switch self {
        case .data(let data): Int64(data.count)
        case .file(_, let length): length
        case .filePart(let part): part.count
        case .stream(let length, _): length
        }
    }
}
