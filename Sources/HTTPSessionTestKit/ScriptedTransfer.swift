import EventLoop
import HTTPSession
import Reachability

/// One attempt of a scripted session. It reads the request's body, takes the response from the script, and delivers the response piece
/// by piece.
final class ScriptedTransfer: Transfer {
    private enum Phase {
        /// The request has no connection yet.
        case connecting
        case sending
        /// The response is delivered, step by step.
        case answering
        case ended
    }

    let plan: TransferPlan
    let receiver: any TransferReceiver
    // The engine ends every transfer before it ends.
    private unowned let engine: ScriptedEngine
    let started: Int64
    private var phase = Phase.connecting
    private var isHeld = false
    private var isReceiverFull = false
    private var isSourceEmpty = false
    private var request: ReceivedRequest
    private var hasAskedForCookies = false
    private var response: StubResponse?
    private var delivery = ScriptedDelivery()
    /// The failure that replaces the response when its wait has ended.
    private var failure: StubFailure?
    /// The time at which the present delay ends.
    private var resumesAt: Int64?
    private var connectedAt: Int64?
    /// The index of the interface over which the path led when the connection was made.
    private var interface: UInt32?
    private var firstByteAt: Int64?
    private var bodyBytes: Int64 = 0
    private var headBytes: Int64 = 0

    init(_ plan: TransferPlan, receiver: any TransferReceiver, engine: ScriptedEngine, now: Int64) {
        self.plan = plan
        self.receiver = receiver
        self.engine = engine
        started = now
        request = ReceivedRequest(plan, arrival: engine.transport.nextArrival())
    }

    // MARK: Transfer

    let isUpgraded = false
    let usesHTTP2: Bool? = false
    let ends: (local: String, remote: String)? = nil
    let connectAttempts: [RouteTracker.ConnectAttempt] = []
    let isAcknowledged = true
    var receivedBodyBytes: Int64 { bodyBytes }
    var waitsForOthers: Bool { delivery.gate.map { !$0.isOpen } ?? false }

    var facts: TransferFacts {
        var facts = TransferFacts()
        facts.networkProtocol = connectedAt == nil ? nil : "http/1.1"
        facts.preTransfer = connectedAt.map { $0 - started }
        facts.firstByte = firstByteAt.map { $0 - started }
        facts.total = engine.now - started
        (facts.requestBytes, facts.requestBodyBytes) = (connectedAt == nil ? 0 : request.headLength, request.bodyLength)
        facts.providedBodyBytes = request.bodyLength
        (facts.responseHeaderBytes, facts.responseBodyBytes, facts.decodedBodyBytes) = (headBytes, bodyBytes, bodyBytes)
        return facts
    }

    func hold(_ isHeld: Bool) {
        self.isHeld = isHeld
        engine.noteChange()
    }

    func resumeReceiving() {
        isReceiverFull = false
        engine.noteChange()
    }

    func resumeSending() {
        isSourceEmpty = false
        engine.noteChange()
    }

    func cancel() {
        phase = .ended
        engine.remove(self)
    }

    func end(with error: HTTPSessionError) { finish(error) }

    func silence() {}

    // MARK: Called by the engine

    /// The end of the present delay; `nil` for no delay.
    var deadline: Int64? { isHeld || isReceiverFull || phase == .ended ? nil : resumesAt }

    /// Takes the next step. - Returns: `false` if no step was left.
    func step(now: Int64, path: NetworkPath?) -> Bool {
        guard !isHeld else { return false }
        let isUnreachable = plan.watchesRoute && path?.status == .unsatisfied
        switch phase {
        case .connecting: return connect(now: now, isUnreachable: isUnreachable)
        case .sending where isUnreachable, .answering where isUnreachable:
            finish(connectedAt == nil ? StubFailure.noPath(engine.path) : StubFailure.routeLost)
            return true
        case .sending where hasMoved(path), .answering where hasMoved(path):
            finish(StubFailure.routeLost)
            return true
        case .sending: return isSourceEmpty ? false : send(now: now)
        case .answering: return isReceiverFull ? false : answer(now: now)
        case .ended: return false
        }
    }

    /// Whether a session over the network would end the connection: its interface is gone, or the path leads over another one and the request is safe
    /// to repeat.
    private func hasMoved(_ path: NetworkPath?) -> Bool {
        guard plan.watchesRoute, let interface, let path, let present = path.interface, present.index != interface else {
            return false
        }
        return !path.interfaces.contains { $0.index == interface } || request.isIdempotent
    }

    private func connect(now: Int64, isUnreachable: Bool) -> Bool {
        if let failure {
            // The connect timeout passes.
            guard let resumesAt, resumesAt <= now else { return false }
            finish(failure.error)
            return true
        }
        if isUnreachable {
            receiver.transferLookedUp()
            finish(StubFailure.noPath(engine.path))
            return true
        }
        if plan.handlesCookies, !hasAskedForCookies {
            hasAskedForCookies = true
            let cookies = receiver.transferNeedsCookies(isSecure: plan.isSecure)
            if !cookies.isEmpty { request = ReceivedRequest(plan, cookies: cookies, arrival: request.arrival) }
        }
        switch engine.transport.takeAnswer(to: request, url: plan.url, isComplete: plan.body.isEmpty) {
        case .response(let response):
            if let failure = response.failure {
                if failure.error.code != .cannotFindHost { receiver.transferLookedUp() }
                fail(failure, now: now)
                return true
            }
            receiver.transferLookedUp()
            phase = .sending
            accept(response, now: now)
        case .later:
            // A closure chooses the answer by the body. It may be that no connection is made, so none is reported yet.
            receiver.transferLookedUp()
            phase = .sending
        case .unmatched(let error): finish(error)
        }
        return true
    }

    /// Ends the attempt with a failure, at once or after the connect timeout.
    private func fail(_ failure: StubFailure, now: Int64) {
        guard failure.waits else { return finish(failure.error) }
        self.failure = failure
        resumesAt = now + plan.connectTimeoutMilliseconds * 1_000_000
    }

    private func accept(_ response: StubResponse, now: Int64) {
        self.response = response
        connectedAt = now
        interface = engine.path?.currentPath?.interface?.index
        receiver.transferConnected()
    }

    // MARK: The request

    private func send(now: Int64) -> Bool {
        switch provide() {
        case .bytes: return true
        case .end: break
        case .pause:
            isSourceEmpty = true
            return true
        case .abort(let error):
            finish(error)
            return true
        }
        guard let response = response ?? complete(now: now) else { return true }
        engine.transport.record(request)
        phase = .answering
        delivery = ScriptedDelivery(response, method: plan.method, isSecure: plan.isSecure)
        return true
    }

    private func provide() -> Provision {
        if plan.body.isEmpty { return .end }
        if case .length(let length) = plan.body, request.bodyLength >= length { return .end }
        return withUnsafeTemporaryAllocation(byteCount: 64 << 10, alignment: 16) { buffer in
            let provision = receiver.transferProvides(into: buffer)
            if case .bytes(let count) = provision {
                let room = max(0, ScriptedTransport.recordedBodyBytes - request.body.count)
                request.body += buffer.prefix(min(count, room))
                request.bodyLength += Int64(count)
            }
            return provision
        }
    }

    /// The response to the complete request; `nil` if the attempt fails instead.
    private func complete(now: Int64) -> StubResponse? {
        switch engine.transport.takeAnswer(to: request, url: plan.url, isComplete: true) {
        case .response(let response):
            if let failure = response.failure {
                phase = .connecting
                fail(failure, now: now)
            } else {
                accept(response, now: now)
                return phase == .ended ? nil : response
            }
        case .unmatched(let error): finish(error)
        case .later: preconditionFailure("a complete request has no answer")
        }
        return nil
    }

    // MARK: The response

    private func answer(now: Int64) -> Bool {
        if let resumesAt {
            guard resumesAt <= now else { return false }
            self.resumesAt = nil
        }
        switch delivery.next(now: now) {
        case .wait(.delay(let duration)):
            resumesAt = now + min(max(0, duration.nanoseconds), Int64.max / 2 - now)
        case .wait(.gate(let gate)):
            gate.wakeWhenOpen(engine.waker)
            return false
        case .wait(.forever): return false
        case .interim(let head):
            note(head, now: now)
            receiver.transferReceived(interim: head)
        case .head(let head):
            note(head, now: now)
            if case .abort(let error) = receiver.transferReceived(head: head) { finish(error) }
        case .bytes(let bytes): deliver(bytes)
        case .end(let error): finish(error)
        }
        return true
    }

    private func note(_ head: ResponseHead, now: Int64) {
        firstByteAt = firstByteAt ?? now
        headBytes += Int64(head.bytes.count)
    }

    private func deliver(_ bytes: [UInt8]) {
        switch bytes.withUnsafeBytes({ receiver.transferReceived(bytes: $0) }) {
        case .accepted:
            bodyBytes += Int64(bytes.count)
            delivery.took(bytes.count)
        case .pause: isReceiverFull = true
        case .abort(let error): finish(error)
        }
    }

    private func finish(_ error: HTTPSessionError?) {
        guard phase != .ended else { return }
        let facts = facts
        phase = .ended
        engine.remove(self)
        receiver.transferFinished(error, facts: facts)
    }
}

extension TransferPlan.BodyFraming {
    /// Whether the response has no body.
    var isEmpty: Bool { self == .none || self == .length(0) }
}
