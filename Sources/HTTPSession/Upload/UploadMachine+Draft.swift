internal import FoundationEssentials

/// The answers of a server that may know draft-ietf-httpbis-resumable-upload.
extension UploadMachine {
    static let draftVersion: Int64 = 8

    /// 104 (Upload Resumption Supported), of this version of the draft or none.
    mutating func draftReceived(interim head: ResponseHead, from url: URL) -> Stop? {
        guard head.statusCode == 104, head.structuredInteger(of: "upload-draft-interop-version") == UploadMachine.draftVersion
        else { return nil }
        var count: Int64 = 0
        switch request {
        case .create(let size):
            count = size
            if let place = head.firstValue(of: "location"), let refusal = take(location: place, from: url) {
                return .refuse(refusal)
            }
        case .append(_, let size): count = size
        case .askOffset: return nil
        }
        if let offset = head.structuredInteger(of: "upload-offset") { noteProgress(offset) }
        if let refusal = takeLimit(head) { return .refuse(refusal) }
        guard location != nil, let maximumAppendSize, maximumAppendSize < count else { return nil }
        return .takesParts
    }

    mutating func draftReceived(_ head: ResponseHead, from url: URL) -> Verdict {
        let refusal = takeLimit(head)
        let isComplete = head.structuredBoolean(of: "upload-complete")
        switch request {
        case .create(let count):
            // What became of the whole is for the resource to say, also where it is an error.
            if isComplete == true { return count == length ? .final : .refuse(UploadMachine.tooEarly) }
            switch head.statusCode {
            case 200...299: return draftCreated(head, from: url, count, isComplete: isComplete)
            case 413:
                if let refusal { return .refuse(refusal) }
                return sendsLess(than: count) ? .next : trouble()
            default: return trouble()
            }
        case .askOffset: return draftOffset(head, isComplete: isComplete ?? false)
        case .append(let offset, let count):
            if isComplete == true { return offset + count == length ? .final : .refuse(UploadMachine.tooEarly) }
            return draftAppended(head, offset, count, refusal)
        }
    }

    private mutating func draftCreated(_ head: ResponseHead, from url: URL, _ count: Int64, isComplete: Bool?) -> Verdict {
        // A server that knows nothing of the draft says nothing of it.
        if count == length, isComplete == nil { return .final }
        if let place = head.firstValue(of: "location"), let refusal = take(location: place, from: url) { return .refuse(refusal) }
        guard location != nil else { return .refuse(Refusal("the server began an upload and did not say where")) }
        return count == length ? detour() : acknowledged(head.structuredInteger(of: "upload-offset"), end: count)
    }

    private mutating func draftOffset(_ head: ResponseHead, isComplete: Bool) -> Verdict {
        switch head.statusCode {
        case 200...299: break
        case 404, 410: return isIdempotent ? gone() : .final
        case 423: return trouble(isAskedFor: true)
        default: return trouble()
        }
        guard let offset = head.structuredInteger(of: "upload-offset") else {
            return .refuse(Refusal("the server did not say how much of the upload is there"))
        }
        if let said = head.structuredInteger(of: "upload-length"), said != length {
            return .refuse(Refusal("the server takes the upload for one of \(said) bytes, not \(length)"))
        }
        if let refusal = accept(offset) { return .refuse(refusal) }
        guard isComplete else { return appendRest() }
        return offset == length ? .final : .refuse(UploadMachine.tooEarly)
    }

    private mutating func draftAppended(_ head: ResponseHead, _ start: Int64, _ count: Int64, _ refusal: Refusal?) -> Verdict {
        let said = head.structuredInteger(of: "upload-offset")
        switch head.statusCode {
        case 200...299:
            // It said nothing of an end that it was told of: whether it saw it is asked.
            return start + count == length ? detour() : acknowledged(said, end: start + count)
        case 404, 410: return isIdempotent ? gone() : .final
        case 409:
            guard let said else { return detour() }
            if let refusal = accept(said) { return .refuse(refusal) }
            _ = appendRest()
            return detour(request)
        case 413:
            if let refusal { return .refuse(refusal) }
            return sendsLess(than: count) ? .next : trouble()
        case 423: return trouble(isAskedFor: true)
        default: return trouble()
        }
    }

    /// Whether the server, which found the request too large, has said what would not be: that follows.
    private mutating func sendsLess(than count: Int64) -> Bool {
        guard let maximumAppendSize, maximumAppendSize < count else { return false }
        if location == nil { startAnew(sending: .create(count: maximumAppendSize)) } else { request = .askOffset }
        return true
    }

    /// Takes what the server says of its limits; what it says first of the whole size ends the upload.
    private mutating func takeLimit(_ head: ResponseHead) -> Refusal? {
        guard let limit = head.structuredDictionary(of: "upload-limit").flatMap(UploadLimit.init) else { return nil }
        maximumAppendSize = limit.maximumAppendSize
        guard let maximum = limit.maximumSize, maximum < length else { return nil }
        return Refusal("the server takes uploads of at most \(maximum) bytes, and this one has \(length)", code: .invalidRequest)
    }

    private static let tooEarly = Refusal("the server takes the upload for complete, and it is not")
}
