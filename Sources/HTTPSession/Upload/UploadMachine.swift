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
/// It supports tus 1.0.0 (`UploadMachine+Tus.swift`) and the IETF's draft (`UploadMachine+Draft.swift`).
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
    var request: Request
    /// The upload's URL, if the server has sent it.
    private(set) var location: URL?
    /// The server's latest offset: the number of bytes that it has.
    private(set) var offset: Int64 = 0
    /// Whether the server's offset has exceeded all earlier ones since the flag was last read.
    var hasProgressed = false
    /// The most bytes of the upload that a request may carry.
    var maximumAppendSize: Int64?
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

    private mutating func lostBody(endingAt end: Int64) {
        if end == length { isCompletionUnknown = true }
        request = .askOffset
    }

    private mutating func note(sent end: Int64) { sent = max(sent, end) }

    // MARK: Common to both protocols

    /// Takes the server's offset. It may be lower than before, but not higher than what was sent: bytes that this client did not
    /// send are not its upload's.
    mutating func accept(_ newOffset: Int64) -> Refusal? {
        guard newOffset <= length else { return Refusal("the server has \(newOffset) bytes of an upload of \(length)") }
        guard newOffset <= sent else { return Refusal("the server has \(newOffset) bytes, of which only \(sent) were sent") }
        offset = newOffset
        noteProgress(newOffset)
        return nil
    }

    /// Takes the success of a request that ended at `end`. `serverOffset`: the server's offset, if the response has it.
    mutating func acknowledged(_ serverOffset: Int64?, end: Int64) -> Verdict {
        guard let newOffset = serverOffset ?? (end <= sent ? end : nil) else { return resynchronize() }
        let former = offset
        if let refusal = accept(newOffset) { return .refuse(refusal) }
        return newOffset > former ? appendRemaining() : resynchronize()
    }

    /// Records the server's offset, if it has advanced.
    mutating func noteProgress(_ newOffset: Int64) {
        guard newOffset > highestOffset, newOffset <= min(sent, length) else { return }
        (highestOffset, hasProgressed, resynchronizations) = (newOffset, true, 0)
    }

    /// Prepares to send the remaining bytes behind the server's offset.
    mutating func appendRemaining() -> Verdict {
        isCompletionUnknown = false
        request = .append(offset: offset, count: min(length - offset, maximumAppendSize ?? .max))
        return .next
    }

    /// Asks for the server's offset because the two sides disagree about it. The first time the request follows at once, and
    /// later only as a retry.
    mutating func resynchronize(_ next: Request = .askOffset) -> Verdict {
        resynchronizations += 1
        request = next
        return resynchronizations == 1 ? .next : .retry(isRequestedByServer: true)
    }

    /// The server cannot proceed. The retry policy decides by the status whether that is temporary.
    mutating func retryLater(isRequestedByServer: Bool = false) -> Verdict {
        if location != nil { request = .askOffset }
        return .retry(isRequestedByServer: isRequestedByServer)
    }

    /// The server no longer knows the upload. An upload that may have been complete is not created again.
    mutating func uploadNotFound() -> Verdict {
        guard !isCompletionUnknown || isIdempotent else {
            return .refuse(Refusal("the server no longer has the upload, which may have been complete"))
        }
        guard creations < UploadMachine.maximumCreations else { return .final }
        creations += 1
        restart(sending: creation)
        return .next
    }

    /// Resets everything that is known of the upload on the server.
    mutating func restart(sending creation: Request) {
        (location, offset, highestOffset, sent, isCompletionUnknown) = (nil, 0, 0, 0, false)
        request = creation
    }

    /// Adopts the upload's URL from the server. It has to be one that a redirect could lead to.
    mutating func adopt(location text: String, from url: URL) -> Refusal? {
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
