internal import Certificates
internal import Pacing

/// The levels of one probe on its connection: it takes the server's bytes with their times, and returns the bytes to send. The prober
/// owns the socket.
final class LevelRun {
    /// The time for which a TLS 1.3 server that has requested a client certificate may still refuse, in nanoseconds: its alert arrives
    /// one round trip after the handshake (RFC 8446 section 4.4.2.4).
    static let refusalTime: Int64 = 500_000_000

    /// The result; complete if ``hasEnded``.
    private(set) var result = LevelResult()
    private(set) var hasEnded = false
    /// The time at which the levels end in any case, on the monotonic clock in nanoseconds.
    private(set) var deadline: Int64
    private let plan: LevelPlan
    private let client: TLSProbeClient?
    private var exchange: HTTPExchange?
    private var output: [UInt8] = []
    private let started: Int64
    private var requested: Int64?
    private var firstByte: Int64?
    private var awaitsRefusal = false

    /// Begins the levels on a connection that is established.
    init(_ plan: LevelPlan, _ contexts: inout TLSContexts, deadline: Int64, now: Int64) {
        self.plan = plan
        self.deadline = deadline
        started = now
        guard let handshake = plan.handshake else {
            client = nil
            sendRequest(now)
            return
        }
        switch contexts.context(for: handshake.settings) {
        case .success(let context):
            client = TLSProbeClient(
                context, serverName: handshake.name, isAddress: handshake.isAddress, protocols: handshake.protocols)
        case .failure(let error):
            client = nil
            result.localFailure = error.reason
        }
        guard let client else {
            result.localFailure = result.localFailure ?? "there is no memory for a TLS handshake"
            end(.failed)
            return
        }
        client.start()
        result.tls = client.facts
    }

    /// Returns the bytes to send now.
    func takeOutput() -> [UInt8] {
        defer { output = [] }
        return output + (client?.takeOutput() ?? [])
    }

    /// Takes bytes of the server.
    func receive(_ bytes: UnsafeRawBufferPointer, now: Int64) {
        guard !hasEnded else { return }
        guard let client else { return take(bytes, now) }
        let wasHandshaking = client.state == .handshaking
        let data = client.receive(bytes)
        if wasHandshaking, client.state != .handshaking { handshakeEnded(client, now) }
        if !data.isEmpty { data.withUnsafeBytes { take($0, now) } }
        guard !hasEnded else { return }
        switch client.state {
        case .failed:
            result.tls = client.facts
            end(.failed)
        case .closed: inputEnded(now)
        // Anything but an alert shows that the server accepts the client without a certificate.
        case .established where awaitsRefusal && !wasHandshaking: end(.completed)
        case .established, .handshaking: break
        }
    }

    /// Notes that the server has closed its side of the connection.
    func inputEnded(_ now: Int64) {
        guard !hasEnded else { return }
        if exchange != nil {
            exchange?.endOfInput()
            return endExchange(now, .closed)
        }
        end(awaitsRefusal ? .completed : .closed)
    }

    /// Notes that the connection has failed.
    func connectionFailed(_ number: Int32, _ now: Int64) {
        guard !hasEnded else { return }
        result.errno = number
        // A reset may follow a response that is complete but for its end.
        end(.error)
    }

    /// Ends the levels at the deadline. The remaining values describe the connection.
    func deadlineReached(isAcknowledged: Bool, hasGap: Bool) {
        guard !hasEnded else { return }
        result.isAcknowledged = isAcknowledged
        result.hasGap = hasGap
        end(awaitsRefusal ? .completed : .deadline)
    }

    private func handshakeEnded(_ client: TLSProbeClient, _ now: Int64) {
        result.tls = client.facts
        guard client.state == .established || client.state == .closed else { return }
        result.handshakeNanoseconds = max(0, now - started)
        if plan.request != nil { return sendRequest(now) }
        guard client.facts.isCertificateRequested, client.facts.version == "TLSv1.3" else { return end(.completed) }
        awaitsRefusal = true
        deadline = min(deadline, now.addingSaturated(Self.refusalTime))
    }

    private func sendRequest(_ now: Int64) {
        guard let request = plan.request else { return end(.completed) }
        exchange = HTTPExchange(method: request.method)
        result.http = exchange?.facts
        requested = now
        if let client { client.send(request.bytes) } else { output += request.bytes }
    }

    private func take(_ bytes: UnsafeRawBufferPointer, _ now: Int64) {
        guard exchange != nil else { return }
        if firstByte == nil {
            firstByte = now
            result.processingNanoseconds = requested.map { max(0, now - $0) }
        }
        exchange?.receive(bytes)
        if exchange?.hasEnded == true { endExchange(now, .completed) }
    }

    private func endExchange(_ now: Int64, _ ending: LevelResult.Ending) {
        exchange?.check(plan.expectation)
        if exchange?.facts.isComplete == true {
            result.transferNanoseconds = firstByte.map { max(0, now - $0) }
            return end(.completed)
        }
        end(exchange?.facts.violation == nil ? ending : .failed)
    }

    private func end(_ ending: LevelResult.Ending) {
        result.ending = ending
        if let client {
            result.tls = client.facts
            if ending == .completed { client.close() }
            output += client.takeOutput()
            client.finish()
        }
        if let exchange { result.http = exchange.facts }
        exchange = nil
        hasEnded = true
    }
}

/// The contexts of TLS handshakes, one for each set of authorities. OpenSSL is initialized with the first one.
struct TLSContexts {
    /// The reason why a context cannot be made.
    struct Failure: Error {
        let reason: String
    }

    private var contexts: [Authorities: TLSProbeContext] = [:]

    /// Returns the context for settings, and creates it if necessary. A failure is not kept, because the files may change.
    mutating func context(for settings: TLSProbeSettings) -> Result<TLSProbeContext, Failure> {
        if let context = contexts[settings.authorities] { return .success(context) }
        do throws(CertificateError) {
            let context = try TLSProbeContext(settings.authorities)
            contexts[settings.authorities] = context
            return .success(context)
        } catch {
            switch error {
            case .invalid(let reason): return .failure(Failure(reason: reason))
            case .noAuthorities(let variable, let path, let number):
                let why = number == 0 ? "has no certificate" : "cannot be read: \(errorText(number))"
                return .failure(Failure(reason: "\(variable): '\(path)' \(why)"))
            case .unknownCiphers, .unknownCipherSuites: return .failure(Failure(reason: "OpenSSL refuses its ciphers"))
            }
        }
    }
}
