internal import FoundationEssentials
internal import HTTPTypes

/// A resumable upload, which outlives its connections. Responses and losses go in; the next request, or the result, comes out.
///
/// ```
///  create ──────── location ──────▶ append ◀──── server's offset ─────── askOffset
///   │   ▲                            │  │                                 ▲  │  │
///   │   └── not found, up to twice ──│──│───────── lost, failed ──────────┘  │  │
///   │                                │  └───────── offsets differ            │  │
///   └── complete ──▶ final ◀─────────┘ complete         complete ────────────┘  │
///                      ▲──────── not found, and may have been complete ─────────┘
/// ```
///
/// It supports tus 1.0.0 and the IETF's draft. `UploadRequests.swift` has the HTTP requests.
struct UploadMachine: Hashable, Sendable {
    /// A request of the upload.
    enum Request: Hashable, Sendable {
        /// Creates the upload, with the body's first `count` bytes.
        case create(count: Int64)
        /// Asks for the server's offset.
        case askOffset
        /// Sends `count` bytes of the body from `offset` on.
        case append(offset: Int64, count: Int64)
    }

    /// How the upload proceeds after a response.
    enum Verdict: Hashable, Sendable {
        /// The next ``request`` follows immediately.
        case next
        /// ``request`` follows if the retry policy allows it. The policy judges the response's status unless the protocol itself
        /// asks for a retry (`isRequestedByServer`). If the policy refuses, the response is the result.
        case retry(isRequestedByServer: Bool)
        /// The response is the result, whatever its status.
        case final
        case refuse(Refusal)
    }

    /// The reason to stop a request before its response.
    enum EarlyStop: Hashable, Sendable {
        /// The request is larger than the server accepts at once: the upload continues in parts.
        case acceptsOnlyParts
        case refuse(Refusal)
    }

    /// The reason why this server cannot take the upload.
    struct Refusal: Hashable, Sendable {
        var code: HTTPSessionError.Code
        var reason: String

        init(_ reason: String, code: HTTPSessionError.Code = .badServerResponse) {
            self.code = code
            self.reason = reason
        }
    }

    let kind: UploadProtocol.Kind
    /// The length of the body in bytes.
    let length: Int64
    /// Whether the request that creates the upload may be executed twice.
    let isIdempotent: Bool
    private let allowsInsecure: Bool
    /// The names of ``SessionConfiguration/forwardedHeaderFields``.
    let forwarded: Set<HTTPField.Name>

    /// The current request, or the next one.
    private(set) var request: Request
    /// The upload's URL, if the server has sent it.
    private(set) var location: URL?
    /// The server's latest offset: the number of bytes that it has.
    private(set) var offset: Int64 = 0
    /// Whether the server's offset has exceeded all earlier ones since ``clearProgress()``.
    private(set) var hasProgressed = false
    /// The most bytes of the upload that a request may carry.
    private var maximumAppendSize: Int64?
    /// Whether the last byte was sent without a response that says whether it arrived.
    private(set) var isCompletionUnknown = false
    private var highestOffset: Int64 = 0
    private var sent: Int64 = 0
    private var creations = 1
    private var resynchronizations = 0

    /// The most times that an upload may be created.
    static let maximumCreations = 3

    init(
        _ kind: UploadProtocol.Kind, length: Int64, isIdempotent: Bool, allowsInsecure: Bool,
        forwarding forwarded: Set<HTTPField.Name> = []
    ) {
        self.kind = kind
        self.length = length
        self.isIdempotent = isIdempotent
        self.allowsInsecure = allowsInsecure
        self.forwarded = forwarded
        request = .create(count: 0)
        request = creation
    }

    /// Continues an upload that another process has begun; the server's offset decides how. `mayRestart`: whether the upload may
    /// be created again although it may have been complete.
    mutating func resume(at newLocation: URL, mayRestart: Bool = false) {
        (location, sent, isCompletionUnknown) = (newLocation, length, !mayRestart)
        request = .askOffset
    }

    private var creation: Request {
        switch kind {
        case .tus: .create(count: 0)
        case .draft: .create(count: min(length, maximumAppendSize ?? .max))
        }
    }

    /// Whether ``request`` may be sent after an earlier one that may have been executed. A request that creates a tus upload may:
    /// at worst it leaves an empty upload behind.
    var isRepeatable: Bool {
        if case .tus = kind { return true }
        return isIdempotent || location != nil
    }

    /// The start of the current request's body, as an offset in the complete body; the server's offset if the request has no
    /// body.
    var bodyStart: Int64 {
        switch request {
        case .create: 0
        case .askOffset: offset
        case .append(let offset, _): offset
        }
    }

    // MARK: Events

    /// Takes an interim response (1xx). `url`: of the request; `end`: the end of the sent bytes in the complete body.
    mutating func received(interim head: ResponseHead, from url: URL, sent end: Int64) -> EarlyStop? {
        note(sent: end)
        guard case .draft = kind else { return nil }
        return draftReceived(interim: head, from: url)
    }

    /// Takes the response to ``request``.
    mutating func received(_ head: ResponseHead, from url: URL, sent end: Int64) -> Verdict {
        note(sent: end)
        // A server that received the last byte may have completed the upload, whatever its response says.
        if request != .askOffset, end == length, !(300...499).contains(head.statusCode) { isCompletionUnknown = true }
        switch kind {
        case .tus: return tusReceived(head, from: url)
        case .draft: return draftReceived(head, from: url)
        }
    }

    /// The current request ended without a response. `hasSent`: the server may have received some of it.
    mutating func lost(sent end: Int64, hasSent: Bool) {
        guard hasSent else { return }
        note(sent: end)
        switch request {
        case .create: if location != nil { lostBody(endingAt: end) } else { restart(sending: request) }
        case .append: lostBody(endingAt: end)
        case .askOffset: break
        }
    }

    /// A decision about a retry has taken the progress into account.
    mutating func clearProgress() { hasProgressed = false }

    private mutating func lostBody(endingAt end: Int64) {
        if end == length { isCompletionUnknown = true }
        request = .askOffset
    }

    private mutating func note(sent end: Int64) { sent = max(sent, end) }

    // MARK: Common to both protocols

    /// Takes the server's offset. It may be lower than before, but not higher than what was sent: bytes that this client did not
    /// send are not its upload's.
    private mutating func accept(_ newOffset: Int64) -> Refusal? {
        guard newOffset <= length else { return Refusal("the server has \(newOffset) bytes of an upload of \(length)") }
        guard newOffset <= sent else { return Refusal("the server has \(newOffset) bytes, of which only \(sent) were sent") }
        offset = newOffset
        noteProgress(newOffset)
        return nil
    }

    /// Takes the success of a request that ended at `end`. `serverOffset`: the server's offset, if the response has it.
    private mutating func acknowledged(_ serverOffset: Int64?, end: Int64) -> Verdict {
        guard let newOffset = serverOffset ?? (end <= sent ? end : nil) else { return resynchronize() }
        let former = offset
        if let refusal = accept(newOffset) { return .refuse(refusal) }
        return newOffset > former ? appendRemaining() : resynchronize()
    }

    /// Records the server's offset, if it has advanced.
    private mutating func noteProgress(_ newOffset: Int64) {
        guard newOffset > highestOffset, newOffset <= min(sent, length) else { return }
        (highestOffset, hasProgressed, resynchronizations) = (newOffset, true, 0)
    }

    /// Prepares to send the remaining bytes behind the server's offset.
    private mutating func appendRemaining() -> Verdict {
        isCompletionUnknown = false
        request = .append(offset: offset, count: min(length - offset, maximumAppendSize ?? .max))
        return .next
    }

    /// Asks for the server's offset because the two sides disagree about it. The first time the request follows at once, and
    /// later only as a retry.
    private mutating func resynchronize(_ next: Request = .askOffset) -> Verdict {
        resynchronizations += 1
        request = next
        return resynchronizations == 1 ? .next : .retry(isRequestedByServer: true)
    }

    /// The server cannot proceed. The retry policy decides by the status whether that is temporary.
    private mutating func retryLater(isRequestedByServer: Bool = false) -> Verdict {
        if location != nil { request = .askOffset }
        return .retry(isRequestedByServer: isRequestedByServer)
    }

    /// The server no longer knows the upload. An upload that may have been complete is not created again.
    private mutating func uploadNotFound() -> Verdict {
        guard !isCompletionUnknown || isIdempotent else {
            return .refuse(Refusal("the server no longer has the upload, which may have been complete"))
        }
        guard creations < UploadMachine.maximumCreations else { return .final }
        creations += 1
        restart(sending: creation)
        return .next
    }

    /// Resets everything that is known of the upload on the server.
    private mutating func restart(sending creation: Request) {
        (location, offset, highestOffset, sent, isCompletionUnknown) = (nil, 0, 0, 0, false)
        request = creation
    }

    /// Adopts the upload's URL from the server. It has to be one that a redirect could lead to.
    private mutating func adopt(location text: String, from url: URL) -> Refusal? {
        switch RedirectRules.resolve(text, from: url, allowsInsecure: allowsInsecure) {
        case .success(let newLocation):
            guard location == nil || location == newLocation else {
                return Refusal("the server sent two locations for one upload")
            }
            location = newLocation
            return nil
        case .failure(let reason): return Refusal("the upload's location \(reason.text)", code: .redirectRefused)
        }
    }
}

// MARK: - tus

/// The responses of a tus server (tus.io/protocols/resumable-upload, 1.0.0).
extension UploadMachine {
    static let tusVersion = "1.0.0"

    private mutating func tusReceived(_ head: ResponseHead, from url: URL) -> Verdict {
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

// MARK: - The draft of the IETF

/// The responses of a server that may support draft-ietf-httpbis-resumable-upload.
extension UploadMachine {
    static let draftVersion: Int64 = 8

    /// Takes a 104 (Upload Resumption Supported) of this version of the draft; others are ignored.
    private mutating func draftReceived(interim head: ResponseHead, from url: URL) -> EarlyStop? {
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

    private mutating func draftReceived(_ head: ResponseHead, from url: URL) -> Verdict {
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
