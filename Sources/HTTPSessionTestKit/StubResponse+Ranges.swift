extension StubResponse {
    /// Serves ranges of the body (RFC 9110 section 14) under an entity tag: a download that was cut continues where it stopped.
    ///
    /// - Parameter entityTag: the strong validator of the body, with its quotation marks.
    /// - Returns: the response that answers `Range`, `If-Range` and `If-None-Match`.
    public func servingRanges(entityTag: String = "\"1\"") -> StubResponse {
        var copy = self
        copy.fields.removeAll { ["etag", "accept-ranges"].contains($0.name.lowercased()) }
        copy.fields += [HeaderField("ETag", entityTag), HeaderField("Accept-Ranges", "bytes")]
        copy.rangeTag = entityTag
        return copy
    }

    /// The response to a request: the range that the request asks for, if the response serves ranges.
    func resolved(for request: ReceivedRequest) -> StubResponse {
        guard let rangeTag, status == 200 else { return self }
        var copy = self
        if request["If-None-Match"] == rangeTag {
            (copy.status, copy.body) = (304, .empty)
            return copy
        }
        guard ["GET", "HEAD"].contains(request.method), let range = request["Range"],
            request["If-Range"].map({ $0 == rangeTag }) ?? true, let bounds = StubResponse.bounds(of: range, in: body.count)
        else { return self }
        guard !bounds.isEmpty else {
            (copy.status, copy.body) = (416, .empty)
            copy.fields.append(HeaderField("Content-Range", "bytes */\(body.count)"))
            return copy
        }
        copy.status = 206
        copy.fields.append(
            HeaderField("Content-Range", "bytes \(bounds.lowerBound)-\(bounds.upperBound - 1)/\(body.count)"))
        copy.body = body.slice(bounds)
        return copy
    }

    /// The bounds of `bytes=5-`, `bytes=5-9` or `bytes=-3`; empty: the range is behind the end. `nil`: the field has several ranges, or none.
    private static func bounds(of range: String, in count: Int64) -> Range<Int64>? {
        guard range.hasPrefix("bytes="), !range.contains(",") else { return nil }
        let ends = range.dropFirst(6).split(separator: "-", maxSplits: 1, omittingEmptySubsequences: false)
        guard ends.count == 2 else { return nil }
        if ends[0].isEmpty {
            guard let suffix = Int64(ends[1]) else { return nil }
            return max(0, count - suffix)..<count
        }
        guard let first = Int64(ends[0]), first >= 0 else { return nil }
        let last = ends[1].isEmpty ? count - 1 : Int64(ends[1])
        guard let last else { return nil }
        return first >= count ? count..<count : first..<max(first + 1, min(last + 1, count))
    }
}

extension StubBody {
    /// A range of the body, with the waits between its bytes.
    func slice(_ bounds: Range<Int64>) -> StubBody {
        var start: Int64 = 0
        var kept: [Segment] = []
        for segment in segments {
            let end = start + segment.count
            let (from, to) = (max(start, bounds.lowerBound), min(end, bounds.upperBound))
            switch segment {
            case .wait: if bounds.contains(start) { kept.append(segment) }
            case _ where from >= to: break
            case .bytes(let bytes): kept.append(.bytes(Array(bytes[Int(from - start)..<Int(to - start)])))
            case .repeating(let byte, _): kept.append(.repeating(byte, count: to - from))
            case .pattern(let first, _): kept.append(.pattern(from: first + from - start, count: to - from))
            }
            start = end
        }
        return StubBody(kept)
    }
}
