internal import Dispatch
public import FoundationEssentials
internal import CLinux
internal import Glibc
internal import HTTPTypes

extension MultipartForm {
    /// A form without parts, with a boundary of 128 random bits.
    public init() {
        self.init(random: (.random(in: .min ... .max), .random(in: .min ... .max)))
    }

    /// A file, streamed when the form is sent. Its size is taken now: a file that has another one by then ends the transfer
    /// (``HTTPSessionError/Code/fileChanged``). Named as the path's last component, and typed as its extension, unless told otherwise.
    ///
    /// Throws ``HTTPSessionError/Code/invalidRequest`` where `fileURL` is no file URL or names no regular file, and
    /// ``HTTPSessionError/Code/cannotReadFile`` where there is none that can be read.
    public mutating func appendPart(
        fileURL: URL, name: String, fileName: String? = nil, mimeType: String? = nil
    ) throws(HTTPSessionError) {
        guard fileURL.isFileURL else {
            throw HTTPSessionError(.invalidRequest, "the part \(name.debugDescription) is no file URL")
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
            throw HTTPSessionError(.invalidRequest, "\(path) is no regular file")
        }
        if status.st_size == 0, FileContent.isHidden(path) {
            throw HTTPSessionError(.cannotReadFile, "cannot send '\(path)': \(FileContent.reason)")
        }
        return Int64(status.st_size)
    }
}

extension HTTPRequestSerializer {
    /// Writes the form of `request` to `file` and gives the same request with the file as its body, for servers and proxies that want a
    /// `Content-Length` where a stream does not tell its own, and for forms that are sent often.
    ///
    /// The file appears whole or not at all; one that is there is replaced. The caller removes it when it is not needed any more.
    /// A request without a form comes back as it is. Throws what reading the parts threw, ``HTTPSessionError/Code/fileChanged``,
    /// ``HTTPSessionError/Code/cannotWriteFile``, ``HTTPSessionError/Code/cannotMoveFile`` or ``HTTPSessionError/Code/cancelled``.
    public func requestByWritingForm(
        of request: TransferRequest, to file: URL
    ) async throws(HTTPSessionError) -> TransferRequest {
        guard case .multipart(let form) = request.body else { return request }
        guard file.isFileURL else { throw HTTPSessionError(.invalidRequest, "the form is to be written to no file URL") }
        try await FormFile.write(form.segments(), to: file)
        var request = request
        request.body = .file(file)
        return request
    }
}

/// Writes a body's segments to a file, on a queue of its own: disks may be slow, and the pool of tasks is small.
private enum FormFile {
    private static let queue = DispatchQueue(label: "HTTPSession.FormFile")
    private static let chunkSize = 1 << 18

    static func write(_ segments: [BodySegment], to file: URL) async throws(HTTPSessionError) {
        // Under a name of its own until it is whole, so that no file and no link of others is touched.
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
        // Parts are taken of bodies that are sent, never of forms.
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
        guard !Task.isCancelled else { throw HTTPSessionError(.cancelled, "cancelled while the form was written") }
        guard length == nil || length == written else {
            throw HTTPSessionError(.fileChanged, "a part's stream gave \(written) bytes instead of \(length ?? 0)")
        }
    }

    private static func copy(_ source: String, length: Int64, to file: PartialFile) throws(HTTPSessionError) {
        // A pipe in the file's place makes nobody wait: it has nothing.
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
                throw HTTPSessionError(.fileChanged, "\(source) has not the \(length) bytes any more that it had")
            }
            if count == 0 { return }
            try file.write(count == buffer.count ? buffer : Array(buffer[..<count]))
        }
    }

    /// Runs `work`, which throws nothing but ``HTTPSessionError``, on the queue.
    private static func onQueue<Value: Sendable>(
        _ work: @escaping @Sendable () throws -> Value
    ) async throws(HTTPSessionError) -> Value {
        guard !Task.isCancelled else { throw HTTPSessionError(.cancelled, "cancelled while the form was written") }
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
