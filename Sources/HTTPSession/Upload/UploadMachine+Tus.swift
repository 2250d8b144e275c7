internal import FoundationEssentials

/// The responses of a tus server (tus.io/protocols/resumable-upload, 1.0.0).
extension UploadMachine {
    static let tusVersion = "1.0.0"

    mutating func tusReceived(_ head: ResponseHead, from url: URL) -> Verdict {
        let status = head.statusCode
        if status == 412 { return .refuse(UploadMachine.versionMismatch(head)) }
        switch request {
        case .create:
            return (200...299).contains(status) ? tusCreated(head, from: url) : retryLater()
        case .askOffset, .append:
            switch status {
            case 200...299: break
            case 403, 404, 410: return uploadNotFound()
            case 409: return resynchronize()
            // Another request uses the upload: often an earlier one of this client, whose end the server has not noticed.
            case 423: return retryLater(isRequestedByServer: true)
            default: return retryLater()
            }
        }
        guard case .append(let offset, let count) = request else { return tusOffset(head) }
        guard let serverOffset = head.plainInteger(of: "upload-offset") else { return resynchronize() }
        guard serverOffset == length else { return acknowledged(serverOffset, end: offset + count) }
        return accept(serverOffset).map { .refuse($0) } ?? .final
    }

    private mutating func tusCreated(_ head: ResponseHead, from url: URL) -> Verdict {
        // Any server may answer a POST with 201 and a `Location` field.
        guard head.firstValue(of: "tus-resumable") == UploadMachine.tusVersion else {
            return .refuse(UploadMachine.versionMismatch(head))
        }
        guard let location = head.firstReference(of: "location"), !location.isEmpty else {
            return .refuse(Refusal("the server created an upload without a location"))
        }
        if let refusal = adopt(location: location, from: url) { return .refuse(refusal) }
        return length == 0 ? .final : appendRemaining()
    }

    private mutating func tusOffset(_ head: ResponseHead) -> Verdict {
        guard let offset = head.plainInteger(of: "upload-offset") else {
            return .refuse(Refusal("the server did not send the upload's offset"))
        }
        if head.firstValue(of: "upload-length") != nil, head.plainInteger(of: "upload-length") != length {
            return .refuse(Refusal("the server has an upload of another length"))
        }
        if let refusal = accept(offset) { return .refuse(refusal) }
        return offset == length ? .final : appendRemaining()
    }

    private static func versionMismatch(_ head: ResponseHead) -> Refusal {
        let versions = head.firstValue(of: "tus-version") ?? head.firstValue(of: "tus-resumable")
        let known = versions.map { "tus \($0)" } ?? "no tus"
        return Refusal("the server speaks \(known), and not \(tusVersion)")
    }
}
