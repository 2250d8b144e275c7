internal import Dispatch
public import FoundationEssentials
internal import CLinux
internal import Glibc
internal import HTTPTypes

extension MultipartForm {
    /// Creates a form without parts, with a boundary of 128 random bits.
    public init() {
        self.init(random: (.random(in: .min ... .max), .random(in: .min ... .max)))
    }

    /// Appends a file, which is streamed when the form is sent.
    ///
    /// The size of the file is read now. If it has changed when the form is sent, the task fails with ``HTTPSessionError/Code/fileChanged``.
    ///
    /// - Parameters:
    ///   - fileURL: The URL of the file.
    ///   - name: The name of the form's field.
    ///   - fileName: The name of the file in the form; by default the last component of its path.
    ///   - mimeType: The media type; by default the type of the file name's extension.
    /// - Throws: ``HTTPSessionError/Code/invalidRequest`` if `fileURL` is not a file URL or not a regular file, a name contains NUL, or
    ///   `mimeType` is not a valid value of a header field, and
    ///   ``HTTPSessionError/Code/cannotReadFile`` if the file does not exist or cannot be read.
    public mutating func appendPart(
        fileURL: URL, name: String, fileName: String? = nil, mimeType: String? = nil
    ) throws(HTTPSessionError) {
        guard fileURL.isFileURL else {
            throw HTTPSessionError(.invalidRequest, "the part \(name.debugDescription) is not a file URL")
        }
        let path = fileURL.path(percentEncoded: false)
        let length = try Self.length(ofFileAt: path)
        try appendPart(path: path, length: length, name: name, fileName: fileName, mimeType: mimeType)
    }

    private static func length(ofFileAt path: String) throws(HTTPSessionError) -> Int64 {
        var status = stat()
        guard stat(path, &status) == 0, access(path, R_OK) == 0 else {
            throw HTTPSessionError(.cannotReadFile, "\(path) cannot be read", context: .init(systemError: errno))
        }
        guard status.st_mode & S_IFMT == S_IFREG else {
            throw HTTPSessionError(.invalidRequest, "\(path) is not a regular file")
        }
        if status.st_size == 0, FileContent.hasBytes(path) {
            throw HTTPSessionError(.cannotReadFile, "cannot send '\(path)': \(FileContent.reason)")
        }
        return Int64(status.st_size)
    }
}

extension HTTPRequestSerializer {
    /// Writes the form of a request to a file, and returns the request with this file as its body.
    ///
    /// Use this method for forms that are sent often. Use it also if a part is a stream of unknown length, and a server or proxy needs a
    /// `Content-Length`. The file appears only when it is complete, and replaces an existing one. The caller removes it when it is no longer
    /// needed.
    ///
    /// - Parameters:
    ///   - request: The request; without a form it is returned unchanged.
    ///   - file: The URL of the file.
    /// - Returns: The request with the file as its body.
    /// - Throws: The errors of reading the parts, ``HTTPSessionError/Code/fileChanged``, ``HTTPSessionError/Code/cannotWriteFile``,
    ///   ``HTTPSessionError/Code/cannotMoveFile`` or ``HTTPSessionError/Code/cancelled``.
    public func requestByWritingForm(
        of request: TransferRequest, to file: URL
    ) async throws(HTTPSessionError) -> TransferRequest {
        guard case .multipart(let form) = request.body else { return request }
        guard file.isFileURL else { throw HTTPSessionError(.invalidRequest, "the destination of the form is not a file URL") }
        try await FormFile.write(form.segments(), to: file)
        var request = request
        request.body = .file(file)
        return request
    }
}

/// The writer of a body's segments to a file. It uses its own queue, because disks may be slow, and Swift's thread pool is small.
private enum FormFile {
    private static let queue = DispatchQueue(label: "HTTPSession.FormFile")
    private static let chunkSize = 1 << 18

    static func write(_ segments: [BodySegment], to file: URL) async throws(HTTPSessionError) {
        // Written under a temporary name until it is complete, so that no existing file or link is modified.
        let partial = PartialFile(DownloadDestination(file, existingFile: .replace), mode: 0o600)
        do throws(HTTPSessionError) {
            try await onQueue { try partial.begin(expected: segments.totalLength) }
            for segment in segments { try await append(segment, to: partial) }
            _ = try await onQueue { try partial.commit() }
        } catch {
            await withCheckedContinuation { continuation in
                queue.async {
                    partial.discard()
                    continuation.resume()
                }
            }
            throw error
        }
    }

    private static func append(_ segment: BodySegment, to file: PartialFile) async throws(HTTPSessionError) {
        switch segment {
        case .data(let data): try await onQueue { try file.write([UInt8](data)) }
        case .file(let source, let length): try await onQueue { try copy(source, length: length, to: file) }
        // Only uploads split files into parts, never forms.
        case .filePart: preconditionFailure("a form of parts of files")
        case .stream(let length, let make): try await drain(length, make, to: file)
        }
    }

    private static func drain(
        _ length: Int64?, _ make: BodyStreamFactory, to file: PartialFile
    ) async throws(HTTPSessionError) {
        var written: Int64 = 0
        do {
            for try await chunk in try make() {
                try await onQueue { try file.write([UInt8](chunk)) }
                written += Int64(chunk.count)
            }
        } catch let error as HTTPSessionError {
            throw error
        } catch {
            throw HTTPSessionError(.cannotReadFile, "a part's stream failed", underlying: error)
        }
        guard !Task.isCancelled else { throw HTTPSessionError(.cancelled, "canceled while the form was written") }
        guard length == nil || length == written else {
            throw HTTPSessionError(.fileChanged, "a part's stream provided \(written) bytes instead of \(length ?? 0)")
        }
    }

    private static func copy(_ source: String, length: Int64, to file: PartialFile) throws(HTTPSessionError) {
        // O_NONBLOCK: a pipe that has replaced the file is empty, and does not block the queue.
        let input = open(source, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard input >= 0 else { throw FileFailure.reading(source, errno) }
        defer { close(input) }
        var buffer = [UInt8](repeating: 0, count: chunkSize)
        var copied: Int64 = 0
        while true {
            let count = read(input, &buffer, buffer.count)
            if count < 0 && errno == EINTR { continue }
            guard count >= 0 else { throw FileFailure.reading(source, errno) }
            copied += Int64(count)
            // One byte more than measured is read on purpose: it shows that the file has grown.
            guard copied <= length, count > 0 || copied == length else {
                throw HTTPSessionError(.fileChanged, "the length of \(source) has changed: it had \(length) bytes")
            }
            if count == 0 { return }
            try file.write(count == buffer.count ? buffer : Array(buffer[..<count]))
        }
    }

    /// Runs `work` on the queue. It throws only ``HTTPSessionError``.
    private static func onQueue<Value: Sendable>(
        _ work: @escaping @Sendable () throws -> Value
    ) async throws(HTTPSessionError) -> Value {
        guard !Task.isCancelled else { throw HTTPSessionError(.cancelled, "canceled while the form was written") }
        let result = await withCheckedContinuation { continuation in
            queue.async { continuation.resume(returning: Result(catching: work)) }
        }
        do {
            return try result.get()
        } catch {
            throw error as? HTTPSessionError
                ?? HTTPSessionError(.cannotWriteFile, "the form cannot be written", underlying: error)
        }
    }
}
