internal import FoundationEssentials
internal import HTTPTypes

/// The HTTP requests of an upload.
extension UploadMachine {
    /// The HTTP request for ``request``, made from the task's own. Its body is the complete one; the caller sends ``bodyCount``
    /// bytes of it.
    func transferRequest(of original: TransferRequest) -> TransferRequest {
        var next = original
        // The server's interim response 104 replaces it, and a repeated request (417) would create a second upload.
        next.headerFields[.expect] = nil
        switch request {
        case .create(let count): describeCreation(&next, count)
        case .askOffset:
            (next.method, next.body) = (.head, .none)
            address(&next, from: original.url)
            describe(&next)
        case .append(let offset, let count):
            next.method = .patch
            address(&next, from: original.url)
            describe(&next)
            next.headerFields.set("\(offset)", "Upload-Offset")
            switch kind {
            case .tus: next.headerFields[.contentType] = "application/offset+octet-stream"
            case .draft:
                next.headerFields[.contentType] = "application/partial-upload"
                next.headerFields.set(offset + count == length ? "?1" : "?0", "Upload-Complete")
            }
        }
        requestDigest(&next)
        return next
    }

    /// Asks for the digest of the complete upload, which some servers send (RFC 9530 section 4).
    private func requestDigest(_ next: inout TransferRequest) {
        if bodyCount > 0, bodyStart + bodyCount == length { next.headerFields.set("sha-256=10, sha-512=5", "Want-Repr-Digest") }
    }

    /// The number of body bytes that ``request`` carries, from ``bodyStart`` on.
    var bodyCount: Int64 {
        switch request {
        case .create(let count), .append(_, let count): count
        case .askOffset: 0
        }
    }

    private func describeCreation(_ next: inout TransferRequest, _ count: Int64) {
        describe(&next)
        next.headerFields.set("\(length)", "Upload-Length")
        switch kind {
        case .tus(let metadata):
            // The creating request has no body, and its content fields do not apply. A tus server gets them as metadata.
            next.body = .none
            next.headerFields.removeContentFields()
            if !metadata.isEmpty { next.headerFields.set(UploadMachine.encoded(metadata), "Upload-Metadata") }
        case .draft: next.headerFields.set(count == length ? "?1" : "?0", "Upload-Complete")
        }
    }

    private func describe(_ next: inout TransferRequest) {
        switch kind {
        case .tus: next.headerFields.set(UploadMachine.tusVersion, "Tus-Resumable")
        case .draft: next.headerFields.set("\(UploadMachine.draftVersion)", "Upload-Draft-Interop-Version")
        }
    }

    /// Directs the request to the upload's URL. Fields about the body or the creating request are removed, and fields that
    /// identify the user too if the origin is another one.
    private func address(_ next: inout TransferRequest, from url: URL) {
        guard let location else { return }
        next.url = location.withUser(of: url)
        let change = RedirectRules.Change(from: Origin(url), to: Origin(location))
        let names = Set(next.headerFields.map(\.name)).filter { name in
            UploadMachine.isOfCreation(name.canonicalName) || !change.mayForward(name, forwarded)
        }
        for name in names { next.headerFields[name] = nil }
    }

    private static func isOfCreation(_ name: String) -> Bool {
        // With the same key a server might repeat the first response instead of executing the second request.
        ["content-", "if-", "upload-", "want-"].contains { name.hasPrefix($0) }
            || ["expect", "range", "idempotency-key", "repr-digest"].contains(name)
    }

    /// The value of `Upload-Metadata`: pairs of a name and a value in Base64.
    private static func encoded(_ metadata: [String: String]) -> String {
        metadata.sorted { $0.key < $1.key }
            .map { $1.isEmpty ? $0 : "\($0) \(Data($1.utf8).base64EncodedString())" }
            .joined(separator: ",")
    }
}

extension UploadProtocol {
    /// The reason why the request cannot begin such an upload; `nil` if it can.
    func objection(to request: TransferRequest) -> HTTPSessionError? {
        if case .none = request.body { return UploadProtocol.refusal("there is no body to upload") }
        switch kind {
        case .tus(let metadata):
            guard request.method == .post else { return UploadProtocol.refusal("a tus upload is created by POST") }
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
    fileprivate mutating func set(_ value: String, _ name: String) {
        if let name = HTTPField.Name(name) { self[name] = value }
    }
}
