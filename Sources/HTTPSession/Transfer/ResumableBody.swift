internal import CLinux
internal import Foundation
internal import Glibc

/// A body of which any part can be read, as often as it takes, and is always the same.
struct ResumableBody: Sendable {
    /// In bytes.
    let length: Int64
    private let segments: [BodySegment]

    /// Looks at the files, which have to stay as they are.
    init(_ segments: [BodySegment]) throws(HTTPSessionError) {
        guard let length = segments.totalLength else {
            throw HTTPSessionError(.invalidRequest, "an upload that goes on where it stopped needs a body of known length")
        }
        self.length = length
        var looked: [BodySegment] = []
        for segment in segments {
            if case .file(let path, let length) = segment {
                looked.append(.filePart(FilePart(path: path, size: length, version: try FileVersion(path), range: 0..<length)))
            } else {
                looked.append(segment)
            }
        }
        self.segments = looked
    }

    /// `count` bytes from `offset` on.
    func part(from offset: Int64, count: Int64) -> [BodySegment] {
        var (start, part): (Int64, [BodySegment]) = (0, [])
        for segment in segments {
            let end = start + (segment.length ?? 0)
            let (low, high) = (max(start, offset), min(end, offset + count))
            if low < high { part.append(segment.part(low - start..<high - start)) }
            start = end
        }
        return part
    }

    /// The digest of the complete body; `nil`: a file of it has changed or cannot be read, or it has a stream. `isCancelled` is asked now and
    /// then, and ends the reading with `nil`.
    func digest(_ algorithm: ContentDigest.Algorithm, isCancelled: () -> Bool) -> ContentDigest? {
        guard let hasher = DigestHasher(algorithm) else { return nil }
        for segment in segments {
            switch segment {
            case .data(let data): data.withUnsafeBytes { hasher.update($0) }
            case .filePart(let part):
                guard (try? part.read({ hasher.update($0) }, isCancelled: isCancelled)) == true else { return nil }
            case .file, .stream: return nil
            }
        }
        return hasher.finish()
    }
}

extension BodySegment {
    /// The stretch of it; the range lies within its length.
    fileprivate func part(_ range: Range<Int64>) -> BodySegment {
        switch self {
        case .data(let data):
            .data(data.dropFirst(Int(range.lowerBound)).prefix(range.count))
        case .file(let path, let length):
            .filePart(FilePart(path: path, size: length, version: nil, range: range))
        case .filePart(let whole):
            .filePart(
                FilePart(
                    path: whole.path, size: whole.size, version: whole.version,
                    range: whole.range.lowerBound + range.lowerBound..<whole.range.lowerBound + range.upperBound))
        case .stream(let length, let make):
            range.count == length ?? -1
                ? self
                : .stream(length: Int64(range.count), make: StreamPart.factory(make, range, isLast: range.upperBound == length))
        }
    }
}

/// What tells whether a file is still the one that was looked at.
package struct FileVersion: Hashable, Sendable, Codable {
    private let device: UInt64
    private let inode: UInt64
    private let size: Int64
    /// Nanoseconds since 1970.
    private let modified: Int64
    /// Of the inode (st_ctim), which nobody can set back as they can the time of modification.
    private var changed: Int64

    init(_ found: stat) {
        device = UInt64(found.st_dev)
        inode = UInt64(found.st_ino)
        size = Int64(found.st_size)
        modified = Int64(found.st_mtim.tv_sec) &* 1_000_000_000 &+ Int64(found.st_mtim.tv_nsec)
        changed = Int64(found.st_ctim.tv_sec) &* 1_000_000_000 &+ Int64(found.st_ctim.tv_nsec)
    }

    /// Whether an open file is the version that it was. A file that has lost its last name has another change time for that reason alone.
    static func isUnchanged(_ now: stat, since opened: stat) -> Bool {
        var (now, then) = (now, FileVersion(opened))
        if now.st_nlink == 0 { (now.st_ctim, then.changed) = (timespec(), 0) }
        return FileVersion(now) == then
    }

    /// Of what the path leads to.
    package init(_ path: String) throws(HTTPSessionError) {
        var found = stat()
        guard stat(path, &found) == 0 else { throw FileFailure.reading(path, errno) }
        self.init(found)
    }
}

/// A stretch of a file.
package struct FilePart: Hashable, Sendable {
    let path: String
    /// Of the whole file, in bytes, when it was looked at.
    let size: Int64
    /// `nil`: only its size has to be the same.
    let version: FileVersion?
    let range: Range<Int64>

    var count: Int64 { range.upperBound - range.lowerBound }

    /// Reads the stretch, and throws if the file is not the version that it was. - Returns: whether all has been read.
    func read(_ body: (UnsafeRawBufferPointer) -> Void, isCancelled: () -> Bool) throws(HTTPSessionError) -> Bool {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw FileFailure.reading(path, errno) }
        defer { close(descriptor) }
        try check(descriptor)
        var buffer = [UInt8](repeating: 0, count: 256 << 10)
        var position = range.lowerBound
        while position < range.upperBound {
            if isCancelled() { return false }
            let count = pread(descriptor, &buffer, min(buffer.count, Int(range.upperBound - position)), off_t(position))
            if count < 0, errno == EINTR { continue }
            guard count > 0 else { throw count < 0 ? FileFailure.reading(path, errno) : FileFailure.changed(path) }
            buffer.withUnsafeBytes { body(UnsafeRawBufferPointer(rebasing: $0[..<count])) }
            position += Int64(count)
        }
        try check(descriptor)
        return true
    }

    private func check(_ descriptor: Int32) throws(HTTPSessionError) {
        var found = stat()
        guard fstat(descriptor, &found) == 0 else { throw FileFailure.reading(path, errno) }
        guard version == nil || version == FileVersion(found) else { throw FileFailure.changed(path) }
    }
}

/// A stretch of what a stream gives, which is read from its beginning for that.
private actor StreamPart {
    private var chunks: AsyncThrowingStream<Data, any Error>.Iterator
    private var skipped: Int64
    /// `nil`: to the stream's end, wherever that is.
    private var left: Int64?

    private init(_ stream: AsyncThrowingStream<Data, any Error>, skipping count: Int64, length: Int64?) {
        chunks = stream.makeAsyncIterator()
        skipped = count
        left = length
    }

    static func factory(_ make: @escaping BodyStreamFactory, _ range: Range<Int64>, isLast: Bool) -> BodyStreamFactory {
        {
            let part = StreamPart(try make(), skipping: range.lowerBound, length: isLast ? nil : Int64(range.count))
            return AsyncThrowingStream { try await part.next() }
        }
    }

    private func next() async throws -> Data? {
        while left != 0 {
            var present = chunks
            guard var chunk = try await present.next(isolation: self) else { return nil }
            chunks = present
            let surplus = min(skipped, Int64(chunk.count))
            skipped -= surplus
            chunk = chunk.dropFirst(Int(surplus))
            if let left {
                chunk = chunk.prefix(Int(min(left, Int64(chunk.count))))
                self.left = left - Int64(chunk.count)
            }
            if !chunk.isEmpty { return chunk }
        }
        return nil
    }
}
