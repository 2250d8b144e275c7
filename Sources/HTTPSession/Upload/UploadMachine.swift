internal import FoundationEssentials

/// An upload that outlives its connections. What was answered or lost goes in; which request is next, and what becomes of it, comes out.
///
/// ```
///  create ──────── a place ───────▶ append ◀──── how much is there ───── askOffset
///   │   ▲                            │  │                                 ▲  │  │
///   │   └── gone, twice at most ─────│──│───────── lost, in trouble, ─────┘  │  │
///   │                                │  └───────── another offset            │  │
///   └── all went at once ──▶ final ◀─┘ all is there      all is there ───────┘  │
///                              ▲────────────────────────────────────────────────┘
/// ```
///
/// It holds for tus 1.0.0 (`UploadMachine+Tus.swift`) and for the IETF's draft (`UploadMachine+Draft.swift`).
struct UploadMachine: Hashable, Sendable {
    /// A request of the upload's.
    enum Request: Hashable, Sendable {
        /// Makes the upload, with the body's first `count` bytes.
        case create(count: Int64)
        /// Asks how much is there.
        case askOffset
        /// Sends `count` bytes of the body, from `offset` on.
        case append(offset: Int64, count: Int64)
    }

    /// What follows from an answer.
    enum Verdict: Hashable, Sendable {
        /// ``request``, now.
        case next
        /// ``request``, when the retry policy says so; it is asked about the answer's status unless the protocol itself says to come again
        /// (`isAskedFor`). If it does not, the answer is the last.
        case retry(isAskedFor: Bool)
        /// The answer is the last, whatever it says.
        case final
        case refuse(Refusal)
    }

    /// Why a request is broken off before its answer.
    enum Stop: Hashable, Sendable {
        /// It has more than the server takes at once: the rest follows in parts.
        case takesParts
        case refuse(Refusal)
    }

    /// Why there is no upload with this server.
    struct Refusal: Hashable, Sendable {
        var code: HTTPSessionError.Code
        var reason: String

        init(_ reason: String, code: HTTPSessionError.Code = .badServerResponse) {
            self.code = code
            self.reason = reason
        }
    }

    let kind: UploadProtocol.Kind
    /// Of the body, in bytes.
    let length: Int64
    /// A second execution of the request that makes the upload does no harm.
    let isIdempotent: Bool
    private let allowsInsecure: Bool

    /// What is under way, or next.
    var request: Request
    /// Where the upload is, once its server has said so.
    private(set) var location: URL?
    /// How many bytes are there, by the server's last word.
    private(set) var offset: Int64 = 0
    /// Whether more has arrived than ever before, since somebody asked.
    var hasProgressed = false
    /// The most that a request may carry.
    var maximumAppendSize: Int64?
    /// Whether the last byte has gone, and nobody knows whether it arrived.
    private(set) var isEndInDoubt = false
    private var furthest: Int64 = 0
    private var sent: Int64 = 0
    private var creations = 1
    private var detours = 0

    /// How often an upload may be made in all.
    static let maximumCreations = 3

    init(_ kind: UploadProtocol.Kind, length: Int64, isIdempotent: Bool, allowsInsecure: Bool) {
        self.kind = kind
        self.length = length
        self.isIdempotent = isIdempotent
        self.allowsInsecure = allowsInsecure
        request = .create(count: 0)
        request = creation
    }

    /// Another process has begun it there, and sent what nobody knows: the server says how much is there. `mayBeginAnew`: also where it may
    /// have been complete.
    mutating func goOn(at place: URL, mayBeginAnew: Bool = false) {
        (location, sent, isEndInDoubt) = (place, length, !mayBeginAnew)
        request = .askOffset
    }

    private var creation: Request {
        switch kind {
        case .tus: .create(count: 0)
        case .draft: .create(count: min(length, maximumAppendSize ?? .max))
        }
    }

    /// Whether ``request`` may be made after one that may have been executed. One that makes a tus upload may: an upload without a byte is
    /// left behind at the worst.
    var isRepeatable: Bool {
        if case .tus = kind { return true }
        return isIdempotent || location != nil
    }

    /// Where the present request's body begins in the whole; where it has none, how much is there.
    var bodyStart: Int64 {
        switch request {
        case .create: 0
        case .askOffset: offset
        case .append(let offset, _): offset
        }
    }

    // MARK: Events

    /// An interim response (1xx) has come. `url`: of the request; `end`: how far into the whole body has been sent.
    mutating func received(interim head: ResponseHead, from url: URL, sent end: Int64) -> Stop? {
        note(sent: end)
        guard case .draft = kind else { return nil }
        return draftReceived(interim: head, from: url)
    }

    /// The answer to ``request`` has come.
    mutating func received(_ head: ResponseHead, from url: URL, sent end: Int64) -> Verdict {
        note(sent: end)
        // A server that took the end may have done so for good, whatever it says then.
        if request != .askOffset, end == length, !(300...499).contains(head.statusCode) { isEndInDoubt = true }
        switch kind {
        case .tus: return tusReceived(head, from: url)
        case .draft: return draftReceived(head, from: url)
        }
    }

    /// No answer has come to ``request``, and none will. `hasSent`: some of it may have arrived.
    mutating func lost(sent end: Int64, hasSent: Bool) {
        guard hasSent else { return }
        note(sent: end)
        switch request {
        case .create: if location != nil { endMayBeThere(end) } else { startAnew(sending: request) }
        case .append: endMayBeThere(end)
        case .askOffset: break
        }
    }

    private mutating func endMayBeThere(_ end: Int64) {
        if end == length { isEndInDoubt = true }
        request = .askOffset
    }

    private mutating func note(sent end: Int64) { sent = max(sent, end) }

    // MARK: What both protocols do

    /// The server has said how much is there. It may be less than before, never more than was sent: what this side did not send is not
    /// its upload.
    mutating func accept(_ newOffset: Int64) -> Refusal? {
        guard newOffset <= length else { return Refusal("the server has \(newOffset) bytes of an upload of \(length)") }
        guard newOffset <= sent else { return Refusal("the server has \(newOffset) bytes, of which only \(sent) were sent") }
        offset = newOffset
        noteProgress(newOffset)
        return nil
    }

    /// The server has taken a request that ended at `end`, and may have said how much is there now.
    mutating func acknowledged(_ said: Int64?, end: Int64) -> Verdict {
        guard let newOffset = said ?? (end <= sent ? end : nil) else { return detour() }
        let former = offset
        if let refusal = accept(newOffset) { return .refuse(refusal) }
        return newOffset > former ? appendRest() : detour()
    }

    /// Bytes have arrived.
    mutating func noteProgress(_ newOffset: Int64) {
        guard newOffset > furthest, newOffset <= min(sent, length) else { return }
        (furthest, hasProgressed, detours) = (newOffset, true, 0)
    }

    /// What was answered says how much is there: the rest is next.
    mutating func appendRest() -> Verdict {
        isEndInDoubt = false
        request = .append(offset: offset, count: min(length - offset, maximumAppendSize ?? .max))
        return .next
    }

    /// The two sides do not agree on how much is there. The first time it is asked about at once, and then only as often as what fails.
    mutating func detour(_ next: Request = .askOffset) -> Verdict {
        detours += 1
        request = next
        return detours == 1 ? .next : .retry(isAskedFor: true)
    }

    /// The server cannot, for now or for ever, which its status tells the retry policy.
    mutating func trouble(isAskedFor: Bool = false) -> Verdict {
        if location != nil { request = .askOffset }
        return .retry(isAskedFor: isAskedFor)
    }

    /// The server does not know the upload any more. What may have been complete is not made again.
    mutating func gone() -> Verdict {
        guard !isEndInDoubt || isIdempotent else {
            return .refuse(Refusal("the server does not know the upload any more, which may have been complete"))
        }
        guard creations < UploadMachine.maximumCreations else { return .final }
        creations += 1
        startAnew(sending: creation)
        return .next
    }

    /// Nothing is known of an upload.
    mutating func startAnew(sending creation: Request) {
        (location, offset, furthest, sent, isEndInDoubt) = (nil, 0, 0, 0, false)
        request = creation
    }

    /// Takes the place that the server names; it has to be one that a redirect could lead to.
    mutating func take(location text: String, from url: URL) -> Refusal? {
        switch RedirectRules.resolve(text, from: url, allowsInsecure: allowsInsecure) {
        case .success(let place):
            guard location == nil || location == place else { return Refusal("the server named two places for one upload") }
            location = place
            return nil
        case .failure(let reason): return Refusal("the upload's place \(reason.text)", code: .redirectRefused)
        }
    }
}
