import Glibc
import HTTPSessionTestKit

/// The directory in which an ``UploadServer`` keeps its uploads beyond its own end: the bytes of each, and the request that created it.
struct UploadShelf: Sendable {
    private let directory: String

    init(_ directory: String) { self.directory = directory }

    private func name(_ id: Int) -> String { "\(directory)/\(id)" }

    /// Every upload in the directory.
    func load() throws(TestServerError) -> [Int: UploadServer.Upload] {
        guard let folder = opendir(directory) else { throw TestServerError("opendir \(directory)", errno: errno) }
        defer { closedir(folder) }
        var uploads: [Int: UploadServer.Upload] = [:]
        while let entry = readdir(folder) {
            let text = withUnsafeBytes(of: entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
            guard let id = Int(text) else { continue }
            let lines = String(decoding: UploadShelf.read(name(id) + ".info"), as: UTF8.self).split(separator: "\n")
            var state = stat()
            guard let first = lines.first, stat(name(id), &state) == 0 else { continue }
            let words = first.split(separator: " ")
            let fields = lines.dropFirst().compactMap { line -> HeaderField? in
                let parts = line.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
                return parts.count == 2 ? HeaderField(String(parts[0]), String(parts[1])) : nil
            }
            uploads[id] = UploadServer.Upload(
                length: words.first.flatMap { Int64($0) }, contents: .file(name(id), Int64(state.st_size)),
                isComplete: words.last == "complete", fields: fields)
        }
        return uploads
    }

    /// Creates an upload, or writes its description again. - Returns: the file of its bytes.
    @discardableResult
    func put(_ id: Int, length: Int64?, isComplete: Bool, fields: [HeaderField]) -> UploadServer.Contents {
        let first = (length.map { "\($0)" } ?? "-") + (isComplete ? " complete" : " begun")
        let text = fields.reduce(first + "\n") { $0 + "\($1.name):\($1.value)\n" }
        // A reader finds the old file or the new one.
        UploadShelf.write(Array(text.utf8), to: name(id) + ".info.new", at: 0)
        rename(name(id) + ".info.new", name(id) + ".info")
        UploadShelf.write([], to: name(id), at: 0)
        return .file(name(id), 0)
    }

    func forget(_ id: Int) {
        unlink(name(id))
        unlink(name(id) + ".info")
    }

    static func write(_ bytes: [UInt8], to path: String, at position: Int64) {
        let file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
        guard file >= 0 else { return }
        defer { close(file) }
        var written = 0
        while written < bytes.count {
            let count = bytes.withUnsafeBytes {
                pwrite(file, $0.baseAddress.map { $0 + written }, bytes.count - written, off_t(position) + written)
            }
            // Bytes that the disk refuses are missing, and the test of the upload fails.
            guard count > 0 else { return }
            written += count
        }
    }

    static func read(_ path: String) -> [UInt8] {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return [] }
        defer { close(file) }
        var state = stat()
        // For a capacity of 0, the standard library writes a count of 0 into the storage that all empty arrays share (Swift 6.3):
        // ThreadSanitizer reports two threads that do so.
        guard fstat(file, &state) == 0, state.st_size > 0 else { return [] }
        return [UInt8](unsafeUninitializedCapacity: Int(state.st_size)) { buffer, initialized in
            while initialized < buffer.count {
                let count = Glibc.read(file, buffer.baseAddress.map { $0 + initialized }, buffer.count - initialized)
                guard count > 0 else { return }
                initialized += count
            }
        }
    }
}

extension UploadServer {
    /// The bytes of an upload.
    enum Contents: Hashable, Sendable {
        case memory([UInt8])
        /// The number of bytes in the file. Bytes behind them belong to a request that has lost its turn.
        case file(String, Int64)

        var count: Int64 {
            switch self {
            case .memory(let bytes): Int64(bytes.count)
            case .file(_, let count): count
            }
        }

        var bytes: [UInt8] {
            switch self {
            case .memory(let bytes): bytes
            case .file(let path, let count): Array(UploadShelf.read(path).prefix(Int(count)))
            }
        }

        /// Appends bytes. - Returns: the file and the offset at which they still have to be written.
        mutating func append(_ part: ArraySlice<UInt8>) -> (path: String, position: Int64)? {
            switch self {
            case .memory(var bytes):
                // The array has one owner while it grows.
                self = .memory([])
                bytes += part
                self = .memory(bytes)
                return nil
            case .file(let path, let count):
                self = .file(path, count + Int64(part.count))
                return (path, count)
            }
        }
    }
}
