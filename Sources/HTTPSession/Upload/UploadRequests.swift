internal import FoundationEssentials
internal import HTTPTypes

/// The requests of an upload, as HTTP has them.
extension UploadMachine {
    /// ``request``, made of the one that the task was made with. Its body is the whole: a part of it is for whoever sends it to choose.
    func transferRequest(of original: TransferRequest) -> TransferRequest {
        var next = original
        switch request {
        case .create(let count): describeCreation(&next, count)
        case .askOffset:
            (next.method, next.body) = (.head, .none)
            enter(&next, from: original.url)
            describe(&next)
        case .append(let offset, let count):
            next.method = .patch
            enter(&next, from: original.url)
            describe(&next)
            next.headerFields.put("\(offset)", "Upload-Offset")
            switch kind {
            case .tus: next.headerFields[.contentType] = "application/offset+octet-stream"
            case .draft:
                next.headerFields[.contentType] = "application/partial-upload"
                next.headerFields.put(offset + count == length ? "?1" : "?0", "Upload-Complete")
            }
        }
        wantDigest(&next)
        return next
    }

    /// A server that can is asked for the digest of the complete upload (RFC 9530 section 4).
    private func wantDigest(_ next: inout TransferRequest) {
        if bodyCount > 0, bodyStart + bodyCount == length { next.headerFields.put("sha-256=10, sha-512=5", "Want-Repr-Digest") }
    }

    /// How many bytes of the body ``request`` carries, from ``bodyStart`` on.
    var bodyCount: Int64 {
        switch request {
        case .create(let count), .append(_, let count): count
        case .askOffset: 0
        }
    }

    private func describeCreation(_ next: inout TransferRequest, _ count: Int64) {
        describe(&next)
        next.headerFields.put("\(length)", "Upload-Length")
        switch kind {
        case .tus(let metadata):
            // It has no body yet, and none of these is the upload's: a tus server is told of that by the metadata.
            next.body = .none
            for name in RedirectRules.contentFields { next.headerFields[name] = nil }
            if !metadata.isEmpty { next.headerFields.put(UploadMachine.encoded(metadata), "Upload-Metadata") }
        case .draft: next.headerFields.put(count == length ? "?1" : "?0", "Upload-Complete")
        }
    }

    private func describe(_ next: inout TransferRequest) {
        switch kind {
        case .tus: next.headerFields.put(UploadMachine.tusVersion, "Tus-Resumable")
        case .draft: next.headerFields.put("\(UploadMachine.draftVersion)", "Upload-Draft-Interop-Version")
        }
    }

    /// The request goes to the upload itself: it takes along what says who asks, and to another origin not even that; nothing of what
    /// was said of the body or of the request that made the upload.
    private func enter(_ next: inout TransferRequest, from url: URL) {
        guard let location else { return }
        next.url = location.withUser(of: url)
        let isElsewhere = Origin(location) != Origin(url)
        let names = Set(next.headerFields.map(\.name)).filter { name in
            UploadMachine.isOfCreation(name.canonicalName) || (isElsewhere && RedirectRules.isPrivate(name))
        }
        for name in names { next.headerFields[name] = nil }
    }

    private static func isOfCreation(_ name: String) -> Bool {
        // With the same key a server may give the answer to the first request again instead of taking the second.
        ["content-", "if-", "upload-", "want-"].contains { name.hasPrefix($0) }
            || ["expect", "range", "idempotency-key", "repr-digest"].contains(name)
    }

    /// `Upload-Metadata`: pairs of a name and its value in Base64.
    private static func encoded(_ metadata: [String: String]) -> String {
        metadata.sorted { $0.key < $1.key }
            .map { $1.isEmpty ? $0 : "\($0) \(Data($1.utf8).base64EncodedString())" }
            .joined(separator: ",")
    }
}

extension UploadProtocol {
    /// Why the request cannot begin such an upload; `nil`: it can.
    func objection(to request: TransferRequest) -> HTTPSessionError? {
        if case .none = request.body { return UploadProtocol.refusal("there is no body to upload") }
        switch kind {
        case .tus(let metadata):
            guard request.method == .post else { return UploadProtocol.refusal("a tus upload is made by POST") }
            let isSound = metadata.keys.allSatisfy { key in
                !key.isEmpty && key.utf8.allSatisfy { (0x21...0x7E).contains($0) && $0 != UInt8(ascii: ",") }
            }
            return isSound
                ? nil : UploadProtocol.refusal("the name of a tus upload's metadata is ASCII without spaces and commas")
        case .draft:
            guard request.method != .get, request.method != .head else {
                return UploadProtocol.refusal("\(request.method.rawValue) is no method for an upload")
            }
            return nil
        }
    }

    private static func refusal(_ reason: String) -> HTTPSessionError { HTTPSessionError(.invalidRequest, reason) }
}

extension HTTPFields {
    fileprivate mutating func put(_ value: String, _ name: String) {
        if let name = HTTPField.Name(name) { self[name] = value }
    }
}
