internal import Certificates
internal import Pacing

/// The conversation of a TLS probe: the handshake, and the time in which a server may refuse the client.
final class TLSRun: StreamRun {
    /// The time for which a TLS 1.3 server that has requested a client certificate may still refuse, in nanoseconds: its alert arrives
    /// one round trip after the handshake (RFC 8446 section 4.4.2.4).
    static let refusalTime: Int64 = 500_000_000

    private(set) var result = LevelResult()
    private(set) var hasEnded = false
    private(set) var deadline: Int64
    let context: TLSClientContext?
    private let plan: TLSPlan
    private var client: TLSClient?
    private var output: [UInt8] = []
    private var started: Int64 = 0

    init(_ plan: TLSPlan, deadline: Int64) {
        self.plan = plan
        self.deadline = deadline
        context = plan.makeContext()
    }

    var endsGracefully: Bool { !result.isAtDeadline && result.handshakeEnd == .completed }
    var beginsWithTLS: Bool { true }

    func connected(_ now: Int64) {
        started = now
        client = result.startHandshake(plan, context, output: &output)
        if client == nil { end(.completed) }
    }

    func takeOutput() -> [UInt8] {
        defer { output = [] }
        return output
    }

    func noteSent(_ count: Int) { result.bytesSent += count }

    func receive(_ bytes: UnsafeRawBufferPointer, now: Int64) {
        result.bytesReceived += bytes.count
        guard !hasEnded, let client else { return }
        let wasHandshaking = client.state == .handshaking
        let step = client.receive(bytes)
        output += step.bytesToSend
        if wasHandshaking, client.facts.isComplete {
            result.handshakeNanoseconds = max(0, now - started)
            if client.mayStillBeRefused { deadline = min(deadline, now.addingSaturated(Self.refusalTime)) }
        }
        switch step.state {
        case .failed: end(.protocolError)
        case .closed: end(.endOfFile)
        case .established: if !client.mayStillBeRefused { end(.completed) }
        case .handshaking: break
        }
    }

    func inputEnded(_ now: Int64) { end(.endOfFile) }

    func connectionFailed(_ number: Int32) { end(.systemError(number)) }

    func deadlineReached(_ progress: ConnectionProgress?) {
        guard !hasEnded else { return }
        result.note(progress)
        // A server that was silent after the handshake has accepted the client.
        let isAccepted = client?.state == .established
        result.isAtDeadline = !isAccepted
        end(isAccepted ? .completed : .deadline)
    }

    /// Ends the conversation. `handshakeEnd` counts if the handshake has not ended by itself, or if the server refuses the client afterwards.
    private func end(_ handshakeEnd: TLSHandshakeEnd) {
        guard !hasEnded else { return }
        hasEnded = true
        guard let client else { return }
        let isRefusedLater = handshakeEnd != .completed && (client.state == .established || client.state == .closed)
        result.endHandshake(client, handshakeEnd, output: &output)
        if isRefusedLater { result.handshakeEnd = handshakeEnd }
        self.client = nil
    }
}
