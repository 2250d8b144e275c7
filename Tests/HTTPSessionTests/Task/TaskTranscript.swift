import Foundation
import HTTPTypes
import Reachability
import Testing

@testable import HTTPSession

/// A task's machine, its events, and its effects, in a line for each event: effects in order, separated by commas. The
/// surroundings answer at once, and their questions are not written: the outage tracker answers ``explanation``, a retry is granted, a digest
/// matches. Effects of every attempt (progress, backoff, metrics) are left out.
final class TaskTranscript {
    private var machine: TaskMachine
    /// The current time in nanoseconds.
    private(set) var now: Int64 = 1_000_000_000
    /// The outage tracker's explanation of failures; `nil` without a tracker.
    var explanation: TaskMachine.FailureExplanation?
    /// The wait until the budget grants a retry; `nil` if it grants it at once.
    var retryWait: Int64?
    var digestMatches = true
    private(set) var result: Result<TransferResponse, HTTPSessionError>?
    /// The field lines that the last attempt adds for a download.
    private(set) var addedLines: [String] = []
    /// The number of the latest question to a handler.
    private(set) var question = 0
    private let date = Date(timeIntervalSince1970: 1_795_000_000)

    init(
        _ method: HTTPRequest.Method = .get, _ url: String = "https://host/file", fields: HTTPFields = [:],
        body: RequestBody = .none, to destination: BodyDestination = .memory(maximumSize: 1 << 20),
        handlers: TaskMachine.Handlers = [], policy: RetryPolicy = .default, upload: UploadMachine? = nil,
        waits: Bool = false, connectivityTimeout: Int64 = .max, _ change: (inout SessionConfiguration) -> Void = { _ in }
    ) throws {
        var configuration = SessionConfiguration.default
        configuration.waitsForConnectivity = waits
        change(&configuration)
        let request = TransferRequest(url: try #require(URL(string: url)), method: method, headerFields: fields, body: body)
        var statusCodes: ClosedRange<Int>? = TaskJob.successes
        if case .memory = destination { statusCodes = nil }
        machine = TaskMachine(
            request, to: destination, origin: try #require(Origin(request.url)), accepting: statusCodes, handlers: handlers,
            limits: .init(
                requestTimeout: 60 * second, resourceTimeout: 3_600 * second, handlerTimeout: 30 * second,
                connectivityTimeout: connectivityTimeout),
            retryPolicy: policy, upload: upload,
            session: SessionRules(configuration, proxies: ProxyOrigins(.none, environment: [:])), seed: 7, now: now)
    }

    static func head(_ status: Int, _ fields: [String]) throws -> ResponseHead {
        let text = "HTTP/1.1 \(status) X\r\n" + fields.map { $0 + "\r\n" }.joined() + "\r\n"
        return try #require(ResponseHead(bytes: Array(text.utf8)))
    }

    // MARK: Events

    func callAsFunction(_ event: TaskMachine.Event) -> String {
        machine.handle(event, now: now)
        return effects()
    }

    /// Starts the task, admits it, and connects its attempt.
    @discardableResult
    func start() -> String { [self(.resume), self(.admitted), self(.connected)].joined(separator: "; ") }

    /// Admits a queued task and connects its next attempt.
    @discardableResult
    func startNextAttempt() -> String { [self(.admitted), self(.connected)].joined(separator: "; ") }

    /// Lets so many seconds pass.
    func after(_ seconds: Double) -> String {
        now += Int64(seconds * 1e9)
        return self(.deadlineReached())
    }

    /// Lets the time until the machine's deadline pass.
    func afterDeadline() -> String {
        now = max(now, machine.deadline ?? now)
        return self(.deadlineReached())
    }

    func head(_ status: Int, _ fields: String...) throws -> String { try head(status, lines: fields[...]) }

    func head(_ status: Int, lines: ArraySlice<String>) throws -> String {
        let intake = machine.receivedHead(try Self.head(status, Array(lines)), at: date, now: now)
        return [Self.text(intake), effects()].compactMap(\.self).filter { !$0.isEmpty }.joined(separator: ", ")
    }

    func body(_ count: Int) -> String {
        switch machine.receivedBytes(count, now: now, arrived: { nil }) {
        case .undecided: return "pause"
        case .refused(let error): return "refuse: \(error.reason)"
        case .sink:
            machine.sinkAccepted(count)
            return effects()
        case .memory:
            let bytes = [UInt8](repeating: 0x61, count: count)
            let intake = bytes.withUnsafeBytes { machine.buffer($0) }
            return [Self.text(intake), effects()].compactMap(\.self).filter { !$0.isEmpty }.joined(separator: ", ")
        }
    }

    /// Sends so many bytes of the request's body.
    func send(_ count: Int) {
        machine.bodyProvided(count, now: now)
        _ = effects()
    }

    /// Makes the sink full.
    func receiverIsFull() { machine.receiverBecameFull() }

    /// Ends the transfer. `code`: why it has no complete response.
    func endTransfer(
        _ code: HTTPSessionError.Code? = nil, authorities: [String]? = nil, lacking cause: Cause? = nil,
        curlCode: Int32? = nil, _ change: (inout TransferFacts) -> Void = { _ in }
    ) -> String {
        var facts = TransferFacts()
        change(&facts)
        let failure = code.map {
            TransferFailure(
                HTTPSessionError($0, "failed", context: .init(curlCode: curlCode)), authorities: authorities,
                missingPath: cause.map { TransferFailure.MissingPath(cause: $0) })
        }
        machine.transferFinished(facts, failure, now: now)
        return effects()
    }

    /// Answers the latest question to a handler.
    func answer(_ answer: HandlerAnswer) -> String { self(.handlerAnswered(question: question, answer)) }

    // MARK: What is to be seen

    var request: String { "\(machine.request.method.rawValue) \(machine.request.url.absoluteString)" }
    var currentRequest: TransferRequest { machine.request }
    var state: TransferTask.State { result == nil ? TransferTask.State(machine.visibleState) : .finished }
    var progress: TransferProgress { machine.progress }
    var metrics: TransferMetrics { machine.metrics }
    var logins: TaskLogins { machine.logins }
    var needsFreshConnection: Bool { machine.needsFreshConnection }
    var readsSmallPieces: Bool { machine.readsSmallPieces }
    /// The result: "200", or the code of the error.
    var ending: String? {
        switch result {
        case nil: nil
        case .success(let response): "\(response.statusCode)"
        case .failure(let error): error.code.rawValue
        }
    }

    /// The error of a task that has failed.
    var error: HTTPSessionError? {
        if case .failure(let error)? = result { error } else { nil }
    }

    private static func text(_ intake: Intake) -> String? {
        switch intake {
        case .accepted: nil
        case .pause: "pause"
        case .abort(let error): "abort: \(error.reason)"
        }
    }

    // MARK: The surroundings

    private func effects() -> String {
        var lines: [String] = []
        while let effect = machine.nextEffect() { if let line = perform(effect) { lines.append(line) } }
        return lines.joined(separator: ", ")
    }

    private func perform(_ effect: TaskMachine.Effect) -> String? {
        switch effect {
        case .startTransfer:
            addedLines = machine.kind == .download ? machine.beginDownloadAttempt() : []
            machine.attemptStarted(
                at: date, over: nil, with: nil, expectsHTTPS: machine.origin.scheme == "https", expectsContinue: false,
                bodyLength: nil)
            return "start"
        case .requestRetry:
            machine.handle(retryWait.map { .retryPostponed($0) } ?? .retryGranted, now: now)
            return retryWait == nil ? nil : "retry postponed"
        case .finishSink:
            deliver(.success(ReceivedBody()))
            return nil
        case .completeTask:
            result = machine.removeResult()
            return "end \(ending ?? "")"
        case .publishState: return "\(machine.visibleState)"
        case .recordMetrics(of: let request):
            machine.recordMetrics(TransferFacts(), of: request)
            return nil
        case .explainFailure:
            machine.handle(.failureExplained(explanation ?? .unavailable), now: now)
            return nil
        case .verifyDigest:
            machine.handle(.digestVerified(.success(digestMatches)), now: now)
            return "verify"
        case .verifyUploadDigest:
            machine.handle(.uploadDigestVerified(digestMatches), now: now)
            return "verify upload"
        case .deliverBufferedBody(let data):
            machine.handle(.bufferedBodyDelivered(nil), now: now)
            return "deliver \(data.count)"
        case .discardBody(let error):
            deliver(.failure(error))
            return nil
        case .askHandler(let number, _):
            question = number
            return effect.text
        default: return effect.text
        }
    }

    private func deliver(_ body: Result<ReceivedBody, HTTPSessionError>) {
        machine.delivered(body, during: DateInterval(start: date, duration: 0), now: now)
    }
}

let second: Int64 = 1_000_000_000

extension TaskMachine.Effect {
    /// The text of the effect; `nil` if it is not written.
    fileprivate var text: String? {
        switch self {
        case .enqueue: "enqueue"
        case .enqueueFirst: "enqueue first"
        case .dequeue: "dequeue"
        case .releaseQueueSlot: "release slot"
        case .releaseQueueSlotDuringLookup: "release slot, lookup continues"
        case .reportStalledLookup: "report stalled lookup"
        case .suspendTransfer: "suspend transfer"
        case .resumeTransfer: "resume transfer"
        case .abandon: "abandon"
        case .abandonSilently: "abandon silently"
        case .upgradeToHTTPS: "upgrade to https"
        case .openSink: "open sink"
        case .resumeReceiving: "resume receiving"
        case .scheduleRequestStop: "schedule request stop"
        case .withdrawQuestion: "withdraw question"
        case .leaveOutage: "leave outage"
        case .checkAllowedNetworks: "check networks"
        case .checkForReferences: "check references"
        case .reportResumed: "report resumed"
        case .reportSuspended: "report suspended"
        case .openPartialFile: "open partial file"
        case .renameFile: "rename file"
        case .confirmFinishedFile: "confirm file"
        case .reportUploadLocation(let url): "location \(url.path())"
        case .askHandler(_, let question): "ask \(question.text)"
        case .storeCredential(let credential, _): "store credential of \(credential.user)"
        case .recordTrust: "record trust"
        case .recordIdentity: "record identity"
        case .forgetIdentity: "forget identity"
        case .report(let report): "report \(report.text)"
        case .recordResolvedName, .checkRoutes, .reportNotSent, .refundRetry, .publishBackoff, .publishProgress,
            .reportTransaction, .publishState, .startTransfer, .requestRetry, .finishSink, .completeTask, .recordMetrics,
            .openRetryBudget, .releaseBody, .sendBodyRange, .sendSegments, .deliverBufferedBody, .verifyDigest,
            .verifyUploadDigest, .explainFailure, .discardBody:
            nil
        }
    }
}

extension TaskMachine.Report {
    fileprivate var text: String {
        switch self {
        case .redirected(let head): "redirected by \(head.statusCode)"
        case .challenged(let challenge): "challenged by \(challenge.scheme.rawValue)"
        case .serverTrustChallenged: "server trust challenge"
        case .clientCertificateChallenged: "client certificate challenge"
        case .becameDownload: "became download"
        case .willRetry(let error): "retry after \(error.code.rawValue)"
        case .waitingForConnectivity(let error): "waiting: \(error.code.rawValue)"
        case .downloadContinued(let offset, let total): "continued at \(offset) of \(total.map { "\($0)" } ?? "-")"
        case .uploadContinued(let offset, let total): "continued at \(offset) of \(total)"
        case .fileMoved: "moved"
        case .fileMoveFailed: "not moved"
        }
    }
}

extension HandlerQuestion {
    fileprivate var text: String {
        switch self {
        case .adaptation: "how to adapt"
        case .response(let head): "about the response \(head.statusCode)"
        case .redirect(_, let proposed): "about the redirect to \(proposed.url.path())"
        case .challenge(let challenge): "for a \(challenge.scheme.rawValue) credential"
        case .interception(let attempt):
            "interceptors about \(attempt.error?.code.rawValue ?? "\(attempt.response?.statusCode ?? 0)")"
        case .serverTrust: "about the certificates"
        case .clientCertificate: "for an identity"
        }
    }
}
