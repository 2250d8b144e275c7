import Foundation
import HTTPTypes
import Reachability
import Testing

@testable import HTTPSession

/// A task's machine, what happens to it, and what it does about it, a line for each event: effects in their order, with commas between them.
///
/// The surroundings answer at once, and nothing is written of the effects that they are asked by: the gate says ``gate``, a retry is paid, a file
/// is whole. What is told by every attempt (progress, the clock of a wait, what was measured) is left out.
final class TransferTranscript {
    private var machine: TransferMachine
    /// Nanoseconds.
    private(set) var now: Int64 = 1_000_000_000
    /// What the gate says of failures; `nil`: there is none.
    var gate: TransferMachine.GateAnswer?
    /// Whether the budget pays for retries; if not, how long one has to wait.
    var retryWait: Int64?
    var isWhole = true
    private(set) var result: Result<TransferResponse, HTTPSessionError>?
    /// The fields that the last attempt adds for a download.
    private(set) var addedLines: [String] = []
    private let date = Date(timeIntervalSince1970: 1_795_000_000)

    init(
        _ method: HTTPRequest.Method = .get, _ url: String = "https://host/file", fields: HTTPFields = [:],
        body: RequestBody = .none, kind: TransferRules.Kind = .data, to destination: BodyDestination? = nil,
        handlers: TransferRules.Handlers = [], policy: RetryPolicy = .default, upload: UploadMachine? = nil,
        waits: Bool = false, _ change: (inout SessionConfiguration) -> Void = { _ in }
    ) throws {
        var configuration = SessionConfiguration.default
        configuration.waitsForConnectivity = waits
        change(&configuration)
        let request = TransferRequest(url: try #require(URL(string: url)), method: method, headerFields: fields, body: body)
        let session = SessionRules(configuration, proxies: ProxyOrigins(.none, environment: [:]))
        let rules = TransferRules(
            session: session, request: request, kind: kind, destination: destination ?? .memory(maximumSize: 1 << 20),
            acceptableStatusCodes: kind == .data ? nil : TaskSpecification.successes, handlers: handlers,
            limits: .init(requestTimeout: 60 * second, resourceTimeout: 3_600 * second, handlerTimeout: 30 * second),
            retryPolicy: policy, hasRecord: false)
        machine = TransferMachine(
            rules, origin: try #require(Origin(request.url)), upload: upload, seed: 7, now: now)
    }

    static func head(_ status: Int, _ fields: [String]) throws -> ResponseHead {
        let text = "HTTP/1.1 \(status) X\r\n" + fields.map { $0 + "\r\n" }.joined() + "\r\n"
        return try #require(ResponseHead(bytes: Array(text.utf8)))
    }

    // MARK: Events

    func callAsFunction(_ event: TransferMachine.Event) -> String {
        machine.handle(event, now: now)
        return effects()
    }

    /// The task is started, has a place, and its attempt a connection.
    @discardableResult
    func starts() -> String { [self(.resume), self(.admitted), self(.connected)].joined(separator: "; ") }

    /// The task that waits in the queue goes on to its next connection.
    @discardableResult
    func goesOn() -> String { [self(.admitted), self(.connected)].joined(separator: "; ") }

    /// So many seconds pass.
    func after(_ seconds: Double) -> String {
        now += Int64(seconds * 1e9)
        return self(.time)
    }

    /// The wait that the machine asks for is over.
    func afterItsWait() -> String {
        now = max(now, machine.deadline ?? now)
        return self(.time)
    }

    func head(_ status: Int, _ fields: String...) throws -> String { try head(status, lines: fields[...]) }

    func head(_ status: Int, lines: ArraySlice<String>) throws -> String {
        let intake = machine.received(try Self.head(status, Array(lines)), at: date, now: now)
        return [Self.text(intake), effects()].compactMap(\.self).filter { !$0.isEmpty }.joined(separator: ", ")
    }

    func body(_ count: Int) -> String {
        switch machine.place(of: count, now: now, arrived: { nil }) {
        case .nowhere: return "pause"
        case .refused(let error): return "refuse: \(error.reason)"
        case .sink:
            machine.took(count)
            return effects()
        case .memory:
            let bytes = [UInt8](repeating: 0x61, count: count)
            let intake = bytes.withUnsafeBytes { machine.hold($0) }
            return [Self.text(intake), effects()].compactMap(\.self).filter { !$0.isEmpty }.joined(separator: ", ")
        }
    }

    /// So many bytes of the request's body have gone.
    func sends(_ count: Int) {
        machine.provided(count, now: now)
        _ = effects()
    }

    /// The sink takes no more for now.
    func receiverIsFull() { machine.receiverIsFull() }

    /// The transfer ends. `code`: why it has no whole response.
    func ends(
        _ code: HTTPSessionError.Code? = nil, authorities: [String]? = nil, lacking cause: Cause? = nil,
        _ change: (inout TransferFacts) -> Void = { _ in }
    ) -> String {
        var facts = TransferFacts()
        change(&facts)
        let failure = code.map {
            TransferFailure(
                HTTPSessionError($0, "failed"), authorities: authorities, lack: cause.map { TransferFailure.Lack(cause: $0) })
        }
        machine.finished(facts, failure, now: now)
        return effects()
    }

    /// The handler that was asked last.
    func answers(_ answer: HandlerAnswer) -> String { self(.answered(question: machine.question, answer)) }

    // MARK: What is to be seen

    var request: String { "\(machine.request.method.rawValue) \(machine.request.url.absoluteString)" }
    var present: TransferRequest { machine.request }
    var state: TaskMachine.State { machine.life.state }
    var progress: TransferProgress { machine.progress }
    var metrics: TransferMetrics { machine.metrics }
    var logins: TaskLogins { machine.logins }
    var needsFreshConnection: Bool { machine.needsFreshConnection }
    var question: Int { machine.question }
    /// "200", or the code of the error.
    var ending: String? {
        switch result {
        case nil: nil
        case .success(let response): "\(response.statusCode)"
        case .failure(let error): error.code.rawValue
        }
    }

    private static func text(_ intake: Intake) -> String? {
        switch intake {
        case .taken: nil
        case .pause: "pause"
        case .abort(let error): "abort: \(error.reason)"
        }
    }

    // MARK: The surroundings

    private func effects() -> String {
        var lines: [String] = []
        var index = 0
        while index < machine.effects.count {
            if let line = perform(machine.effects[index]) { lines.append(line) }
            index += 1
        }
        machine.effects = []
        return lines.joined(separator: ", ")
    }

    private func perform(_ effect: TransferMachine.Effect) -> String? {
        switch effect {
        case .start:
            addedLines = machine.kind == .download ? machine.downloadLines() : []
            machine.attempt.begin(at: date, over: nil, saying: nil, expectsSecure: machine.origin.scheme == "https")
            machine.bodyBegins(length: nil)
            return "start"
        case .payRetry:
            machine.handle(retryWait.map { .retryHasToWait($0) } ?? .retryIsPaid, now: now)
            return retryWait == nil ? nil : "has to wait"
        case .deliver:
            deliver(.success(ReceivedBody()))
            return nil
        case .complete:
            result = machine.result
            return "end \(ending ?? "")"
        case .stand: return "\(machine.standing)"
        case .order: return machine.takeOrder().flatMap { perform($0) }
        default: return effect.text
        }
    }

    private func perform(_ order: TransferMachine.Order) -> String? {
        switch order {
        case .measure(let request):
            machine.note(TransferFacts(), of: request)
            return nil
        case .askGate:
            machine.handle(.explained(gate ?? .notAsked), now: now)
            return nil
        case .verify:
            machine.handle(.verified(.success(isWhole)), now: now)
            return "verify"
        case .verifyUpload:
            machine.handle(.uploadVerified(isWhole), now: now)
            return "verify the upload"
        case .feed(let data):
            machine.handle(.fed(nil), now: now)
            return "feed \(data.count)"
        case .discard(let error):
            deliver(.failure(error))
            return nil
        default: return order.text
        }
    }

    private func deliver(_ body: Result<ReceivedBody, HTTPSessionError>) {
        machine.delivered(body, during: DateInterval(start: date, duration: 0), now: now)
    }
}

let second: Int64 = 1_000_000_000

extension TransferMachine.Effect {
    /// `nil`: not written.
    fileprivate var text: String? {
        switch self {
        case .enqueue: "queue"
        case .enqueueFirst: "queue first"
        case .dequeue: "leave the queue"
        case .leave: "give up the place"
        case .leaveLookingUp: "give up the place, the look-up goes on"
        case .nameIsUnanswered: "the name is unanswered"
        case .hold: "hold"
        case .letGo: "let go"
        case .abandon: "abandon"
        case .abandonSilently: "abandon silently"
        case .raise: "raise"
        case .open: "open"
        case .receive: "receive"
        case .breakOffSoon: "break off"
        case .withdraw: "withdraw the question"
        case .leaveGate: "leave the gate"
        case .lookAtNetwork: "look at the network"
        case .lookForHolder: "look for the holder"
        case .announceResumed: "tell resumed"
        case .announceSuspended: "tell suspended"
        case .lookedUp, .judgeAttempt, .stay, .noteSuccess, .backOff, .publishProgress, .tellTransaction,
            .stand, .start, .payRetry, .deliver, .complete, .order:
            nil
        }
    }
}

extension TransferMachine.Order {
    /// `nil`: not written.
    fileprivate var text: String? {
        switch self {
        case .openPart: "open the part"
        case .rename: "rename"
        case .confirm: "confirm"
        case .tellPlace(let url): "place \(url.path())"
        case .ask(_, let question): "ask \(question.text)"
        case .keepCredential(let credential, _): "keep \(credential.user)"
        case .recordTrust: "record the trust"
        case .recordIdentity: "record the identity"
        case .forgetIdentity: "forget the identity"
        case .tell(let news): "tell \(news.text)"
        case .measure, .noteTrouble, .release, .sendPart, .sendSegments, .feed, .verify, .verifyUpload, .askGate, .discard: nil
        }
    }
}

extension TransferMachine.News {
    fileprivate var text: String {
        switch self {
        case .redirected(let head): "redirected by \(head.statusCode)"
        case .challenged(let challenge): "challenged by \(challenge.scheme.rawValue)"
        case .serverTrustChallenged: "of the certificates"
        case .clientCertificateChallenged: "of the identity"
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
