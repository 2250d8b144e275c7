internal import CLinux
internal import Dispatch
internal import EventLoop
internal import FoundationEssentials
internal import Glibc

/// The producer of chunks that reads a file ahead of the loop, on a worker's thread.
// @unchecked: its fields are touched only by jobs of one worker, which run one after another.
final class FileFeed: @unchecked Sendable {
    static let chunkSize = 256 << 10

    private let part: FilePart
    private var descriptor: Int32 = -1
    private var readCount: Int64 = 0
    private var opened = stat()

    private init(_ part: FilePart) { self.part = part }

    private var path: String { part.path }
    private var length: Int64 { part.count }

    deinit { if descriptor >= 0 { close(descriptor) } }

    static func start(_ part: FilePart, worker: Worker, wake: @escaping @Sendable () -> Void) -> ChunkFeed {
        let file = FileFeed(part)
        let feed = ChunkFeed(wake: wake) { feed in worker.run { file.fill(feed) } }
        worker.run { file.fill(feed) }
        return feed
    }

    private func fill(_ feed: ChunkFeed) {
        do throws(HTTPSessionError) {
            guard !feed.isCancelled else { return }
            if descriptor < 0 { try begin() }
            while readCount < length {
                let chunk = try read(Int(min(Int64(FileFeed.chunkSize), length - readCount)))
                readCount += Int64(chunk.count)
                // Checked before the last bytes are sent: libcurl asks for no more after them, and a complete request cannot be withdrawn.
                if readCount == length { try checkUnchanged() }
                guard feed.put(chunk) || readCount == length else { return }
            }
            feed.finish()
        } catch {
            feed.finish(error)
        }
    }

    private func begin() throws(HTTPSessionError) {
        // O_NONBLOCK: if a pipe has replaced the file, the worker would wait for its writer, and with it half of the session's files.
        descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else { throw FileFailure.reading(path, errno) }
        guard fstat(descriptor, &opened) == 0 else { throw FileFailure.reading(path, errno) }
        guard opened.st_mode & S_IFMT == S_IFREG, opened.st_size == part.size,
            part.version == nil || part.version == FileVersion(opened)
        else {
            throw FileFailure.changed(path)
        }
        if part.range.lowerBound > 0, lseek(descriptor, off_t(part.range.lowerBound), SEEK_SET) < 0 {
            throw FileFailure.reading(path, errno)
        }
        posix_fadvise(descriptor, 0, 0, POSIX_FADV_SEQUENTIAL)
    }

    /// Reads the next `count` bytes; `count` is above 0.
    private func read(_ count: Int) throws(HTTPSessionError) -> [UInt8] {
        var number: Int32 = 0
        let chunk = [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            while filled < count {
                let got = Glibc.read(descriptor, buffer.baseAddress?.advanced(by: filled), count - filled)
                if got > 0 {
                    filled += got
                } else if got == 0 {
                    return
                } else if errno != EINTR {
                    number = errno
                    return
                }
            }
        }
        guard number == 0 else { throw FileFailure.reading(path, number) }
        guard chunk.count == count else { throw FileFailure.changed(path) }
        return chunk
    }

    /// Throws ``HTTPSessionError/Code/fileChanged`` if the file was written while it was sent: the sent bytes may mix old and new contents.
    private func checkUnchanged() throws(HTTPSessionError) {
        var now = stat()
        guard fstat(descriptor, &now) == 0 else { throw FileFailure.reading(path, errno) }
        guard FileVersion.isUnchanged(now, since: opened) else { throw FileFailure.changed(path) }
    }
}

/// The producer of chunks that reads a user's stream, one chunk at a time and only as fast as they are sent.
enum StreamFeed {
    static func start(_ make: @escaping BodyStreamFactory, length: Int64?, wake: @escaping @Sendable () -> Void) -> ChunkFeed {
        let (demand, more) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let feed = ChunkFeed(wake: wake) { _ in HomeThread.run { more.yield(()) } }
        let reading = UserTask {
            do {
                var left = length
                var last: Data?
                var demands = demand.makeAsyncIterator()
                for try await chunk in try make() where !chunk.isEmpty {
                    if let expected = left {
                        guard expected >= chunk.count else {
                            throw HTTPSessionError(.fileChanged, "the body's stream is longer than its length")
                        }
                        left = expected - Int64(chunk.count)
                        // libcurl asks for no more after the last bytes. They are held until the stream ends, which proves its length.
                        if left == 0 {
                            last = chunk
                            continue
                        }
                    }
                    if !feed.put([UInt8](chunk)), !feed.isCancelled { _ = await demands.next() }
                    guard !feed.isCancelled else { return }
                }
                if let left, left > 0 {
                    throw HTTPSessionError(.fileChanged, "the body's stream is \(left) bytes shorter than its length")
                }
                if let last { _ = feed.put([UInt8](last)) }
                feed.finish()
            } catch {
                feed.finish(
                    error as? HTTPSessionError
                        ?? HTTPSessionError(.cannotReadFile, "the body's stream failed", underlying: error))
            }
        }
        // The stream may wait forever, so its task is canceled with the feed. The cancellation handlers are the user's, and must not run on the
        // session's thread.
        feed.onCancel { HomeThread.run { DispatchQueue.global().async { reading.cancel() } } }
        return feed
    }
}
