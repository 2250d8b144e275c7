internal import Certificates
internal import CLinux
internal import FoundationEssentials
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
