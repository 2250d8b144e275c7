internal import Certificates
internal import CLinux
internal import FoundationEssentials
internal import Glibc

/// A body of which any range can be read any number of times, always with the same bytes.
struct ResumableBody: Sendable {
    /// The length of the body in bytes.
    let length: Int64
    private let segments: [BodySegment]

    /// Records the versions of the files, which must not change.
    init(_ segments: [BodySegment]) throws(HTTPSessionError) {
        guard let length = segments.totalLength else {
            throw HTTPSessionError(.invalidRequest, "a resumable upload needs a body of known length")
        }
        self.length = length
        var recorded: [BodySegment] = []
        for segment in segments {
            if case .file(let path, let length) = segment {
                recorded.append(.filePart(FilePart(path: path, size: length, version: try FileVersion(path), range: 0..<length)))
            } else {
                recorded.append(segment)
            }
        }
        self.segments = recorded
    }

    /// The segments of the range of `count` bytes from `offset`.
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

    /// The digest of the complete body; `nil` if one of its files has changed or cannot be read, if it has a stream, or if `isCancelled` returns
    /// `true`. `isCancelled` is called regularly.
    func digest(_ algorithm: ContentDigest.Algorithm, isCancelled: () -> Bool) -> ContentDigest? {
        guard let hasher = algorithm.hasher else { return nil }
        for segment in segments {
            switch segment {
            case .data(let data): data.withUnsafeBytes { hasher.update($0) }
            case .filePart(let part):
                guard (try? part.read({ hasher.update($0) }, isCancelled: isCancelled)) == true else { return nil }
            case .file, .stream: return nil
            }
        }
        return ContentDigest(algorithm, of: hasher)
    }
}

extension BodySegment {
    /// The segment of a range, which has to be within the length.
    fileprivate func part(_ range: Range<Int64>) -> BodySegment {
        switch self {
        case .data(let data):
            .data(data.dropFirst(Int(range.lowerBound)).prefix(range.count))
        case .file(let path, let length):
            .filePart(FilePart(path: path, size: length, version: nil, range: range))
        case .filePart(let part):
            .filePart(
                FilePart(
                    path: part.path, size: part.size, version: part.version,
                    range: part.range.lowerBound + range.lowerBound..<part.range.lowerBound + range.upperBound))
        case .stream(let length, let make):
            range.count == length ?? -1
                ? self
                : .stream(length: Int64(range.count), make: StreamPart.factory(make, range, isLast: range.upperBound == length))
        }
    }
}

/// A range of a stream, which is read from its beginning for that.
private actor StreamPart {
    private var chunks: AsyncThrowingStream<Data, any Error>.Iterator
    private var skipped: Int64
    /// The bytes that remain of the range; `nil` for all bytes up to the end of the stream.
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
