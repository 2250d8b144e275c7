internal import FoundationEssentials

/// The responses of a server that may support draft-ietf-httpbis-resumable-upload.
extension UploadMachine {
    static let draftVersion: Int64 = 8

    /// Takes a 104 (Upload Resumption Supported) of this version of the draft; others are ignored.
    mutating func draftReceived(interim head: ResponseHead, from url: URL) -> EarlyStop? {
        guard head.statusCode == 104, head.structuredInteger(of: "upload-draft-interop-version") == UploadMachine.draftVersion
        else { return nil }
        var count: Int64 = 0
        switch request {
        case .create(let size):
            count = size
            if let location = head.firstReference(of: "location"), let refusal = adopt(location: location, from: url) {
                return .refuse(refusal)
            }
        case .append(_, let size): count = size
        case .askOffset: return nil
        }
        if let offset = head.structuredInteger(of: "upload-offset") { noteProgress(offset) }
        if let refusal = applyLimit(head) { return .refuse(refusal) }
        guard location != nil, let maximumAppendSize, maximumAppendSize < count else { return nil }
        return .acceptsOnlyParts
    }

    mutating func draftReceived(_ head: ResponseHead, from url: URL) -> Verdict {
        let refusal = applyLimit(head)
        let isComplete = head.structuredBoolean(of: "upload-complete")
        switch request {
        case .create(let count):
            // The upload is complete: its resource decides about the result, even if that is an error.
            if isComplete == true { return count == length ? .final : .refuse(UploadMachine.prematureCompletion) }
            switch head.statusCode {
            case 200...299: return draftCreated(head, from: url, count, isComplete: isComplete)
            case 413:
                if let refusal { return .refuse(refusal) }
                return reducesSize(below: count) ? .next : retryLater()
            default: return retryLater()
            }
        case .askOffset: return draftOffset(head, isComplete: isComplete ?? false)
        case .append(let offset, let count):
            if isComplete == true { return offset + count == length ? .final : .refuse(UploadMachine.prematureCompletion) }
            return draftAppended(head, offset, count, refusal)
        }
    }

    private mutating func draftCreated(_ head: ResponseHead, from url: URL, _ count: Int64, isComplete: Bool?) -> Verdict {
        // A server that does not know the draft does not send its fields.
        if count == length, isComplete == nil { return .final }
        if let location = head.firstReference(of: "location"), let refusal = adopt(location: location, from: url) {
            return .refuse(refusal)
        }
        guard location != nil else { return .refuse(Refusal("the server created an upload without a location")) }
        return count == length ? resynchronize() : acknowledged(head.structuredInteger(of: "upload-offset"), end: count)
    }

    private mutating func draftOffset(_ head: ResponseHead, isComplete: Bool) -> Verdict {
        switch head.statusCode {
        case 200...299: break
        case 404, 410: return isIdempotent ? uploadNotFound() : .final
        case 423: return retryLater(isRequestedByServer: true)
        default: return retryLater()
        }
        guard let offset = head.structuredInteger(of: "upload-offset") else {
            return .refuse(Refusal("the server did not send the upload's offset"))
        }
        if let serverLength = head.structuredInteger(of: "upload-length"), serverLength != length {
            return .refuse(Refusal("the server has an upload of \(serverLength) bytes, not \(length)"))
        }
        if let refusal = accept(offset) { return .refuse(refusal) }
        guard isComplete else { return appendRemaining() }
        return offset == length ? .final : .refuse(UploadMachine.prematureCompletion)
    }

    private mutating func draftAppended(_ head: ResponseHead, _ start: Int64, _ count: Int64, _ refusal: Refusal?) -> Verdict {
        let serverOffset = head.structuredInteger(of: "upload-offset")
        switch head.statusCode {
        case 200...299:
            // The server did not confirm the end of the upload, so its offset is requested.
            return start + count == length ? resynchronize() : acknowledged(serverOffset, end: start + count)
        case 404, 410: return isIdempotent ? uploadNotFound() : .final
        case 409:
            guard let serverOffset else { return resynchronize() }
            if let refusal = accept(serverOffset) { return .refuse(refusal) }
            _ = appendRemaining()
            return resynchronize(request)
        case 413:
            if let refusal { return .refuse(refusal) }
            return reducesSize(below: count) ? .next : retryLater()
        case 423: return retryLater(isRequestedByServer: true)
        default: return retryLater()
        }
    }

    /// Prepares a smaller request after the server found this one too large. - Returns: whether the server has sent a smaller
    /// limit.
    private mutating func reducesSize(below count: Int64) -> Bool {
        guard let maximumAppendSize, maximumAppendSize < count else { return false }
        if location == nil { restart(sending: .create(count: maximumAppendSize)) } else { request = .askOffset }
        return true
    }

    /// Applies the server's limits. - Returns: A refusal if the complete upload exceeds them.
    private mutating func applyLimit(_ head: ResponseHead) -> Refusal? {
        guard let limit = head.structuredDictionary(of: "upload-limit").flatMap(UploadLimit.init) else { return nil }
        maximumAppendSize = limit.maximumAppendSize
        guard let maximum = limit.maximumSize, maximum < length else { return nil }
        return Refusal("the server takes uploads of at most \(maximum) bytes, and this one has \(length)", code: .invalidRequest)
    }

    private static let prematureCompletion = Refusal("the server reports an incomplete upload as complete")
}
